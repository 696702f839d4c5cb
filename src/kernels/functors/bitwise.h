// Bit by bit; on bool, the logical operations.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_BINARY(BitwiseAnd, "bitwise_and_cpu", IntegralBoolAndUnsigned, static_cast<T>(a& b));
UMBRA_FUNCTOR_BINARY(BitwiseOr, "bitwise_or_cpu", IntegralBoolAndUnsigned, static_cast<T>(a | b));
UMBRA_FUNCTOR_BINARY(BitwiseXor, "bitwise_xor_cpu", IntegralBoolAndUnsigned, static_cast<T>(a ^ b));

struct BitwiseNot : Unary {
  static constexpr const char* name = "bitwise_not_cpu";
  using types = IntegralBool;
  template <class T> T operator()(T x) const {
    if constexpr (is_bool<T>) return !x;
    else return static_cast<T>(~x);
  }
};

/// Shifts by at least the width (or by a negative amount) push everything out.
struct LeftShift : Binary {
  static constexpr const char* name = "lshift_cpu";
  using types = Integral;
  template <class T> T operator()(T a, T b) const {
    constexpr int bits = 8 * sizeof(T);
    using Unsigned = std::make_unsigned_t<T>;
    bool out = static_cast<Unsigned>(b) >= bits;  // negative ones, too
    if constexpr (bits == 8) return out ? T(0) : static_cast<T>(doubled(static_cast<Unsigned>(a), b));
    return out ? T(0) : static_cast<T>(static_cast<Unsigned>(a) << (out ? 0 : static_cast<int>(b)));
  }

 private:
  /// A byte times two, once, twice and four times by the bits of `times`: vectors have no shifts of single bytes.
  static uint8_t doubled(uint8_t x, int times) {
    auto twice = [](uint8_t y) { return static_cast<uint8_t>(y + y); };
    x = times & 1 ? twice(x) : x;
    x = times & 2 ? twice(twice(x)) : x;
    return times & 4 ? twice(twice(twice(twice(x)))) : x;
  }
};
struct RightShift : Binary {
  static constexpr const char* name = "rshift_cpu";
  using types = Integral;
  template <class T> T operator()(T a, T b) const {
    constexpr int last = 8 * sizeof(T) - 1;
    bool out = static_cast<std::make_unsigned_t<T>>(b) > last;
    if (std::is_signed_v<T>) return static_cast<T>(a >> (out ? last : static_cast<int>(b)));
    return out ? T(0) : static_cast<T>(a >> b);
  }
};

}  // namespace umbra::functors
