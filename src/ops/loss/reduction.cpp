#include "ops/loss/reduction.h"

#include "umbra/generated/functions.h"

namespace umbra::ops {

Tensor reduce_loss(const Tensor& loss, int64_t reduction) {
  return reduction == kReduceMean ? loss.mean() : reduction == kReduceSum ? loss.sum() : loss;
}

Tensor in_type_of(const Tensor& input, const Tensor& gradient) {
  check(can_cast(gradient.dtype(), input.dtype()), "result type ", kernel_name(gradient.dtype()),
        " can't be cast to the desired output type ", kernel_name(input.dtype()));
  return gradient.to(input.dtype());
}

Tensor share_of_mean(const Tensor& gradient, const Tensor& of, int64_t reduction) {
  return reduction == kReduceMean ? gradient.div(Scalar(of.sym_numel())) : gradient;
}

}  // namespace umbra::ops
