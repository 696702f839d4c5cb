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
  /// Whether the elements that came out are not all different, or there are more like the last one.
  bool has_equal() const {
    for (int64_t k = 1; k < wanted_; ++k)
      if (keys_[k - 1].key() == keys_[k].key()) return true;
    auto last = keys_[wanted_ - 1].key();
    if (!few_) return wanted_ < n_ && keys_[wanted_].key() == last;
    bool more = lost_ && last == bound_;
    for (int64_t k = wanted_; k < held_; ++k) more |= keys_[k].key() == last;
    return more;
  }

 private:
  static bool few(int64_t n, int64_t wanted) { return wanted < n / 4; }
  static int64_t room(int64_t n, int64_t wanted) { return few(n, wanted) ? wanted + std::max<int64_t>(wanted, 64) : n; }
  Number number(T x) const { return order_key(static_cast<Compute<T>>(x)) ^ flip_; }

  static constexpr int64_t kChunk = 256, kStep = 32, kGroups = 32, kFewHeld = 24;

  // Keeps the least so far. Which elements those are is nothing that a processor could foretell: they are taken without
  // asking, and only the count goes on or not.
  void sort_least(const T* in, int64_t step) {
    Number numbers[kChunk], bound = ~Number(0);
    held_ = 0;
    lost_ = false;
    for (int64_t begin = 0; begin < n_; begin += kChunk) {
      int64_t count = std::min(kChunk, n_ - begin);
      const T* from = in + begin * step;
      if (step == 1)
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i]);
      else
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i * step]);
      if (begin == 0 && wanted_ <= kGroups / 2 && count >= 2 * kGroups) bound = first_bound(numbers, count);
      for (int64_t at = 0; at < count; at += kStep)
        bound = take(numbers + at, begin + at, std::min(kStep, count - at), bound);
    }
    sort_held();
  }

  // At least as many elements as are wanted are no larger than this, and not many more: of the least of each group, the
  // one of that rank.
  Number first_bound(const Number* numbers, int64_t count) const {
    Number least[kGroups], bound = ~Number(0);
    uint32_t no_larger[kGroups] = {};
    std::copy_n(numbers, kGroups, least);
    for (int64_t row = kGroups; row + kGroups <= count; row += kGroups)
      for (int64_t g = 0; g < kGroups; ++g) least[g] = std::min(least[g], numbers[row + g]);
    for (int64_t other = 0; other < kGroups; ++other)
      for (int64_t g = 0; g < kGroups; ++g) no_larger[g] += least[other] <= least[g];
    for (int64_t g = 0; g < kGroups; ++g)
      bound = no_larger[g] >= static_cast<uint32_t>(wanted_) ? std::min(bound, least[g]) : bound;
    return bound;
  }

  // Of up to kStep numbers, those within the bound; gives the bound from then on.
  Number take(const Number* numbers, int64_t place, int64_t count, Number bound) {
    Number least = numbers[0];
    for (int64_t i = 1; i < count; ++i) least = std::min(least, numbers[i]);
    if (least > bound) return bound;
    if (held_ + kStep > room_) {
      std::nth_element(keys_, keys_ + wanted_, keys_ + held_);
      held_ = wanted_;
      lost_ = true;
      bound = static_cast<Number>(keys_[wanted_].key());
    }
    Key* end = keys_ + held_;
    for (int64_t i = 0; i < count; ++i) {
      *end = Key(numbers[i], place + i);
      end += numbers[i] <= bound;
    }
    held_ = end - keys_;
    return bound_ = bound;
  }

  void sort_held() {
    if (held_ > kFewHeld) return std::partial_sort(keys_, keys_ + wanted_, keys_ + held_);
    Key sorted[kFewHeld];
    for (int64_t i = 0; i < held_; ++i) {  // all keys differ
      int64_t rank = 0;
      for (int64_t other = 0; other < held_; ++other) rank += keys_[other] < keys_[i];
      sorted[rank] = keys_[i];
    }
    std::copy_n(sorted, held_, keys_);
  }

  int64_t n_, wanted_, room_, held_ = 0;
  Number flip_, bound_ = 0;
  bool few_, lost_ = false;  // whether elements from `bound_` on were taken and given up
  Tensor memory_;
  Key* keys_;
};

/// Lines that a thread takes at least.
inline int64_t line_grain(int64_t n) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * 8)); }

}  // namespace umbra::kernels
