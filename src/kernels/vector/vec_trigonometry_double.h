// Circular functions of Vec<double> and their inverses, in half to three quarters of SLEEF's time: good to 0.8 of the
// last place. Polynomials are least-maximum fits (Remez's exchange in 300 bits, the first coefficients rounded before
// the rest is fitted again), weighted to the relative error of the function. Included by vec_math_double.h.
#pragma once

#include "kernels/vector/vec_math_double.h"

#ifdef __AVX512F__
namespace umbra::kernels::UMBRA_ISA {

/// Sines and cosines of n sixteenths of half a turn, and what rounding took from them.
struct SineTable {
  alignas(64) double sines[16], sines_low[16], cosines[16], cosines_low[16];
};
inline constexpr SineTable kSines = {
    {0.0, 0.19509032201612828, 0.3826834323650898, 0.5555702330196022, 0.7071067811865476, 0.8314696123025452,
     0.9238795325112867, 0.9807852804032304, 1.0, 0.9807852804032304, 0.9238795325112867, 0.8314696123025452,
     0.7071067811865476, 0.5555702330196022, 0.3826834323650898, 0.19509032201612828},
    {0.0, -7.991079068461731e-18, -1.0050772696461588e-17, 4.709410940561677e-17, -4.833646656726457e-17,
     1.4073856984728024e-18, 1.7645047084336677e-17, 1.8546939997825006e-17, 0.0, 1.8546939997825006e-17,
     1.7645047084336677e-17, 1.4073856984728024e-18, -4.833646656726457e-17, 4.709410940561677e-17,
     -1.0050772696461588e-17, -7.991079068461731e-18},
    {1.0, 0.9807852804032304, 0.9238795325112867, 0.8314696123025452, 0.7071067811865476, 0.5555702330196022,
     0.3826834323650898, 0.19509032201612828, 0.0, -0.19509032201612828, -0.3826834323650898, -0.5555702330196022,
     -0.7071067811865476, -0.8314696123025452, -0.9238795325112867, -0.9807852804032304},
    {0.0, 1.8546939997825006e-17, 1.7645047084336677e-17, 1.4073856984728024e-18, -4.833646656726457e-17,
     4.709410940561677e-17, -1.0050772696461588e-17, -7.991079068461731e-18, 0.0, 7.991079068461731e-18,
     1.0050772696461588e-17, -4.709410940561677e-17, 4.833646656726457e-17, -1.4073856984728024e-18,
     -1.7645047084336677e-17, -1.8546939997825006e-17}};
/// What the angles of the rounded pairs lack to the sixteenths.
alignas(64) inline constexpr double kTurnedBy[16] = {
    0.0, -1.1455861221475113e-17, -1.6038170362661715e-17, 3.837541928877283e-17,
    0.0, -3.837541928877283e-17,  1.6038170362661715e-17,  1.1455861221475113e-17,
    0.0, -1.1455861221475113e-17, -1.6038170362661715e-17, 3.837541928877283e-17,
    0.0, -3.837541928877283e-17,  1.6038170362661715e-17,  1.1455861221475113e-17};

/// An angle as whole sixteenths of half a turn and a rest of two parts. A sixteenth is in three parts: the first
/// difference is exact, and so is the product with the second part, which has 30 digits, up to the large angles.
struct ReducedAngle {
  Vec<double> shifted, rest, low, square;
  explicit ReducedAngle(Vec<double> a) {
    const Vec<double> whole(6755399441055744.0), next(-7.654042492615175e-18);
    shifted = fma(a, Vec<double>(5.092958178940651), whole);
    Vec<double> n = shifted - whole, most = fma(n, Vec<double>(-0.19634954084936207), a);
    rest = fma(n, next, most);
    low = fma(n, Vec<double>(-2.0557821170405322e-27), fma(n, next, most - rest));
    square = rest * rest;
  }
  /// Half turns turn the sign.
  typename Mask<double>::Raw sign() const { return bits(shifted) << 59; }
};
/// number cos(rest) + slope sin(rest), where both come with what rounding took from them.
inline Vec<double> turned(const ReducedAngle& angle, Vec<double> number, Vec<double> number_low, Vec<double> slope,
                          Vec<double> slope_low) {
  const Vec<double>&rest = angle.rest, &square = angle.square;
  Vec<double> sine =
      fma(rest * square,
          polynomial(square, -0.16666666666666666, 0.0083333333333212, -0.0001984126941398193, 2.7551680907720112e-06),
          angle.low);
  Vec<double> cosine =
      polynomial(square, -0.49999999999999983, 0.04166666666649892, -0.001388888836371776, 2.4795107973124618e-05);
  Vec<double> most = fma(slope, rest, number);
  Vec<double> low = fma(slope_low, rest, fma(slope, rest, number - most) + number_low);
  return most + fma(slope, sine, fma(number * square, cosine, low));
}

/// Larger angles than this are SLEEF's, lane by lane, so that a result does not depend on its neighbours.
inline Mask<double> large_angle(Vec<double> a) { return abs(a) > Vec<double>(1e6); }
#define UMBRA_LARGE_ANGLES(name)                                                                      \
  [[gnu::noinline, gnu::cold]] inline Vec<double> name##_of_large(Vec<double> a, Vec<double> value) { \
    return select(large_angle(a), Vec<double>(Sleef_##name##d8_u10avx512f(a.raw)), value);            \
  }
UMBRA_LARGE_ANGLES(sin)
UMBRA_LARGE_ANGLES(cos)
UMBRA_LARGE_ANGLES(tan)
#undef UMBRA_LARGE_ANGLES

[[gnu::noinline]] inline Vec<double> sin(Vec<double> a) {
  const ReducedAngle angle(abs(a));
  const Vec<double>& place = angle.shifted;
  Vec<double> sine = turned(angle, looked_up(kSines.sines, place), looked_up(kSines.sines_low, place),
                            looked_up(kSines.cosines, place), looked_up(kSines.cosines_low, place));
  Vec<double> value = from_bits<double>(bits(sine) ^ ((angle.sign() ^ bits(a)) & sign_bits<double>()));
  if (any(large_angle(a))) [[unlikely]]
    return sin_of_large(a, value);
  return value;
}
[[gnu::noinline]] inline Vec<double> cos(Vec<double> a) {
  const ReducedAngle angle(a);
  const Vec<double>& place = angle.shifted;
  Vec<double> cosine = turned(angle, looked_up(kSines.cosines, place), looked_up(kSines.cosines_low, place),
                              -looked_up(kSines.sines, place), -looked_up(kSines.sines_low, place));
  Vec<double> value = from_bits<double>(bits(cosine) ^ (angle.sign() & sign_bits<double>()));
  if (any(large_angle(a))) [[unlikely]]
    return cos_of_large(a, value);
  return value;
}
/// (sine + cosine t) / (cosine - sine t) with t = tan(rest). Of both only the most is rounded; what the table's
/// rounding turned the angle by is added to the rest.
[[gnu::noinline]] inline Vec<double> tan(Vec<double> a) {
  const Vec<double> one(1);
  const ReducedAngle angle(abs(a));
  const Vec<double>&rest = angle.rest, &square = angle.square;
  Vec<double> sine = looked_up(kSines.sines, angle.shifted), cosine = looked_up(kSines.cosines, angle.shifted);
  Vec<double> low = fma(rest * square,
                        in_parts<2>(square, 0.3333333333333333, 0.13333333333336697, 0.053968253947904825,
                                    0.021869494190333356, 0.008862442506955158, 0.003646683535515143),
                        angle.low + looked_up(kTurnedBy, angle.shifted));
  Vec<double> above = fma(cosine, rest, sine), above_low = fma(cosine, low, fma(cosine, rest, sine - above));
  Vec<double> below = fma(-sine, rest, cosine), below_low = fma(-sine, low, fma(-sine, rest, cosine - below));
  Vec<double> whole = below + below_low, reciprocal(_mm512_maskz_rcp14_pd(-1, whole.raw));
  reciprocal = fma(reciprocal, fma(-whole, reciprocal, one), reciprocal);
  Vec<double> rough = (above + above_low) * reciprocal;
  Vec<double> missing = fma(-rough, below, above) + fma(-rough, below_low, above_low);
  Vec<double> value = from_bits<double>(bits(fma(missing, reciprocal, rough)) ^ (bits(a) & sign_bits<double>()));
  if (any(large_angle(a))) [[unlikely]]
    return tan_of_large(a, value);
  return value;
}

/// A middle of each stretch of numbers from one power of two, or one and a half, to the next, at the last bit of the
/// exponent and the first of the mantissa, and its arc tangent. Numbers below 1/8 have 0, those above 8 infinity.
struct ArcTable {
  alignas(64) double middles[16], angles[16], angles_low[16];
};
inline constexpr ArcTable kArcs = {
    {2.421875, 3.4375, 4.8125, 6.859375, 0.0, 0.0, 0.0, 0.0, 0.140625, 0.21875, 0.265625, 0.4375, 0.625, 0.875, 1.21875,
     1.71875},
    {1.1792162052337265, 1.287700541495401, 1.3659196097577881, 1.426030296957411, 1.5707963267948966, 0.0, 0.0, 0.0,
     0.13970887428916365, 0.21535769969773805, 0.2596296294082575, 0.4124104415973873, 0.5585993153435624,
     0.7188299996216245, 0.8836721166534575, 1.043853099605467},
    {-1.0262783370068585e-16, 7.675509734197807e-17, 2.52049601072102e-18, 1.0673931728076415e-16,
     6.123233995736766e-17, 0.0, 0.0, 0.0, -2.9579864247315813e-18, 4.738160130078733e-19, 1.9238754924615304e-17,
     -1.587652227770689e-17, -5.4556305485916264e-18, -2.1478388444456983e-17, 1.9644781804160354e-17,
     6.365899035424811e-17}};

/// atan(middle) + atan((a - middle) / (1 + a middle)); beyond 8 a right angle + atan(-1 / a).
[[gnu::noinline]] inline Vec<double> atan(Vec<double> a) {
  const Vec<double> one(1), last(8), largest(1e300);
  Vec<double> size = at_most(abs(a), largest);
  Vec<double> bounded = at_most(at_least(size, Vec<double>(0.09375)), last);
  Vec<double> place = from_bits<double>(bits(bounded) >> 51);
  Vec<double> middle = looked_up(kArcs.middles, place);
  Mask<double> steep = size >= last;
  Vec<double> above = select(steep, -one, size - middle), below = select(steep, size, fma(size, middle, one));
  Vec<double> reciprocal(_mm512_maskz_rcp14_pd(-1, below.raw));
  reciprocal = fma(reciprocal, fma(-below, reciprocal, one), reciprocal);
  Vec<double> rough = above * reciprocal, x = fma(fma(-rough, below, above), reciprocal, rough), square = x * x;
  Vec<double> series = in_parts<2>(square, -0.3333333333333257, 0.1999999999904929, -0.14285713890831084,
                                   0.11111035638548575, -0.09083602903402976, 0.07342725351147504);
  Vec<double> angle = looked_up(kArcs.angles, place), sum = angle + x, low = (angle - sum) + x;
  return copysign(sum + fma(x * square, series, low + looked_up(kArcs.angles_low, place)), a);
}

/// asin(x) of x up to 1/2 is x + rest, and x is the root of (1 - a) / 2 where a is larger.
struct ReducedArc {
  Mask<double> far;
  Vec<double> x, rest;
  explicit ReducedArc(Vec<double> size) {
    const Vec<double> half(0.5);
    far = size > half;
    Vec<double> reduced = fma(size, -half, half), not_zero = reduced + Vec<double>(1e-300);
    Vec<double> estimate(_mm512_maskz_rsqrt14_pd(-1, not_zero.raw));  // NaN where the size is beyond 1
    Vec<double> root = reduced * estimate, half_inverse = estimate * half;
    Vec<double> error = fma(-half_inverse, root, half);
    root = fma(root, error, root);
    half_inverse = fma(half_inverse, error, half_inverse);
    root = fma(half_inverse, fma(-root, root, reduced), root);
    Vec<double> root_low = half_inverse * fma(-root, root, reduced);
    Vec<double> square = select(far, reduced, size * size);
    x = select(far, root, size);
    rest = fma(x * square,
               in_parts<2>(square, 0.16666666666665383, 0.0750000000034289, 0.04464285682361472, 0.030381959325670588,
                           0.022371753660179614, 0.017359768998245574, 0.013884619704927121, 0.01217313750724461,
                           0.0065114759707385035, 0.019572178471754378, -0.01629132734746674, 0.03195706030983972),
               select(far, root_low, Vec<double>(0)));
  }
  /// base + factor asin(x), where the base is larger than that, or 0.
  Vec<double> added_to(Vec<double> base, Vec<double> base_low, Vec<double> factor) const {
    Vec<double> sum = fma(factor, x, base), low = fma(factor, x, base - sum) + base_low;
    return sum + fma(factor, rest, low);
  }
};
[[gnu::noinline]] inline Vec<double> asin(Vec<double> a) {
  const Vec<double> zero(0), one(1), quarter(1.5707963267948966), quarter_low(6.123233995736766e-17);
  const ReducedArc arc(abs(a));
  return copysign(arc.added_to(select(arc.far, quarter, zero), select(arc.far, quarter_low, zero),
                               select(arc.far, Vec<double>(-2), one)),
                  a);
}
[[gnu::noinline]] inline Vec<double> acos(Vec<double> a) {
  const Vec<double> zero(0), one(1), quarter(1.5707963267948966), quarter_low(6.123233995736766e-17);
  const ReducedArc arc(abs(a));
  Mask<double> negative = signbit(a);
  Vec<double> turns = select(arc.far, select(negative, Vec<double>(2), zero), one);
  Vec<double> factor = from_bits<double>(bits(select(arc.far, Vec<double>(2), -one)) ^ (bits(a) & sign_bits<double>()));
  return arc.added_to(turns * quarter, turns * quarter_low, factor);
}

}  // namespace umbra::kernels::UMBRA_ISA
#endif
