// Gradients of one value among many: the median, the largest, the smallest.
#pragma once

#include "ops/common/may_read.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

/// A gradient that goes to all elements which are the result, in equal parts; nans are alike here.
inline Tensor share_evenly(const Tensor& grad, const Tensor& self, const Tensor& result) {
  Tensor both_nan = self.isnan().logical_and(result.isnan());
  Tensor chosen = self.eq(result).logical_or_(both_nan);
  Tensor share = grad.div(chosen.sum());
  // With data nothing reaches the others, not even the nan that a product would give where the gradient is one.
  if (may_read(grad) && may_read(self) && may_read(result)) return zeros_like(self).masked_fill_(chosen, share);
  return chosen.mul(share);
}

}  // namespace umbra::ops
