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

/// c0 + c1 x + c2 x² + ... of lanes' doubles in parts of every second or fourth power, which wait for each other's
/// steps half or a quarter as long as polynomial()'s.
template <int parts, class... Rest>
[[gnu::always_inline]] inline Vec<double> in_parts(Vec<double> x, double first, Rest... rest) {
  if constexpr (parts == 1 || sizeof...(rest) == 0) {
    return polynomial(x, first, rest...);
  } else {
    const double all[] = {first, rest...};
    Vec<double> square = x * x;
    return [&]<size_t... even, size_t... odd>(std::index_sequence<even...>, std::index_sequence<odd...>)
        __attribute__((always_inline)) {
      return fma(x, in_parts<parts / 2>(square, all[2 * odd + 1]...), in_parts<parts / 2>(square, all[2 * even]...));
    }
    (std::make_index_sequence<(sizeof...(rest) + 2) / 2>(), std::make_index_sequence<(sizeof...(rest) + 1) / 2>());
  }
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
      in_parts<2>(x, -0.5, 0.33333333333311665, -0.250000000000041, 0.20000000087155057, -0.1666666668344542,
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

#ifdef __AVX512F__
/// The series of erf at the middles of sixteen stretches, fitted with 300 bits. A middle is the next number to a
/// multiple of 49/128 whose value (to 1/50 of the last place) and slope (to 1/7) are numbers of 53 digits.
struct ErfTable {
  alignas(64) double middles[16], values[16], slopes[16], series[12][16];  // from the square on
};
inline constexpr ErfTable kErf = {
    {0.0, 0.3828126042499207, 0.7656250581494533, 1.148437560943421, 1.5312500066356733, 1.9140625413274392,
     2.2968750200234354, 2.6796876079170033, 3.062500105879735, 3.445312528987415, 3.828125162923243, 4.210945129394531,
     4.593769073486328, 4.976615905761719, 5.359645843505859, 5.745445251464844},
    {0.0, 0.4117534674869051, 0.7210838550488287, 0.8956532082679796, 0.9696516958576997, 0.9932083898684346,
     0.9988389170026716, 0.9998491406458265, 0.999985158599301, 0.9999988975363671, 0.9999999382942725,
     0.9999999974020745, 0.9999999999178284, 0.9999999999980498, 0.9999999999999654, 0.9999999999999996},
    {1.1283791670955126, 0.9745657884714719, 0.6278842203372443, 0.30175899990462646, 0.10818156076223621,
     0.028930664978634276, 0.005771330591282639, 0.0008588266692208101, 9.53339410790154e-05, 7.894089960230348e-06,
     4.876050778774493e-07, 2.2465688546806772e-08, 7.720806805467225e-10, 1.9788431120268138e-11,
     3.7756965368304114e-13, 5.203947618442792e-15},
    {{0.0, -0.37307606749764144, -0.48072389270682686, -0.34655136984319523, -0.16565301563503168, -0.05537510213129747,
      -0.01325602506741418, -0.002301387182859639, -0.0002919602046484168, -2.7197607044935495e-05,
      -1.8666132681918438e-06, -9.460178176466744e-08, -3.5467603525299157e-09, -9.847942106291647e-11,
      -2.0236396249744465e-12, -2.989899613214024e-14},
     {-0.3761263890318372, -0.22964311550242983, 0.03607476542591567, 0.16474207331467164, 0.1330436006061623,
      0.0610173841482537, 0.018374511697671198, 0.003825056920211732, 0.0005643074580726238, 5.9838140886851344e-05,
      4.601217788315323e-06, 2.5808671192039874e-07, 1.0604638452163963e-08, 3.2013335846078876e-10,
      7.104804585220888e-12, 1.1278738103123999e-13},
     {0.0, 0.16831382871257175, 0.14643142538052403, 0.020919130849951787, -0.04664383527719737, -0.0399371773068758,
      -0.01668330343927684, -0.004357849753382987, -0.000766775756832642, -9.40146792391993e-05, -8.184814374974798e-06,
      -5.118605640124061e-07, -2.317537663142121e-08, -7.637639087063252e-10, -1.8365071683562915e-11,
      -3.1404053149435104e-13},
     {0.11283791670938381, 0.04311987261048269, -0.05566705705644749, -0.05903234823861423, -0.0113437309507673,
      0.012271686791322765, 0.009815431659154283, 0.003523553316454895, 0.0007700080971731308, 0.00011161253865089387,
      1.1152632208573767e-05, 7.847406859887082e-07, 3.940353983572316e-08, 1.4243438387738572e-09,
      3.7240670663487306e-11, 6.878848536651945e-13},
     {0.0, -0.05038596453958991, -0.024841682186728036, 0.017019887110056104, 0.01822838544843585, 0.00282032194498111,
      -0.003066059014469183, -0.001985247451132407, -0.000581576424324138, -0.00010310944487293935,
      -1.2048606850735836e-05, -9.650038375305026e-07, -5.415681926870887e-08, -2.1591335156804274e-09,
      -6.163490236231888e-11, -1.233656772954354e-12},
     {-0.026866170615927613, -0.004755669972310589, 0.018688179579779647, 0.00847067026674115, -0.005274030344580241,
      -0.004464193789684891, -0.0003249062917706627, 0.0006810138758926681, 0.0003255441275728662, 7.4923946612247e-05,
      1.0522775681453246e-05, 9.741793289356994e-07, 6.169932602634485e-08, 2.7309215063417646e-09,
      8.55163918533593e-11, 1.8613351914822222e-12},
     {0.0, 0.011252121889026504, 0.0017461849706594949, -0.0060791269503831825, -0.00188711900706703,
      0.0015318319953812108, 0.0008435801718348293, -3.0816014152270967e-05, -0.0001246212382876524,
      -4.2439214028054324e-05, -7.488778871367215e-06, -8.187676097561987e-07, -5.925321988867883e-08,
      -2.935035931717966e-09, -1.0137851776853285e-10, -2.4092720271163083e-12},
     {0.005223975283182159, -3.249769171941483e-05, -0.003930905383570769, -9.56318261354779e-05, 0.0016676503643875324,
      0.00021647755236865979, -0.0003674011796669774, -0.00011406892008092998, 2.151143683141511e-05,
      1.7923984999867896e-05, 4.324567831787657e-06, 5.767504540523147e-07, 4.849074440669869e-08,
      2.7148785365724218e-09, 1.0411640950169639e-10, 2.714079195379722e-12},
     {0.0, -0.001997725226295675, 0.0002913815913544068, 0.0011026627062161141, -0.0001751690023936063,
      -0.0003552049794418694, 1.8792503834741498e-05, 6.661596636413228e-05, 8.980525841851642e-06,
      -4.806413876773802e-06, -1.9797850190832304e-06, -3.401625678827029e-07, -3.40098539508675e-08,
      -2.1793160156120897e-09, -9.349819154325736e-11, -2.686406098095432e-12},
     {-0.0008547376761945908, 0.00014433458474186949, 0.0006026226986647376, -0.0002145537692313651,
      -0.00022411064062927976, 8.817631421827223e-05, 5.227282072175658e-05, -1.3787793923751806e-05,
      -8.520746947619994e-06, 7.753432002913707e-08, 6.703052678835514e-07, 1.6607446406014463e-07,
      2.047466597970109e-08, 1.528052505002423e-09, 7.40988840416249e-11, 2.3646362633397896e-12},
     {0.0, 0.00028950125321038577, -0.00011848762040830988, -0.00012511942210852845, 8.225361787476367e-05,
      2.590773918827358e-05, -2.2552257726777765e-05, -4.026456026438248e-06, 2.954618688797362e-06,
      6.938383577719851e-07, -1.2464281004168523e-07, -6.529793382787215e-08, -1.0699950324933638e-08,
      -9.634491343701952e-10, -5.407064366395167e-11, -1.9527415827642405e-12},
     {0.00011865421486468277, -3.6817303298624636e-05, -6.992206039216661e-05, 5.154433073472673e-05,
      1.2041019764710802e-05, -1.9751631865678914e-05, 5.868455998293704e-07, 3.548455431041175e-06,
      -1.8727876964471249e-07, -3.728421356309393e-07, -2.0812529859953023e-08, 1.8588748758946065e-08,
      4.602861303570067e-09, 5.142125759832118e-10, 3.361976613095724e-11, 1.3555741531922193e-12}}};

/// Of every second power: two such sums wait for each other's steps half as long as one does.
template <int first> Vec<double> erf_series(Vec<double> place, Vec<double> square) {
  Vec<double> number = looked_up(kErf.series[first], place);
  if constexpr (first >= 10) return number;
  else return fma(square, erf_series<first + 2>(place, square), number);
}
[[gnu::noinline]] inline Vec<double> erf(Vec<double> a) {
  Vec<double> size = at_most(abs(a), Vec<double>(5.93));  // beyond, it is 1
  Vec<double> place = fma(size, Vec<double>(2.6122448979591835), Vec<double>(6755399441055744.0));
  Vec<double> x = size - looked_up(kErf.middles, place);
  Vec<double> value = looked_up(kErf.values, place), slope = looked_up(kErf.slopes, place);
  Vec<double> sum = fma(x, slope, value), low = fma(x, slope, value - sum);
  Vec<double> square = x * x, series = fma(x, erf_series<1>(place, square), erf_series<0>(place, square));
  return copysign(sum + fma(square, series, low), a);
}
#else
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
#endif

/// Quotients, products and sums keep what rounding took: the complement is small where numbers are large.
[[gnu::noinline]] inline Vec<double> erfc(Vec<double> a) {
  const Vec<double> one(1), half(0.5);
  Vec<double> size = at_most(abs(a), Vec<double>(28)), square = size * size;  // beyond, it is 0
  Vec<double> less = one - a, less_low = (one - less) - a;
  Vec<double> near = less + fma(-a,
                                in_parts<2>(square, 0.12837916709551256, -0.37612638903183476, 0.11283791670925561,
                                            -0.026866170632954243, 0.0052239773740628955, -0.0008548297842497417,
                                            0.00012053339321401695, -1.4845952533043799e-05, 1.4726897879477318e-06),
                                less_low);
  ScaledComplement scaled(size);
  const Vec<double> first(1.2530080582697296);
  Vec<double> rest = scaled.place * in_parts<4>(scaled.place, -0.1356211061245811, -0.047562294353434155,
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
  Vec<double> rest = place * in_parts<2>(place, 0.24652535297364522, -0.0042284536793734725, -0.0012407818592020522,
                                         0.0002178991987857141, -5.274468147761497e-06, -3.3707361905964873e-06,
                                         4.801198690284852e-07, 1.2088038255109541e-08, -1.0735906203314368e-08,
                                         9.249190882332583e-10, 1.1451524755894056e-10, -3.093675941323263e-11,
                                         1.0134960064957165e-12, 5.214683955922939e-13, -7.689847177176851e-14,
                                         -2.7352525181396983e-15, 1.8865986288620257e-15, -1.0854916283316473e-16,
                                         -2.7228595848499145e-17, 2.5960661569896865e-18, 2.0321677885307093e-19);
  Vec<double> factor = first + rest, factor_low = rest - (factor - first);
  Vec<double> value = copysign(fma(a, factor, a * factor_low), a);
  Mask<double> far = w > last;
  if (!any(far)) return value;
  return select(far, copysign(far_erfinv(abs(a), w), a), value);
}

}  // namespace umbra::kernels::UMBRA_ISA

#include "kernels/vector/vec_trigonometry_double.h"
