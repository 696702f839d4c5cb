// The negative log likelihood of classes, and its gradient.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// What becomes of the losses of single samples; the numbers are PyTorch's.
enum class Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

/// Scores are [classes], [batch, classes] or [batch, classes, spatial...]; targets the same without the classes.
/// `weight` (undefined: none) weighs classes, targets of `ignore_index` count for nothing. total_weight is a scalar:
/// what a mean is divided by.
void nll_loss(const Tensor& out, const Tensor& total_weight, const Tensor& self, const Tensor& target,
              const Tensor& weight, Reduction reduction, int64_t ignore_index);
void nll_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                       Reduction reduction, int64_t ignore_index, const Tensor& total_weight);

}  // namespace umbra::kernels
