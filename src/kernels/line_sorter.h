// Sorting of single lines: what `sort` and `topk` share.
#pragma once

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/sort_keys.h"
#include "kernels/types.h"

namespace umbra::kernels {

/// Sorts lines of `n` elements, one after the other, by their keys; the first `wanted` come out in order.
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
inline int64_t line_grain(int64_t n) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * 8)); }

}  // namespace umbra::kernels
