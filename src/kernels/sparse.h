// Products with matrices of which only some elements are there.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out[i] += value * dense[j] for each element, where `indices` has i in its first row and j in its second. `out` is
/// contiguous and of the type of the others.
void add_sparse_product(const Tensor& out, const Tensor& indices, const Tensor& values, const Tensor& dense);

}  // namespace umbra::kernels
