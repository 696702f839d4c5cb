#include "umbra/sym/range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace umbra::sym {
namespace {

bool infinite(int64_t value) { return value == kInfinity || value == kMinusInfinity; }

int64_t saturate(__int128 value) {
  if (value >= kInfinity) return kInfinity;
  if (value <= kMinusInfinity) return kMinusInfinity;
  return static_cast<int64_t>(value);
}

int64_t negate(int64_t value) {
  if (value == kInfinity) return kMinusInfinity;
  if (value == kMinusInfinity) return kInfinity;
  return -value;
}

/// Products of ends: zero times infinity is zero, since the end itself is never reached.
int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a > 0) == (b > 0) ? kInfinity : kMinusInfinity;
  return saturate(static_cast<__int128>(a) * b);
}

int64_t quotient(int64_t a, int64_t b) {
  if (infinite(b))
    return a == 0 ? 0 : infinite(a) ? ((a > 0) == (b > 0) ? kInfinity : kMinusInfinity) : ((a > 0) == (b > 0) ? 0 : -1);
  if (infinite(a)) return (a > 0) == (b > 0) ? kInfinity : kMinusInfinity;
  return floor_divide(a, b);
}

Range hull(std::initializer_list<int64_t> values) { return {std::min(values), std::max(values)}; }
FloatRange hull(std::initializer_list<double> values) {
  for (double value : values)
    if (std::isnan(value)) return {};
  return {std::min(values), std::max(values)};
}

int64_t power(int64_t base, int64_t exponent) {
  if (exponent == 0) return 1;
  if (base == 0 || base == 1) return base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (infinite(exponent)) return kInfinity;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    result = times(result, base);
    if (base > 0 && infinite(result)) break;
    if (i > 128) return kInfinity;
  }
  return result;
}

}  // namespace

Range operator+(Range a, Range b) {
  // An infinite end stays infinite, whatever finite number is added.
  int64_t lower =
      infinite(a.lower) || infinite(b.lower) ? kMinusInfinity : saturate(static_cast<__int128>(a.lower) + b.lower);
  int64_t upper =
      infinite(a.upper) || infinite(b.upper) ? kInfinity : saturate(static_cast<__int128>(a.upper) + b.upper);
  return {lower, upper};
}

Range operator-(Range a) { return {negate(a.upper), negate(a.lower)}; }

Range operator*(Range a, Range b) {
  return hull({times(a.lower, b.lower), times(a.lower, b.upper), times(a.upper, b.lower), times(a.upper, b.upper)});
}

Range floor_divide(Range a, Range b) {
  if (b.lower == 0) b.lower = 1;
  if (b.upper == 0) b.upper = -1;
  if (b.empty()) return {};
  if (b.lower < 0 && b.upper > 0) {
    Range negative = floor_divide(a, Range{b.lower, -1});
    return negative.unite(floor_divide(a, Range{1, b.upper}));
  }
  return hull(
      {quotient(a.lower, b.lower), quotient(a.lower, b.upper), quotient(a.upper, b.lower), quotient(a.upper, b.upper)});
}

Range modulo(Range a, Range b) {
  if (a.is_point() && b.is_point() && b.lower != 0) return Range::point(modulo(a.lower, b.lower));
  Range result = {0, 0};
  if (b.upper > 0) result.upper = b.upper == kInfinity ? kInfinity : b.upper - 1;
  if (b.lower < 0) result.lower = b.lower == kMinusInfinity ? kMinusInfinity : b.lower + 1;
  // A remainder is no larger than what it is the remainder of.
  if (a.lower >= 0 && b.lower >= 0) result.upper = std::min(result.upper, a.upper);
  // No wrap-around: the remainder is the number itself.
  if (a.lower >= 0 && b.lower > 0 && a.upper < b.lower) return a;
  return result;
}

Range power(Range base, Range exponent) {
  if (exponent.lower < 0) return {};
  if (base.lower >= 0) {
    if (base.lower == 0 && exponent.lower == 0) return {0, std::max<int64_t>(1, power(base.upper, exponent.upper))};
    return {power(base.lower, exponent.lower), power(base.upper, exponent.upper)};
  }
  if (exponent.is_point() && exponent.lower % 2 == 1)
    return {power(base.lower, exponent.lower), power(base.upper, exponent.lower)};
  if (exponent.is_point()) {
    int64_t largest = std::max(power(base.lower, exponent.lower), power(base.upper, exponent.lower));
    int64_t smallest =
        base.upper >= 0 ? 0 : std::min(power(base.lower, exponent.lower), power(base.upper, exponent.lower));
    return {exponent.lower == 0 ? 1 : smallest, largest};
  }
  return {};
}

Range minimum(Range a, Range b) { return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)}; }
Range maximum(Range a, Range b) { return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)}; }

std::string to_string(const Range& range) {
  auto end = [](int64_t value) -> std::string {
    if (value == kInfinity) return "int_oo";
    if (value == kMinusInfinity) return "-int_oo";
    return std::to_string(value);
  };
  return "[" + end(range.lower) + ", " + end(range.upper) + "]";
}

FloatRange operator+(FloatRange a, FloatRange b) {
  FloatRange sum = {a.lower + b.lower, a.upper + b.upper};
  return std::isnan(sum.lower) || std::isnan(sum.upper) ? FloatRange{} : sum;
}

FloatRange operator*(FloatRange a, FloatRange b) {
  return hull({a.lower * b.lower, a.lower * b.upper, a.upper * b.lower, a.upper * b.upper});
}

FloatRange divide(FloatRange a, FloatRange b) {
  if (b.lower <= 0 && b.upper >= 0) return {};
  return hull({a.lower / b.lower, a.lower / b.upper, a.upper / b.lower, a.upper / b.upper});
}

FloatRange to_float(Range range) {
  FloatRange result;
  if (range.lower != kMinusInfinity) result.lower = static_cast<double>(range.lower);
  if (range.upper != kInfinity) result.upper = static_cast<double>(range.upper);
  return result;
}

Range to_integers(FloatRange range) {
  constexpr double kLimit = 9.0e18;
  Range result;
  if (range.lower > -kLimit && range.lower < kLimit) result.lower = static_cast<int64_t>(std::floor(range.lower));
  if (range.upper > -kLimit && range.upper < kLimit) result.upper = static_cast<int64_t>(std::ceil(range.upper));
  return result;
}

}  // namespace umbra::sym
