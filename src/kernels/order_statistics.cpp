#include "kernels/order_statistics.h"

#include <algorithm>
#include <numeric>

#include "core/per_thread.h"
#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/sort_keys.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

/// Calls `pick(line, places)` for each line along the dimension, with its elements and room for their places; what it
/// returns is where the result was.
template <class Set, class Pick>
void reduce_lines(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, const char* kernel,
                  const Pick& pick) {
  Tensor in = at_least_1d(self), out = at_least_1d(values), where = at_least_1d(indices);
  int64_t n = in.sizes()[dim], step = in.strides()[dim];
  Strided<3> lines;
  for (int64_t d = 0; d < in.dim(); ++d)
    if (d != dim) lines.push(in.sizes()[d], {in.strides()[d], out.strides()[d], where.strides()[d]});
  visit<Set>(self.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (values.numel() == 0) return;
    parallel_for(0, lines.numel(), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * 4)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<Compute<T>> line(n);
                   std::vector<int64_t> places(n);
                   const T* source = in.data<T>();
                   T* target = out.data<T>();
                   int64_t* target_places = where.data<int64_t>();
                   Odometer<3> at(lines);
                   at.seek(begin);
                   for (int64_t i = begin; i < end; ++i, at.next()) {
                     const T* from = source + at[0];
                     for (int64_t k = 0; k < n; ++k) line[k] = static_cast<Compute<T>>(from[k * step]);
                     int64_t place = pick(line, places);
                     target[at[1]] = from[place * step];
                     target_places[at[2]] = place;
                   }
                 });
  });
}

/// One for each thread and kind of key.
template <class Key> std::vector<Key>& keys_buffer() {
  static PerThread<std::vector<Key>> keys;
  return *keys;
}

/// Where the k-th of the line's elements is, by value; of equal ones the first counts as less.
template <class T> int64_t nth(const std::vector<T>& line, int64_t k) {
  int64_t n = static_cast<int64_t>(line.size()), place = 0;
  with_key_type<T>(n, [&]<class Key>(const Key*) {
    std::vector<Key>& keys = keys_buffer<Key>();
    keys.resize(n);
    for (int64_t i = 0; i < n; ++i) keys[i] = Key(order_key(line[i]), i);
    std::nth_element(keys.begin(), keys.begin() + k, keys.end());
    place = keys[k].place();
  });
  return place;
}

/// Finds elements of a row by their ranks. Only those that share the first digits of their keys with a wanted one are
/// looked at closely.
template <class T> class RankSelector {
  using Key = decltype(order_key(T()));
  static constexpr int kMostDigits = 11, kFewDigits = 8;
  static constexpr size_t kShort = 512, kLong = 1 << 14;  // below kShort, rows are not worth the counting

 public:
  /// `found` gets the elements at `ranks`, each below n.
  void select(const T* row, int64_t n, const int64_t* ranks, int64_t count, T* found) {
    keys_.resize(n);
    for (int64_t i = 0; i < n; ++i) keys_[i] = order_key(row[i]);
    if (count >= n) {  // nearly all are asked for
      std::sort(keys_.begin(), keys_.end());
      for (int64_t k = 0; k < count; ++k) found[k] = from_order_key<T>(keys_[ranks[k]]);
      return;
    }
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return ranks[a] < ranks[b]; });
    skipped_.assign(count, 0);
    if (keys_.size() >= kShort) narrow_down(ranks);
    auto begin = keys_.begin();
    for (int64_t k : order_) {
      auto at = keys_.begin() + (ranks[k] - skipped_[k]);
      if (at >= begin) std::nth_element(begin, at, keys_.end());
      found[k] = from_order_key<T>(*at);
      begin = at + 1;
    }
  }

 private:
  /// Keeps the keys whose first digits, of those that tell keys of this row apart, a wanted one has; and how many
  /// smaller ones each rank leaves out.
  void narrow_down(const int64_t* ranks) {
    Key least = keys_[0], most = keys_[0];
    for (Key key : keys_) least = std::min(least, key), most = std::max(most, key);
    const int digits = keys_.size() < kLong ? kFewDigits : kMostDigits;
    const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<Key>(most - least))) - digits);
    auto digit_of = [=](Key key) { return static_cast<size_t>((key - least) >> shift); };
    count_digits(size_t{1} << digits, digit_of);
    int64_t below = 0, left_out = 0;
    size_t digit = 0;
    for (int64_t k : order_) {
      for (; below + counts_[digit] <= ranks[k]; below += counts_[digit++])
        if (!wanted_[digit]) left_out += counts_[digit];
      wanted_[digit] = 1;
      skipped_[k] = left_out;
    }
    size_t kept = 0;  // written without a branch: it would be guessed wrong
    for (Key key : keys_) {
      keys_[kept] = key;
      kept += wanted_[digit_of(key)];
    }
    keys_.resize(kept);
  }
  /// Neighbours are counted apart: of equal ones each count would wait for the last.
  template <class Digit> void count_digits(size_t different, const Digit& digit_of) {
    constexpr size_t kWays = 4;
    parts_.assign(kWays * different, 0);
    for (size_t i = 0; i < keys_.size(); ++i) ++parts_[i % kWays * different + digit_of(keys_[i])];
    counts_.assign(different, 0);
    for (size_t way = 0; way < kWays; ++way)
      for (size_t digit = 0; digit < different; ++digit) counts_[digit] += parts_[way * different + digit];
    wanted_.assign(different, 0);
  }

  std::vector<Key> keys_;
  std::vector<uint32_t> parts_;
  std::vector<int64_t> counts_, order_, skipped_;
  std::vector<uint8_t> wanted_;
};

/// The same, by the exchanges of a quickselect with the middle of three as its pivot: which one of equal elements it
/// ends at is PyTorch's choice too.
template <class T> int64_t selected(const std::vector<T>& line, std::vector<int64_t>& places, int64_t k) {
  auto above = [&](int64_t a, int64_t b) { return before(line[places[b]], line[places[a]]); };
  auto exchange = [&](int64_t a, int64_t b) { std::swap(places[a], places[b]); };
  int64_t left = 0, right = static_cast<int64_t>(line.size()) - 1;
  while (right > left) {
    if (right == left + 1) {
      if (above(left, right)) exchange(left, right);
      break;
    }
    exchange((left + right) / 2, left + 1);
    if (above(left + 1, right)) exchange(left + 1, right);
    if (above(left, right)) exchange(left, right);
    if (above(left + 1, left)) exchange(left + 1, left);
    int64_t up = left + 1, down = right;  // the pivot stands at `left`, and something not above it at `left + 1`
    while (true) {
      do ++up;
      while (above(left, up));
      do --down;
      while (above(down, left));
      if (down < up) break;
      exchange(up, down);
    }
    exchange(left, down);
    if (down <= k) left = up;
    if (down >= k) right = down - 1;
  }
  return places[k];
}

}  // namespace

void kth_value(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, int64_t k) {
  reduce_lines<RealTypes>(values, indices, self, dim, "kthvalue_cpu",
                          [k]<class T>(const std::vector<T>& line, std::vector<int64_t>& places) {
                            std::iota(places.begin(), places.end(), 0);
                            return selected(line, places, k - 1);
                          });
}

void median(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, Nans nans) {
  reduce_lines<RealTypes>(values, indices, self, dim, "median_cpu",
                          [nans]<class T>(const std::vector<T>& line, std::vector<int64_t>&) -> int64_t {
                            int64_t count = 0, first_nan = -1;  // of numbers
                            for (size_t i = 0; i < line.size(); ++i) {
                              if (!is_nan(line[i])) ++count;
                              else if (first_nan < 0) first_nan = static_cast<int64_t>(i);
                            }
                            if (count == 0 || (first_nan >= 0 && nans == Nans::Propagate)) return first_nan;
                            return nth(line, (count - 1) / 2);  // NaN comes after all numbers
                          });
}

void whole_median(const Tensor& out, const Tensor& self, Nans nans) {
  Tensor row = contiguous(self);
  visit<RealTypes>(self.dtype(), "median_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Number = Compute<T>;
    const int64_t n = row.numel();
    const T *from = row.data<T>(), *end = from + n;
    int64_t numbers = std::count_if(from, end, [](T x) { return !is_nan(static_cast<Number>(x)); });
    auto give_first = [&](auto fits) { *out.data<T>() = *std::find_if(from, end, fits); };
    if (numbers == 0 || (numbers < n && nans == Nans::Propagate))
      return give_first([](T x) { return is_nan(static_cast<Number>(x)); });
    std::vector<Number> wide;
    const Number* line;
    if constexpr (std::is_same_v<T, Number>) {
      line = from;
    } else {
      wide.assign(from, end);
      line = wide.data();
    }
    int64_t rank = (numbers - 1) / 2;  // NaN comes after all numbers
    Number median;
    RankSelector<Number>().select(line, n, &rank, 1, &median);
    give_first([=](T x) { return static_cast<Number>(x) == median; });  // of zeros that differ in sign, too
  });
}

namespace {

/// Where the last of the longest run of equal elements is, the first of several runs. `place` is that of an element in
/// the order in which they are looked at, and `equal` compares two of them.
template <class Place, class Equal> int64_t longest_run(int64_t n, const Place& place, const Equal& equal) {
  int64_t most = 0, best = 0;
  for (int64_t i = 0, begin = 0; i < n; ++i) {
    if (i > 0 && !equal(i - 1, i)) begin = i;
    if (i - begin < most) continue;
    most = i - begin + 1;
    best = place(i);
  }
  return best;
}

/// Where the last of the most frequent elements of a line is; the least of several that are. Which of equal elements
/// comes last shows, and is left to the standard library: places are not compared.
template <class T> int64_t mode_of(const std::vector<T>& line) {
  int64_t n = static_cast<int64_t>(line.size()), best = 0;
  if (std::any_of(line.begin(), line.end(), is_nan<T>)) {
    // NaN comes before nothing, and nothing before NaN: no order, but what PyTorch sorts by.
    struct Element {
      T value;
      int64_t place;
    };
    std::vector<Element> sorted(line.size());
    for (int64_t i = 0; i < n; ++i) sorted[i] = {line[i], i};
    std::sort(sorted.begin(), sorted.end(), [](const Element& a, const Element& b) { return a.value < b.value; });
    return longest_run(
        n, [&](int64_t i) { return sorted[i].place; },
        [&](int64_t a, int64_t b) { return sorted[a].value == sorted[b].value; });
  }
  with_key_type<T>(n, [&]<class Key>(const Key*) {
    std::vector<Key>& sorted = keys_buffer<Key>();
    sorted.resize(n);
    for (int64_t i = 0; i < n; ++i) sorted[i] = Key(order_key(line[i]), i);
    std::sort(sorted.begin(), sorted.end(), [](const Key& a, const Key& b) { return a.key() < b.key(); });
    best = longest_run(
        n, [&](int64_t i) { return sorted[i].place(); },
        [&](int64_t a, int64_t b) { return sorted[a].key() == sorted[b].key(); });
  });
  return best;
}

}  // namespace

void mode(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  reduce_lines<RealOrBool>(
      values, indices, self, dim, "mode_cpu",
      []<class T>(const std::vector<T>& line, std::vector<int64_t>&) -> int64_t { return mode_of(line); });
}

void elements_at_ranks(const Tensor& out, const Tensor& rows, const Tensor& ranks) {
  Tensor in = contiguous(rows), places = contiguous(ranks);
  int64_t n = in.size(-1), count = places.size(-1), lines = count == 0 ? 0 : places.numel() / count;
  visit<Floating>(rows.dtype(), "quantile", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, lines, std::max<int64_t>(1, kGrain / (4 * n)), [&](int64_t from, int64_t to) {
      RankSelector<T> selector;
      for (int64_t i = from; i < to; ++i)
        selector.select(in.data<T>() + i * n, n, places.data<int64_t>() + i * count, count, out.data<T>() + i * count);
    });
  });
}

}  // namespace umbra::kernels
