// Softmax and its relatives over one dimension.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

void softmax(const Tensor& out, const Tensor& self, int64_t dim);
void log_softmax(const Tensor& out, const Tensor& self, int64_t dim);
/// From the incoming gradient and the forward's result.
void softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& result, int64_t dim);
void log_softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& result, int64_t dim);

}  // namespace umbra::kernels
