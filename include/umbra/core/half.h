// The narrow floating types. Arithmetic is done in float; these only store and convert.
#pragma once

#include <bit>
#include <cstdint>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

namespace detail {
// Where the compiler may use the processor's conversions it does; elsewhere it would call a routine of some thirty
// nanoseconds, and these take two.
#ifdef __F16C__
inline float half_to_float(uint16_t half) { return static_cast<float>(std::bit_cast<_Float16>(half)); }
inline uint16_t float_to_half(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
#else
inline float half_to_float(uint16_t half) {
  uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  uint32_t bits;
  if (magnitude >= 0x7c00) bits = 0x7f800000 | (magnitude & 0x3ff) << 13 | (magnitude > 0x7c00 ? 0x400000 : 0);
  else if (magnitude >= 0x400) bits = (magnitude << 13) + 0x38000000;
  // A subnormal counts steps of 2^-24, which are the steps of floats from 0.5 on.
  else bits = std::bit_cast<uint32_t>(std::bit_cast<float>(0x3f000000 | magnitude) - 0.5f);
  return std::bit_cast<float>(sign | bits);
}
/// Rounds to nearest even.
inline uint16_t float_to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) half = 0x7e00 | (magnitude >> 13 & 0x3ff);
  else if (magnitude >= 0x477ff000) half = 0x7c00;  // rounds to more than the largest number
  else if (magnitude >= 0x38800000) half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  else half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  return static_cast<uint16_t>(sign | half);
}
#endif
}  // namespace detail

/// IEEE binary16.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(detail::float_to_half(value)) {}
  operator float() const { return detail::half_to_float(bits); }
  static Half from_bits(uint16_t bits) {
    Half h;
    h.bits = bits;
    return h;
  }
};

/// The upper half of a float, rounded to nearest even.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) {
    uint32_t raw = std::bit_cast<uint32_t>(value);
    bits = value != value ? uint16_t{0x7fc0} : static_cast<uint16_t>((raw + 0x7fff + ((raw >> 16) & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static BFloat16 from_bits(uint16_t bits) {
    BFloat16 b;
    b.bits = bits;
    return b;
  }
};

/// 8-bit floats: e4m3fn has no infinity, what is too large becomes 448; e5m2 is a truncated binary16.
struct Float8E4M3 {
  uint8_t bits = 0;
  Float8E4M3() = default;
  Float8E4M3(float value);
  operator float() const;
};
struct Float8E5M2 {
  uint8_t bits = 0;
  Float8E5M2() = default;
  Float8E5M2(float value);
  operator float() const { return detail::half_to_float(static_cast<uint16_t>(bits << 8)); }
};
/// The 8-bit floats with one zero and one NaN, which has the bits of -0 elsewhere: what is too large becomes NaN.
struct Float8E4M3FNUZ {
  uint8_t bits = 0;
  Float8E4M3FNUZ() = default;
  Float8E4M3FNUZ(float value);
  operator float() const;
};
struct Float8E5M2FNUZ {
  uint8_t bits = 0;
  Float8E5M2FNUZ() = default;
  Float8E5M2FNUZ(float value);
  operator float() const;
};
/// Powers of two from 2^-127 to 2^127 and NaN: a scale, which has neither a sign nor zero.
struct Float8E8M0FNU {
  uint8_t bits = 0;
  Float8E8M0FNU() = default;
  Float8E8M0FNU(float value);
  operator float() const {
    return std::bit_cast<float>(bits == 0 ? 0x400000u : bits == 0xff ? 0x7fc00000u : uint32_t{bits} << 23);
  }
};

}  // namespace umbra
