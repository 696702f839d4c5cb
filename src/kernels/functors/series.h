// What special functions are put together from: Chebyshev series, over double or a register of doubles.
//
// A function takes the type that its result is wanted in as a last argument: for float, series are cut where a float
// sees no more of them.
#pragma once

#include <utility>

#include "kernels/functors/functor.h"
#include "kernels/functors/special_series.h"

namespace umbra::functors {

inline bool any(bool condition) { return condition; }
inline std::pair<double, double> sine_cosine(double x) { return {std::sin(x), std::cos(x)}; }

/// `fn(x, T())` computed in double, as Vec<float> does it in two halves.
template <math::PlainReal T, class Fn> T in_double(T x, const Fn& fn) {
  return static_cast<T>(fn(static_cast<double>(x), T()));
}

namespace series {

/// How many terms of a series a result of type T needs.
template <class T, size_t size> constexpr int terms(const double (&series)[size]) {
  constexpr double kNegligible = std::is_same_v<T, float> ? 2e-9 : 0;
  double largest = 0, rest = 0;
  for (double c : series) largest = c > largest ? c : -c > largest ? -c : largest;
  int count = size;
  for (; count > 1; --count) {
    rest += series[count - 1] < 0 ? -series[count - 1] : series[count - 1];
    if (rest > kNegligible * largest) break;
  }
  return count;
}

/// c0 + c1 T1(t) + c2 T2(t) + ..., by Clenshaw's recurrence.
template <class T, const auto& coefficients, class V> V sum(V t) {
  constexpr int kCount = terms<T>(coefficients);
  V twice = t + t, next = V(coefficients[kCount - 1]), after = V(0.0);
#pragma GCC unroll 32
  for (int k = kCount - 2; k > 0; --k) {
    V now = fma(twice, next, V(coefficients[k]) - after);
    after = next;
    next = now;
  }
  return fma(t, next, V(coefficients[0]) - after);
}

/// c0 + c1 x + c2 x² + ... with the highest power first.
template <size_t size, class V> V polynomial(const double (&coefficients)[size], V x) {
  V value = V(coefficients[0]);
#pragma GCC unroll 16
  for (size_t k = 1; k < size; ++k) value = fma(value, x, V(coefficients[k]));
  return value;
}

}  // namespace series
}  // namespace umbra::functors
