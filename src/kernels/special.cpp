// By Boost.Math, in double and without exceptions, and by series where it has no such function.
#include "kernels/special.h"

#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "kernels/functors/bessel.h"

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

double zeta_sum(double x, double q) {
  constexpr int kDirectTerms = 10;
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
  if (x < 0 || a < 0) lower = kNan;
  else if (a == 0) lower = x > 0 ? 1 : kNan;
  else if (x == 0) lower = 0;
  else if (std::isinf(a)) lower = std::isinf(x) ? kNan : 0;
  else if (std::isinf(x)) lower = 1;  // whatever the other is
  else if (std::isnan(a) || std::isnan(x)) lower = kNan;
  else return false;
  return true;
}

// ---- to the precision of a float, in double ----

constexpr double kFloatPrecision = 1e-8;
/// Below, the logarithm of the gamma function loses what is left; above, series are long.
bool has_short_series(double a) { return a >= 1e-4 && a <= 200; }

/// gamma(1 + a) is exp(logarithm) / product: by Stirling's series from 8 on.
struct GammaPlusOne {
  double logarithm, product;
};
GammaPlusOne gamma_plus_one(double a) {
  double y = a + 1, product = 1;
  if (y < 8) {  // no loop, whose length would be guessed wrong
    product = (y * (a + 2)) * ((a + 3) * (a + 4)) * ((a + 5) * (a + 6)) * (a + 7);
    y = a + 8;
  }
  double w = 1 / (y * y);
  double rest = (1.0 / 12 + w * (-1.0 / 360 + w * (1.0 / 1260 + w * (-1.0 / 1680 + w / 1188)))) / y;
  constexpr double kHalfLogOfTwoPi = 0.91893853320467274178;
  return {(y - 0.5) * std::log(y) - y + kHalfLogOfTwoPi + rest, product};
}

/// The lower function over x^a exp(-x) / gamma(1 + a): the sum of x^n / ((a + 1) ... (a + n)).
double lower_series(double a, double x) {
  double sum = 1, term = 1;
  do {
    a += 1;
    term *= x / a;
    sum += term;
  } while (term > sum * kFloatPrecision);
  return sum;
}

/// The upper function over x^a exp(-x) / gamma(a): Legendre's continued fraction, by its numerators and denominators.
double upper_fraction(double a, double x) {
  constexpr int kMostSteps = 2000, kBetweenLooks = 4;
  constexpr double kLarge = 1e30;
  double y = 1 - a, z = x + y + 1, numerator = x + 1, numerator_before = 1, denominator = z * x, denominator_before = x;
  double value = numerator / denominator;
  for (int step = 1; step < kMostSteps; ++step) {
    y += 1;
    z += 2;
    // Joined, so that a step waits for one operation of the last.
    double factor = y * step, next = std::fma(numerator, z, -(numerator_before * factor));
    numerator_before = std::exchange(numerator, next);
    next = std::fma(denominator, z, -(denominator_before * factor));
    denominator_before = std::exchange(denominator, next);
    if (step % kBetweenLooks != 0) continue;
    double before = std::exchange(value, numerator / denominator);
    if (std::abs(before - value) <= std::abs(value) * kFloatPrecision) break;
    if (std::abs(numerator) < kLarge) continue;
    for (double* part : {&numerator, &numerator_before, &denominator, &denominator_before}) *part /= kLarge;
  }
  return value;
}

/// The upper function where it is what is left of 1: with `power` the logarithm of x^a / gamma(1 + a).
double upper_near_zero(double a, double x, double power) {
  double sum = 0, term = 1;
  for (int n = 1; n < 100; ++n) {
    term *= -x / n;
    double part = a * term / (a + n);
    sum += part;
    if (std::abs(part) <= std::abs(sum) * kFloatPrecision) break;
  }
  return -std::expm1(power) - std::exp(power) * sum;
}

}  // namespace

float lower_gamma(float a, float x) {
  if (!has_short_series(a) || !(x > 0) || std::isinf(x)) return static_cast<float>(lower_gamma(double{a}, double{x}));
  auto [logarithm, product] = gamma_plus_one(a);
  double factor = std::exp(a * std::log(double{x}) - x - logarithm) * product;
  if (x > 1 && x > a) return static_cast<float>(1 - factor * a * upper_fraction(a, x));
  return static_cast<float>(factor * lower_series(a, x));
}

float upper_gamma(float a, float x) {
  if (!has_short_series(a) || !(x > 0) || std::isinf(x)) return static_cast<float>(upper_gamma(double{a}, double{x}));
  auto [of_gamma, product] = gamma_plus_one(a);
  double logarithm = std::log(double{x}), power = a * logarithm - of_gamma;
  bool near = x <= 1.1f && (x <= 0.5f ? -0.4 / logarithm >= a : 1.1 * x >= a);
  if (near) return static_cast<float>(upper_near_zero(a, x, power + std::log(product)));
  double factor = std::exp(power - x) * product;
  return static_cast<float>(x > 1.1f && x >= a ? factor * a * upper_fraction(a, x) : 1 - factor * lower_series(a, x));
}

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

// ---- Bessel and Airy functions ----

double bessel_i0(double x) { return functors::bessel::i0(x, x); }

double airy_ai(double x) {
  if (std::isinf(x) || std::isnan(x)) return kNan;
  if (std::abs(x) > 1e-3) return boost::math::airy_ai(x, kQuiet);
  constexpr double kValueAtZero = 0.35502805388781723926, kSlopeAtZero = -0.25881940379280679841;
  double cube = x * x * x;
  return kValueAtZero * (1 + cube / 6) + kSlopeAtZero * x * (1 + cube / 12);
}

}  // namespace umbra::kernels::special
