// Integer arithmetic of the normal form: what does not fit 64 bits is an error, not a wrong size.
#pragma once

#include <cstdint>

#include "umbra/core/error.h"

namespace umbra::sym {

[[noreturn]] inline void fail_overflow() { fail<Error>("overflow: a symbolic expression does not fit 64 bits"); }

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  return result;
}

inline int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
  return result;
}

inline int64_t checked_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (int64_t i = 0; i < exponent; ++i) result = checked_multiply(result, base);
  return result;
}

}  // namespace umbra::sym
