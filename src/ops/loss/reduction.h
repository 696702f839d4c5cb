// What becomes of the losses of single elements.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// PyTorch's numbers.
enum : int64_t { kReduceNone = 0, kReduceMean = 1, kReduceSum = 2 };

/// The losses themselves, their mean or their sum.
Tensor reduce_loss(const Tensor& loss, int64_t reduction);
/// The gradient in the type of the input; an error where that would lose something.
Tensor in_type_of(const Tensor& input, const Tensor& gradient);
/// Divides by how many elements there were, where the loss was a mean.
Tensor share_of_mean(const Tensor& gradient, const Tensor& of, int64_t reduction);

}  // namespace umbra::ops
