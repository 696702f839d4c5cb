#include "kernels/special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernel_tensors.h"
#include "kernels/functors/exp_log.h"
#include "kernels/functors/special.h"
#include "kernels/run_functor.h"

namespace umbra::kernels::special {
namespace {

#define UMBRA_OF_DOUBLE(name, function) \
  double name(double x) { return functors::function(x, x); }
UMBRA_OF_DOUBLE(bessel_j0, bessel::j0)
UMBRA_OF_DOUBLE(bessel_j1, bessel::j1)
UMBRA_OF_DOUBLE(bessel_y0, bessel::y0)
UMBRA_OF_DOUBLE(bessel_y1, bessel::y1)
UMBRA_OF_DOUBLE(bessel_i0e, bessel::i0e)
UMBRA_OF_DOUBLE(bessel_i1e, bessel::i1e)
UMBRA_OF_DOUBLE(bessel_k0, bessel::k0)
UMBRA_OF_DOUBLE(bessel_k0e, bessel::k0e)
UMBRA_OF_DOUBLE(bessel_k1e, bessel::k1e)
UMBRA_OF_DOUBLE(erfcx, error_function::erfcx)
UMBRA_OF_DOUBLE(log_ndtr, error_function::log_ndtr)
UMBRA_OF_DOUBLE(ndtri, error_function::ndtri)
#undef UMBRA_OF_DOUBLE

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kEuler = 0.57721566490153286;

TEST(Special, GammaFunctionsAtPointsThatAreKnown) {
  EXPECT_DOUBLE_EQ(digamma(1), -kEuler);
  EXPECT_NEAR(digamma(0.5), -kEuler - 2 * M_LN2, 1e-14);
  EXPECT_NEAR(polygamma(1, 1.0), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(zeta(2, 1), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(zeta(3, 0.25) - zeta(3, 1.25), 64, 1e-12);
  EXPECT_NEAR(lower_gamma(1.0, 2.0) + std::exp(-2), 1, 1e-15);
  EXPECT_NEAR(upper_gamma(0.5, 4.0), std::erfc(2), 1e-15);
}

TEST(Special, PolesAndEndsHaveValues) {
  EXPECT_EQ(digamma(0.0), -kInfinity);
  EXPECT_EQ(digamma(-0.0), kInfinity);
  EXPECT_TRUE(std::isnan(digamma(-2)));
  EXPECT_EQ(zeta(1, 2), kInfinity);
  EXPECT_TRUE(std::isnan(zeta(0.5, 2)));
  EXPECT_EQ(lower_gamma(3.0, 0.0), 0);
  EXPECT_EQ(upper_gamma(0.0, 3.0), 0);
  EXPECT_TRUE(std::isnan(lower_gamma(-1.0, 3.0)));
  // At the ends one argument decides, though the other be no number.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(lower_gamma(kInfinity, nan), 0);
  EXPECT_EQ(lower_gamma(nan, kInfinity), 1);
  EXPECT_EQ(upper_gamma(kInfinity, nan), 1);
  EXPECT_EQ(upper_gamma(nan, kInfinity), 0);
  EXPECT_EQ(lower_gamma(nan, 0.0), 0);
  EXPECT_TRUE(std::isnan(upper_gamma(nan, 2.0)));
  EXPECT_EQ(upper_gamma(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(erfinv(1), kInfinity);
  EXPECT_TRUE(std::isnan(ndtri(1.5)));
  EXPECT_EQ(bessel_y0(0), -kInfinity);
  EXPECT_TRUE(std::isnan(bessel_k0(-1)));
}

TEST(Special, InversesUndoTheirFunctions) {
  for (double x : {-0.999, -0.3, 0.0, 1e-9, 0.7, 0.99999}) EXPECT_NEAR(std::erf(erfinv(x)), x, 1e-15);
  for (double p : {1e-12, 0.2, 0.5, 0.9}) EXPECT_NEAR(std::exp(log_ndtr(ndtri(p))), p, 1e-13);
}

// Both sides of the places where one formula takes over from another.
TEST(Special, FormulasMeet) {
  EXPECT_NEAR(erfcx(std::nextafter(10, 0)), erfcx(std::nextafter(10, 20)), 1e-15);
  for (auto f : {bessel_i0e, bessel_i1e}) EXPECT_NEAR(f(std::nextafter(8, 0)), f(std::nextafter(8, 9)), 1e-15);
  for (auto f : {bessel_k0e, bessel_k1e}) EXPECT_NEAR(f(std::nextafter(2, 0)), f(std::nextafter(2, 9)), 1e-14);
  EXPECT_NEAR(airy_ai(0.00099) - airy_ai(0.00101), 0.2588194 * 2e-5, 1e-11);
}

TEST(Special, BesselFunctionsSatisfyTheirWronskians) {
  for (double x : {0.1, 1.0, 2.404825557695773, 4.9, 50.0, 1000.0}) {
    EXPECT_NEAR(bessel_j1(x) * bessel_y0(x) - bessel_j0(x) * bessel_y1(x), 2 / (M_PI * x), 1e-13 / x);
    EXPECT_NEAR((bessel_i0e(x) * bessel_k1e(x) + bessel_i1e(x) * bessel_k0e(x)) * x, 1, 1e-13);
  }
}

TEST(Special, LargeArgumentsDoNotOverflowWhereTheFunctionDoesNot) {
  EXPECT_NEAR(bessel_i0e(1e8) * std::sqrt(2 * M_PI * 1e8), 1, 1e-8);
  EXPECT_NEAR(bessel_k0e(1e8) / std::sqrt(M_PI / 2e8), 1, 1e-8);
  EXPECT_NEAR(erfcx(1e10) * 1e10 * std::sqrt(M_PI), 1, 1e-12);
  EXPECT_NEAR(log_ndtr(-1e5) / -5e9, 1, 1e-8);
}

// To a float's precision by short series, in double by Boost.
TEST(Special, IncompleteGammaFunctionsOfFloatsAreThoseOfDoubles) {
  for (float a : {1e-6f, 2e-4f, 0.03f, 0.4f, 1.0f, 2.5f, 7.0f, 60.0f, 199.0f, 300.0f})
    for (float x : {1e-5f, 0.2f, 0.6f, 1.05f, 1.2f, 3.0f, 7.5f, 59.0f, 200.0f, 1000.0f}) {
      double lower = lower_gamma(double{a}, double{x}), upper = upper_gamma(double{a}, double{x});
      EXPECT_NEAR(lower_gamma(a, x), lower, 1e-37 + 1.5e-7 * lower) << a << " " << x;
      EXPECT_NEAR(upper_gamma(a, x), upper, 1e-37 + 1.5e-7 * upper) << a << " " << x;
    }
}

template <class Functor> void expect_registers_like_numbers(double low, double step) {
  constexpr int64_t n = 1003;
  Tensor x = scratch({n}, DType::Float64), y = scratch({n}, DType::Float64);
  Tensor narrow = scratch({n}, DType::Float32), narrow_y = scratch({n}, DType::Float32);
  for (int64_t i = 0; i < n; ++i) x.data<double>()[i] = low + step * static_cast<double>(i);
  copy(narrow, x);
  pointwise(Functor{}, y, {&x});
  pointwise(Functor{}, narrow_y, {&narrow});
  for (int64_t i = 0; i < n; ++i) {
    double number = Functor()(x.data<double>()[i]), of_float = Functor()(double{narrow.data<float>()[i]});
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(y.data<double>()[i]) && std::isnan(narrow_y.data<float>()[i]));
      continue;
    }
    EXPECT_NEAR(y.data<double>()[i], number, 1e-14 * std::max(1.0, std::abs(number))) << Functor::name << " at " << i;
    EXPECT_NEAR(narrow_y.data<float>()[i], of_float, 1e-6 * std::max(1.0, std::abs(of_float))) << Functor::name;
  }
}

TEST(Special, RegistersHaveTheValuesOfNumbers) {
  expect_registers_like_numbers<functors::BesselJ0>(-30, 0.0601);
  expect_registers_like_numbers<functors::BesselJ1>(-30, 0.0601);
  expect_registers_like_numbers<functors::BesselY0>(-3, 0.0601);
  expect_registers_like_numbers<functors::BesselY1>(-3, 0.0601);
  expect_registers_like_numbers<functors::BesselI0e>(-30, 0.0601);
  expect_registers_like_numbers<functors::BesselI1>(-12, 0.0201);
  expect_registers_like_numbers<functors::ModifiedBesselK0>(-3, 0.0301);
  expect_registers_like_numbers<functors::ScaledModifiedBesselK1>(-3, 0.0301);
  expect_registers_like_numbers<functors::SphericalBesselJ0>(-30, 0.06);
  expect_registers_like_numbers<functors::Erfcx>(-3, 0.0301);
  expect_registers_like_numbers<functors::LogNdtr>(-30, 0.0601);
  expect_registers_like_numbers<functors::Erfc>(-6, 0.0121);
}

}  // namespace
}  // namespace umbra::kernels::special
