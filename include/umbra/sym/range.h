// Value ranges: the interval an integer or floating-point expression is known to lie in.
//
// The ends of the 128-bit scale stand for infinity: a lower end below everything and an upper end above everything.
// Ends that do not fit move outwards, so a range is always an enclosure: it may be wider than the truth, never
// narrower.
#pragma once

#include <limits>
#include <string>

#include "umbra/core/integer.h"

namespace UMBRA_API umbra {
namespace sym {

/// Positive and negative infinity of integer ranges; PyTorch prints them `int_oo` and `-int_oo`.
inline constexpr Integer kInfinity = kLargestInteger;
inline constexpr Integer kMinusInfinity = kSmallestInteger;

/// A closed interval of integers. `Range{2}` is all of [2, infinity); `Range{2, 8}` is 2 to 8.
struct Range {
  Integer lower = kMinusInfinity;
  Integer upper = kInfinity;

  static Range point(Integer value) { return {value, value}; }
  bool is_point() const { return lower == upper; }
  bool empty() const { return lower > upper; }
  bool contains(Integer value) const { return lower <= value && value <= upper; }
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

}  // namespace sym
}  // namespace umbra
