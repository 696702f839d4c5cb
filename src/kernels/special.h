// Special functions of plain numbers, in double: gamma and its relatives, error functions, Bessel and Airy functions.
//
// Where a function has no value they give NaN, at poles infinity: nothing is thrown.
#pragma once

#include <cmath>
#include <limits>

namespace umbra::kernels::special {

// ---- gamma functions ----

double digamma(double x);
/// The derivatives of digamma: n = 1 is its slope.
double polygamma(double n, double x);
float polygamma(double n, float x);
/// The sum of (q + k)^-x over k = 0, 1, ..., where it has a value.
double zeta_sum(double x, double q);
/// Hurwitz's zeta function.
inline double zeta(double x, double q) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  if (x == 1) return kInfinity;
  if (x < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNan;
  }
  return zeta_sum(x, q);
}
/// The regularised incomplete gamma functions, from below and from above.
double lower_gamma(double a, double x);
double upper_gamma(double a, double x);
float lower_gamma(float a, float x);
float upper_gamma(float a, float x);
/// The same, with no call where there is no value.
template <class T> T lower_gamma_or_nan(T a, T x) {
  return a < 0 || x < 0 ? std::numeric_limits<T>::quiet_NaN() : lower_gamma(a, x);
}
template <class T> T upper_gamma_or_nan(T a, T x) {
  return a < 0 || x < 0 ? std::numeric_limits<T>::quiet_NaN() : upper_gamma(a, x);
}

// ---- error functions ----

double erfinv(double y);

// ---- Bessel and Airy functions ----

double bessel_i0(double x);
double airy_ai(double x);

}  // namespace umbra::kernels::special
