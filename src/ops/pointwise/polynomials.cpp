// Orthogonal polynomials: of a tensor of degrees at a tensor of points, each of which may be one number.
#include "kernels/functors/polynomials.h"

#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

using functors::ChebyshevKind, functors::ChebyshevPolynomial, functors::ShiftedChebyshevPolynomial;

/// The three overloads of `special_NAME`, each with its out variant. None has a derivative.
#define UMBRA_POLYNOMIAL(name, ...)                                         \
  UMBRA_OPERATOR("special_" name "(Tensor x, Tensor n) -> Tensor")          \
      .out("special_" name ".out")                                          \
      .use(pointwise<__VA_ARGS__, 2>(Promotion::IntToFloat))                \
      .not_differentiable()                                                 \
      .tags({Tag::Pointwise});                                              \
  UMBRA_OPERATOR("special_" name ".x_scalar(Scalar x, Tensor n) -> Tensor") \
      .out("special_" name ".x_scalar_out")                                 \
      .use(pointwise<__VA_ARGS__, 2>(Promotion::IntToFloat))                \
      .not_differentiable()                                                 \
      .tags({Tag::Pointwise});                                              \
  UMBRA_OPERATOR("special_" name ".n_scalar(Tensor x, Scalar n) -> Tensor") \
      .out("special_" name ".n_scalar_out")                                 \
      .use(pointwise<__VA_ARGS__, 2>(Promotion::IntToFloat))                \
      .not_differentiable()                                                 \
      .tags({Tag::Pointwise})

UMBRA_POLYNOMIAL("chebyshev_polynomial_t", ChebyshevPolynomial<ChebyshevKind::T>);
UMBRA_POLYNOMIAL("chebyshev_polynomial_u", ChebyshevPolynomial<ChebyshevKind::U>);
UMBRA_POLYNOMIAL("chebyshev_polynomial_v", ChebyshevPolynomial<ChebyshevKind::V>);
UMBRA_POLYNOMIAL("chebyshev_polynomial_w", ChebyshevPolynomial<ChebyshevKind::W>);
UMBRA_POLYNOMIAL("shifted_chebyshev_polynomial_t", ShiftedChebyshevPolynomial<ChebyshevKind::T>);
UMBRA_POLYNOMIAL("shifted_chebyshev_polynomial_u", ShiftedChebyshevPolynomial<ChebyshevKind::U>);
UMBRA_POLYNOMIAL("shifted_chebyshev_polynomial_v", ShiftedChebyshevPolynomial<ChebyshevKind::V>);
UMBRA_POLYNOMIAL("shifted_chebyshev_polynomial_w", ShiftedChebyshevPolynomial<ChebyshevKind::W>);
UMBRA_POLYNOMIAL("hermite_polynomial_h", functors::HermiteH);
UMBRA_POLYNOMIAL("hermite_polynomial_he", functors::HermiteHe);
UMBRA_POLYNOMIAL("laguerre_polynomial_l", functors::LaguerreL);
UMBRA_POLYNOMIAL("legendre_polynomial_p", functors::LegendreP);

}  // namespace
}  // namespace umbra::ops
