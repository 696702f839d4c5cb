// By Boost.Math, in double and without exceptions, and by series where it has no such function.
#include "kernels/special.h"

#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

namespace umbra::kernels::special {
namespace {

namespace policies = boost::math::policies;
using Quiet =
    policies::policy<policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
                     policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;
const Quiet kQuiet;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

}  // namespace

// ---- gamma functions ----

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isinf(x)) return x > 0 ? x : kNan;
  if (std::isnan(x) || (x < 0 && x == std::trunc(x))) return x < 0 ? kNan : x;
  return boost::math::digamma(x, kQuiet);
}

namespace {

// Below 1/2 by reflection, in the type of x: at the poles, what the sine's rounding leaves of infinity.
template <class T> T trigamma(T x) {
  if (std::isnan(x)) return x;
  double size = x < 0.5 ? 1 - double{x} : double{x};
  double value = std::isinf(size) ? 0 : boost::math::trigamma(size, kQuiet);
  if (x >= T(0.5)) return static_cast<T>(value);
  T sine = std::sin(std::numbers::pi_v<T> * x);
  return std::numbers::pi_v<T> * std::numbers::pi_v<T> / (sine * sine) - static_cast<T>(value);
}

// Euler and Maclaurin's remainder of the sum from a on: a^-x (a / (x - 1) + 1/2 + sum of B(2j) / (2j)! (x)_(2j-1)
// a^(1-2j)).
double zeta_remainder(double x, double a) {
  // B(2j) / (2j)!
  constexpr double kCoefficients[] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0,
                                      43867.0 / 5109094217170944000.0};
  double power = std::pow(a, -x), sum = power * a / (x - 1) + power / 2, rising = x * power / a, step = x;
  for (double coefficient : kCoefficients) {
    double term = rising * coefficient;
    sum += term;
    if (std::abs(term) < std::abs(sum) * 1e-17) break;
    rising *= (step + 1) * (step + 2) / (a * a);
    step += 2;
  }
  return sum;
}

}  // namespace

double zeta(double x, double q) {
  constexpr int kDirectTerms = 10;
  if (x == 1) return kInfinity;
  if (x < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNan;
  }
  double sum = 0;
  for (int k = 0; k < kDirectTerms || q < kDirectTerms; ++k, q += 1) {
    double term = std::pow(q, -x);
    sum += term;
    // Nothing that is left changes the sum; far below zero, larger terms are still to come.
    if (q > 1 && term < sum * 1e-17) return sum;
    if (std::isinf(sum)) return sum;
  }
  return sum + zeta_remainder(x, q);
}

namespace {

template <class T> T polygamma_of(double n, T x) {
  if (n == 0) return static_cast<T>(digamma(x));
  if (n == 1) return trigamma(x);
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return static_cast<T>(sign * std::exp(std::lgamma(n + 1))) * static_cast<T>(zeta(n + 1, x));
}

}  // namespace

double polygamma(double n, double x) { return polygamma_of(n, x); }
float polygamma(double n, float x) { return polygamma_of(n, x); }

namespace {

// The values of the lower function where one argument is at an end of its range; nothing elsewhere.
bool gamma_at_ends(double a, double x, double& lower) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) lower = kNan;
  else if (a == 0) lower = x > 0 ? 1 : kNan;
  else if (x == 0) lower = 0;
  else if (std::isinf(a)) lower = std::isinf(x) ? kNan : 0;
  else if (std::isinf(x)) lower = 1;
  else return false;
  return true;
}

}  // namespace

double lower_gamma(double a, double x) {
  double end;
  return gamma_at_ends(a, x, end) ? end : boost::math::gamma_p(a, x, kQuiet);
}

double upper_gamma(double a, double x) {
  double end;
  return gamma_at_ends(a, x, end) ? 1 - end : boost::math::gamma_q(a, x, kQuiet);
}

// ---- error functions ----

double erfinv(double y) {
  if (std::abs(y) == 1) return std::copysign(kInfinity, y);
  return std::abs(y) < 1 ? boost::math::erf_inv(y, kQuiet) : kNan;
}

double ndtri(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  return p > 0 && p < 1 ? -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p, kQuiet) : kNan;
}

namespace {

// erfc(x) exp(x²) sqrt(pi) x = 1 - 1/(2x²) + 1·3/(2x²)² - ..., whose terms fall to nothing from x = 10 on.
double erfcx_far(double x) {
  double sum = 1, term = 1, factor = -0.5 / (x * x);
  for (int k = 1; k < 40 && std::abs(term) > 1e-18; ++k) sum += term *= factor * (2 * k - 1);
  return sum / (x * std::sqrt(kPi));
}

}  // namespace

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x > 10) return erfcx_far(x);
  // The square with its rounding error, which the exponential would magnify.
  double square = x * x, error = std::fma(x, x, -square);
  return std::exp(square) * std::erfc(x) * (std::isinf(square) ? 1 : 1 + error);
}

double log_ndtr(double x) {
  double t = x * (1 / std::numbers::sqrt2);
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

// ---- Bessel and Airy functions ----

namespace {

double without_value(double x) { return std::isnan(x) ? x : kNan; }

// sqrt(2 pi x) exp(-x) I(order, x), or sqrt(2 x / pi) exp(x) K(order, x) with the sign of the argument changed: for
// large x, in powers of 1 / x.
double modified_far(double order, double x) {
  double sum = 1, term = 1, four = 4 * order * order;
  for (int k = 1; k < 30 && std::abs(term) > 1e-18; ++k) {
    double odd = 2 * k - 1;
    sum += term *= -(four - odd * odd) / (8 * x * k);
  }
  return sum;
}
constexpr double kFar = 600;  // from here on exp(x) comes close to what a double holds

double scaled_i(int order, double size) {
  if (size > kFar) return modified_far(order, size) / std::sqrt(2 * kPi * size);
  return std::exp(-size) * boost::math::cyl_bessel_i(order, size, kQuiet);
}

double unscaled_i(int order, double size) {
  if (size <= kFar) return boost::math::cyl_bessel_i(order, size, kQuiet);
  return std::exp(size) * scaled_i(order, size);
}

double modified_k(int order, double x, bool scaled) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return without_value(x);
  if (x > kFar) {
    double far = std::sqrt(kPi / (2 * x)) * modified_far(order, -x);
    return scaled ? far : far * std::exp(-x);
  }
  double value = boost::math::cyl_bessel_k(order, x, kQuiet);
  return scaled ? value * std::exp(x) : value;
}

/// Above 5, PyTorch's functions of the first and second kind are off in the seventh digit: the denominator of the
/// quadrature part, a rational function of Cephes, lacks its leading term there. By how much, times sqrt(pi x / 2); its
/// results are what these are compared with.
double quadrature_offset(int order, double x) {
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
  constexpr double kEnd = 40;  // nothing is left of it from here on
  if (!(x > 5 && x < kEnd)) return 0;
  double w = 25 / (x * x), numerator = 0, denominator = 0;
  for (double c : kNumerators[order]) numerator = numerator * w + c;
  for (double c : kDenominators[order]) denominator = denominator * w + c;
  return 5 / x * (numerator / denominator - numerator / (denominator + std::pow(w, 7)));
}
double phase(int order, double x) { return x - (order == 0 ? kPi / 4 : 3 * kPi / 4); }

double second_kind(int order, double x) {
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return without_value(x);
  double offset = quadrature_offset(order, x) * std::cos(phase(order, x)) * std::sqrt(2 / (kPi * x));
  return boost::math::cyl_neumann(order, x, kQuiet) + offset;
}

double first_kind(int order, double size) {
  if (!std::isfinite(size)) return without_value(size);
  double offset = quadrature_offset(order, size);
  if (offset != 0) offset *= std::sin(phase(order, size)) * std::sqrt(2 / (kPi * size));
  return boost::math::cyl_bessel_j(order, size, kQuiet) - offset;
}

}  // namespace

double bessel_j0(double x) { return first_kind(0, std::abs(x)); }
double bessel_j1(double x) { return x < 0 ? -first_kind(1, -x) : first_kind(1, x); }
double bessel_y0(double x) { return second_kind(0, x); }
double bessel_y1(double x) { return second_kind(1, x); }

double bessel_i0(double x) { return unscaled_i(0, std::abs(x)); }
double bessel_i1(double x) { return x < 0 ? -unscaled_i(1, -x) : unscaled_i(1, x); }
double bessel_i0e(double x) { return std::isnan(x) ? x : scaled_i(0, std::abs(x)); }
double bessel_i1e(double x) { return std::isnan(x) ? x : std::copysign(scaled_i(1, std::abs(x)), x); }
double bessel_k0(double x) { return modified_k(0, x, false); }
double bessel_k1(double x) { return modified_k(1, x, false); }
double bessel_k0e(double x) { return modified_k(0, x, true); }
double bessel_k1e(double x) { return modified_k(1, x, true); }

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::abs(x) > 1e-4) return std::sin(x) / x;
  return 1 - x * x / 6;
}

double airy_ai(double x) {
  if (std::isinf(x) || std::isnan(x)) return kNan;
  if (std::abs(x) > 1e-3) return boost::math::airy_ai(x, kQuiet);
  constexpr double kValueAtZero = 0.35502805388781723926, kSlopeAtZero = -0.25881940379280679841;
  double cube = x * x * x;
  return kValueAtZero * (1 + cube / 6) + kSlopeAtZero * x * (1 + cube / 12);
}

}  // namespace umbra::kernels::special
