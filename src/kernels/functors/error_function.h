// Relatives of the error function, over double or a register of doubles (kernels/functors/series.h).
#pragma once

#include <numbers>

#include "kernels/functors/series.h"

namespace umbra::functors::error_function {

/// exp(x²) erfc(x), for x from 0 on.
template <class V, class T> V scaled_complement(V x, T) {
  constexpr double kMiddle = 3.75;
  V t = fma(V(-2 * kMiddle), V(1.0) / (x + V(kMiddle)), V(1.0));
  return series::sum<T, series::kErfcx>(t) / fma(V(2.0), x, V(1.0));
}

/// exp(x²) erfc(x).
template <class V, class T> V erfcx(V x, T type) {
  V value = scaled_complement(abs(x), type);
  auto below = x < V(0.0);
  if (!any(below)) return value;
  // The square with its rounding error, which the exponential would magnify.
  V square = x * x, error = fma(x, x, -square), power = exp(square);
  power = select(isinf(power), power, fma(power, error, power));
  return select(below, fma(V(2.0), power, -value), value);
}

/// (1 + 2 x) exp(x²) erfc(x) to the digits of a float, in (x - 2) / (x + 2), with the highest power first.
inline constexpr double kErfcxOfFloat[] = {
    -0.00040058352206889797, -0.0012299457739454534, 0.0013135122221290011, 0.008631692437861762, -0.00805986344483369,
    -0.05420429964437485,    0.16405534376843744,    -0.16603142529432094,  -0.09276398069905974, 1.2769783934923602};

/// erfc(x) in the type of x itself, good to a few ULP of a float.
template <class V> V erfc_of_float(V x) {
  V size = minimum(abs(x), V(12)), square = size * size;  // beyond, it is 0
  V power = exp(-square), rest = fma(size, size, -square);
  V sum = size + V(2), twice = fma(V(2), size, V(1)), reciprocal = quotient(V(1), sum * twice);
  V scaled = series::polynomial(kErfcxOfFloat, (size - V(2)) * (twice * reciprocal)) * (sum * reciprocal);
  V value = fma(-power, rest, power) * scaled;
  return select(x < V(0), V(2) - value, value);
}

/// The logarithm of the normal distribution: below 0 nothing cancels, above, it is close to 0.
template <class V, class T> V log_ndtr(V x, T type) {
  V t = x * V(1 / std::numbers::sqrt2), square = t * t;
  V half = scaled_complement(abs(t), type) * V(0.5);
  V above = log1p(-exp(-square) * half);
  auto below = x < V(0.0);
  return any(below) ? select(below, log(half) - square, above) : above;
}

}  // namespace umbra::functors::error_function
