// The transform of one long row, whose own elements fill the registers: n = rows * columns numbers are a matrix, of
// which the columns are transformed side by side, turned by their angles, and then the rows, side by side as well. All
// of it stays in the caches of one core. For vector/fft.cpp, behind pocketfft, which has the transforms of the sides.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/vector/convert.h"
#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {
namespace {

template <class T> using Lanes = pocketfft::detail::vtype_t<T>;
template <class T> using LanePairs = pocketfft::detail::cmplx<Lanes<T>>;
template <class T> using SidePlan = std::shared_ptr<pocketfft::detail::pocketfft_c<T>>;

constexpr size_t kLongRow = 256;  // shorter ones are faster side by side
// How many times as many lanes as numbers there may be, at most; and where rows could lie side by side instead.
constexpr double kMostWaste = 4, kLittleWaste = 1.3, kNoWaste = 1.1;

/// Registers of `count` complex numbers that lie one after the other, and back.
template <class T> LanePairs<T> load_pairs(const T* from, int64_t count) {
  constexpr int64_t size = Vec<T>::size;
  Vec<T> low = 2 * count >= size ? Vec<T>::load(from) : Vec<T>::load(from, 2 * count), high(0);
  if (count == size) high = Vec<T>::load(from + size);
  else if (2 * count > size) high = Vec<T>::load(from + size, 2 * count - size);
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return LanePairs<T>{__builtin_shufflevector(low.raw, high.raw, (2 * lane)...),
                        __builtin_shufflevector(low.raw, high.raw, (2 * lane + 1)...)};
  }
  (std::make_integer_sequence<int, size>());
}
template <class T> void store_pairs(T* to, Lanes<T> real, Lanes<T> imaginary, int64_t count) {
  constexpr int size = Vec<T>::size;
  auto [low, high] = [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return std::pair(Vec<T>(__builtin_shufflevector(real, imaginary, (lane % 2 * size + lane / 2)...)),
                     Vec<T>(__builtin_shufflevector(real, imaginary, (lane % 2 * size + size / 2 + lane / 2)...)));
  }
  (std::make_integer_sequence<int, size>());
  if (count == size) {
    low.store(to);
    high.store(to + size);
  } else {
    low.store(to, std::min<int64_t>(2 * count, size));
    if (2 * count > size) high.store(to + size, 2 * count - size);
  }
}
template <class T> Lanes<T> backwards(Lanes<T> a) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(a, a, (static_cast<int>(sizeof...(lane)) - 1 - lane)...);
  }
  (std::make_integer_sequence<int, Vec<T>::size>());
}

/// What the transforms of one length share.
template <class T> struct RowSteps {
  size_t rows, columns;
  SidePlan<T> of_rows, of_columns;              // of as many numbers
  pocketfft::detail::arr<LanePairs<T>> angles;  // for each group of columns, row after row
  pocketfft::detail::arr<T> cosines, sines;     // of the twice as many real numbers that such a row may be

  [[gnu::cold, gnu::noinline]] RowSteps(size_t rows, size_t columns)
      : rows(rows),
        columns(columns),
        of_rows(pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(rows)),
        of_columns(pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(columns)),
        angles(rows * groups(columns)),
        cosines(rows * columns),
        sines(rows * columns) {
    const size_t n = rows * columns;
    pocketfft::detail::sincos_2pibyn<T> whole(n), half(2 * n);
    for (size_t g = 0; g < groups(columns); ++g)
      for (size_t r = 0; r < rows; ++r)
        for (size_t lane = 0; lane < kLanes; ++lane) {
          auto angle = whole[r * std::min(columns - 1, g * kLanes + lane)];
          angles[g * rows + r].r[lane] = angle.r;
          angles[g * rows + r].i[lane] = angle.i;
        }
    for (size_t k = 0; k < n; ++k) {
      auto angle = half[k];
      cosines[k] = angle.r;
      sines[k] = angle.i;
    }
  }
  static constexpr size_t kLanes = pocketfft::detail::VLEN<T>::val;
  static size_t groups(size_t count) { return (count + kLanes - 1) / kLanes; }

  /// The sides that leave the fewest lanes empty, near to a square; none for short rows, and where a side would have a
  /// large prime factor.
  [[gnu::cold, gnu::noinline]] static std::optional<std::pair<size_t, size_t>> sides(size_t n, double most_waste) {
    size_t rest = n, best = 0;
    for (size_t factor : {2, 3, 5, 7, 11, 13})
      while (rest % factor == 0) rest /= factor;
    if (n < kLongRow || rest != 1) return {};
    double least = most_waste;
    for (size_t side = 4; side * side <= n; ++side) {
      if (n % side != 0) continue;
      double filled = static_cast<double>(n) / static_cast<double>(groups(side) * groups(n / side) * kLanes * kLanes);
      if (1 / filled <= least) least = 1 / filled, best = side;
    }
    return best ? std::optional(std::pair(best, n / best)) : std::nullopt;
  }
  [[gnu::cold, gnu::noinline]] static std::shared_ptr<const RowSteps> of_length(size_t n) {
    static std::mutex mutex;
    static auto& kept = *new std::map<size_t, std::shared_ptr<const RowSteps>>;
    constexpr size_t kMost = 8;
    std::lock_guard lock(mutex);
    auto& steps = kept[n];
    if (steps) return steps;
    if (kept.size() > kMost) kept.clear();
    auto [rows, columns] = *sides(n, kMostWaste);
    return kept[n] = std::make_shared<const RowSteps>(rows, columns);
  }
};

template <class T> class RowTransform {
 public:
  static constexpr int64_t lanes = Vec<T>::size;

  RowTransform(size_t n, bool forward)
      : kept_(RowSteps<T>::of_length(n)),
        steps_(*kept_),
        forward_(forward),
        n_(static_cast<int64_t>(n)),
        rows_(static_cast<int64_t>(steps_.rows)),
        columns_(static_cast<int64_t>(steps_.columns)),
        side_(steps_.rows),
        turned_(RowSteps<T>::groups(steps_.rows) * steps_.columns) {
    for (size_t i = 0; i < turned_.size(); ++i) turned_[i] = {Lanes<T>{}, Lanes<T>{}};  // lanes that stay empty
  }

  /// Of complex numbers, which may be transformed in place.
  void run(const T* from, T* to, T scale) {
    for (int64_t first = 0; first < columns_; first += lanes) transform_columns(from, first);
    for (int64_t first = 0; first < rows_; first += lanes) transform_rows(to, first, scale);
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
  [[gnu::noinline]] void transform_columns(const T* from, int64_t first) {
    const int64_t count = std::min(lanes, columns_ - first);
    for (int64_t r = 0; r < rows_; ++r) side_[r] = load_pairs(from + 2 * (r * columns_ + first), count);
    transform_side(*steps_.of_rows, side_.data(), T(1));
    const LanePairs<T>* angles = steps_.angles.data() + first / lanes * rows_;
    LanePairs<T> tile[lanes];
    for (int64_t row = 0; row < rows_; row += lanes) {
      const int64_t height = std::min(lanes, rows_ - row);
      for (int64_t r = 0; r < height; ++r) {
        LanePairs<T> number = side_[row + r], angle = angles[row + r];
        if (forward_) angle.i = -angle.i;
        tile[r] = {number.r * angle.r - number.i * angle.i, number.r * angle.i + number.i * angle.r};
      }
      char* to = reinterpret_cast<char*>(turned_.data() + row / lanes * columns_ + first);
      for (size_t part : {size_t{0}, sizeof(Lanes<T>)})
        copy_transposed(to + part, sizeof(LanePairs<T>), reinterpret_cast<const char*>(tile) + part,
                        sizeof(LanePairs<T>), sizeof(T), height, count);
    }
  }
  [[gnu::noinline]] void transform_rows(T* to, int64_t first, T scale) {
    const int64_t count = std::min(lanes, rows_ - first);
    LanePairs<T>* side = turned_.data() + first / lanes * columns_;
    transform_side(*steps_.of_columns, side, scale);
    for (int64_t c = 0; c < columns_; ++c) store_pairs(to + 2 * (c * rows_ + first), side[c].r, side[c].i, count);
  }
  void transform_side(const pocketfft::detail::pocketfft_c<T>& plan, LanePairs<T>* side, T scale) {
    LendKeptBlock lend;
    plan.exec(side, scale, forward_);
  }
  /// All but the first: what is the sum of a number and the mirrored one's conjugate goes to the one, what is their
  /// difference is turned, and goes to both.
  [[gnu::noinline]] void mix(const T* from, T* to) const {
    int64_t k = 1;
    for (; k + lanes <= n_; k += lanes) {
      LanePairs<T> a = load_pairs(from + 2 * k, lanes), b = load_pairs(from + 2 * (n_ - k - lanes + 1), lanes);
      auto [real, imaginary] = mixed(Vec<T>(a.r), Vec<T>(a.i), Vec<T>(backwards<T>(b.r)), Vec<T>(backwards<T>(b.i)),
                                     Vec<T>::load(steps_.cosines.data() + k), Vec<T>::load(steps_.sines.data() + k));
      store_pairs(to + 2 * k, real.raw, imaginary.raw, lanes);
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
  pocketfft::detail::arr<LanePairs<T>> side_, turned_;
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
    complex ? transform.run(source, target, static_cast<T>(pass.scale))
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
      : pass_(pass),
        plan_(pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(pass.sizes[pass.axis])),
        numbers_(pass.sizes[pass.axis]) {}

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
    const int64_t columns = static_cast<int64_t>(pass_.sizes.back()), length = static_cast<int64_t>(numbers_.size());
    const ptrdiff_t from_step = pass_.from_strides[pass_.axis], to_step = pass_.to_strides[pass_.axis];
    const ptrdiff_t item = 2 * sizeof(T), to_next = pass_.to_strides.back();
    for (int64_t first = 0; first < columns; first += lanes, from += lanes * item, to += lanes * to_next) {
      const int64_t count = std::min(lanes, columns - first);
      for (int64_t i = 0; i < length; ++i)
        numbers_[i] = load_pairs(reinterpret_cast<const T*>(from + i * from_step), count);
      plan_->exec(numbers_.data(), static_cast<T>(pass_.scale), pass_.forward);
      if (to_next == item)
        for (int64_t i = 0; i < length; ++i)
          store_pairs(reinterpret_cast<T*>(to + i * to_step), numbers_[i].r, numbers_[i].i, count);
      else
        copy_transposed(to, to_next, reinterpret_cast<const char*>(numbers_.data()), sizeof(Lanes<T>), sizeof(T),
                        2 * length, count);
    }
  }

  const FftPass& pass_;
  SidePlan<T> plan_;
  pocketfft::detail::arr<LanePairs<T>> numbers_;
};

}  // namespace
}  // namespace umbra::kernels::UMBRA_ISA
