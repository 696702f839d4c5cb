// Maths of plain numbers under the names that Vec (and any other number-like type) has too: a functor over T calls
// `exp(x)`, `select(x > 0, a, b)` and so on, whatever T is.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "umbra/core/scalar.h"

namespace umbra::math {

template <class T> inline constexpr bool is_complex = false;
template <class T> inline constexpr bool is_complex<std::complex<T>> = true;
/// Integers without bool.
template <class T> inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T> inline constexpr bool is_bool = std::is_same_v<T, bool>;
/// Real numbers with fractions: float, double, and types that stand for them (Vec).
template <class T> inline constexpr bool is_real = !std::is_integral_v<T> && !is_complex<T>;
template <class T> inline constexpr bool is_plain_real = std::is_floating_point_v<T>;
template <class T>
concept PlainReal = is_plain_real<T>;
template <class T>
concept Integer = is_integer<T>;

/// A parameter of an operator as a T; what `bind` converts its scalars with.
template <class T> T constant(const Scalar& value) {
  T out = value.to<T>();
  if constexpr (std::is_same_v<T, float>)  // a finite parameter must stay finite
    if (std::isinf(out) && std::isfinite(value.to<double>())) umbra::detail::fail_overflow("float");
  return out;
}
template <class T> T constant(double value) { return static_cast<T>(value); }

template <class T> T select(bool condition, T a, std::type_identity_t<T> b) { return condition ? a : b; }

// ---- the standard library's. (For complex numbers their namespace offers these anyway: they must not be declared
// again.)
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::cos, std::cosh, std::exp, std::log,
    std::log10, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
using std::atan2, std::ceil, std::copysign, std::erf, std::erfc, std::exp2, std::expm1, std::floor, std::fma, std::fmod,
    std::hypot, std::lgamma, std::log1p, std::log2, std::nextafter, std::trunc;

/// To the nearest integer, halves to the even one.
template <PlainReal T> T round(T a) { return std::nearbyint(a); }
template <PlainReal T> bool signbit(T a) { return std::signbit(a); }
template <class T>
requires std::is_integral_v<T>
bool signbit(T a) { return a < T(0); }
template <class T> T rsqrt(T a) { return T(1) / sqrt(a); }

template <class T> std::complex<T> exp2(std::complex<T> a) { return std::exp(a * std::complex<T>(M_LN2)); }
template <class T> std::complex<T> log2(std::complex<T> a) { return std::log(a) / static_cast<T>(M_LN2); }
/// Exact near 0, where exp(a) - 1 loses everything: exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin²(y/2).
template <class T> std::complex<T> expm1(std::complex<T> a) {
  T half_sine = std::sin(a.imag() / 2);
  return {std::expm1(a.real()) * std::cos(a.imag()) - 2 * half_sine * half_sine,
          std::exp(a.real()) * std::sin(a.imag())};
}
/// log|1 + a| from (1 + x)² + y² - 1 = x (2 + x) + y², which stays exact near 0.
template <class T> std::complex<T> log1p(std::complex<T> a) {
  T x = a.real(), y = a.imag();
  if (std::isinf(x) || std::isinf(y) || std::abs(x) > T(0.5) || std::abs(y) > T(0.5))
    return std::log(std::complex<T>(1 + x, y));
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}

/// The complex conjugate; real numbers are their own.
template <class T> T conj(T a) {
  if constexpr (is_complex<T>) return std::conj(a);
  else return a;
}

// ---- properties
template <PlainReal T> bool isnan(T a) { return a != a; }
template <PlainReal T> bool isinf(T a) { return std::isinf(a); }
template <PlainReal T> bool isfinite(T a) { return std::isfinite(a); }
template <class T>
requires std::is_integral_v<T>
bool isnan(T) { return false; }
template <class T>
requires std::is_integral_v<T>
bool isinf(T) { return false; }
template <class T>
requires std::is_integral_v<T>
bool isfinite(T) { return true; }
template <class T> bool isnan(std::complex<T> a) { return isnan(a.real()) || isnan(a.imag()); }
template <class T> bool isinf(std::complex<T> a) { return isinf(a.real()) || isinf(a.imag()); }
template <class T> bool isfinite(std::complex<T> a) { return isfinite(a.real()) && isfinite(a.imag()); }

template <PlainReal T> T abs(T a) { return std::abs(a); }
/// Wraps around at the least integer, as all integer arithmetic here does.
template <Integer T> T abs(T a) { return a < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a; }

/// The larger; NaN where either is NaN.
template <class T>
requires std::is_arithmetic_v<T> T maximum(T a, T b) { return a != a || a > b ? a : b; }
template <class T>
requires std::is_arithmetic_v<T> T minimum(T a, T b) { return a != a || a < b ? a : b; }

// ---- arithmetic that is defined for all numbers: integers wrap around, complex products are the textbook's
// (no recovery of infinities, which costs a call and which nobody expects).
template <class T> T add(T a, T b) {
  if constexpr (is_integer<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else if constexpr (is_bool<T>) return a || b;
  else return a + b;
}
template <class T> T subtract(T a, T b) {
  if constexpr (is_integer<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else if constexpr (is_bool<T>) return a != b;
  else return a - b;
}
template <class T> T multiply(T a, T b) {
  if constexpr (is_integer<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else if constexpr (is_bool<T>) return a && b;
  else if constexpr (is_complex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else return a * b;
}
/// True division. Complex: scaled by the larger part of b, so that it overflows only where the result does.
template <class T> T divide(T a, T b) {
  if constexpr (is_complex<T>) {
    auto c = b.real(), d = b.imag();
    if (std::abs(c) >= std::abs(d)) {
      if (c == 0 && d == 0) return T(a.real() / std::abs(c), a.imag() / std::abs(d));
      auto ratio = d / c, scale = 1 / (c + d * ratio);
      return T((a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale);
    }
    auto ratio = c / d, scale = 1 / (d + c * ratio);
    return T((a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale);
  } else {
    return a / b;
  }
}

// ---- powers
template <PlainReal T> T pow(T a, T b) { return std::pow(a, b); }
/// Integer power with wrap-around; a negative exponent leaves only what 1 and -1 have.
template <Integer T> T pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 ? -1 : 1;
      return 0;
    }
  }
  T result = 1;
  for (; exponent; exponent = static_cast<T>(exponent >> 1)) {
    if (exponent & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

}  // namespace umbra::math

// Functors find the functions for plain numbers here, and those of Vec by its namespace. (Without these, a call with a
// float would reach C's double functions in the global namespace.)
namespace umbra::functors {
using math::abs, math::add, math::subtract, math::multiply, math::divide, math::maximum, math::minimum, math::select;
using math::acos, math::acosh, math::asin, math::asinh, math::atan, math::atan2, math::atanh, math::ceil, math::conj,
    math::constant, math::copysign, math::cos, math::cosh, math::erf, math::erfc, math::exp, math::exp2, math::expm1,
    math::floor, math::fma, math::fmod, math::hypot, math::lgamma, math::log, math::log10, math::log1p, math::log2,
    math::nextafter, math::pow, math::round, math::rsqrt, math::signbit, math::sin, math::sinh, math::sqrt, math::tan,
    math::tanh, math::trunc;
using math::is_bool, math::is_complex, math::is_integer, math::is_real;
using math::isfinite, math::isinf, math::isnan;
}  // namespace umbra::functors
