// Gradients of one value among many: the median, the largest, the smallest.
#pragma once

#include "umbra/generated/functions.h"

namespace umbra::ops {

/// A gradient that goes to all elements which are the result, in equal parts; nans are alike here.
inline Tensor share_evenly(const Tensor& grad, const Tensor& self, const Tensor& result) {
  Tensor both_nan = self.isnan().logical_and(result.isnan());
  Tensor chosen = self.eq(result).logical_or_(both_nan);
  return chosen.mul(grad.div(chosen.sum()));
}

}  // namespace umbra::ops
