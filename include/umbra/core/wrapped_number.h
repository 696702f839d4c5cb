// Numbers that stand where an operator takes a Tensor: 0-d tensors with a number's weight in promotion.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

/// The number behind a tensor that wrapped_number() made. A symbolic one is still an expression: capture writes it to
/// the graph.
Scalar wrapped_scalar(const Tensor& tensor);

}  // namespace umbra
