// Functions of Vec<double> that take a quarter to two thirds of SLEEF's time. Their polynomials are least-maximum fits.
// They are calls, as SLEEF's are: in every functor's loop they would be too much code. Included by vec_math.h.
#pragma once

#include "kernels/vector/vec_math.h"

namespace umbra::kernels::UMBRA_ISA {

/// a, but no more than b, or no less; NaN where a is.
inline Vec<double> at_most(Vec<double> a, Vec<double> b) {
#ifdef __AVX512F__
  return Vec<double>(_mm512_maskz_min_pd(-1, b.raw, a.raw));
#else
  return Vec<double>(_mm256_min_pd(b.raw, a.raw));
#endif
}

#ifdef __AVX512F__
inline Vec<double> at_least(Vec<double> a, Vec<double> b) { return Vec<double>(_mm512_maskz_max_pd(-1, b.raw, a.raw)); }
inline Vec<double> times_power_of_two(Vec<double> a, Vec<double> n) {
  return Vec<double>(_mm512_maskz_scalef_pd(-1, a.raw, n.raw));
}

/// Powers of two of j / 16 at j, and what rounding took from them.
struct RootsOfTwo {
  alignas(64) double roots[16], low[16];
};
inline constexpr RootsOfTwo kRootsOfTwo = {
    {1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484,
     1.2968395546510096, 1.3542555469368927, 1.4142135623730951, 1.4768261459394993, 1.5422108254079407,
     1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474},
    {0.0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17, 3.982015231465646e-17,
     4.658027591836937e-17, 2.5382502794888315e-17, 7.70094837980299e-17, -9.667293313452913e-17,
     -3.483994556892796e-17, 7.949834809697621e-17, 2.4707192569797888e-17, 8.199010020581497e-17,
     2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16}};
/// The number at the last four bits of each lane.
inline Vec<double> looked_up(const double (&numbers)[16], Vec<double> places) {
  __m512d low = _mm512_load_pd(numbers), high = _mm512_load_pd(numbers + 8);
  return Vec<double>(_mm512_maskz_permutex2var_pd(-1, low, reinterpret_cast<__m512i>(bits(places)), high));
}
/// Adding it leaves places for sixteenths.
inline constexpr double kSixteenths = 422212465065984.0;

/// exp(a + low) = 2^n (1 + less_one), where low is what rounding took from a, and n is whole sixteenths: 2 to what n
/// has beyond a whole number is root + root_low.
struct ReducedDouble {
  Vec<double> n, root, root_low, less_one;
  ReducedDouble(Vec<double> a, Vec<double> low) {
    Vec<double> shifted = fma(a, Vec<double>(1.4426950408889634), Vec<double>(kSixteenths));
    n = shifted - Vec<double>(kSixteenths);
    root = looked_up(kRootsOfTwo.roots, shifted);
    root_low = looked_up(kRootsOfTwo.low, shifted);
    Vec<double> rest = fma(n, Vec<double>(4.2009150726810846e-11), fma(n, Vec<double>(-0.6931471806019545), a)) + low;
    less_one = fma(rest * rest,
                   polynomial(rest, 0.5000000000000004, 0.1666666666666667, 0.041666666660130997, 0.008333333332607148,
                              0.0013889122556800639, 0.0001984152947193544),
                   rest);
  }
};
/// exp(a + low), where low is what rounding took from a, as a sum that is still to be scaled.
struct Exponential {
  Vec<double> high, low;
  Exponential(Vec<double> a, Vec<double> low_of_a) {
    const Vec<double> least(-746);
    ReducedDouble reduced(at_most(at_least(a, least), Vec<double>(710)), low_of_a);
    Vec<double> rest = fma(reduced.root, reduced.less_one, reduced.root_low);
    high = reduced.root + rest;
    low = rest - (high - reduced.root);
    power = reduced.n;
    none = a <= least;
  }
  /// 0 is not left to underflow, which takes some processors a hundred cycles: minus infinity is what masks are made
  /// of.
  Vec<double> scaled(Vec<double> value) const { return times_power_of_two(select(none, Vec<double>(0), value), power); }

 private:
  Vec<double> power;
  Mask<double> none;
};
[[gnu::noinline]] inline Vec<double> exp(Vec<double> a) {
  Exponential parts(a, Vec<double>(-0.0));
  return parts.scaled(parts.high);
}

/// e / (e + 2) with e = exp(2a) - 1, both as sums of a number and what its rounding left; 2a = n log(2) + rest +
/// rest_low.
[[gnu::noinline]] inline Vec<double> tanh(Vec<double> a) {
  const Vec<double> one(1), two(2), whole(6755399441055744.0), log_low(4.2009150726810846e-11);
  Vec<double> size = at_most(abs(a), Vec<double>(22)), twice = size + size;  // from there on it is 1
  Vec<double> n = fma(twice, Vec<double>(1.4426950408889634), whole) - whole;
  Vec<double> most = fma(n, Vec<double>(-0.6931471806019545), twice), rest = fma(n, log_low, most);
  Vec<double> rest_low = fma(n, log_low, most - rest);
  Vec<double> series =
      polynomial(rest, 0.500000000000001, 0.16666666666666674, 0.04166666666652095, 0.008333333333322127,
                 0.0013888888948140007, 0.00019841269886836392, 2.4801486965350888e-05, 2.7557242059340425e-06,
                 2.7632791582662336e-07, 2.5110154340462048e-08);
  Vec<double> power = times_power_of_two(one, n), less = power - one, product = power * rest;
  Vec<double> sum = less + product, left = fma(power, fma(rest * rest, series, rest_low), product - (sum - less));
  Vec<double> e = sum + left, e_low = left - (e - sum);
  Vec<double> larger = at_least(e, two), divisor = e + two, divisor_low = at_most(e, two) - (divisor - larger);
  Vec<double> value = e / divisor;
  Vec<double> missing = fma(-value, divisor, e) + fma(-value, divisor_low + e_low, e_low);
  return copysign(fma(missing, Vec<double>(_mm512_maskz_rcp14_pd(-1, divisor.raw)), value), a);
}

/// Logarithms to a base: of 2, of sixteenths and of e. Each is a number with 42 digits after the point, whose products
/// with exponents and whose sums are exact, and what it lacks.
struct LogarithmTable {
  alignas(64) double sixteenths[16], sixteenths_low[16];  // minus the logarithm of n / 16, at n's last four bits
  double of_two, of_two_low, of_e, of_e_low;
};
inline constexpr LogarithmTable kNaturalLogarithm = {
    {0, -0.06062462181648698, -0.11778303565643, -0.17185025692674571, -0.22314355131425145, -0.2719337154835557,
     -0.31845373111855224, 0, 0, 0, 0, 0.3746934494413381, 0.28768207245184385, 0.20763936477828793,
     0.13353139262449076, 0.0645385211375924},
    {0, 5.213620639136504e-14, 4.654729747598445e-14, 8.649239607212071e-14, 4.169796584527195e-14,
     -8.604306772808733e-14, 1.7625431312172662e-14, 0, 0, 0, 0, 7.260466149925637e-14, -6.292357389008195e-14,
     -4.3425422595242564e-14, 3.1859736349078334e-14, -2.1225608044809997e-14},
    0.6931471805598903,
    5.497923018708371e-14,
    1,
    0};
inline constexpr LogarithmTable kBinaryLogarithm = {
    {0, -0.0874628412502716, -0.16992500144237965, -0.24792751344352837, -0.3219280948874257, -0.39231742277866033,
     -0.4594316186373817, 0, 0, 0, 0, 0.5405683813626183, 0.41503749927892386, 0.29956028185893047, 0.1926450779424158,
     0.09310940439149817},
    {0, -6.781363655020842e-14, 6.728996427240727e-14, -5.712484083531846e-14, 6.33385952568616e-14,
     -9.995925486528699e-14, 8.443284155858175e-14, 0, 0, 0, 0, 8.443284155858175e-14, -8.00418555854124e-14,
     -2.262651135603261e-14, -1.9917399279874596e-14, -1.6703260328550802e-14},
    1,
    0,
    1.4426950408889634,
    2.0355273740931033e-17};
inline constexpr LogarithmTable kDecimalLogarithm = {
    {0, -0.026328938722372186, -0.051152522447409865, -0.07463361829695714, -0.09691001300802782, -0.11809931207790214,
     -0.13830269816617147, 0, 0, 0, 0, 0.16272729749766768, 0.12493873660832833, 0.09017663034910584,
     0.05799194697760868, 0.02802872360030051},
    {0, 2.303833573367737e-14, 2.857603188831182e-14, 5.295754592095892e-14, -2.859665406848114e-14,
     -9.234612513604464e-14, -1.0998794445193693e-13, 0, 0, 0, 0, 3.206228782072406e-14, -2.8373705641129622e-14,
     -1.78235453177227e-14, 7.807781277774597e-14, -5.697035970961075e-14},
    0.3010299956640665,
    -8.532344317057107e-14,
    0.4342944819032518,
    1.098319650216765e-17};

/// a = 2^exponent (1 + rest) / (n / 16), where n / 16 is 1 for what is near 1: the rest is exact.
template <const LogarithmTable& table> Vec<double> logarithm(Vec<double> a) {
  __m512d mantissa = _mm512_maskz_getmant_pd(-1, a.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  Vec<double> whole(_mm512_maskz_getexp_pd(-1, a.raw)), excess(_mm512_maskz_getexp_pd(-1, mantissa));
  Vec<double> shifted = Vec<double>(_mm512_maskz_rcp14_pd(-1, mantissa)) + Vec<double>(kSixteenths),
              exponent = whole - excess;
  Vec<double> x = fma(Vec<double>(mantissa), shifted - Vec<double>(kSixteenths), Vec<double>(-1));
  Vec<double> curvature =
      x * x *
      polynomial(x, -0.5, 0.33333333333311665, -0.250000000000041, 0.20000000087155057, -0.1666666668344542,
                 0.14285605325344564, -0.12499950113909919, 0.11164772437182577, -0.10037204142257251);
  Vec<double> known = fma(exponent, Vec<double>(table.of_two), looked_up(table.sixteenths, shifted));
  Vec<double> low = fma(exponent, Vec<double>(table.of_two_low), looked_up(table.sixteenths_low, shifted));
  if constexpr (table.of_e_low != 0) low = fma(x, Vec<double>(table.of_e_low), low);
  const Vec<double> of_e(table.of_e);
  Vec<double> sum = fma(x, of_e, known), rounding = fma(x, of_e, known - sum);
  Vec<double> value = sum + (rounding + fma(curvature, of_e, low));
  // Of 0 and infinity the exponent is infinite; of what has no logarithm the mantissa is NaN.
  return select(isinf(exponent), exponent + Vec<double>(mantissa), value);
}
[[gnu::noinline]] inline Vec<double> log(Vec<double> a) { return logarithm<kNaturalLogarithm>(a); }
[[gnu::noinline]] inline Vec<double> log2(Vec<double> a) { return logarithm<kBinaryLogarithm>(a); }
[[gnu::noinline]] inline Vec<double> log10(Vec<double> a) { return logarithm<kDecimalLogarithm>(a); }
#else
struct Exponential {
  Vec<double> high, low;
  Exponential(Vec<double> a, Vec<double> low_of_a) : high(exp(a)), low(high * low_of_a) {}
  Vec<double> scaled(Vec<double> value) const { return value; }
};
#endif

/// exp(x²) erfc(x) (1 + 2x) is close to a polynomial in place = (x - 3) / (x + 3), which is to be multiplied by the
/// factor.
struct ScaledComplement {
  Vec<double> twice, place, factor;
  explicit ScaledComplement(Vec<double> x) {
    const Vec<double> one(1), three(3);
    twice = fma(x, Vec<double>(2), one);
    Vec<double> sum = x + three, reciprocal = one / (sum * twice), of_sum = twice * reciprocal;
    Vec<double> difference = x - three, rough = difference * of_sum;
    place = fma(fma(-rough, sum, difference), of_sum, rough);
    factor = sum * reciprocal;
  }
};

/// Near 0 a series in a²; from 1 on, what it lacks to 1.
[[gnu::noinline]] inline Vec<double> erf(Vec<double> a) {
  const Vec<double> one(1);
  Vec<double> size = at_most(abs(a), Vec<double>(6)), square = size * size;
  Vec<double> near =
      fma(a,
          polynomial(square, 0.12837916709551256, -0.3761263890318355, 0.11283791670945253, -0.02686617064327622,
                     0.005223977607423468, -0.0008548325989696758, 0.00012055295320494294, -1.4924744663335489e-05,
                     1.6447517677871873e-06, -1.6209175911748696e-07, 1.3722976265924504e-08, -7.801188874097751e-10),
          a);
  ScaledComplement scaled(size);
  Vec<double> series =
      polynomial(scaled.place, 1.2530080582697294, -0.13562110612458342, -0.04756229435325751, 0.1296451587037469,
                 -0.11927366343476906, 0.06830802724242033, -0.02377051427295035, 0.0025293958232613404,
                 0.0018886833429228415, -0.0007799028739609618, -0.00010518575106194277, 0.0001256358143790951,
                 5.852539019320036e-06, -2.1147981556267214e-05, -4.80631630626023e-06);
  Exponential power(-square, Vec<double>(-0.0));
  Vec<double> far = fma(-power.scaled(power.high), scaled.factor * series, one);
  return select(size < one, near, copysign(far, a));
}

/// Quotients, products and sums keep what rounding took: the complement is small where numbers are large.
[[gnu::noinline]] inline Vec<double> erfc(Vec<double> a) {
  const Vec<double> one(1), half(0.5);
  Vec<double> size = at_most(abs(a), Vec<double>(28)), square = size * size;  // beyond, it is 0
  Vec<double> less = one - a, less_low = (one - less) - a;
  Vec<double> near = less + fma(-a,
                                polynomial(square, 0.12837916709551256, -0.37612638903183476, 0.11283791670925561,
                                           -0.026866170632954243, 0.0052239773740628955, -0.0008548297842497417,
                                           0.00012053339321401695, -1.4845952533043799e-05, 1.4726897879477318e-06),
                                less_low);
  ScaledComplement scaled(size);
  const Vec<double> first(1.2530080582697296);
  Vec<double> rest = scaled.place * polynomial(scaled.place, -0.1356211061245811, -0.047562294353434155,
                                               0.1296451587027476, -0.11927366341636242, 0.06830802734461831,
                                               -0.02377051489260828, 0.0025293918015764794, 0.0018886900304245428,
                                               -0.0007798320928281819, -0.00010515739381839609, 0.00012509803275108798,
                                               4.938627780947976e-06, -2.0094545055440053e-05, -7.005811069592124e-07,
                                               3.4552058554725323e-06, 3.0166000403428025e-07, -5.866113137726517e-07,
                                               -8.26908771418511e-08, 7.225478834521882e-08, 7.929171750481163e-09);
  Vec<double> series = first + rest, series_low = rest - (series - first);
  Vec<double> twice_low = (size + size) - (scaled.twice - one), quotient = scaled.factor * series;
  Vec<double> missing = fma(-quotient, scaled.twice, series) + fma(-quotient, twice_low, series_low);
  Exponential power(-square, fma(-size, size, square));
  Vec<double> product = power.high * quotient, product_low = fma(power.high, quotient, -product);
  product_low = fma(power.high, missing * scaled.factor, fma(power.low, quotient, product_low));
  Vec<double> far = power.scaled(product + product_low);
  return select(size < half, near, select(signbit(a), Vec<double>(2) - far, far));
}

/// erfinv of what is near 1, from its root of the logarithm w: seven digits, and then Halley's step, which trebles
/// them.
[[gnu::noinline]] inline Vec<double> far_erfinv(Vec<double> size, Vec<double> w) {
  const Vec<double> one(1);
  Vec<double> y = size * polynomial(sqrt(w) - Vec<double>(4), 3.83978433, 1.00950203, 0.00125286855, -0.000916816231,
                                    0.000339919683, -4.66038658e-05, 3.1453742e-05, -7.37283078e-05, 3.44801122e-05,
                                    -4.81543901e-07, -1.6145798e-06);
  Vec<double> missing = (one - size) - erfc(y);
  Vec<double> step = missing * exp(y * y) * Vec<double>(0.88622692545275801);  // sqrt(pi) / 2
  return select(size == one, Vec<double>(__builtin_inf()), y - step / fma(y, step, one));
}
/// erfinv(a) / a is close to a polynomial in w = -log(1 - a²) while that is small. At ±1 infinite, beyond NaN.
[[gnu::noinline]] inline Vec<double> erfinv(Vec<double> a) {
  const Vec<double> one(1), last(5), first(1.5047806021257475);
  Vec<double> w = -log(fma(-a, a, one)), place = w - Vec<double>(2.513671875);
  Vec<double> rest =
      place * polynomial(place, 0.24652535297364522, -0.0042284536793734725, -0.0012407818592020522,
                         0.0002178991987857141, -5.274468147761497e-06, -3.3707361905964873e-06, 4.801198690284852e-07,
                         1.2088038255109541e-08, -1.0735906203314368e-08, 9.249190882332583e-10, 1.1451524755894056e-10,
                         -3.093675941323263e-11, 1.0134960064957165e-12, 5.214683955922939e-13, -7.689847177176851e-14,
                         -2.7352525181396983e-15, 1.8865986288620257e-15, -1.0854916283316473e-16,
                         -2.7228595848499145e-17, 2.5960661569896865e-18, 2.0321677885307093e-19);
  Vec<double> factor = first + rest, factor_low = rest - (factor - first);
  Vec<double> value = copysign(fma(a, factor, a * factor_low), a);
  Mask<double> far = w > last;
  if (!any(far)) return value;
  return select(far, copysign(far_erfinv(abs(a), w), a), value);
}

}  // namespace umbra::kernels::UMBRA_ISA
