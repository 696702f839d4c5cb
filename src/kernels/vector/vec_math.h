// The transcendental functions of Vec: SLEEF's, and inlined ones for what models live on. Included by vec.h.
#pragma once

#include <sleef.h>

#include <cmath>
#include <utility>

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
#define UMBRA_SLEEF_UNARY_DOUBLE(name, bound) \
  inline Vec<double> name(Vec<double> a) { return Vec<double>(UMBRA_SLEEF_DOUBLE(name, bound)(a.raw)); }
#define UMBRA_SLEEF_BINARY(name, bound)                                \
  inline Vec<float> name(Vec<float> a, Vec<float> b) {                 \
    return Vec<float>(UMBRA_SLEEF_FLOAT(name, bound)(a.raw, b.raw));   \
  }                                                                    \
  inline Vec<double> name(Vec<double> a, Vec<double> b) {              \
    return Vec<double>(UMBRA_SLEEF_DOUBLE(name, bound)(a.raw, b.raw)); \
  }

UMBRA_SLEEF_UNARY(exp2, u10)
UMBRA_SLEEF_UNARY(expm1, u10)
UMBRA_SLEEF_UNARY(log1p, u10)
UMBRA_SLEEF_UNARY(sinh, u10)
UMBRA_SLEEF_UNARY(cosh, u10)
UMBRA_SLEEF_UNARY(atanh, u10)
UMBRA_SLEEF_UNARY(lgamma, u10)
UMBRA_SLEEF_BINARY(pow, u10)
UMBRA_SLEEF_BINARY(atan2, u10)
UMBRA_SLEEF_BINARY(hypot, u05)

#ifndef __AVX512F__
UMBRA_SLEEF_UNARY_DOUBLE(sin, u10)
UMBRA_SLEEF_UNARY_DOUBLE(cos, u10)
UMBRA_SLEEF_UNARY_DOUBLE(tan, u10)
UMBRA_SLEEF_UNARY_DOUBLE(asin, u10)
UMBRA_SLEEF_UNARY_DOUBLE(acos, u10)
UMBRA_SLEEF_UNARY_DOUBLE(atan, u10)
UMBRA_SLEEF_UNARY_DOUBLE(exp, u10)
UMBRA_SLEEF_UNARY_DOUBLE(log, u10)
UMBRA_SLEEF_UNARY_DOUBLE(log2, u10)
UMBRA_SLEEF_UNARY_DOUBLE(log10, u10)
UMBRA_SLEEF_UNARY_DOUBLE(tanh, u10)
#endif

inline std::pair<Vec<double>, Vec<double>> sine_cosine(Vec<double> a) {
  auto both = UMBRA_SLEEF_DOUBLE(sincos, u35)(a.raw);
  return {Vec<double>(both.x), Vec<double>(both.y)};
}

inline Vec<float> sleef_fmod(Vec<float> a, Vec<float> b) { return Vec<float>(UMBRA_SLEEF_FLOAT(fmod, )(a.raw, b.raw)); }
inline Vec<double> sleef_fmod(Vec<double> a, Vec<double> b) {
  return Vec<double>(UMBRA_SLEEF_DOUBLE(fmod, )(a.raw, b.raw));
}
/// What is left of a, however often b goes into it: where that is more often than the type can say, SLEEF gives nan.
template <class T> Vec<T> fmod(Vec<T> a, Vec<T> b) {
  Vec<T> rest = sleef_fmod(a, b);
  if (!any(isnan(rest) & !isnan(a) & !isnan(b) & (b != Vec<T>(0)))) return rest;
  T left[Vec<T>::size], right[Vec<T>::size];
  a.store(left);
  b.store(right);
  for (int i = 0; i < Vec<T>::size; ++i) left[i] = std::fmod(left[i], right[i]);
  return Vec<T>::load(left);
}

/// a - b, around the end where it leaves the range of an int: for the bits of numbers that are replaced afterwards.
template <class Raw> Raw difference_around(Raw a, Raw b) {
  using Lane = std::make_unsigned_t<std::remove_cvref_t<decltype(a[0])>>;
  typedef Lane Unsigned __attribute__((vector_size(sizeof(Raw))));
  return reinterpret_cast<Raw>(reinterpret_cast<Unsigned>(a) - reinterpret_cast<Unsigned>(b));
}

// In float these are inlined and take a quarter to a half of SLEEF's time. Their polynomials are least-maximum fits;
// all are good to 3 ULP.

/// c0 + c1 x + c2 x² + ...
template <class T, class... Rest> Vec<T> polynomial(Vec<T> x, std::type_identity_t<T> first, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) return Vec<T>(first);
  else return fma(x, polynomial(x, rest...), Vec<T>(first));
}
/// a 2^n; n is whole. Applied in halves, since results that are tiny or infinite have an n that no float's exponent can
/// hold.
inline Vec<float> times_power_of_two(Vec<float> a, Vec<float> n) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_maskz_scalef_ps(-1, a.raw, n.raw));
#else
  typename Mask<float>::Raw exponent = __builtin_convertvector(n.raw, typename Mask<float>::Raw);
  typename Mask<float>::Raw half = exponent >> 1;
  auto power_of_two = [](typename Mask<float>::Raw e) { return from_bits<float>((e + 127) << 23); };
  return a * power_of_two(half) * power_of_two(exponent - half);
#endif
}

/// a, but no more than b, or no less; NaN where a is.
inline Vec<float> at_most(Vec<float> a, Vec<float> b) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_maskz_min_ps(-1, b.raw, a.raw));
#else
  return Vec<float>(_mm256_min_ps(b.raw, a.raw));
#endif
}
inline Vec<float> at_least(Vec<float> a, Vec<float> b) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_maskz_max_ps(-1, b.raw, a.raw));
#else
  return Vec<float>(_mm256_max_ps(b.raw, a.raw));
#endif
}

/// a / b without the division, which takes as long as twenty products: for a quotient and a divisor that are far from
/// the ends of what a float holds.
inline Vec<float> quotient(Vec<float> a, Vec<float> b) {
#ifdef __AVX512F__
  Vec<float> reciprocal(_mm512_maskz_rcp14_ps(-1, b.raw)), rough = a * reciprocal;
  return fma(fma(-b, rough, a), reciprocal, rough);
#else
  return a / b;
#endif
}

/// a = n log(2) + r, and exp(r) - 1.
struct ReducedExp {
  Vec<float> n, less_one;
};
inline ReducedExp reduced_exp(Vec<float> a) {
  Vec<float> n = round(a * Vec<float>(1.44269504f));
  Vec<float> r = fma(n, Vec<float>(-0.693359375f), a);
  r = fma(n, Vec<float>(2.12194440e-4f), r);
  return {n, fma(r * r, polynomial(r, 0.49999994f, 0.16666515f, 0.041668456f, 0.0083694244f, 0.0013813131f), r)};
}
inline Vec<float> exp(Vec<float> a) {
  const Vec<float> least(-104);
  auto [n, less_one] = reduced_exp(at_most(at_least(a, least), Vec<float>(89)));
  // 0 is not left to underflow, which takes some processors a hundred cycles: minus infinity is what masks are made of.
  return times_power_of_two(select(a <= least, Vec<float>(0), less_one + Vec<float>(1)), n);
}

/// A number as 2^exponent (1 + rest) with the rest from -1/4 to 1/2: it has no exponent near 1, where a logarithm's
/// digits would be lost by adding it.
struct Parted {
  Vec<float> exponent, rest;
};
inline Parted parted(Vec<float> a) {
  const Vec<float> one(1);
#ifdef __AVX512F__
  // Of 0, infinity and what has no logarithm these make what the logarithm is to be made of.
  __m512 mantissa = _mm512_maskz_getmant_ps(-1, a.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  Vec<float> exponent(_mm512_maskz_getexp_ps(-1, a.raw)), excess(_mm512_maskz_getexp_ps(-1, mantissa));
  return {exponent - excess, Vec<float>(mantissa) - one};
#else
  const Vec<float> least(1.17549435e-38f), infinity(__builtin_inff()), zero(0);
  Mask<float> small = a < least, ordinary = (a > zero) & (a < infinity);
  Vec<float> normal = select(small, a * Vec<float>(8388608.0f), a);
  auto exponent = difference_around(bits(normal), bits(Vec<float>(0.75f))) >> 23;
  Vec<float> rest = from_bits<float>(difference_around(bits(normal), exponent << 23)) - one;
  Vec<float> power =
      Vec<float>(__builtin_convertvector(exponent, Vec<float>::Raw)) - select(small, Vec<float>(23), zero);
  Vec<float> special = select(a == zero, -infinity, select(a < zero, __builtin_nanf(""), a));
  return {select(ordinary, power, special), select(ordinary, rest, zero)};
#endif
}
/// log(1 + a) - a for the rest of a number.
inline Vec<float> curvature(Vec<float> a) {
  Vec<float> series = polynomial(a, 0.333334506f, -0.250000954f, 0.199908614f, -0.16647312f, 0.144784003f,
                                 -0.131611958f, 0.104629956f, -0.0450744666f);
  return a * a * fma(a, series, Vec<float>(-0.5f));
}
inline Vec<float> log(Vec<float> a) {
  auto [exponent, rest] = parted(a);
  return fma(exponent, Vec<float>(0.693147182f), rest + curvature(rest));
}
/// log(1 + a) times the logarithm of e to another base, which is in two parts.
inline Vec<float> log_of_rest(Vec<float> a, float base, float base_low) {
  return fma(a, Vec<float>(base), fma(a, Vec<float>(base_low), curvature(a) * Vec<float>(base)));
}
inline Vec<float> log2(Vec<float> a) {
  auto [exponent, rest] = parted(a);
  return exponent + log_of_rest(rest, 1.44269502f, 1.92596303e-8f);
}
inline Vec<float> log10(Vec<float> a) {
  auto [exponent, rest] = parted(a);
  Vec<float> low = fma(exponent, Vec<float>(4.60503846e-6f), log_of_rest(rest, 0.434294492f, -1.01030866e-8f));
  return fma(exponent, Vec<float>(0.301025391f), low);
}

/// e / (e + 2) with e = exp(2a) - 1, which keeps the digits of small ones.
inline Vec<float> tanh(Vec<float> a) {
  const Vec<float> one(1), last(10);  // from there on it is 1
  Vec<float> size = at_most(abs(a), last);
  auto [n, less_one] = reduced_exp(size + size);
  Vec<float> power = times_power_of_two(one, n), e = fma(power, less_one, power - one);
  return copysign(quotient(e, e + Vec<float>(2)), a);
}

/// Near 0 a series in a²; further out 1 - exp(log(1 - erf)), whose logarithm is close to a parabola. From 4 on it is 1.
inline Vec<float> erf(Vec<float> a) {
  Vec<float> size = minimum(abs(a), Vec<float>(4)), square = a * a;
  Vec<float> near = fma(
      a, polynomial(square, 0.12837915f, -0.37612525f, 0.11282142f, -0.026778933f, 0.0050119925f, -0.00060904911f), a);
  Vec<float> logarithm = polynomial(size, -0.00016644025f, -1.1277972f, -0.63697600f, -0.10411373f, 0.022315238f,
                                    -0.0030654969f, 0.00019822035f);
  Vec<float> far = copysign(Vec<float>(1) - exp(logarithm), a);
  return select(size < Vec<float>(0.9f), near, far);
}

/// The normal distribution at -|a|: 2 to a parabola and a polynomial that is close to a constant further out.
/// `rough`: good to sixteen bits.
template <bool rough = false> Vec<float> normal_tail(Vec<float> a) {
  Vec<float> least(-125), bounded = at_most(abs(a), Vec<float>(5));  // beyond, it is 0
  Vec<float> rest, fraction;
  if constexpr (rough)
    rest = polynomial(bounded, -1.00001764f, -1.15086725f, 0.261722104f, -0.0526063419f, 0.00774603668f,
                      -0.000708787395f, 2.94584898e-05f);
  else
    rest = polynomial(bounded, -0.999999622f, -1.15112273f, 0.262267838f, -0.0528501269f, 0.00753516329f,
                      -0.000472253566f, -5.68188218e-05f, 1.3945465e-05f, -8.46683302e-07f);
  Vec<float> power = fma(a * Vec<float>(-0.72134752f), a, rest);  // log2(e) / 2
#ifndef __AVX512F__
  Mask<float> none = power < least;  // as in exp()
  power = at_least(power, least);
#endif
  Vec<float> n = round(power);
  if constexpr (rough)
    fraction = polynomial(power - n, 1.00000015f, 0.693121036f, 0.240218659f, 0.0559220251f, 0.00968569618f);
  else
    fraction =
        polynomial(power - n, 1.00000007f, 0.693146967f, 0.240221196f, 0.0555071329f, 0.00967554633f, 0.00132764817f);
#ifdef __AVX512F__
  // One instruction leaves out what is none; NaN is not.
  return Vec<float>(_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(power.raw, least.raw, _CMP_NLT_UQ), fraction.raw, n.raw));
#else
  return times_power_of_two(select(none, Vec<float>(0), fraction), n);
#endif
}
inline Vec<float> normal_cdf(Vec<float> a) {
  Vec<float> tail = normal_tail(a);
  return select(a > Vec<float>(0), Vec<float>(1) - tail, tail);
}
/// a Φ(a) = max(a, 0) - |a| Φ(-|a|)
template <bool rough> Vec<float> gelu_to(Vec<float> a) {
  return fma(-abs(a), normal_tail<rough>(a), at_least(a, Vec<float>(0)));
}
inline Vec<float> gelu(Vec<float> a) { return gelu_to<false>(a); }
inline Vec<float> rough_gelu(Vec<float> a) { return gelu_to<true>(a); }

/// erfinv(a) / a is close to a polynomial in w = -log(1 - a²), further out in its root. At ±1 infinite, beyond NaN.
inline Vec<float> erfinv(Vec<float> a) {
  Vec<float> one(1), w = -log((one - a) * (one + a));
  Vec<float> near =
      polynomial(w - Vec<float>(2.5f), 1.50140936f, 0.246640287f, -0.00417738806f, -0.00125274341f, 0.000218345673f,
                 -4.96226466e-06f, -3.46307448e-06f, 4.65896385e-07f, 2.32665092e-08f, -8.76849908e-09f);
  Vec<float> far =
      polynomial(sqrt(w) - Vec<float>(3), 2.8329768f, 1.001675f, 0.00944546019f, -0.00763793832f, 0.00568537849f,
                 -0.00359422901f, 0.00148950776f, -6.2988922e-05f, -0.000313287196f, 0.000120061298f);
  Vec<float> value = a * select(w < Vec<float>(5), near, far);
  return select(abs(a) == one, copysign(Vec<float>(__builtin_inff()), a), value);
}
/// What an angle is beyond so many quarters of a turn. A quarter is in three parts: the first difference is exact.
inline Vec<float> beyond(Vec<float> a, Vec<float> quarters) {
  a = fma(quarters, Vec<float>(-1.57079637f), a);
  a = fma(quarters, Vec<float>(4.37113883e-8f), a);
  return fma(quarters, Vec<float>(1.71512489e-15f), a);
}
/// Adding it leaves no place for a fraction; the sum's bits end with those of the whole number.
inline constexpr float kWhole = 12582912;
/// Larger angles than this are SLEEF's, and infinite ones and NaN.
inline bool any_large_angle(Vec<float> a) { return any(!(abs(a) <= Vec<float>(60000.0f))); }

inline Vec<float> sine_of_rest(Vec<float> a, Vec<float> shifted_turns) {
  Vec<float> square = a * a;
  Vec<float> sine =
      fma(a * square, polynomial(square, -0.166666597f, 0.00833306648f, -0.000198095964f, 2.6057653e-06f), a);
  return from_bits<float>(bits(sine) ^ (bits(shifted_turns) << 31));
}
inline Vec<float> sin(Vec<float> a) {
  if (any_large_angle(a)) return Vec<float>(UMBRA_SLEEF_FLOAT(sin, u10)(a.raw));
  Vec<float> shifted = fma(a, Vec<float>(0.318309886f), Vec<float>(kWhole)), turns = shifted - Vec<float>(kWhole);
  return sine_of_rest(beyond(a, turns + turns), shifted);
}
/// The sine of an angle that is a quarter of a turn further.
inline Vec<float> cos(Vec<float> a) {
  if (any_large_angle(a)) return Vec<float>(UMBRA_SLEEF_FLOAT(cos, u10)(a.raw));
  Vec<float> shifted = fma(a, Vec<float>(0.318309886f), Vec<float>(0.5f)) + Vec<float>(kWhole),
             turns = shifted - Vec<float>(kWhole);
  return sine_of_rest(beyond(a, turns + turns - Vec<float>(1)), shifted);
}

/// The sine over the cosine of the rest, or its negative reciprocal.
inline Vec<float> tan(Vec<float> a) {
  if (any_large_angle(a)) return Vec<float>(UMBRA_SLEEF_FLOAT(tan, u10)(a.raw));
  Vec<float> shifted = fma(a, Vec<float>(0.636619772f), Vec<float>(kWhole)),
             rest = beyond(a, shifted - Vec<float>(kWhole));
  Vec<float> square = rest * rest, one(1);
  Vec<float> tangent =
      fma(rest * square,
          polynomial(square, 0.333331555f, 0.133388042f, 0.0534109324f, 0.0244314037f, 0.00311786076f, 0.00938663725f),
          rest);
  Mask<float> turned((bits(shifted) << 31) < 0);
  return select(turned, -one, tangent) / select(turned, tangent, one);
}

/// Of more than 1 it is what the reciprocal's lacks to a quarter of a turn.
inline Vec<float> atan(Vec<float> a) {
  const Vec<float> one(1), last(1e12f);
  Vec<float> size = abs(a);
  Mask<float> steep = size > one;
  size = at_most(size, last);
  Vec<float> x = select(steep, quotient(-one, size), size), square = x * x;
  Vec<float> angle = fma(x * square,
                         polynomial(square, -0.333332986f, 0.199985489f, -0.142642409f, 0.109521814f, -0.0840343684f,
                                    0.0579573587f, -0.0311776139f, 0.0109144812f, -0.00179359387f),
                         x);
  return copysign(select(steep, angle + Vec<float>(1.57079637f), angle), a);
}
/// asin(a) for sizes up to 1/2, and for the rest what twice asin(sqrt((1 - a) / 2)) lacks to a quarter of a turn.
struct Arc {
  Mask<float> far;
  Vec<float> angle;  // of the size, or where that is far, of the root
};
inline Arc arc(Vec<float> size) {
  const Vec<float> half(0.5f);
  Mask<float> far = size > half;
  Vec<float> reduced = fma(size, -half, half), square = select(far, reduced, size * size);
  Vec<float> x = select(far, sqrt(reduced), size);
  return {far, fma(x * square,
                   polynomial(square, 0.166667521f, 0.0749529749f, 0.0454703756f, 0.0241795257f, 0.0421662852f), x)};
}
inline Vec<float> asin(Vec<float> a) {
  auto [far, angle] = arc(abs(a));
  Vec<float> lacking = fma(angle, Vec<float>(-2), Vec<float>(-4.37113883e-8f)) + Vec<float>(1.57079637f);
  return copysign(select(far, lacking, angle), a);
}
inline Vec<float> acos(Vec<float> a) {
  const Vec<float> quarter(1.57079637f), quarter_low(-4.37113883e-8f);
  auto [far, angle] = arc(abs(a));
  Vec<float> twice = angle + angle;
  Vec<float> beyond_half = select(signbit(a), (quarter - angle + (quarter_low - angle)) + quarter, twice);
  return select(far, beyond_half, quarter - (copysign(angle, a) - quarter_low));
}

}  // namespace umbra::kernels::UMBRA_ISA

#include "kernels/vector/vec_math_double.h"

namespace umbra::kernels::UMBRA_ISA {

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
