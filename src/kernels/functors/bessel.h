// Bessel functions of orders 0 and 1, over double or a register of doubles (kernels/functors/series.h).
//
// Where a function has no value they give NaN, at poles infinity.
#pragma once

#include <numbers>

#include "kernels/functors/series.h"

namespace umbra::functors::bessel {

inline constexpr double kPi = std::numbers::pi, kInfinity = std::numeric_limits<double>::infinity();

// ---- of the first and second kind ----

inline constexpr double kFar = 5;  // from here on by amplitude and phase

/// What multiplies the other one of sine and cosine, times sqrt(pi x / 2): a rational function of 25 / x² (Cephes'),
/// whose denominator lacks its leading term. So it is in PyTorch, whose functions are off in the seventh digit above 5;
/// its results are what these are compared with.
template <int order, class V> V hankel_odd(V x, V inverse_square) {
  constexpr double kNumerators[2][8] = {
      {-1.13663838898469149931e-02, -1.28252718670509318512e+00, -1.95539544257735972385e+01,
       -9.32060152123768231369e+01, -1.77681167980488050595e+02, -1.47077505154951170175e+02,
       -5.14105326766599330220e+01, -6.05014350600728481186e+00},
      {5.10862594750176621635e-02, 4.98213872951233449420e+00, 7.58238284132545283818e+01, 3.66779609360150777800e+02,
       7.10856304998926107277e+02, 5.97489612400613639965e+02, 2.11688757100572135698e+02, 2.52070205858023719784e+01}};
  constexpr double kDenominators[2][7] = {
      {6.43178256118178023184e+01, 8.56430025976980587198e+02, 3.88240183605401609683e+03, 7.24046774195652478189e+03,
       5.93072701187316984827e+03, 2.06209331660327847417e+03, 2.42005740240291393179e+02},
      {7.42373277035675149943e+01, 1.05644886038262816351e+03, 4.98641058337653607651e+03, 9.56231892404756170795e+03,
       7.99704160447350683650e+03, 2.82619278517639096600e+03, 3.36093607810698293419e+02}};
  return V(kFar) / x * series::polynomial(kNumerators[order], inverse_square) /
         series::polynomial(kDenominators[order], inverse_square);
}

template <class V> struct Hankel { V even, odd, sine, cosine, scale; };
template <int order, class V, class T> Hankel<V> hankel(V x, T) {
  V inverse_square = V(kFar * kFar) / (x * x);
  V t = fma(V(2.0), inverse_square, V(-1.0));
  auto [sine, cosine] = sine_cosine(x - V((2 * order + 1) * kPi / 4));
  V even;
  if constexpr (order == 0) even = series::sum<T, series::kHankelEven0>(t);
  else even = series::sum<T, series::kHankelEven1>(t);
  return {even, hankel_odd<order>(x, inverse_square), sine, cosine, sqrt(V(2 / kPi) / x)};
}

/// Below kFar, x times the function for order 1. The first root is taken out, so that no digits are lost beside it.
template <int order, class V, class T> V first_kind_near(V x, T) {
  V t = fma(x * x, V(2 / (kFar * kFar)), V(-1.0));
  if constexpr (order == 0)
    return ((x - V(series::kJ0Root)) - V(series::kJ0RootRest)) * (x + V(series::kJ0Root)) *
           series::sum<T, series::kJ0Near>(t);
  else
    return x * ((x - V(series::kJ1Root)) - V(series::kJ1RootRest)) * (x + V(series::kJ1Root)) *
           series::sum<T, series::kJ1Near>(t);
}

template <int order, class V, class T> V first_kind(V x, T type) {
  V near = first_kind_near<order>(x, type);
  auto is_near = x <= V(kFar);
  if (!any(!is_near)) return near;
  auto far = hankel<order>(x, type);
  return select(is_near, near, far.scale * (far.even * far.cosine - far.odd * far.sine));
}

template <int order, class V, class T> V second_kind_near(V x, T type) {
  V t = fma(x * x, V(2 / (kFar * kFar)), V(-1.0)), logarithm = log(x) * V(2 / kPi);
  V first = first_kind_near<order>(x, type);
  if constexpr (order == 0) return fma(logarithm, first, series::sum<T, series::kY0Near>(t));
  V value = fma(logarithm, first, x * series::sum<T, series::kY1Near>(t)) - V(2 / kPi) / x;
  return select(x == V(0.0), V(-kInfinity), value);
}

template <int order, class V, class T> V second_kind(V x, T type) {
  auto is_far = x > V(kFar);
  V near(std::numeric_limits<double>::quiet_NaN());
  if (any((x >= V(0.0)) & (x <= V(kFar)))) near = second_kind_near<order>(x, type);
  if (!any(is_far)) return near;
  auto far = hankel<order>(x, type);
  return select(is_far, far.scale * (far.even * far.sine + far.odd * far.cosine), near);
}

template <class V, class T> V j0(V x, T type) { return first_kind<0>(abs(x), type); }
template <class V, class T> V j1(V x, T type) {
  V value = first_kind<1>(abs(x), type);
  return select(x < V(0.0), -value, value);
}
template <class V, class T> V y0(V x, T type) { return second_kind<0>(x, type); }
template <class V, class T> V y1(V x, T type) { return second_kind<1>(x, type); }

template <class V, class T> V spherical_j0(V x, T) {
  V value = sine_cosine(x).first / x;
  return select(x == V(0.0), V(1.0), select(isinf(x), V(0.0), value));
}

// ---- modified ----

/// exp(-x) I(x), for x from 0 on.
template <int order, class V, class T> V scaled_i(V x, T) {
  constexpr double kStart = 8;
  auto is_near = x <= V(kStart);
  V near_t = fma(x, V(2 / kStart), V(-1.0)), far_t = fma(V(2 * kStart), V(1.0) / x, V(-1.0));
  V near, far;
  if constexpr (order == 0) near = series::sum<T, series::kI0eNear>(near_t);
  else near = x * series::sum<T, series::kI1eNear>(near_t);
  if (!any(!is_near)) return near;
  if constexpr (order == 0) far = series::sum<T, series::kI0eFar>(far_t);
  else far = series::sum<T, series::kI1eFar>(far_t);
  return select(is_near, near, far / sqrt(x));
}

template <class V, class T> V i0e(V x, T type) { return scaled_i<0>(abs(x), type); }
template <class V, class T> V i1e(V x, T type) { return copysign(scaled_i<1>(abs(x), type), x); }
template <class V, class T> V i0(V x, T type) { return exp(abs(x)) * i0e(x, type); }
template <class V, class T> V i1(V x, T type) { return exp(abs(x)) * i1e(x, type); }

// K(x), or exp(x) K(x).

inline constexpr double kSmall = 2;

template <int order, bool scaled, class V, class T> V modified_k_near(V x, T) {
  V t = fma(x * x, V(2 / (kSmall * kSmall)), V(-1.0)), logarithm = log(x * V(0.5)), value;
  if constexpr (order == 0)
    value = fma(-logarithm, series::sum<T, series::kI0Small>(t), series::sum<T, series::kK0Near>(t));
  else
    value = fma(x, fma(logarithm, series::sum<T, series::kI1Small>(t), series::sum<T, series::kK1Near>(t)), V(1.0) / x);
  value = select(x == V(0.0), V(kInfinity), value);
  if constexpr (scaled) value = value * exp(x);
  return value;
}

template <int order, bool scaled, class V, class T> V modified_k(V x, T type) {
  auto is_far = x > V(kSmall);
  V near(std::numeric_limits<double>::quiet_NaN());
  if (any((x >= V(0.0)) & (x <= V(kSmall)))) near = modified_k_near<order, scaled>(x, type);
  if (!any(is_far)) return near;
  V t = fma(V(2 * kSmall), V(1.0) / x, V(-1.0)), far;
  if constexpr (order == 0) far = series::sum<T, series::kK0eFar>(t);
  else far = series::sum<T, series::kK1eFar>(t);
  far = far / sqrt(x);
  if constexpr (!scaled) far = far * exp(-x);
  return select(is_far, far, near);
}

template <class V, class T> V k0(V x, T type) { return modified_k<0, false>(x, type); }
template <class V, class T> V k1(V x, T type) { return modified_k<1, false>(x, type); }
template <class V, class T> V k0e(V x, T type) { return modified_k<0, true>(x, type); }
template <class V, class T> V k1e(V x, T type) { return modified_k<1, true>(x, type); }

}  // namespace umbra::functors::bessel
