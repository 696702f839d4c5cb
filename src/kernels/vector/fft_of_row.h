// The transform of one long row, whose own elements fill the registers: n = rows * columns numbers are a matrix, of
// which the columns are transformed side by side, turned by their angles, and then the rows, side by side as well. All
// of it stays in the caches of one core. For vector/fft.cpp, behind pocketfft.
#pragma once

#include <limits>
#include <tuple>
#include <utility>

#include "kernels/vector/convert.h"
#include "kernels/vector/fft_side.h"
#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {
namespace {

constexpr size_t kLongRow = 256;  // shorter ones are faster side by side; the square of the most lanes
// How many times as many lanes as numbers there may be, at most; and where rows could lie side by side instead.
constexpr double kMostWaste = 4, kLittleWaste = 1.4, kNoWaste = 1.1;

/// Registers of as many complex numbers, which lie one after the other, as there are lanes, and back.
template <class T> [[gnu::always_inline]] inline LanePairs<T> apart(Lanes<T> low, Lanes<T> high) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
    return LanePairs<T>{__builtin_shufflevector(low, high, (2 * lane)...),
                        __builtin_shufflevector(low, high, (2 * lane + 1)...)};
  }
  (std::make_integer_sequence<int, Vec<T>::size>());
}
template <class T> [[gnu::always_inline]] inline std::pair<Vec<T>, Vec<T>> together(LanePairs<T> numbers) {
  constexpr int size = Vec<T>::size;
  return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
    Lanes<T> a = numbers.r, b = numbers.i;
    return std::pair(Vec<T>(__builtin_shufflevector(a, b, (lane % 2 * size + lane / 2)...)),
                     Vec<T>(__builtin_shufflevector(a, b, (lane % 2 * size + size / 2 + lane / 2)...)));
  }
  (std::make_integer_sequence<int, size>());
}
template <class T> [[gnu::always_inline]] inline LanePairs<T> load_pairs(const T* from) {
  return apart<T>(Vec<T>::load(from).raw, Vec<T>::load(from + Vec<T>::size).raw);
}
template <class T> [[gnu::always_inline]] inline void store_pairs(T* to, LanePairs<T> numbers) {
  auto [low, high] = together<T>(numbers);
  low.store(to);
  high.store(to + Vec<T>::size);
}
/// Of fewer numbers than there are lanes.
template <class T> [[gnu::noinline]] LanePairs<T> load_some(const T* from, int64_t count) {
  constexpr int64_t size = Vec<T>::size;
  Vec<T> low = 2 * count >= size ? Vec<T>::load(from) : Vec<T>::load(from, 2 * count), high(0);
  if (2 * count > size) high = Vec<T>::load(from + size, 2 * count - size);
  return apart<T>(low.raw, high.raw);
}
template <class T> [[gnu::noinline]] void store_some(T* to, Lanes<T> real, Lanes<T> imaginary, int64_t count) {
  constexpr int64_t size = Vec<T>::size;
  auto [low, high] = together<T>(LanePairs<T>{real, imaginary});
  low.store(to, std::min<int64_t>(2 * count, size));
  if (2 * count > size) high.store(to + size, 2 * count - size);
}

/// Numbers of a side that are `step` bytes apart in memory, and beside each of them those of the other transforms.
/// Backward the two parts are exchanged.
template <class T> struct Reader {
  const char* from;
  ptrdiff_t step;
  int64_t count;
  bool forward;
  [[gnu::always_inline]] LanePairs<T> operator()(size_t i) const {
    const T* at = reinterpret_cast<const T*>(from + static_cast<ptrdiff_t>(i) * step);
    LanePairs<T> numbers = count == Vec<T>::size ? load_pairs(at) : load_some(at, count);
    return forward ? numbers : LanePairs<T>{numbers.i, numbers.r};
  }
};
template <class T> struct Writer {
  char* to;
  ptrdiff_t step;
  int64_t count;
  bool forward;
  T scale;
  [[gnu::always_inline]] void operator()(size_t i, LanePairs<T> numbers) const {
    T* at = reinterpret_cast<T*>(to + static_cast<ptrdiff_t>(i) * step);
    Lanes<T> real = (forward ? numbers.r : numbers.i) * scale, imaginary = (forward ? numbers.i : numbers.r) * scale;
    if (count == Vec<T>::size) store_pairs(at, LanePairs<T>{real, imaginary});
    else store_some(at, real, imaginary, count);
  }
};

template <class T> Lanes<T> backwards(Lanes<T> a) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(a, a, (static_cast<int>(sizeof...(lane)) - 1 - lane)...);
  }
  (std::make_integer_sequence<int, Vec<T>::size>());
}

/// The matrix that a row of so many numbers is.
template <class T> struct RowSides {
  size_t rows = 0, columns = 0;
  /// Times as many lanes as numbers; infinite where there is no such matrix.
  double waste = std::numeric_limits<double>::infinity();

  /// The sides that take the fewest steps of registers. The second one fills registers: no row is shorter than the
  /// square of their lanes.
  [[gnu::cold, gnu::noinline]] explicit RowSides(size_t n) {
    size_t least = 0;
    for (size_t side = 4; side * side <= n; ++side) {
      if (n % side != 0) continue;
      const size_t other = n / side, down = Side<T>::passes(side), across = Side<T>::passes(other);
      if (down == 0 || across == 0) continue;
      // What is read, turned and transposed takes as long as two steps, what is written as one.
      const size_t taken = groups(other) * side * (down + 2) + groups(side) * other * (across + 1);
      if (least != 0 && taken > least) continue;
      least = taken, rows = side, columns = other;
      waste = static_cast<double>(groups(side) * groups(other) * kLanes * kLanes) / static_cast<double>(n);
    }
  }
  static constexpr size_t kLanes = pocketfft::detail::VLEN<T>::val;
  static size_t groups(size_t count) { return (count + kLanes - 1) / kLanes; }
  /// Where a group of lanes begins: the last one ends with the side, and does once more what the one before did.
  static size_t first_of(size_t group, size_t count) {
    return std::min(group * kLanes, std::max(count, kLanes) - kLanes);
  }
};

/// What the transforms of one length share.
template <class T> struct RowSteps : RowSides<T> {
  using Sides = RowSides<T>;
  using Sides::columns, Sides::first_of, Sides::groups, Sides::kLanes, Sides::rows;
  Side<T> of_rows, of_columns;                  // of as many numbers
  pocketfft::detail::arr<LanePairs<T>> angles;  // for each group of columns, row after row
  pocketfft::detail::arr<T> cosines, sines;     // of the twice as many real numbers that such a row may be

  [[gnu::cold, gnu::noinline]] explicit RowSteps(size_t n)
      : Sides(n), of_rows(rows), of_columns(columns), angles(rows * groups(columns)), cosines(n), sines(n) {
    pocketfft::detail::sincos_2pibyn<T> whole(n), half(2 * n);
    for (size_t g = 0; g < groups(columns); ++g)
      for (size_t r = 0; r < rows; ++r)
        for (size_t lane = 0; lane < kLanes; ++lane) {
          auto angle = whole[r * (first_of(g, columns) + lane)];
          angles[g * rows + r].r[lane] = angle.r;
          angles[g * rows + r].i[lane] = angle.i;
        }
    for (size_t k = 0; k < n; ++k) {
      auto angle = half[k];
      cosines[k] = angle.r;
      sines[k] = angle.i;
    }
  }
};

/// Where the next row lies and where it goes: the caches' own guesses do not see it in time, since the columns of this
/// one are far apart.
struct Ahead {
  const char *from = nullptr, *to = nullptr;
  int64_t bytes = 0;  // at a time

  void fetch() {
    constexpr int64_t line = 64;
    for (int64_t i = 0; i < bytes; i += line) {
      __builtin_prefetch(from + i, 0, 2);
      __builtin_prefetch(to + i, 1, 2);
    }
    from += bytes;
    to += bytes;
  }
};

template <class T> class RowTransform {
 public:
  static constexpr int64_t lanes = Vec<T>::size;

  RowTransform(size_t n, bool forward)
      : kept_(kept_plan<RowSteps<T>>(n)),
        steps_(*kept_),
        forward_(forward),
        n_(static_cast<int64_t>(n)),
        rows_(static_cast<int64_t>(steps_.rows)),
        columns_(static_cast<int64_t>(steps_.columns)),
        work_(std::max(steps_.of_rows.work_size() + std::max(steps_.rows, RowSteps<T>::kLanes),
                       steps_.of_columns.work_size())),
        turned_(RowSteps<T>::groups(steps_.rows) * steps_.columns) {
    for (size_t i = 0; i < work_.size(); ++i) work_[i] = {Lanes<T>{}, Lanes<T>{}};  // rows that are not there
  }

  /// Of complex numbers, which may be transformed in place. Meanwhile what comes next is brought near.
  void run(const T* from, T* to, T scale, Ahead ahead = {}) {
    const size_t across = RowSteps<T>::groups(steps_.columns), down = RowSteps<T>::groups(steps_.rows);
    const int64_t groups = static_cast<int64_t>(across + down);
    ahead.bytes = (ahead.bytes + groups - 1) / groups;
    for (size_t group = 0; group < across; ++group, ahead.fetch()) transform_columns(from, group);
    for (size_t group = 0; group < down; ++group, ahead.fetch()) transform_rows(to, group, scale);
  }
  /// 2n real numbers to the n + 1 complex ones of their transform, or back: the transform of n complex numbers, whose
  /// two halves are the even and the odd ones'.
  void run_of_reals(const T* from, T* to, T scale) {
    if (between_.size() == 0) between_.resize(2 * n_);
    T* between = between_.data();
    if (forward_) {
      run(from, between, scale / 2);
      to[0] = 2 * (between[0] + between[1]);
      to[2 * n_] = 2 * (between[0] - between[1]);
      to[1] = to[2 * n_ + 1] = 0;
      mix(between, to);
    } else {
      between[0] = from[0] + from[2 * n_];
      between[1] = from[0] - from[2 * n_];
      mix(from, between);
      run(between, to, scale);
    }
  }

 private:
  [[gnu::noinline]] void transform_columns(const T* from, size_t group) {
    constexpr ptrdiff_t item = 2 * sizeof(T);
    const size_t first = RowSteps<T>::first_of(group, steps_.columns);
    const LanePairs<T>* angles = steps_.angles.data() + group * steps_.rows;
    LanePairs<T>* side = work_.data() + steps_.of_rows.work_size();
    steps_.of_rows.run(
        Reader<T>{reinterpret_cast<const char*>(from + 2 * first), columns_ * item, lanes, forward_},
        [=](size_t r, LanePairs<T> number)
            __attribute__((always_inline)) { side[r] = turned<T>(number, angles[r].r, angles[r].i); },
        work_.data());
    for (size_t other = 0; other < RowSteps<T>::groups(steps_.rows); ++other) {
      const char* tile = reinterpret_cast<const char*>(side + RowSteps<T>::first_of(other, steps_.rows));
      char* to = reinterpret_cast<char*>(turned_.data() + other * steps_.columns + first);
      for (size_t part : {size_t{0}, sizeof(Lanes<T>)})
        copy_transposed(to + part, sizeof(LanePairs<T>), tile + part, sizeof(LanePairs<T>), sizeof(T), lanes, lanes);
    }
  }
  [[gnu::noinline]] void transform_rows(T* to, size_t group, T scale) {
    constexpr ptrdiff_t item = 2 * sizeof(T);
    const size_t first = RowSteps<T>::first_of(group, steps_.rows);
    steps_.of_columns.run(
        turned_.data() + group * steps_.columns,
        Writer<T>{reinterpret_cast<char*>(to + 2 * first), rows_ * item, std::min(lanes, rows_), forward_, scale},
        work_.data());
  }
  /// All but the first: what is the sum of a number and the mirrored one's conjugate goes to the one, what is their
  /// difference is turned, and goes to both.
  [[gnu::noinline]] void mix(const T* from, T* to) const {
    int64_t k = 1;
    for (; k + lanes <= n_; k += lanes) {
      LanePairs<T> a = load_pairs(from + 2 * k), b = load_pairs(from + 2 * (n_ - k - lanes + 1));
      auto [real, imaginary] = mixed(Vec<T>(a.r), Vec<T>(a.i), Vec<T>(backwards<T>(b.r)), Vec<T>(backwards<T>(b.i)),
                                     Vec<T>::load(steps_.cosines.data() + k), Vec<T>::load(steps_.sines.data() + k));
      store_pairs(to + 2 * k, LanePairs<T>{real.raw, imaginary.raw});
    }
    for (; k < n_; ++k) {
      const T *a = from + 2 * k, *b = from + 2 * (n_ - k);
      std::tie(to[2 * k], to[2 * k + 1]) = mixed(a[0], a[1], b[0], b[1], steps_.cosines[k], steps_.sines[k]);
    }
  }
  template <class V> std::pair<V, V> mixed(V real, V imaginary, V other, V other_imaginary, V cosine, V sine) const {
    V difference = real - other, sum = imaginary + other_imaginary;
    if (!forward_) cosine = -cosine;
    return {real + other + (cosine * sum - sine * difference),
            imaginary - other_imaginary - (cosine * difference + sine * sum)};
  }

  std::shared_ptr<const RowSteps<T>> kept_;
  const RowSteps<T>& steps_;
  bool forward_;
  int64_t n_, rows_, columns_;
  pocketfft::detail::arr<LanePairs<T>> work_, turned_;
  pocketfft::detail::arr<T> between_;
};

template <class T>
void transform_long_rows(const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes,
                         int64_t count) {
  bool complex = pass.kind == FftPass::Kind::ComplexToComplex;
  RowTransform<T> transform(complex ? pass.sizes.back() : pass.sizes.back() / 2, pass.forward);
  for (int64_t i = 0; i < count; ++i, from += from_bytes, to += to_bytes) {
    const T* source = reinterpret_cast<const T*>(from);
    T* target = reinterpret_cast<T*>(to);
    Ahead ahead;
    if (i + 1 < count)
      ahead = {from + from_bytes, to + to_bytes, static_cast<int64_t>(pass.sizes.back() * 2 * sizeof(T))};
    complex ? transform.run(source, target, static_cast<T>(pass.scale), ahead)
            : transform.run_of_reals(source, target, static_cast<T>(pass.scale));
  }
}

/// Transforms along another dimension than the last, whose numbers lie one after the other: registers of them are read
/// as they lie.
template <class T> class ColumnPass {
 public:
  static constexpr int64_t lanes = Vec<T>::size;

  static bool takes(const FftPass& pass) {
    constexpr ptrdiff_t item = 2 * sizeof(T);
    size_t last = pass.sizes.size() - 1;
    return pass.kind == FftPass::Kind::ComplexToComplex && pass.axis != last && pass.sizes[pass.axis] > 1 &&
           pass.sizes[last] >= lanes && pass.from_strides[last] == item &&
           (pass.to_strides[last] == item || pass.to_strides[pass.axis] == item);
  }
  explicit ColumnPass(const FftPass& pass)
      : pass_(pass), side_(kept_plan<Side<T>>(pass.sizes[pass.axis])), work_(side_->work_size() + side_->size()) {}

  void run() { run_from(0, pass_.from, pass_.to); }

 private:
  [[gnu::cold, gnu::noinline]] void run_from(size_t d, const char* from, char* to) {
    if (d + 1 == pass_.sizes.size()) return run_columns(from, to);
    if (d == pass_.axis) return run_from(d + 1, from, to);
    for (size_t i = 0; i < pass_.sizes[d]; ++i)
      run_from(d + 1, from + static_cast<ptrdiff_t>(i) * pass_.from_strides[d],
               to + static_cast<ptrdiff_t>(i) * pass_.to_strides[d]);
  }
  [[gnu::noinline]] void run_columns(const char* from, char* to) {
    const int64_t columns = static_cast<int64_t>(pass_.sizes.back());
    const ptrdiff_t item = 2 * sizeof(T), to_next = pass_.to_strides.back();
    for (int64_t first = 0; first < columns; first += lanes, from += lanes * item, to += lanes * to_next) {
      const int64_t count = std::min(lanes, columns - first);
      const Reader<T> reader{from, pass_.from_strides[pass_.axis], count, pass_.forward};
      Writer<T> writer{to, pass_.to_strides[pass_.axis], count, pass_.forward, static_cast<T>(pass_.scale)};
      if (to_next == item) {
        side_->run(reader, writer, work_.data());
        continue;
      }
      // Of each transform the numbers lie one after the other.
      LanePairs<T>* numbers = work_.data() + side_->work_size();
      side_->run(
          reader,
          [=](size_t k, LanePairs<T> number) __attribute__((always_inline)) {
            number *= writer.scale;
            numbers[k] = writer.forward ? number : LanePairs<T>{number.i, number.r};
          },
          work_.data());
      copy_transposed(to, to_next, reinterpret_cast<const char*>(numbers), sizeof(Lanes<T>), sizeof(T),
                      2 * static_cast<int64_t>(side_->size()), count);
    }
  }

  const FftPass& pass_;
  std::shared_ptr<const Side<T>> side_;
  pocketfft::detail::arr<LanePairs<T>> work_;
};

}  // namespace
}  // namespace umbra::kernels::UMBRA_ISA
