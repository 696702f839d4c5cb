// What the negative log likelihoods of rows and of images share.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// The backward pass: its kernel, and its derivative, which is the loss of what comes back.
struct NllBackward {
  Tensor (*loss)(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                 SymInt ignore_index);
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
