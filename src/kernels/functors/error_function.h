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

/// The argument of the normal distribution's value p is (p - 1/2) series(w) with w = -log(4 p (1 - p)), less 2.51,
/// while that is small; further out it is s - series((s - middle) / (s + middle)) with s = sqrt(-2 log(p)), in two
/// stretches. Least-maximum fits of 140 bits, the highest power first.
inline constexpr double kQuantile[] = {
    6.983186166514198e-18,  -5.820766739157504e-17,  -2.95896448377295e-16,  5.072590892768834e-15,
    -7.88268465205454e-15,  -2.1543702026545507e-13, 1.4759983005404406e-12, 2.8566914931066335e-12,
    -8.750703428341021e-11, 3.2392801745109754e-10,  2.616078892665672e-09,  -3.0365785105048625e-08,
    3.419011441393439e-08,  1.3579841252263885e-06,  -9.53388165210842e-06,  -1.4918448817959877e-05,
    0.0006163120042965151,  -0.0035094610664486298,  -0.011959873082471003,  0.6972789952882861};
struct QuantileTail {
  double middle, series[19];
};
inline constexpr QuantileTail kQuantileTail = {
    6.5,
    {0.054127427617262254, -0.052446671190574966, 0.03387301662641189, -0.03928983927034221, 0.04537571217719649,
     -0.049904970582863695, 0.05328458813901702, -0.06005543408641115, 0.06544935835140545, -0.07559136248667508,
     0.08426119323035297, -0.10133077701289991, 0.11717087307114442, -0.14950892830225668, 0.18048431639344403,
     -0.25050166647769023, 0.3166711879415376, -0.5858213083132144, 0.4372717972053671}};
inline constexpr QuantileTail kFarQuantileTail = {
    21,
    {0.054427400095344754, -0.06129040752259897, 0.04338106846813943, -0.04561977995243455, 0.052508263144317495,
     -0.05702709409054268, 0.06101182737130041, -0.06657482068309198, 0.07209428420970196, -0.07943394765914163,
     0.08666986398715086, -0.09681224897457748, 0.10682320511252777, -0.12214062098799629, 0.1373290993763616,
     -0.1651383915728022, 0.19297432487430605, -0.2847872449018002, 0.18926734626795955}};  // of s from 11.7 on

template <class V> V quantile_tail(const QuantileTail& tail, V s) {
  V middle = V(tail.middle);
  return s - series::polynomial(tail.series, (s - middle) / (s + middle));
}

/// The normal distribution's inverse: of 0 and 1 infinite, of what lies beyond them NaN.
template <class V, class T> V ndtri(V p, T) {
  V fourfold = V(4.0) * p, w = -log(fma(-fourfold, p, fourfold)), place = w - V(2.513671875);
  V y = p - V(0.5), rest = fma(place, series::polynomial(kQuantile, place), V(4.0936045926917695e-16));
  V value = fma(y, V(4.256162271844368), y * rest);
  auto far = w > V(5.0);
  if (!any(far)) return value;
  auto upper = p > V(0.5);
  V s = sqrt(V(-2.0) * log(select(upper, V(1.0) - p, p))), size = quantile_tail(kQuantileTail, s);
  auto farther = s > V(11.7);
  if (any(farther)) size = select(farther, quantile_tail(kFarQuantileTail, s), size);
  size = select(isinf(s), s, size);
  return select(far, select(upper, size, -size), value);
}

}  // namespace umbra::functors::error_function
