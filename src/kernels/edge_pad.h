// Padding of the last dimensions by elements from the tensor's own edges.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

enum class Edge { Reflect, Replicate };

/// `before` has the padding ahead of each of the last dimensions, in their order; negative numbers cut off.
void edge_pad(const Tensor& out, const Tensor& self, Edge edge, IntArrayRef before);
/// Adds each gradient to that of the element it came from.
void edge_pad_backward(const Tensor& grad_input, const Tensor& grad_output, Edge edge, IntArrayRef before);

}  // namespace umbra::kernels
