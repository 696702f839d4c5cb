// Reductions of sparse tensors; the definitions of reduce/ and linalg/ name these functions.
#pragma once

#include "umbra/core/sparse.h"

namespace umbra::ops::sparse {

/// The sum of all elements.
Tensor sum(const Tensor& self, std::optional<DType> dtype);
/// Over some dimensions; strided where no sparse dimension is left.
Tensor sum_over(const Tensor& self, std::vector<int64_t> dims, bool keepdim, std::optional<DType> dtype);
/// The norm of all elements of a COO tensor.
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, const std::vector<int64_t>& dims, bool keepdim,
            std::optional<DType> dtype);
/// Whether any element is there that is not zero.
Tensor any(const Tensor& self);

}  // namespace umbra::ops::sparse
