// The transcendental functions of Vec, from SLEEF. Included by vec.h.
#pragma once

#include <sleef.h>

#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {

// SLEEF's names: function, d or f, number of lanes, error bound (u10: 1.0 ULP), instruction set.
#ifdef __AVX512F__
#define UMBRA_SLEEF_FLOAT(name, bound) Sleef_##name##f16_##bound##avx512f
#define UMBRA_SLEEF_DOUBLE(name, bound) Sleef_##name##d8_##bound##avx512f
#else
#define UMBRA_SLEEF_FLOAT(name, bound) Sleef_##name##f8_##bound##avx2
#define UMBRA_SLEEF_DOUBLE(name, bound) Sleef_##name##d4_##bound##avx2
#endif
#define UMBRA_SLEEF_UNARY(name, bound)                                                               \
  inline Vec<float> name(Vec<float> a) { return Vec<float>(UMBRA_SLEEF_FLOAT(name, bound)(a.raw)); } \
  inline Vec<double> name(Vec<double> a) { return Vec<double>(UMBRA_SLEEF_DOUBLE(name, bound)(a.raw)); }
#define UMBRA_SLEEF_BINARY(name, bound)                                \
  inline Vec<float> name(Vec<float> a, Vec<float> b) {                 \
    return Vec<float>(UMBRA_SLEEF_FLOAT(name, bound)(a.raw, b.raw));   \
  }                                                                    \
  inline Vec<double> name(Vec<double> a, Vec<double> b) {              \
    return Vec<double>(UMBRA_SLEEF_DOUBLE(name, bound)(a.raw, b.raw)); \
  }

UMBRA_SLEEF_UNARY(exp, u10)
UMBRA_SLEEF_UNARY(exp2, u10)
UMBRA_SLEEF_UNARY(expm1, u10)
UMBRA_SLEEF_UNARY(log, u10)
UMBRA_SLEEF_UNARY(log2, u10)
UMBRA_SLEEF_UNARY(log10, u10)
UMBRA_SLEEF_UNARY(log1p, u10)
UMBRA_SLEEF_UNARY(sin, u10)
UMBRA_SLEEF_UNARY(cos, u10)
UMBRA_SLEEF_UNARY(tan, u10)
UMBRA_SLEEF_UNARY(asin, u10)
UMBRA_SLEEF_UNARY(acos, u10)
UMBRA_SLEEF_UNARY(atan, u10)
UMBRA_SLEEF_UNARY(sinh, u10)
UMBRA_SLEEF_UNARY(cosh, u10)
UMBRA_SLEEF_UNARY(tanh, u10)
UMBRA_SLEEF_UNARY(atanh, u10)
UMBRA_SLEEF_UNARY(erf, u10)
UMBRA_SLEEF_UNARY(erfc, u15)
UMBRA_SLEEF_UNARY(lgamma, u10)
UMBRA_SLEEF_BINARY(pow, u10)
UMBRA_SLEEF_BINARY(atan2, u10)
UMBRA_SLEEF_BINARY(hypot, u05)
UMBRA_SLEEF_BINARY(fmod, )
UMBRA_SLEEF_BINARY(nextafter, )

// SLEEF's square their argument and overflow; from there on log(2x) is exact.
#define UMBRA_SLEEF_INVERSE(T, SLEEF, limit)                                                                 \
  inline Vec<T> asinh(Vec<T> a) {                                                                            \
    Vec<T> far = copysign(log(abs(a)) + Vec<T>(0.6931471805599453), a);                                      \
    return select(abs(a) > Vec<T>(limit), far, Vec<T>(SLEEF(asinh, u10)(a.raw)));                            \
  }                                                                                                          \
  inline Vec<T> acosh(Vec<T> a) {                                                                            \
    return select(a > Vec<T>(limit), log(a) + Vec<T>(0.6931471805599453), Vec<T>(SLEEF(acosh, u10)(a.raw))); \
  }
UMBRA_SLEEF_INVERSE(float, UMBRA_SLEEF_FLOAT, 1e8)
UMBRA_SLEEF_INVERSE(double, UMBRA_SLEEF_DOUBLE, 1e16)
#undef UMBRA_SLEEF_INVERSE

#undef UMBRA_SLEEF_UNARY
#undef UMBRA_SLEEF_BINARY
#undef UMBRA_SLEEF_FLOAT
#undef UMBRA_SLEEF_DOUBLE

}  // namespace umbra::kernels::UMBRA_ISA
