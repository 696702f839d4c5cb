// Factorisations and solvers over stacks of matrices, by LAPACK. Inputs have any strides, and are broadcast over the
// batch sizes of the output; outputs are column-major (each matrix column after column) unless something else is said.
// `info` has LAPACK's answer for each matrix: 0, or where the routine met something it could not go on with.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// LU with row exchanges. `pivots` (int32) counts rows from 1, as LAPACK does.
void lu_factor(const Tensor& lu, const Tensor& pivots, const Tensor& info, const Tensor& a);
/// The solution of A X = B (or X A = B, and then `out` is row-major) from A's LU; of A's adjoint with `adjoint`.
void lu_solve(const Tensor& out, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint);
/// P, L and U from the packed form; those that are not wanted are undefined. They are row-major.
void lu_unpack(const Tensor& p, const Tensor& l, const Tensor& u, const Tensor& lu, const Tensor& pivots);
/// What LU says of the determinant: the product of U's diagonal with the sign of the row exchanges, or its sign
/// (of absolute value 1) and the logarithm of its absolute value.
void determinant(const Tensor& out, const Tensor& lu, const Tensor& pivots);
void log_determinant(const Tensor& sign, const Tensor& logarithm, const Tensor& lu, const Tensor& pivots);

/// L with L L^H = A from A's lower triangle, or U with U^H U = A from its upper; zero on the other side.
void cholesky(const Tensor& out, const Tensor& info, const Tensor& a, bool upper);
void cholesky_solve(const Tensor& out, const Tensor& b, const Tensor& factor, bool upper);
void cholesky_inverse(const Tensor& out, const Tensor& info, const Tensor& factor, bool upper);

/// How a triangular matrix enters an equation.
enum class Form { Plain, Transposed, Adjoint };
/// The solution of op(A) X = B, or X op(A) = B, with A triangular.
void triangular_solve(const Tensor& out, const Tensor& a, const Tensor& b, bool upper, bool left, Form form,
                      bool unit_diagonal);

/// A = L D L^H (or L^T) with symmetric exchanges.
void ldl_factor(const Tensor& ld, const Tensor& pivots, const Tensor& info, const Tensor& a, bool hermitian);
void ldl_solve(const Tensor& out, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian);

/// Householder reflectors below the diagonal, R on and above it.
void geqrf(const Tensor& out, const Tensor& tau, const Tensor& a);
/// The product of the reflectors, as many columns as `out` has.
void householder_product(const Tensor& out, const Tensor& reflectors, const Tensor& tau);
/// Q other, other Q, or with Q's adjoint.
void ormqr(const Tensor& out, const Tensor& reflectors, const Tensor& tau, const Tensor& other, bool left,
           bool adjoint);

/// Eigenvalues of Hermitian matrices in rising order; vectors where they are wanted.
void eigh(const Tensor& values, const Tensor& vectors, const Tensor& info, const Tensor& a, bool upper);
/// Eigenvalues of any matrix, and vectors of length 1 where they are wanted; both complex.
void eig(const Tensor& values, const Tensor& vectors, const Tensor& info, const Tensor& a);
/// Singular values in falling order; U and V^H where they are wanted, as wide as the outputs are.
void svd(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& info, const Tensor& a);

enum class LeastSquaresDriver { Gels, Gelsy, Gelsd, Gelss };
/// Least squares solutions in the first rows of `b`, which has max(m, n) rows and is overwritten. `rank` (int64) and
/// `singular_values` are filled by the drivers that find them; they may be undefined for others.
void least_squares(const Tensor& b, const Tensor& rank, const Tensor& singular_values, const Tensor& info,
                   const Tensor& a, double rcond, LeastSquaresDriver driver);

}  // namespace umbra::kernels
