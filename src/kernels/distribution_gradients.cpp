// Approximations by region of the arguments: Taylor series, Rice's saddle point expansion, rational fits. Regions and
// coefficients are PyTorch's, whose values these have to be.
#include "kernels/distribution_gradients.h"

#include <cmath>

#include "kernels/special.h"

namespace umbra::kernels {
namespace {

double zero_for_nan(double value) { return std::isnan(value) ? 0 : value; }
double square(double x) { return x * x; }

/// c0 + c1 x + c2 x² + c3 x³.
double cubic(const double* c, double x) { return c[0] + x * (c[1] + x * (c[2] + x * c[3])); }

// ---- gamma ----

double gamma_small_x(double shape, double x) {
  constexpr int kTerms = 5;
  double power = 1, first = 1 / shape, second = 1 / square(shape);
  for (int i = 1; i <= kTerms; ++i) {
    power *= -x / i;
    first += power / (shape + i);
    second += power / square(shape + i);
  }
  double raised = std::pow(x, shape), cumulated = raised * first;
  double density = std::pow(x, shape - 1) * std::exp(-x);
  double slope = (std::log(x) - special::digamma(shape)) * cumulated - raised * second;
  return zero_for_nan(-slope / density);
}

double gamma_large_shape(double shape, double x) {
  if (0.9f * shape <= x && x <= 1.1f * shape) {
    double first = 1 + 24 * shape * (1 + 12 * shape);
    double second = 1440 * square(shape) + 6 * x * (53 - 120 * x) - 65 * x * x / shape + shape * (107 + 3600 * x);
    return first * second / (1244160 * square(square(shape)));
  }
  double denominator = std::sqrt(8 * shape), near = denominator / (shape - x);
  double far = std::pow(x - shape - shape * std::log(x / shape), -1.5);
  double both = x < shape ? near - far : near + far;
  double term = std::log(x / shape) * both - std::sqrt(2 / shape) * (shape + x) / square(shape - x);
  double stirling = 1 + 1 / (12 * shape) * (1 + 1 / (24 * shape));
  return -stirling * x * term / denominator;
}

double gamma_rational(double shape, double x) {
  constexpr double kCoefficients[3][8] = {
      {0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084},
      {0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623},
      {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367,
       -1.5247877e-07}};
  double u = std::log(x / shape), v = std::log(shape), of_u[8];
  for (int i = 0; i < 8; ++i) of_u[i] = kCoefficients[0][i] + u * (kCoefficients[1][i] + u * kCoefficients[2][i]);
  return std::exp(cubic(of_u, v) / cubic(of_u + 4, v));
}

// ---- beta ----

// In alpha, where x is close to 0.
double beta_small_x(double x, double alpha, double beta) {
  constexpr int kTerms = 10;
  double factor = special::digamma(alpha) - special::digamma(alpha + beta) - std::log(x);
  double power = 1, series = 1 / alpha * (factor + 1 / alpha);
  for (int i = 1; i <= kTerms; ++i) {
    power *= (i - beta) * x / i;
    series += power / (alpha + i) * (factor + 1 / (alpha + i));
  }
  return zero_for_nan(x * std::pow(1 - x, -beta) * series);
}

// In beta, where x is close to 0.
double beta_small_x_other(double x, double alpha, double beta) {
  constexpr int kTerms = 8;
  double factor = special::digamma(alpha + beta) - special::digamma(beta);
  double power = 1, product = 1, slope = 0, series = factor / alpha;
  for (int i = 1; i <= kTerms; ++i) {
    power *= -x / i;
    slope = slope * (beta - i) + product;
    product *= beta - i;
    series += power / (alpha + i) * (slope + factor * product);
  }
  return zero_for_nan(-std::pow(1 - x, 1 - beta) * series);
}

// In alpha, at the mean of large parameters, where the expansion below divides zero by zero.
double beta_at_mean(double x, double alpha, double beta, double total) {
  double b2 = square(beta), rest = 1 - x;
  double polynomial =
      47 * x * square(b2) +
      alpha * ((43 + 20 * (16 + 27 * beta) * x) * b2 * beta +
               alpha * (3 * (59 + 180 * beta - 90 * x) * b2 + alpha * ((453 + 1620 * beta * rest - 455 * x) * beta +
                                                                       alpha * (8 * rest * (135 * beta - 11)))));
  double factor = (1 + 12 * alpha) * (1 + 12 * beta) / square(total);
  return factor / rest * polynomial / (12960 * alpha * alpha * alpha * b2 * (1 + 12 * total));
}

double stirling_factor(double x) { return 1 + 1 / (12 * x) + 1 / (288 * x * x); }

// In alpha, where both parameters are large.
double beta_large(double x, double alpha, double beta) {
  double total = alpha + beta, mean = alpha / total, deviation = std::sqrt(alpha * beta / (total + 1)) / total;
  if (mean - 0.1 * deviation <= x && x <= mean + 0.1 * deviation) return beta_at_mean(x, alpha, beta, total);
  double factor = -x / std::sqrt(2 * alpha * beta / total);
  double stirling = stirling_factor(alpha) * stirling_factor(beta) / stirling_factor(total);
  double distance = alpha * (x - 1) + beta * x;
  double first = (2 * square(alpha) * (x - 1) + alpha * beta * (x - 1) - x * square(beta)) /
                 (std::sqrt(2 * alpha / beta) * std::pow(total, 1.5) * square(distance));
  double second = 0.5 * std::log(alpha / (total * x)), third = std::sqrt(8 * alpha * beta / total) / distance;
  double fourth = std::pow(beta * std::log(beta / (total * (1 - x))) + alpha * std::log(alpha / (total * x)), -1.5);
  return stirling * factor * (first + second * (third + (x < mean ? fourth : -fourth)));
}

// A rational correction to x (digamma(total) - digamma(alpha)) / beta, in the logarithms of all three.
double beta_rational(double x, double alpha, double total) {
  constexpr double kCoefficients[2][3][3][4] = {
      {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
        {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
        {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
       {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
        {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
        {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
       {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
        {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
        {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
      {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
        {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
        {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
       {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
        {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
        {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
       {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
        {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
        {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}}};
  double u = std::log(x), a = std::log(alpha) - u, b = std::log(total) - a, sums[2] = {0, 0};
  const double powers_u[3] = {1, u, u * u}, powers_a[3] = {1, a, a * a};
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) sums[part] += powers_u[i] * powers_a[j] * cubic(kCoefficients[part][i][j], b);
  double plain = x * (special::digamma(total) - special::digamma(alpha)) / (total - alpha);
  return sums[0] / sums[1] * plain;
}

}  // namespace

double standard_gamma_gradient(double shape, double x) {
  if (x < 0.8f) return gamma_small_x(shape, x);
  return shape > 8 ? gamma_large_shape(shape, x) : gamma_rational(shape, x);
}

double dirichlet_gradient(double x, double alpha, double total) {
  double beta = total - alpha, boundary = total * x * (1 - x);
  if (x <= 0.5 && boundary < 2.5) return beta_small_x(x, alpha, beta);
  if (x >= 0.5 && boundary < 0.75) return -beta_small_x_other(1 - x, beta, alpha);
  if (alpha > 6 && beta > 6) return beta_large(x, alpha, beta);
  return beta_rational(x, alpha, total);
}

}  // namespace umbra::kernels
