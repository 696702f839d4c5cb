// Special functions of plain numbers, in double: gamma and its relatives, error functions, Bessel and Airy functions.
//
// Where a function has no value they give NaN, at poles infinity: nothing is thrown.
#pragma once

namespace umbra::kernels::special {

// ---- gamma functions ----

double digamma(double x);
/// The derivatives of digamma: n = 1 is its slope.
double polygamma(double n, double x);
float polygamma(double n, float x);
/// Hurwitz's zeta function: the sum of (q + k)^-x over k = 0, 1, ...
double zeta(double x, double q);
/// The regularised incomplete gamma functions, from below and from above.
double lower_gamma(double a, double x);
double upper_gamma(double a, double x);

// ---- error functions ----

double erfinv(double y);
/// The inverse of the normal distribution.
double ndtri(double p);

// ---- Bessel and Airy functions ----

double bessel_i0(double x);
double airy_ai(double x);

}  // namespace umbra::kernels::special
