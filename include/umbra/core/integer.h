// Integers of 128 bits, of which symbolic expressions are made: products of sizes are exact where 64 bits would not
// hold them. What does not fit even those is an error or unknown, never a wrapped number.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

__extension__ typedef __int128 Integer;

inline constexpr Integer kLargestInteger = static_cast<Integer>(~static_cast<unsigned __int128>(0) >> 1);
inline constexpr Integer kSmallestInteger = -kLargestInteger - 1;

inline constexpr bool fits_int64(Integer value) {
  return value >= std::numeric_limits<int64_t>::min() && value <= std::numeric_limits<int64_t>::max();
}
/// The number as a plain one; an error where 64 bits do not hold it.
int64_t to_int64(Integer value);

/// In decimal digits.
std::string integer_text(Integer value);
/// The number that digits with an optional sign stand for; nothing where they are no number, or one beyond 128 bits.
std::optional<Integer> read_integer(std::string_view digits);

/// Python's floor division and modulo of plain integers. b is not zero.
inline Integer floor_quotient(Integer a, Integer b) {
  if (fits_int64(a) && fits_int64(b)) {  // a division of 128 bits is a call
    auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
    if (y == -1) return -a;
    int64_t quotient = x / y;
    return (x % y != 0 && ((x < 0) != (y < 0))) ? quotient - 1 : quotient;
  }
  if (b == -1) return -a;
  Integer quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}
inline Integer floor_remainder(Integer a, Integer b) {
  if (b == -1) return 0;
  if (fits_int64(a) && fits_int64(b)) {
    auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
    int64_t rest = x % y;
    return (rest != 0 && ((rest < 0) != (y < 0))) ? rest + y : rest;
  }
  Integer rest = a % b;
  return (rest != 0 && ((rest < 0) != (b < 0))) ? rest + b : rest;
}

/// a / b rounded once to the nearest double, as Python divides integers. b is not zero.
double true_quotient(Integer a, Integer b);

}  // namespace umbra
