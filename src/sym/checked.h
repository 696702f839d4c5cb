// Integer arithmetic of the normal form: what does not fit 128 bits is an error, not a wrong size.
#pragma once

#include "umbra/core/error.h"
#include "umbra/core/integer.h"

namespace umbra::sym {

[[noreturn]] inline void fail_overflow() {
  fail<OverflowError>("overflow: a symbolic expression does not fit 128 bits");
}

inline Integer checked_add(Integer a, Integer b) {
  Integer result;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  return result;
}

inline Integer checked_multiply(Integer a, Integer b) {
  Integer result;
  if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
  return result;
}

/// base to the exponent, which is not negative; false where it does not fit.
inline bool integer_power(Integer base, Integer exponent, Integer& result) {
  result = 1;
  if (exponent == 0) return true;
  if (base == 0 || base == 1 || base == -1) {
    result = base == -1 && exponent % 2 == 0 ? 1 : base;
    return true;
  }
  if (exponent > 127) return false;
  for (Integer i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) return false;
  return true;
}

inline Integer checked_power(Integer base, Integer exponent) {
  Integer result;
  if (!integer_power(base, exponent, result)) fail_overflow();
  return result;
}

inline Integer greatest_common_divisor(Integer a, Integer b) {
  while (b != 0) {
    Integer rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

}  // namespace umbra::sym
