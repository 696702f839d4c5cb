// Elements in order along one dimension. NaN counts as the largest number.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The first elements of the sorted order, as many as `values` has along the dimension, and where they were. Equal
/// elements keep their order.
void sort(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending);
/// The largest or least elements, as many as `values` has along the dimension, and where they were: those of equal
/// ones, and in that order, that PyTorch takes.
void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool largest, bool sorted);
/// The bytes that `sort` takes while it runs, for the first `wanted` elements; the tensor needs no data.
int64_t sort_workspace(const Tensor& self, int64_t dim, int64_t wanted);
/// The same of `topk`.
int64_t topk_workspace(const Tensor& self, int64_t dim, int64_t wanted, bool sorted);

}  // namespace umbra::kernels
