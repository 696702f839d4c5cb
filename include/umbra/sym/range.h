// Value ranges: the interval an integer or floating-point expression is known to lie in.
//
// The ends of the int64 scale stand for infinity. Arithmetic on ranges saturates there, so a range is always an
// enclosure: it may be wider than the truth, never narrower.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace umbra::sym {

/// Positive and negative infinity of integer ranges; PyTorch prints them `int_oo` and `-int_oo`.
inline constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();

/// A closed interval of integers. `Range{2}` is all of [2, infinity); `Range{2, 8}` is 2 to 8.
struct Range {
  int64_t lower = kMinusInfinity;
  int64_t upper = kInfinity;

  static Range point(int64_t value) { return {value, value}; }
  bool is_point() const { return lower == upper; }
  bool empty() const { return lower > upper; }
  bool contains(int64_t value) const { return lower <= value && value <= upper; }
  bool contains(const Range& other) const { return lower <= other.lower && other.upper <= upper; }
  Range intersect(const Range& other) const {
    return {lower > other.lower ? lower : other.lower, upper < other.upper ? upper : other.upper};
  }
  Range unite(const Range& other) const {
    return {lower < other.lower ? lower : other.lower, upper > other.upper ? upper : other.upper};
  }
  bool operator==(const Range&) const = default;
};

Range operator+(Range a, Range b);
Range operator-(Range a);
Range operator*(Range a, Range b);
/// Ranges of Python's `//` and `%`. A divisor of zero has no value, so it is left out of b.
Range floor_divide(Range a, Range b);
Range modulo(Range a, Range b);
Range power(Range base, Range exponent);
Range minimum(Range a, Range b);
Range maximum(Range a, Range b);

/// `[2, int_oo]`, as in messages about ranges.
std::string to_string(const Range& range);

/// A closed interval of doubles.
struct FloatRange {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();

  static FloatRange point(double value) { return {value, value}; }
  bool operator==(const FloatRange&) const = default;
};

FloatRange operator+(FloatRange a, FloatRange b);
FloatRange operator*(FloatRange a, FloatRange b);
FloatRange divide(FloatRange a, FloatRange b);
FloatRange to_float(Range range);
/// The integers between floor(lower) and ceil(upper), or what truncation makes of them.
Range to_integers(FloatRange range);

/// Python's floor division and modulo of plain integers. b is not zero.
inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));  // INT64_MIN / -1 would trap
  int64_t quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}
inline int64_t modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t rest = a % b;
  return (rest != 0 && ((rest < 0) != (b < 0))) ? rest + b : rest;
}

}  // namespace umbra::sym
