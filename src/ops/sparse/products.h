// Matrix products with sparse tensors; the definitions of linalg/ name these functions.
#pragma once

#include "umbra/core/sparse.h"

namespace umbra::ops::sparse {

/// Strided where one of the matrices is; of the layout of both otherwise.
Tensor matrix_product(const Tensor& self, const Tensor& mat2);
/// beta * self + alpha * (mat1 @ mat2)
Tensor add_matrix_product(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha);
Tensor matrix_vector_product(const Tensor& self, const Tensor& vec);
/// beta * self + alpha * (mat @ vec)
Tensor add_matrix_vector_product(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                                 const Scalar& alpha);
/// A COO tensor of matrices with a strided one.
Tensor batched_product(const Tensor& self, const Tensor& mat2);

}  // namespace umbra::ops::sparse
