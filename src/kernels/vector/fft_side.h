// Transforms side by side: each number is a register, which holds one number of each of as many transforms as there are
// lanes. Where the length has no prime factors above 7 they run here: the first step reads what the caller gives
// and the last one gives back, so that numbers that lie otherwise in memory are brought side by side on the way. Others
// are pocketfft's. For vector/fft.cpp, behind pocketfft.
#pragma once

#include <map>
#include <numbers>
#include <utility>

#include "kernels/vector/square.h"
#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {
namespace {

template <class T> using Lanes = pocketfft::detail::vtype_t<T>;
template <class T> using LanePairs = pocketfft::detail::cmplx<Lanes<T>>;

/// What is kept of some lengths for the next call.
template <class Plan> [[gnu::cold, gnu::noinline]] std::shared_ptr<const Plan> kept_plan(size_t n) {
  static std::mutex mutex;
  static auto& kept = *new std::map<size_t, std::shared_ptr<const Plan>>;
  constexpr size_t kMost = 8;
  std::lock_guard lock(mutex);
  if (auto found = kept.find(n); found != kept.end()) return found->second;
  if (kept.size() >= kMost) kept.clear();
  return kept[n] = std::make_shared<const Plan>(n);
}

template <class T> [[gnu::always_inline]] inline LanePairs<T> turned(LanePairs<T> a, Lanes<T> cosine, Lanes<T> sine) {
  return {a.r * cosine + a.i * sine, a.i * cosine - a.r * sine};
}
template <class T> [[gnu::always_inline]] inline LanePairs<T> quarter(LanePairs<T> a) { return {a.i, -a.r}; }

/// Of k turns' nth parts.
template <class T> constexpr T sine(int k, int n) {
  const long double angle = 2 * std::numbers::pi_v<long double> * (2 * k > n ? k - n : k) / n;
  long double sum = 0, term = angle;
  for (int i = 2; i < 60; term *= -angle * angle / (i * (i + 1)), i += 2) sum += term;
  return static_cast<T>(sum);
}
template <class T> constexpr T cosine(int k, int n) { return sine<T>((4 * k + n) % (4 * n), 4 * n); }

/// The transform of `radix` numbers, forward.
template <int radix, class T> [[gnu::always_inline]] inline void butterfly(LanePairs<T>* x) {
  using Pair = LanePairs<T>;
  if constexpr (radix == 2) {
    Pair a = x[0];
    x[0] = a + x[1], x[1] = a - x[1];
  } else if constexpr (radix == 4) {
    Pair sum = x[0] + x[2], difference = x[0] - x[2], other = x[1] + x[3], turn = quarter<T>(x[1] - x[3]);
    x[0] = sum + other, x[2] = sum - other, x[1] = difference + turn, x[3] = difference - turn;
  } else if constexpr (radix == 8) {
    const Lanes<T> half = static_cast<T>(0.707106781186547524400844362104849L) - Lanes<T>{};
    Pair even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    butterfly<4, T>(even);
    butterfly<4, T>(odd);
    odd[1] = {half * (odd[1].r + odd[1].i), half * (odd[1].i - odd[1].r)};
    odd[2] = quarter<T>(odd[2]);
    odd[3] = {half * (odd[3].i - odd[3].r), -half * (odd[3].r + odd[3].i)};
    each<4>([&](auto k) __attribute__((always_inline)) { x[k] = even[k] + odd[k], x[k + 4] = even[k] - odd[k]; });
  } else {
    static_assert(radix % 2 == 1);
    constexpr int half = radix / 2;
    Pair first = x[0], sums[half], differences[half];
    each<half>([&](auto k) __attribute__((always_inline)) {
      sums[k] = x[k + 1] + x[radix - 1 - k];
      differences[k] = x[k + 1] - x[radix - 1 - k];
      x[0] = x[0] + sums[k];
    });
    each<half>([&](auto j) __attribute__((always_inline)) {
      constexpr T c = cosine<T>(j + 1, radix), s = sine<T>(j + 1, radix);
      Pair rest = first + sums[0] * c, turn = differences[0] * s;
      each<half - 1>([&](auto k) __attribute__((always_inline)) {
        constexpr int times = (j + 1) * (k + 2) % radix;
        constexpr T more_c = cosine<T>(times, radix), more_s = sine<T>(times, radix);
        rest = rest + sums[k + 1] * more_c;
        turn = turn + differences[k + 1] * more_s;
      });
      turn = quarter<T>(turn);
      x[j + 1] = rest + turn, x[radix - 1 - j] = rest - turn;
    });
  }
}

/// The transforms of one length, forward. Those backward are the same with real and imaginary parts exchanged.
template <class T> class Side {
 public:
  explicit Side(size_t n) : n_(n) {
    for (int radix : radices(n)) steps_.push_back({radix, 0, 0, {}});
    if (steps_.empty()) plan_ = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(n);
    pocketfft::detail::sincos_2pibyn<T> circle(n);
    size_t done = 1;
    for (Step& step : steps_) {
      step.apart = n / (done * step.radix);
      step.blocks = done;
      for (size_t i = 0; i < step.apart; ++i)
        for (int j = 1; j < step.radix; ++j) step.angles.push_back(circle[i * j * done]);
      done *= step.radix;
    }
  }
  /// How often all numbers are read and written; 0 where there is a larger prime factor than 13.
  static size_t passes(size_t n) {
    size_t steps = 0, joined = 0;
    for (int radix : kRadices)
      for (; divides(radix, n); n /= radix) ++steps, joined += joins(radix);
    bool planned = n == 1 && steps == 0;
    for (size_t factor : {11, 13})
      for (; n % factor == 0; n /= factor) planned = true;
    if (n != 1) return 0;
    if (planned) return steps + 5;  // copied, too, and pocketfft's steps of such factors take twice as long
    return steps == 1 ? 3 : steps + 2 - std::min<size_t>(joined, 2);
  }
  size_t size() const { return n_; }
  size_t work_size() const { return 2 * n_; }

  /// `load(i)` gives the number of index i, or is where they lie; `store(k, number)` takes the results. All are read
  /// before one is written.
  template <class Load, class Store> void run(const Load& load, const Store& store, LanePairs<T>* work) const {
    LanePairs<T>*now = work, *next = work + n_;
    size_t step = 0, end = steps_.size();
    if (end < 2) {
      for (size_t i = 0; i < n_; ++i) now[i] = at(load, i);
    } else if constexpr (std::is_pointer_v<Load>) {
      middle(steps_[step++], load, now);
    } else if (!with_radix<8, 5, 4>(steps_[0].radix, [&](auto radix) { first<radix>(steps_[step++], load, now); })) {
      for (size_t i = 0; i < n_; ++i) now[i] = load(i);
    }
    const auto finish = [&](auto radix) { last<radix>(now, store); };
    const bool joined = end >= 2 && joins(steps_.back().radix);
    for (; step + joined < end; ++step, std::swap(now, next)) middle(steps_[step], now, next);
    if (plan_) plan_->exec(now, T(1), true);
    if (!joined || !with_radix<8, 5, 4>(steps_.back().radix, finish))
      for (size_t i = 0; i < n_; ++i) store(i, now[i]);
  }

 private:
  static constexpr int kRadices[] = {8, 5, 4, 7, 3, 2};
  /// 4 * 4 rather than 8 * 2.
  static bool divides(size_t radix, size_t n) { return n % radix == 0 && !(radix == 8 && n % 16 == 0 && n % 32 != 0); }
  /// Which steps can read and write in other orders.
  static bool joins(int radix) { return radix == 8 || radix == 5 || radix == 4; }
  /// The steps of a length, such ones first and last; none where it has a larger prime factor.
  [[gnu::cold, gnu::noinline]] static std::vector<int> radices(size_t n) {
    std::vector<int> steps;
    for (int radix : kRadices)
      for (; n > 1 && divides(radix, n); n /= radix) steps.push_back(radix);
    if (n != 1) return {};
    if (steps.size() > 2 && joins(steps[1])) std::swap(steps[1], steps.back());
    return steps;
  }
  struct Step {
    int radix;
    size_t apart, blocks;  // numbers between those that go together; transforms that are done so far
    std::vector<pocketfft::detail::cmplx<T>> angles;
  };
  template <class Load> static LanePairs<T> at(const Load& load, size_t i) {
    if constexpr (std::is_pointer_v<Load>) return load[i];
    else return load(i);
  }

  /// fn(radix) with a constant, if it is one of these.
  template <int... known, class Fn> static bool with_radix(int radix, const Fn& fn) {
    return ((radix == known && (fn(std::integral_constant<int, known>()), true)) || ...);
  }
  template <int radix>
  [[gnu::always_inline]] static void turn(LanePairs<T>* x, const pocketfft::detail::cmplx<T>* angles) {
    each<radix - 1>([&](auto j) __attribute__((always_inline)) {
      x[j + 1] = turned<T>(x[j + 1], angles[j].r - Lanes<T>{}, angles[j].i - Lanes<T>{});
    });
  }
  template <int radix, class Load> [[gnu::noinline]] static void first(const Step& step, Load load, LanePairs<T>* to) {
    const auto* angles = step.angles.data();
    for (size_t i = 0; i < step.apart; ++i, angles += radix - 1) {
      LanePairs<T> x[radix];
      each<radix>([&](auto j) __attribute__((always_inline)) { x[j] = load(i + step.apart * j); });
      butterfly<radix, T>(x);
      if (i > 0) turn<radix>(x, angles);
      each<radix>([&](auto j) __attribute__((always_inline)) { to[i + step.apart * j] = x[j]; });
    }
  }
  template <int radix>
  [[gnu::noinline]] static void pass(const Step& step, const LanePairs<T>* from, LanePairs<T>* to) {
    const size_t apart = step.apart, blocks = step.blocks;
    for (size_t k = 0; k < blocks; ++k) {
      const auto* angles = step.angles.data();
      for (size_t i = 0; i < apart; ++i, angles += radix - 1) {
        LanePairs<T> x[radix];
        each<radix>([&](auto j) __attribute__((always_inline)) { x[j] = from[i + apart * (j + radix * k)]; });
        butterfly<radix, T>(x);
        if (i > 0) turn<radix>(x, angles);
        each<radix>([&](auto j) __attribute__((always_inline)) { to[i + apart * (k + blocks * j)] = x[j]; });
      }
    }
  }
  static void middle(const Step& step, const LanePairs<T>* from, LanePairs<T>* to) {
    with_radix<2, 3, 4, 5, 7, 8>(step.radix, [&](auto radix) { pass<radix>(step, from, to); });
  }
  template <int radix, class Store> [[gnu::noinline]] void last(const LanePairs<T>* from, Store store) const {
    const size_t blocks = n_ / radix;
    for (size_t k = 0; k < blocks; ++k) {
      LanePairs<T> x[radix];
      each<radix>([&](auto j) __attribute__((always_inline)) { x[j] = from[radix * k + j]; });
      butterfly<radix, T>(x);
      each<radix>([&](auto j) __attribute__((always_inline)) { store(k + blocks * j, x[j]); });
    }
  }

  size_t n_;
  std::vector<Step> steps_;
  std::shared_ptr<pocketfft::detail::pocketfft_c<T>> plan_;  // of other lengths
};

}  // namespace
}  // namespace umbra::kernels::UMBRA_ISA
