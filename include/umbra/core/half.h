// The narrow floating types. Arithmetic is done in float; these only store and convert.
#pragma once

#include <bit>
#include <cstdint>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// IEEE binary16.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
  operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
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
  operator float() const { return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits << 8))); }
};

}  // namespace umbra
