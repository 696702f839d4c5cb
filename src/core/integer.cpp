#include "umbra/core/integer.h"

#include <bit>
#include <cmath>

#include "umbra/core/error.h"

namespace umbra {
namespace {

__extension__ typedef unsigned __int128 Magnitude;

Magnitude magnitude(Integer value) {
  return value < 0 ? Magnitude{0} - static_cast<Magnitude>(value) : static_cast<Magnitude>(value);
}

int bit_width(Magnitude value) {
  auto high = static_cast<uint64_t>(value >> 64);
  return high ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(value));
}

}  // namespace

int64_t to_int64(Integer value) {
  check<OverflowError>(fits_int64(value), "overflow: the number ", integer_text(value), " does not fit 64 bits");
  return static_cast<int64_t>(value);
}

std::string integer_text(Integer value) {
  if (fits_int64(value)) return std::to_string(static_cast<int64_t>(value));
  std::string text;
  for (Magnitude rest = magnitude(value); rest != 0; rest /= 10)
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  return value < 0 ? "-" + text : text;
}

std::optional<Integer> read_integer(std::string_view digits) {
  bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.empty()) return std::nullopt;
  Integer value = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    Integer digit = negative ? -(c - '0') : c - '0';
    if (__builtin_mul_overflow(value, Integer{10}, &value) || __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  return value;
}

double true_quotient(Integer a, Integer b) {
  constexpr Integer kExact = Integer{1} << 53;
  if (-kExact <= a && a <= kExact && -kExact <= b && b <= kExact)
    return static_cast<double>(a) / static_cast<double>(b);
  // Long division until there are more bits than a double holds; one more bit says whether anything is left over, so
  // that the conversion rounds as if it saw all of them.
  Magnitude dividend = magnitude(a), divisor = magnitude(b), rest = 0;
  int width = bit_width(dividend), steps = 56 + bit_width(divisor);
  uint64_t quotient = 0;
  for (int i = 0; i < steps; ++i) {
    rest <<= 1;
    if (i < width) rest |= (dividend >> (width - 1 - i)) & 1;
    quotient <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
  }
  bool more = rest != 0 || (steps < width && (dividend & ((Magnitude{1} << (width - steps)) - 1)) != 0);
  double result = std::ldexp(static_cast<double>(quotient << 1 | (more ? 1 : 0)), width - steps - 1);
  return (a < 0) != (b < 0) ? -result : result;
}

}  // namespace umbra
