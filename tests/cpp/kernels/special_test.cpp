#include "kernels/special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace umbra::kernels::special {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kEuler = 0.57721566490153286;

TEST(Special, GammaFunctionsAtPointsThatAreKnown) {
  EXPECT_DOUBLE_EQ(digamma(1), -kEuler);
  EXPECT_NEAR(digamma(0.5), -kEuler - 2 * M_LN2, 1e-14);
  EXPECT_NEAR(polygamma(1, 1.0), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(zeta(2, 1), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(zeta(3, 0.25) - zeta(3, 1.25), 64, 1e-12);
  EXPECT_NEAR(lower_gamma(1, 2) + std::exp(-2), 1, 1e-15);
  EXPECT_NEAR(upper_gamma(0.5, 4), std::erfc(2), 1e-15);
}

TEST(Special, PolesAndEndsHaveValues) {
  EXPECT_EQ(digamma(0.0), -kInfinity);
  EXPECT_EQ(digamma(-0.0), kInfinity);
  EXPECT_TRUE(std::isnan(digamma(-2)));
  EXPECT_EQ(zeta(1, 2), kInfinity);
  EXPECT_TRUE(std::isnan(zeta(0.5, 2)));
  EXPECT_EQ(lower_gamma(3, 0), 0);
  EXPECT_EQ(upper_gamma(0, 3), 0);
  EXPECT_TRUE(std::isnan(lower_gamma(-1, 3)));
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
  EXPECT_NEAR(bessel_i0e(599.999) / bessel_i0e(600.001), std::sqrt(600.001 / 599.999), 1e-9);
  EXPECT_NEAR(bessel_k1e(599.999) / bessel_k1e(600.001), std::sqrt(600.001 / 599.999), 1e-8);
  EXPECT_NEAR(airy_ai(0.00099) - airy_ai(0.00101), 0.2588194 * 2e-5, 1e-11);
}

TEST(Special, BesselFunctionsSatisfyTheirWronskians) {
  for (double x : {0.1, 1.0, 4.9, 50.0, 1000.0}) {
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

}  // namespace
}  // namespace umbra::kernels::special
