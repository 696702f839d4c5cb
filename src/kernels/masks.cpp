#include "kernels/masks.h"

#include <atomic>
#include <bit>
#include <numeric>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

template <class T> bool is_nonzero(T x) {
  // The bits but the sign: NaN is not zero, -0 is, and the compiler makes vectors of it.
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(x) << 1 != 0;
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(x) << 1 != 0;
  else return static_cast<Compute<T>>(x) != Compute<T>(0);
}

constexpr int64_t kMaskChunk = 512;

// Writes those of n places from `begin` on where `holds`, and returns how many they are. There is no branch on what the
// mask holds: it would be guessed wrong half of the time.
template <class Holds> int64_t places_where(int64_t n, int64_t begin, int64_t* places, const Holds& holds) {
  int64_t count = 0;
  for (int64_t j = begin; j < begin + n; ++j) {
    places[count] = j;
    count += holds(j);
  }
  return count;
}

}  // namespace

int64_t count_nonzero(const Tensor& self) {
  std::atomic<int64_t> total = 0;
  Strided<1> walk(self.sizes(), {self.strides()});
  walk.simplify();
  bool side_by_side = walk.sizes.empty() || (walk.sizes.size() == 1 && walk.strides[0][0] == 1);
  visit<AllOrHalfComplex>(self.dtype(), "nonzero_count_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, self.numel(), kGrain, [&](int64_t from, int64_t to) {
      const T* data = self.data<T>();
      int64_t count = 0;
      if (side_by_side) {
        for (int64_t i = from; i < to; ++i) count += is_nonzero(data[i]);
      } else {
        Odometer<1> at(walk);
        at.seek(from);
        for (int64_t i = from; i < to; ++i, at.next()) count += is_nonzero(data[at[0]]);
      }
      total += count;
    });
  });
  return total;
}

void nonzero(const Tensor& out, const Tensor& self) {
  if (self.numel() == 0) return;
  Tensor dense = contiguous(self);
  int64_t last = self.dim() - 1, length = last >= 0 ? self.size(last) : 1, lines = self.numel() / length;
  int64_t *target = out.data<int64_t>(), row_step = out.strides()[0], step = out.strides()[1];
  Strided<1> outer;
  for (int64_t d = 0; d < last; ++d) outer.push(self.size(d), {0});
  Odometer<1> at(outer);
  visit<AllOrHalfComplex>(self.dtype(), "nonzero_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = dense.data<T>();
    int64_t found[kMaskChunk];
    for (int64_t line = 0; line < lines; ++line, data += length, at.next()) {
      for (int64_t begin = 0; begin < length; begin += kMaskChunk) {
        int64_t n = std::min(kMaskChunk, length - begin), count = 0;
        for (int64_t j = 0; j < n; ++j) count += is_nonzero(data[begin + j]);
        if (count == n) std::iota(found, found + n, begin);
        else if (count > 0) places_where(n, begin, found, [&](int64_t j) { return is_nonzero(data[j]); });
        for (int64_t d = 0; d < last; ++d) {
          const int64_t digit = at.digit(d);
          int64_t* column = target + d * step;
          if (row_step == 1)  // lines are short: a call would take longer
            for (int64_t i = 0; i < count; ++i) column[i] = digit;
          else
            for (int64_t i = 0; i < count; ++i) column[i * row_step] = digit;
        }
        if (last >= 0) {
          int64_t* column = target + last * step;
          if (row_step == 1)
            copy_bytes(reinterpret_cast<char*>(column), reinterpret_cast<const char*>(found), count * sizeof(int64_t));
          else
            for (int64_t i = 0; i < count; ++i) column[i * row_step] = found[i];
        }
        target += count * row_step;
      }
    }
  });
}

void masked_select(const Tensor& out, const Tensor& self, const Tensor& mask) {
  std::vector<int64_t> shape = broadcast_shape(std::vector<Tensor>{self, mask});
  Strided<2> walk(shape, {broadcast_strides(self, shape), broadcast_strides(mask, shape)});
  walk.simplify();
  if (walk.sizes.empty()) walk.push(1, {0, 0});
  int64_t length = walk.sizes.back(), self_step = walk.strides[0].back(), mask_step = walk.strides[1].back();
  walk.pop();
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = words<T>(out);
    int64_t found[kMaskChunk], target_step = out.stride(0);
    Odometer<2> at(walk);
    for (int64_t line = 0, lines = length > 0 ? walk.numel() : 0; line < lines; ++line, at.next()) {
      const T* from = words<T>(self) + at[0];
      const uint8_t* wanted = holds + at[1];
      for (int64_t begin = 0; begin < length; begin += kMaskChunk) {
        int64_t count = places_where(std::min(kMaskChunk, length - begin), begin, found,
                                     [&](int64_t j) { return wanted[j * mask_step] != 0; });
        for (int64_t i = 0; i < count; ++i) target[i * target_step] = from[found[i] * self_step];
        target += count * target_step;
      }
    }
  });
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_type<AllTypes>(self.dtype(), "masked_scatter");
  Strided<2> walk(self.sizes(), {self.strides(), broadcast_strides(mask, self.sizes())});
  walk.simplify();
  if (walk.sizes.empty()) walk.push(1, {0, 0});
  int64_t length = walk.sizes.back(), self_step = walk.strides[0].back(), mask_step = walk.strides[1].back();
  walk.pop();
  Tensor values = contiguous(source);
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *next = words<T>(values), *end = next + values.numel();
    int64_t found[kMaskChunk];
    Odometer<2> at(walk);
    for (int64_t line = 0, lines = length > 0 ? walk.numel() : 0; line < lines; ++line, at.next()) {
      T* to = words<T>(self) + at[0];
      const uint8_t* wanted = holds + at[1];
      for (int64_t begin = 0; begin < length; begin += kMaskChunk) {
        int64_t count = places_where(std::min(kMaskChunk, length - begin), begin, found,
                                     [&](int64_t j) { return wanted[j * mask_step] != 0; });
        check(count <= end - next, "Number of elements of source < number of ones in mask");
        for (int64_t i = 0; i < count; ++i) to[found[i] * self_step] = next[i];
        next += count;
      }
    }
  });
}

}  // namespace umbra::kernels
