// Transforms side by side: each number is a register, which holds one number of each of as many transforms as there are
// lanes. Where the length has no prime factors but 2, 3 and 5 they run here: the first step reads what the caller gives
// and the last one gives back, so that numbers that lie otherwise in memory are brought side by side on the way. Others
// are pocketfft's. For vector/fft.cpp, behind pocketfft.
#pragma once

#include <map>
#include <utility>

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

/// fn(0), fn(1), ..., written out, so that the compiler sees numbers of arrays as registers.
template <int count, class Fn> [[gnu::always_inline]] inline void each(const Fn& fn) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (fn(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, count>());
}

template <class T> [[gnu::always_inline]] inline LanePairs<T> turned(LanePairs<T> a, Lanes<T> cosine, Lanes<T> sine) {
  return {a.r * cosine + a.i * sine, a.i * cosine - a.r * sine};
}
template <class T> [[gnu::always_inline]] inline LanePairs<T> quarter(LanePairs<T> a) { return {a.i, -a.r}; }

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
  } else if constexpr (radix == 3) {
    constexpr T cosine = T(-0.5), sine = static_cast<T>(0.866025403784438646763723170752936L);
    Pair sum = x[1] + x[2], turn = quarter<T>((x[1] - x[2]) * sine), rest = x[0] + sum * cosine;
    x[0] = x[0] + sum, x[1] = rest + turn, x[2] = rest - turn;
  } else {
    static_assert(radix == 5);
    constexpr T c1 = static_cast<T>(0.309016994374947424102293417182819L);
    constexpr T s1 = static_cast<T>(0.951056516295153572116439333379382L);
    constexpr T c2 = static_cast<T>(-0.809016994374947424102293417182819L);
    constexpr T s2 = static_cast<T>(0.587785252292473129168705954639073L);
    Pair sum = x[1] + x[4], inner = x[2] + x[3], difference = x[1] - x[4], between = x[2] - x[3];
    Pair a = x[0] + sum * c1 + inner * c2, b = x[0] + sum * c2 + inner * c1;
    Pair turn = quarter<T>(difference * s1 + between * s2), other = quarter<T>(difference * s2 - between * s1);
    x[0] = x[0] + sum + inner;
    x[1] = a + turn, x[4] = a - turn, x[2] = b + other, x[3] = b - other;
  }
}

/// The transforms of one length, forward. Those backward are the same with real and imaginary parts exchanged.
template <class T> class Side {
 public:
  explicit Side(size_t n) : n_(n) {
    size_t rest = n;
    for (int radix : {8, 4, 2, 5, 3})
      // 4 * 4 rather than 8 * 2
      while (rest % radix == 0 && !(radix == 8 && (rest % 16 == 0 && rest % 32 != 0))) {
        steps_.push_back({radix, 0, 0, {}});
        rest /= radix;
      }
    if (rest != 1 || n == 1) steps_.clear();
    if (steps_.empty()) plan_ = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(n);
    // What reads and writes in other orders comes first and last.
    if (steps_.size() > 2 && steps_[1].radix >= 4) std::swap(steps_[1], steps_.back());
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
    } else if (steps_[0].radix == 8) {
      first<8>(steps_[step++], load, now);
    } else if (steps_[0].radix == 4) {
      first<4>(steps_[step++], load, now);
    } else {
      for (size_t i = 0; i < n_; ++i) now[i] = load(i);
    }
    bool joined = end >= 2 && steps_.back().radix >= 4 && steps_.back().radix != 5;
    for (; step + joined < end; ++step, std::swap(now, next)) middle(steps_[step], now, next);
    if (plan_) plan_->exec(now, T(1), true);
    if (!joined)
      for (size_t i = 0; i < n_; ++i) store(i, now[i]);
    else if (steps_.back().radix == 8) last<8>(now, store);
    else last<4>(now, store);
  }

 private:
  struct Step {
    int radix;
    size_t apart, blocks;  // numbers between those that go together; transforms that are done so far
    std::vector<pocketfft::detail::cmplx<T>> angles;
  };
  template <class Load> static LanePairs<T> at(const Load& load, size_t i) {
    if constexpr (std::is_pointer_v<Load>) return load[i];
    else return load(i);
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
    switch (step.radix) {
      case 2: return pass<2>(step, from, to);
      case 3: return pass<3>(step, from, to);
      case 4: return pass<4>(step, from, to);
      case 5: return pass<5>(step, from, to);
      default: return pass<8>(step, from, to);
    }
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
