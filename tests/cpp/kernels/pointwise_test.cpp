#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/functors/activations.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/bitwise.h"
#include "kernels/functors/comparison.h"
#include "kernels/functors/exp_log.h"
#include "kernels/functors/rounding.h"
#include "kernels/functors/special.h"
#include "kernels/functors/trigonometry.h"
#include "kernels/kernel_tensors.h"
#include "kernels/run_functor.h"

namespace umbra::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T, class F> std::vector<T> unary(const F& functor, const std::vector<T>& x) {
  Tensor in = row_of(x), out = empty_tensor({static_cast<int64_t>(x.size())}, dtype_of<T>);
  pointwise(functor, out, {&in});
  return values_of<T>(out);
}
template <class T, class F> std::vector<T> binary(const F& functor, const std::vector<T>& a, const std::vector<T>& b) {
  Tensor left = row_of(a), right = row_of(b), out = empty_tensor({static_cast<int64_t>(a.size())}, dtype_of<T>);
  pointwise(functor, out, {&left, &right});
  return values_of<T>(out);
}

TEST(Pointwise, AgreesWithTheStandardLibraryAtEveryLength) {
  for (int64_t n : {1, 3, 7, 8, 15, 16, 17, 100}) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i) x[i] = 0.1f * static_cast<float>(i - n / 2);
    std::vector<float> y = unary(functors::Exp{}, x);
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(y[i], std::exp(x[i]), 2e-7f * std::exp(x[i])) << n << " " << i;
  }
}

/// The largest error, in units of the last place, at numbers of all sizes between the two and at the ends' special
/// ones.
template <class F> double error_in_last_places(const F& functor, double (*of_double)(double), float low, float high) {
  std::vector<float> x = {0.0f, -0.0f, kNan, kInfinity, -kInfinity, 1e-42f, low, high, 1, -1};
  uint32_t bits = 12345;
  for (int i = 0; i < 40000; ++i) {
    bits = bits * 1664525 + 1013904223;
    float number;
    std::memcpy(&number, &bits, sizeof(number));
    if (number >= low && number <= high) x.push_back(number);
    x.push_back(low + (high - low) * static_cast<float>(bits >> 8) * 0x1p-24f);
  }
  double largest = 0;
  std::vector<float> y = unary(functor, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = of_double(x[i]);
    const float wanted = static_cast<float>(exact), next = std::nextafter(std::abs(wanted), kInfinity);
    if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(y[i])) << x[i];
    else if (std::isinf(wanted) || wanted == 0) EXPECT_EQ(y[i], wanted) << x[i];
    else largest = std::max(largest, std::abs(y[i] - exact) / static_cast<double>(next - std::abs(wanted)));
    if (wanted == 0) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(wanted)) << x[i];
    }
  }
  return largest;
}

TEST(Pointwise, FunctionsOfFloatsAreGoodToThreeOfTheLastPlace) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_LT(error_in_last_places(functors::Sqrt{}, std::sqrt, 0, most), 0.50001);
  EXPECT_LT(error_in_last_places(functors::Exp{}, std::exp, -110, 90), 1.5);
  EXPECT_LT(error_in_last_places(functors::Log{}, std::log, 0, most), 1.5);
  EXPECT_LT(error_in_last_places(functors::Log{}, std::log, 0.5f, 2), 1.5);
  EXPECT_LT(error_in_last_places(functors::Log2{}, std::log2, 0, most), 2.5);
  EXPECT_LT(error_in_last_places(functors::Log2{}, std::log2, 0.5f, 2), 2.5);
  EXPECT_LT(error_in_last_places(functors::Log10{}, std::log10, 0, most), 2.5);
  EXPECT_LT(error_in_last_places(functors::Sin{}, std::sin, -70000, 70000), 2.5);
  EXPECT_LT(error_in_last_places(functors::Cos{}, std::cos, -70000, 70000), 2.5);
  EXPECT_LT(error_in_last_places(functors::Tan{}, std::tan, -70000, 70000), 3.5);
  EXPECT_LT(error_in_last_places(functors::Sin{}, std::sin, -7, 7), 2.5);
  EXPECT_LT(error_in_last_places(functors::Cos{}, std::cos, -7, 7), 2.5);
  EXPECT_LT(error_in_last_places(functors::Tan{}, std::tan, -7, 7), 3.5);
  EXPECT_LT(error_in_last_places(functors::Asin{}, std::asin, -1.5f, 1.5f), 3);
  EXPECT_LT(error_in_last_places(functors::Acos{}, std::acos, -1.5f, 1.5f), 2);
  EXPECT_LT(error_in_last_places(functors::Atan{}, std::atan, -most, most), 2);
  EXPECT_LT(error_in_last_places(functors::Atan{}, std::atan, -5, 5), 2);
  EXPECT_LT(error_in_last_places(functors::Tanh{}, std::tanh, -12, 12), 3);
  EXPECT_LT(error_in_last_places(functors::Erfc{}, std::erfc, -12, 9), 6);
}

/// The largest error of doubles between the two, in units of the last place.
template <class F>
double error_of_doubles(const F& functor, long double (*exact)(long double), double low, double high) {
  std::vector<double> x;
  for (int i = 0; i <= 50000; ++i) x.push_back(low + (high - low) * (i / 50000.0));
  std::vector<double> y = unary(functor, x);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double wanted = exact(x[i]);
    const double size = std::abs(static_cast<double>(wanted)), place = std::nextafter(size, kInfinity) - size;
    if (y[i] == static_cast<double>(wanted)) continue;
    EXPECT_FALSE(std::isnan(y[i])) << x[i];
    largest = std::max(largest, static_cast<double>(std::abs(y[i] - wanted) / place));
  }
  return largest;
}

TEST(Pointwise, FunctionsOfDoublesAreGoodToAFewOfTheLastPlace) {
  EXPECT_LT(error_of_doubles(functors::Exp{}, std::exp, -760, 720), 1.01);
  EXPECT_LT(error_of_doubles(functors::Exp{}, std::exp, -1, 1), 1.01);
  EXPECT_LT(error_of_doubles(functors::Log{}, std::log, 1e-310, 3), 1.01);
  EXPECT_LT(error_of_doubles(functors::Log{}, std::log, 0.9, 1.1), 1.01);
  EXPECT_LT(error_of_doubles(functors::Log{}, std::log, 1, 1e300), 1.01);
  EXPECT_LT(error_of_doubles(functors::Log2{}, std::log2, 1e-310, 3), 1.01);
  EXPECT_LT(error_of_doubles(functors::Log10{}, std::log10, 1e-310, 3), 1.01);
  EXPECT_LT(error_of_doubles(functors::Tanh{}, std::tanh, -1, 1), 1.01);
  EXPECT_LT(error_of_doubles(functors::Tanh{}, std::tanh, -25, 25), 1.01);
  EXPECT_LT(error_of_doubles(functors::Erf{}, std::erf, -1e-3, 1e-3), 1.3);
  EXPECT_LT(error_of_doubles(functors::Erf{}, std::erf, -1, 1), 1.3);
  EXPECT_LT(error_of_doubles(functors::Erf{}, std::erf, -7, 7), 1.3);
  EXPECT_LT(error_of_doubles(functors::Erfc{}, std::erfc, -7, 3), 2);
  EXPECT_LT(error_of_doubles(functors::Erfc{}, std::erfc, 3, 30), 2);
}
TEST(Pointwise, CircularFunctionsOfDoublesAreGoodToTheLastPlace) {
  for (double end : {0.1, 4.0, 1e3, 9e5, 1e7, 1e15}) {
    EXPECT_LT(error_of_doubles(functors::Sin{}, std::sin, -end, end), 1.01) << end;
    EXPECT_LT(error_of_doubles(functors::Cos{}, std::cos, -end, end), 1.01) << end;
    EXPECT_LT(error_of_doubles(functors::Tan{}, std::tan, -end, end), 1.01) << end;
    EXPECT_LT(error_of_doubles(functors::Atan{}, std::atan, -end, end), 1.01) << end;
  }
  for (double multiple : {1.5707963267948966, 3.141592653589793, 355.0, 411557987 * 0.001}) {
    EXPECT_LT(error_of_doubles(functors::Sin{}, std::sin, multiple - 1e-9, multiple + 1e-9), 1.01) << multiple;
    EXPECT_LT(error_of_doubles(functors::Cos{}, std::cos, multiple - 1e-9, multiple + 1e-9), 1.01) << multiple;
    EXPECT_LT(error_of_doubles(functors::Tan{}, std::tan, multiple - 1e-9, multiple + 1e-9), 1.01) << multiple;
  }
  for (double middle : {-1.0, -0.5, 0.0, 0.5, 0.99}) {
    const double low = std::max(middle - 0.05, -1.0), high = std::min(middle + 0.05, 1.0);
    EXPECT_LT(error_of_doubles(functors::Asin{}, std::asin, low, high), 1.01) << middle;
    EXPECT_LT(error_of_doubles(functors::Acos{}, std::acos, low, high), 1.01) << middle;
  }
  EXPECT_LT(error_of_doubles(functors::Asin{}, std::asin, -1, 1), 1.01);
  EXPECT_LT(error_of_doubles(functors::Acos{}, std::acos, -1, 1), 1.01);
}
TEST(Pointwise, SmallAnglesDoNotDependOnLargeOnesBesideThem) {
  std::vector<double> small, mixed;
  for (int i = 0; i < 1000; ++i) small.push_back(0.37 * i - 100);
  mixed = small;
  for (int i = 0; i < 1000; i += 3) mixed[i] = i % 2 ? 1e20 : kInfinity;
  auto check = [&](const auto& functor) {
    const std::vector<double> alone = unary(functor, small), beside = unary(functor, mixed);
    for (int i = 0; i < 1000; ++i) {
      if (i % 3 != 0) {
        ASSERT_EQ(alone[i], beside[i]) << small[i];
      }
    }
  };
  check(functors::Sin{});
  check(functors::Cos{});
  check(functors::Tan{});
}
TEST(Pointwise, FunctionsOfDoublesTakeEveryNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = kInfinity;
  const std::vector<double> x = {0.0,     -0.0,   infinity, -infinity, nan,   -nan,  5e-324,
                                 -5e-324, 1e-310, 1,        -1,        1e308, -1e308};
  auto check = [&](const auto& functor, double (*function)(double)) {
    std::vector<double> y = unary(functor, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = function(x[i]);
      if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(y[i])) << x[i];
      else EXPECT_DOUBLE_EQ(y[i], wanted) << x[i];
      if (wanted == 0) {
        EXPECT_EQ(std::signbit(y[i]), std::signbit(wanted)) << x[i];
      }
    }
  };
  check(functors::Exp{}, std::exp);
  check(functors::Log{}, std::log);
  check(functors::Log2{}, std::log2);
  check(functors::Log10{}, std::log10);
  check(functors::Tanh{}, std::tanh);
  check(functors::Erf{}, std::erf);
  check(functors::Erfc{}, std::erfc);
  check(functors::Sin{}, std::sin);
  check(functors::Cos{}, std::cos);
  check(functors::Tan{}, std::tan);
  check(functors::Asin{}, std::asin);
  check(functors::Acos{}, std::acos);
  check(functors::Atan{}, std::atan);
}

TEST(Pointwise, RootsOfFloatsAreRoundedExactly) {
  for (uint32_t start : {0x10010000u, 0x3f800000u, 0x40000000u, 0x7f700000u}) {
    std::vector<float> x(1 << 19);
    for (size_t i = 0; i < x.size(); ++i) {
      uint32_t bits = start + static_cast<uint32_t>(i);
      std::memcpy(&x[i], &bits, sizeof(bits));
    }
    std::vector<float> roots = unary(functors::Sqrt{}, x);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(roots[i], static_cast<float>(std::sqrt(double{x[i]}))) << x[i];
  }
}

TEST(Pointwise, WorksOnAnyStrides) {
  Tensor a = strided(counting({12}), {3, 4}, {1, 3}), b = counting({4});
  Tensor out = strided(empty_tensor({24}, DType::Float32), {3, 4}, {8, 2});
  pointwise(functors::Add{.factor = {.alpha = 10}}, out, {&a, &b});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 13, 26, 39, 1, 14, 27, 40, 2, 15, 28, 41}));
}

TEST(Pointwise, BroadcastsNumbersOverLongRows) {
  Tensor a = counting({5000}), b = tensor_of<float>({}, {0.5f}), out = empty_tensor({5000}, DType::Float32);
  pointwise(functors::Multiply{}, out, {&a, &b});
  std::vector<float> values = values_of<float>(out);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(values[i], 0.5f * i);
}

TEST(Pointwise, MayWriteToItsInput) {
  Tensor a = counting<int32_t>({1000});
  pointwise(functors::Add{}, a, {&a, &a});
  EXPECT_EQ(values_of<int32_t>(a)[999], 1998);
}

TEST(Pointwise, ConvertsOperandsOfOtherTypes) {
  Tensor a = counting<int64_t>({4}), b = row_of<float>({0.5f, 1.5f, 2.5f, 3.5f}),
         out = empty_tensor({4}, DType::Float64);
  pointwise(functors::Add{}, out, {&a, &b}, DType::Float32);
  EXPECT_EQ(values_of<double>(out), (std::vector<double>{0.5, 2.5, 4.5, 6.5}));
}

TEST(Pointwise, ComputesNarrowFloatsInFloat) {
  Tensor a = cast(counting({300}), DType::BFloat16), out = empty_tensor({300}, DType::BFloat16);
  pointwise(functors::Multiply{}, out, {&a, &a});
  EXPECT_EQ(values_of<float>(out)[100], static_cast<float>(BFloat16(10000.0f)));
  EXPECT_EQ(pointwise_result<functors::Multiply>(DType::BFloat16), DType::BFloat16);
  EXPECT_EQ(pointwise_result<functors::Less>(DType::Float16), DType::Bool);
  EXPECT_EQ(pointwise_result<functors::Absolute>(DType::Complex64), DType::Float32);
}

template <class Narrow> std::vector<uint16_t> bits_of(const Tensor& t) {
  std::vector<uint16_t> bits;
  for (const Narrow& x : values<Narrow>(t)) bits.push_back(x.bits);
  return bits;
}
/// What the functor gives for narrow numbers is what it gives for the same numbers in float, rounded.
template <class Narrow, class F> void expect_rounded_float(const F& functor, const Tensor& a, const Tensor& b) {
  DType narrow = dtype_of<Narrow>;
  Tensor out = empty_tensor(a.sizes(), narrow), exact = empty_tensor(a.sizes());
  pointwise(functor, out, {&a, &b}, narrow);
  Tensor wide_a = cast(a, DType::Float32), wide_b = cast(cast(b, narrow), DType::Float32);
  pointwise(functor, exact, {&wide_a, &wide_b});
  EXPECT_EQ(bits_of<Narrow>(out), bits_of<Narrow>(cast(exact, narrow))) << a.numel();
}

TEST(Pointwise, NarrowFloatsOfAnyNumberAreRoundedResultsOfFloats) {
  for (int64_t n : {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200}) {
    Tensor x = counting({n}, 1.0 / 3), y = counting({n}, -0.77), number = floats({}, {1.001f});
    if (n > 20) x.data<float>()[5] = kNan, x.data<float>()[20] = kInfinity, y.data<float>()[n - 1] = -kNan;
    auto check_type = [&]<class Narrow>(Narrow) {
      Tensor a = cast(x, dtype_of<Narrow>), b = cast(y, dtype_of<Narrow>);
      expect_rounded_float<Narrow>(functors::Multiply{}, a, b);
      expect_rounded_float<Narrow>(functors::Add{.factor = {.alpha = 3}}, a, b);
      expect_rounded_float<Narrow>(functors::Add{}, a, number);  // the number is rounded, too
      Tensor less = empty_tensor({n}, DType::Bool), wide = empty_tensor({n}, DType::Bool);
      pointwise(functors::Less{}, less, {&a, &b});
      Tensor wide_a = cast(a, DType::Float32), wide_b = cast(b, DType::Float32);
      pointwise(functors::Less{}, wide, {&wide_a, &wide_b});
      EXPECT_EQ(values_of<int32_t>(less), values_of<int32_t>(wide));
    };
    check_type(Half());
    check_type(BFloat16());
  }
}

TEST(Pointwise, NarrowFloatsMayBeWrittenToTheirPlace) {
  Tensor a = cast(counting({77}, 0.3), DType::BFloat16), expected = empty_tensor({77}, DType::BFloat16);
  pointwise(functors::Add{}, expected, {&a, &a});
  pointwise(functors::Add{}, a, {&a, &a});
  EXPECT_EQ(bits_of<BFloat16>(a), bits_of<BFloat16>(expected));
}

TEST(Pointwise, NamesTheKernelAndTheTypeItIsMissingFor) {
  Tensor a = counting<int64_t>({2}), out = empty_tensor({2}, DType::Int64);
  try {
    pointwise(functors::Gelu{}, out, {&a});
    FAIL();
  } catch (const NotImplementedError& error) {
    EXPECT_STREQ(error.what(), "\"GeluKernelImpl\" not implemented for 'Long'");
  }
}

TEST(Arithmetic, MaximumAndMinimumHandOnNan) {
  std::vector<float> high = binary<float>(functors::Maximum{}, {1, kNan, 1, kNan}, {2, 1, kNan, kNan});
  EXPECT_EQ(high[0], 2);
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(high[i]));
  EXPECT_TRUE(std::isnan(unary<float>(functors::Clamp{.low = 0, .high = 1}, {kNan})[0]));
}

TEST(Arithmetic, IntegersWrapAround) {
  constexpr int32_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(binary<int32_t>(functors::Add{}, {least}, {-1}), std::vector<int32_t>{std::numeric_limits<int32_t>::max()});
  EXPECT_EQ(unary<int32_t>(functors::Absolute{}, {least, -3}), (std::vector<int32_t>{least, 3}));
  EXPECT_EQ(binary<int32_t>(functors::DivideTrunc{}, {least}, {-1}), std::vector<int32_t>{least});
  EXPECT_EQ(binary<int32_t>(functors::Remainder{}, {least}, {-1}), std::vector<int32_t>{0});
}

TEST(Arithmetic, DividesAsPythonDoes) {
  EXPECT_EQ(binary<int64_t>(functors::DivideFloor{}, {7, -7, 7, -7}, {2, 2, -2, -2}),
            (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(binary<int64_t>(functors::Remainder{}, {7, -7, 7, -7}, {3, 3, -3, -3}),
            (std::vector<int64_t>{1, 2, -2, -1}));
  EXPECT_EQ(binary<int64_t>(functors::Fmod{}, {7, -7, 7, -7}, {3, 3, -3, -3}), (std::vector<int64_t>{1, -1, 1, -1}));
  EXPECT_EQ(binary<double>(functors::DivideFloor{}, {7, -7, 1, 0.3}, {2, 2, 0, 0.1}),
            (std::vector<double>{3, -4, kInfinity, 2}));
}

TEST(Arithmetic, RefusesToDivideIntegersByZero) {
  try {
    binary<int64_t>(functors::DivideFloor{}, {1}, {0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "ZeroDivisionError");
  }
}

TEST(Arithmetic, RaisesIntegersToPowers) {
  EXPECT_EQ(binary<int64_t>(functors::Power{}, {2, -3, 2, 1, -1, 0}, {10, 3, -1, -5, -3, 0}),
            (std::vector<int64_t>{1024, -27, 0, 1, -1, 1}));
}

TEST(Arithmetic, DividesLargeComplexNumbersWithoutOverflow) {
  using C = std::complex<float>;
  C quotient = binary<C>(functors::Divide{}, {C(1e30f, 1e30f)}, {C(1e30f, -1e30f)})[0];
  EXPECT_NEAR(quotient.real(), 0, 1e-6);
  EXPECT_NEAR(quotient.imag(), 1, 1e-6);
}

TEST(Comparison, YieldsBoolsAndChoosesByThem) {
  Tensor a = row_of<float>({1, 2, kNan}), b = row_of<float>({2, 1, 0}), mask = empty_tensor({3}, DType::Bool);
  pointwise(functors::Less{}, mask, {&a, &b});
  EXPECT_EQ(values_of<int32_t>(mask), (std::vector<int32_t>{1, 0, 0}));
  Tensor out = empty_tensor({3}, DType::Float32);
  pointwise(functors::Where{}, out, {&mask, &a, &b});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{1, 1, 0}));
  pointwise(functors::MaskedFill{.value = 9}, out, {&b, &mask});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{9, 1, 0}));
}

TEST(Rounding, TakesHalvesToTheEvenNumber) {
  EXPECT_EQ(unary<float>(functors::Round{}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f}), (std::vector<float>{0, 2, 2, 0, -2}));
}

TEST(Activations, KeepTheirLimits) {
  EXPECT_EQ(unary<float>(functors::Gelu{}, {0, 100, -100}), (std::vector<float>{0, 100, 0}));
  EXPECT_EQ(unary<float>(functors::Softplus{.beta = 1, .threshold = 20}, {1000})[0], 1000);
  EXPECT_EQ(unary<float>(functors::Relu{}, {-1, 2}), (std::vector<float>{0, 2}));
  EXPECT_EQ(unary<double>(functors::LeakyRelu{.slope = 0.5}, {-2, 2}), (std::vector<double>{-1, 2}));
}

/// A backward functor against differences of the forward one.
template <class Forward, class Backward> void check_slope(const Forward& forward, const Backward& backward) {
  std::vector<double> x, up, down, ones;
  for (double at = -3.05; at < 3; at += 0.3) {
    x.push_back(at);
    up.push_back(at + 1e-6);
    down.push_back(at - 1e-6);
    ones.push_back(1);
  }
  std::vector<double> high = unary(forward, up), low = unary(forward, down), slope = binary(backward, ones, x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope[i], (high[i] - low[i]) / 2e-6, 1e-7) << x[i];
}

TEST(Activations, BackwardIsTheDerivative) {
  check_slope(functors::Gelu{}, functors::GeluBackward{});
  check_slope(functors::GeluTanh{}, functors::GeluTanhBackward{});
  check_slope(functors::Silu{}, functors::SiluBackward{});
  check_slope(functors::Elu{.alpha = 1.5, .scale = 2, .input_scale = 0.7},
              functors::EluBackward{.alpha = 1.5, .scale = 2, .input_scale = 0.7});
  check_slope(functors::Softplus{.beta = 2, .threshold = 20}, functors::SoftplusBackward{.beta = 2, .threshold = 20});
  check_slope(functors::Clamp{.low = -1, .high = 1}, functors::HardtanhBackward{.low = -1, .high = 1});
}

template <class T> void check_erfinv(double error) {
  std::vector<T> y = {0,      T(-0.0), T(1e-20), T(0.3),      T(-0.5),
                      T(0.7), T(0.9),  T(-0.99), T(0.999999), T(1) - std::numeric_limits<T>::epsilon()};
  for (int i = 1; i < 400; ++i) y.push_back(T(i) / T(200) - T(1));
  std::vector<T> x = unary(functors::Erfinv{}, y);
  for (size_t i = 0; i < y.size(); ++i) {
    double wanted = special::erfinv(y[i]);
    EXPECT_NEAR(x[i], wanted, error * std::abs(wanted)) << y[i];
  }
  EXPECT_TRUE(std::signbit(x[1]));
  std::vector<T> ends = unary(functors::Erfinv{}, std::vector<T>{1, -1, T(1.5), std::numeric_limits<T>::quiet_NaN()});
  EXPECT_EQ(ends[0], std::numeric_limits<T>::infinity());
  EXPECT_EQ(ends[1], -std::numeric_limits<T>::infinity());
  EXPECT_TRUE(std::isnan(ends[2]) && std::isnan(ends[3]));
}
TEST(Pointwise, ErfinvIsGoodToAFewDigitsOfTheLastPlace) {
  check_erfinv<float>(4e-7);
  check_erfinv<double>(1e-15);
}

TEST(Pointwise, GeluFollowsTheNormalDistributionIntoItsTails) {
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(0.01f * static_cast<float>(i));
  std::vector<float> y = unary(functors::Gelu{}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    double wanted = 0.5 * x[i] * std::erfc(-x[i] * M_SQRT1_2);
    EXPECT_NEAR(y[i], wanted, 2e-7 * std::max(1.0, std::abs(wanted))) << x[i];
  }
  std::vector<float> ends =
      unary(functors::Gelu{}, std::vector<float>{kInfinity, -kInfinity, kNan, -1e30f, 1e30f, -0.0f});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(ends[i]));
  EXPECT_EQ(ends[3], 0.0f);
  EXPECT_EQ(ends[4], 1e30f);
  EXPECT_TRUE(std::signbit(ends[5]));
}

TEST(Pointwise, ANumberForEachRowOnEitherSide) {
  constexpr int64_t rows = 3, columns = 21;
  Tensor whole = counting({rows, columns}), column = counting({rows, 1}, 100), out = empty_tensor({rows, columns});
  auto difference = [&](const Tensor& a, const Tensor& b) {
    pointwise(functors::Subtract{}, out, {&a, &b});
    return values(out);
  };
  std::vector<float> after = difference(whole, column), before = difference(column, whole);
  for (int64_t i = 0; i < rows * columns; ++i) {
    EXPECT_EQ(after[i], static_cast<float>(i) - 100.0f * static_cast<float>(i / columns));
    EXPECT_EQ(before[i], -after[i]);
  }
}

}  // namespace
}  // namespace umbra::kernels
