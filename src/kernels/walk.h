// Walking strided arrays in row-major order, where the order of the elements is part of what a kernel means. (Where it
// is not, LoopGeometry finds a better order.) Sizes and strides count elements.
#pragma once

#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/types.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The shape of N arrays that are walked together, each with strides of its own.
template <int N> struct Strided {
  SmallVector<int64_t> sizes;
  std::array<SmallVector<int64_t>, N> strides;

  Strided() = default;
  Strided(IntArrayRef shape, std::array<IntArrayRef, N> each) {
    for (size_t d = 0; d < shape.size(); ++d) {
      sizes.push_back(shape[d]);
      for (int k = 0; k < N; ++k) strides[k].push_back(each[k][d]);
    }
  }
  void push(int64_t size, std::array<int64_t, N> each) {
    sizes.push_back(size);
    for (int k = 0; k < N; ++k) strides[k].push_back(each[k]);
  }
  void pop() {
    sizes.pop_back();
    for (int k = 0; k < N; ++k) strides[k].pop_back();
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
  /// Drops dimensions of size 1 and joins neighbours that every array passes through as one.
  void simplify() {
    Strided simple;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      bool joins = !simple.sizes.empty();
      for (int k = 0; k < N && joins; ++k) joins = simple.strides[k].back() == strides[k][d] * sizes[d];
      if (joins) {
        simple.sizes.back() *= sizes[d];
        for (int k = 0; k < N; ++k) simple.strides[k].back() = strides[k][d];
      } else {
        std::array<int64_t, N> each;
        for (int k = 0; k < N; ++k) each[k] = strides[k][d];
        simple.push(sizes[d], each);
      }
    }
    *this = simple;
  }
};

/// A place in N arrays: `seek` goes to an element by its row-major number, `next` to the one that follows.
template <int N> class Odometer {
 public:
  explicit Odometer(const Strided<N>& shape) : shape_(shape), digits_(shape.sizes.size(), 0) { offsets_.fill(0); }

  void seek(int64_t position) {
    offsets_.fill(0);
    for (size_t d = digits_.size(); d-- > 0;) {
      digits_[d] = position % shape_.sizes[d];
      position /= shape_.sizes[d];
      for (int k = 0; k < N; ++k) offsets_[k] += digits_[d] * shape_.strides[k][d];
    }
  }
  void next() {
    for (size_t d = digits_.size(); d-- > 0;) {
      for (int k = 0; k < N; ++k) offsets_[k] += shape_.strides[k][d];
      if (++digits_[d] < shape_.sizes[d]) return;
      digits_[d] = 0;
      for (int k = 0; k < N; ++k) offsets_[k] -= shape_.sizes[d] * shape_.strides[k][d];
    }
  }
  /// The offset in the k-th array.
  int64_t operator[](int k) const { return offsets_[k]; }
  /// The position along a dimension.
  int64_t digit(size_t dim) const { return digits_[dim]; }

 private:
  const Strided<N>& shape_;
  SmallVector<int64_t> digits_;
  std::array<int64_t, N> offsets_;
};

/// A 0-d tensor as a vector of one element; others as they are.
inline Tensor at_least_1d(const Tensor& t) { return t.dim() > 0 ? t : alias_tensor(t, {1}, {1}, t.storage_offset()); }

/// Strides that make a tensor look as if it had these sizes: zero where it is broadcast.
inline SmallVector<int64_t> broadcast_strides(const Tensor& t, IntArrayRef sizes) {
  SmallVector<int64_t> strides(sizes.size(), 0);
  size_t lead = sizes.size() - t.dim();
  for (int64_t d = 0; d < t.dim(); ++d) strides[lead + d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  return strides;
}

/// Copies bytes that do not overlap. Short runs, of which there are many, go in two halves that may overlap: a call of
/// memcpy takes longer than that.
inline void copy_bytes(char* to, const char* from, size_t bytes) {
  auto halves = [&](auto size) {
    char first[size()], last[size()];
    std::memcpy(first, from, size());
    std::memcpy(last, from + bytes - size(), size());
    std::memcpy(to, first, size());
    std::memcpy(to + bytes - size(), last, size());
  };
  if (bytes > 128) std::memcpy(to, from, bytes);
  else if (bytes > 64) halves(std::integral_constant<size_t, 64>());
  else if (bytes > 32) halves(std::integral_constant<size_t, 32>());
  else if (bytes > 16) halves(std::integral_constant<size_t, 16>());
  else if (bytes >= 8) halves(std::integral_constant<size_t, 8>());
  else if (bytes >= 4) halves(std::integral_constant<size_t, 4>());
  else
    for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

/// Moves n elements, each side with its own step.
template <class T> void move_run(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  if (n == 1) *to = *from;
  else if (to_stride == 1 && from_stride == 1)
    copy_bytes(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), n * sizeof(T));
  else if (to_stride == 1 && from_stride == -1)
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  else
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
}

/// a + b in the elements' type: integers wrap around, for bools it is "or", narrow floats round once.
template <class T> T add_elements(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return static_cast<T>(static_cast<Compute<T>>(a) + static_cast<Compute<T>>(b));
}
template <class T> T multiply_elements(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a && b;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return static_cast<T>(static_cast<Compute<T>>(a) * static_cast<Compute<T>>(b));
}

}  // namespace umbra::kernels
