#include "umbra/sym/range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "sym/checked.h"

namespace umbra::sym {
namespace {

bool infinite(Integer value) { return value == kInfinity || value == kMinusInfinity; }

// An end that does not fit moves outwards: a lower end is never plus infinity, an upper end never minus infinity, for
// then nothing would be left between the two.
Integer as_lower(Integer value) { return value == kInfinity ? kInfinity - 1 : value; }
Integer as_upper(Integer value) { return value == kMinusInfinity ? kMinusInfinity + 1 : value; }

Integer negate(Integer value) {
  if (value == kInfinity) return kMinusInfinity;
  if (value == kMinusInfinity) return kInfinity;
  return -value;
}

Integer plus(Integer a, Integer b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  Integer sum;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kInfinity : kMinusInfinity;
  return sum;
}

/// Products of ends: zero times infinity is zero, since the end itself is never reached.
Integer times(Integer a, Integer b) {
  if (a == 0 || b == 0) return 0;
  Integer product, beyond = (a > 0) == (b > 0) ? kInfinity : kMinusInfinity;
  if (infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &product)) return beyond;
  return product;
}

Integer quotient(Integer a, Integer b) {
  bool same_sign = (a > 0) == (b > 0);
  if (infinite(b)) return a == 0 ? 0 : infinite(a) ? (same_sign ? kInfinity : kMinusInfinity) : same_sign ? 0 : -1;
  if (infinite(a)) return same_sign ? kInfinity : kMinusInfinity;
  return floor_quotient(a, b);
}

Range hull(std::initializer_list<Integer> values) { return {as_lower(std::min(values)), as_upper(std::max(values))}; }
FloatRange hull(std::initializer_list<double> values) {
  for (double value : values)
    if (std::isnan(value)) return {};
  return {std::min(values), std::max(values)};
}

Integer power(Integer base, Integer exponent) {
  Integer result;
  if (exponent == 0) return 1;
  if (!infinite(base) && !infinite(exponent) && integer_power(base, exponent, result)) return result;
  if (base == 0 || base == 1) return base;
  return base < 0 && exponent % 2 != 0 ? kMinusInfinity : kInfinity;
}

}  // namespace

Range operator+(Range a, Range b) { return {as_lower(plus(a.lower, b.lower)), as_upper(plus(a.upper, b.upper))}; }

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
  if (a.is_point() && b.is_point() && b.lower != 0) return Range::point(floor_remainder(a.lower, b.lower));
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
    if (base.lower == 0 && exponent.lower == 0) return {0, std::max<Integer>(1, power(base.upper, exponent.upper))};
    return hull({power(base.lower, exponent.lower), power(base.upper, exponent.upper)});
  }
  if (!exponent.is_point()) return {};
  if (exponent.lower == 0) return Range::point(1);
  Range ends = hull({power(base.lower, exponent.lower), power(base.upper, exponent.lower)});
  return exponent.lower % 2 == 0 && base.upper >= 0 ? Range{0, ends.upper} : ends;
}

Range minimum(Range a, Range b) { return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)}; }
Range maximum(Range a, Range b) { return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)}; }

std::string to_string(const Range& range) {
  auto end = [](Integer value) -> std::string {
    if (value == kInfinity) return "int_oo";
    if (value == kMinusInfinity) return "-int_oo";
    return integer_text(value);
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
  constexpr double kLimit = 1.0e38;
  Range result;
  if (range.lower > -kLimit && range.lower < kLimit) result.lower = static_cast<Integer>(std::floor(range.lower));
  if (range.upper > -kLimit && range.upper < kLimit) result.upper = static_cast<Integer>(std::ceil(range.upper));
  return result;
}

}  // namespace umbra::sym
