// The gradient of operators that pick an element along a dimension: max, median, kthvalue, mode.
#pragma once

#include "umbra/generated/functions.h"

namespace umbra::ops {

/// The gradient of an element that was picked goes to where it was.
inline Tensor scatter_back(const Tensor& grad, int64_t dim, const Tensor& indices, SymIntArrayRef sizes, bool keepdim) {
  return value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim);
}

}  // namespace umbra::ops
