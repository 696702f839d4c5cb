// Running sums, products and extremes along one dimension.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

void cumsum(const Tensor& out, const Tensor& self, int64_t dim);
void cumprod(const Tensor& out, const Tensor& self, int64_t dim);
/// The extreme so far and where it was; of equals the last, and NaN from where it first is.
void cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim);
void cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim);
void logcumsumexp(const Tensor& out, const Tensor& self, int64_t dim);

}  // namespace umbra::kernels
