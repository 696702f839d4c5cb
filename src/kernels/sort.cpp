#include "kernels/sort.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/sort_keys.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

using SortedTypes = detail::Join<RealOrBool, WideUnsigned>;
constexpr const char* kSort = "sorting_kernel_method_name";

// Lines along the dimension, one after the other: their elements' keys, of which the first `wanted` come out in order.
template <class T, class Key> class LineSorter {
  using Number = decltype(order_key(Compute<T>()));

 public:
  LineSorter(int64_t n, int64_t wanted, bool descending)
      : n_(n),
        wanted_(wanted),
        room_(room(n, wanted)),
        flip_(descending ? ~Number(0) : Number(0)),
        few_(few(n, wanted)) {
    memory_ = scratch({bytes(n, wanted)}, DType::UInt8);
    keys_ = static_cast<Key*>(memory_.raw_data());
  }
  /// The memory that it takes.
  static int64_t bytes(int64_t n, int64_t wanted) {
    return (few(n, wanted) ? 1 : 2) * room(n, wanted) * static_cast<int64_t>(sizeof(Key));
  }

  void sort(const T* in, int64_t step) {
    if (few_) return sort_least(in, step);
    for (int64_t i = 0; i < n_; ++i) keys_[i] = Key(number(in[i * step]), i);
    sort_keys(keys_, keys_ + n_, n_);
  }
  int64_t place(int64_t rank) const { return keys_[rank].place(); }

 private:
  static bool few(int64_t n, int64_t wanted) { return wanted < n / 4; }
  static int64_t room(int64_t n, int64_t wanted) { return few(n, wanted) ? wanted + std::max<int64_t>(wanted, 64) : n; }
  Number number(T x) const { return order_key(static_cast<Compute<T>>(x)) ^ flip_; }

  // Keeps the least so far: another is passed by with one comparison.
  void sort_least(const T* in, int64_t step) {
    constexpr int64_t kChunk = 256;
    Number numbers[kChunk], bound = ~Number(0);
    int64_t held = 0;
    for (int64_t begin = 0; begin < n_; begin += kChunk) {
      int64_t count = std::min(kChunk, n_ - begin);
      const T* from = in + begin * step;
      if (step == 1)
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i]);
      else
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i * step]);
      for (int64_t i = 0; i < count; ++i) {
        if (numbers[i] > bound) continue;
        keys_[held++] = Key(numbers[i], begin + i);
        if (held < room_) continue;
        std::nth_element(keys_, keys_ + wanted_, keys_ + held);
        held = wanted_;
        bound = static_cast<Number>(keys_[wanted_].key());
      }
    }
    std::partial_sort(keys_, keys_ + wanted_, keys_ + held);
  }

  int64_t n_, wanted_, room_;
  Number flip_;
  bool few_;
  Tensor memory_;
  Key* keys_;
};

/// Lines that a thread takes at least.
int64_t line_grain(int64_t n) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * 8)); }

}  // namespace

int64_t sort_workspace(const Tensor& self, int64_t dim, int64_t wanted) {
  if (self.numel() == 0 || self.dim() == 0) return 0;
  int64_t n = self.size(dim), lines = self.numel() / n;
  int64_t at_once = std::min<int64_t>(num_threads(), (lines + line_grain(n) - 1) / line_grain(n)), bytes = 0;
  visit<SortedTypes>(self.dtype(), kSort, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_key_type<Compute<T>>(n, [&]<class Key>(Key*) { bytes = at_once * LineSorter<T, Key>::bytes(n, wanted); });
  });
  return bytes;
}

void sort(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending) {
  if (values.numel() == 0) return;
  bool scalar = self.dim() == 0;
  int64_t n = scalar ? 1 : self.sizes()[dim], wanted = scalar ? 1 : values.sizes()[dim];
  auto step = [&](const Tensor& t) { return scalar ? int64_t{0} : t.strides()[dim]; };
  Strided<3> lines;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) lines.push(self.sizes()[d], {self.strides()[d], values.strides()[d], indices.strides()[d]});
  visit<SortedTypes>(self.dtype(), kSort, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t grain = line_grain(n);
    int64_t in_step = step(self), out_step = step(values), where_step = step(indices);
    auto sort_lines = [&]<class Key>(int64_t begin, int64_t end, const Key*) {
      LineSorter<T, Key> sorter(n, wanted, descending);
      Odometer<3> at(lines);
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = self.data<T>() + at[0];
        sorter.sort(in, in_step);
        T* out = values.data<T>() + at[1];
        int64_t* where = indices.data<int64_t>() + at[2];
        for (int64_t k = 0; k < wanted; ++k) {
          int64_t place = sorter.place(k);
          out[k * out_step] = in[place * in_step];
          where[k * where_step] = place;
        }
      }
    };
    with_key_type<Compute<T>>(n, [&](auto* key) {
      parallel_for(0, lines.numel(), grain, [&](int64_t begin, int64_t end) { sort_lines(begin, end, key); });
    });
  });
}

}  // namespace umbra::kernels
