// Backward operators that are given a tensor for its sizes alone.
#pragma once

#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

/// For `use`: `self` has no influence on the values, so its gradient is zero.
struct SizesOnly {
  void operator()(OperatorBuilder& builder) const {
    builder.gradient("self", {"grad", "self.sym_sizes"},
                     [](const Tensor& grad, SymIntArrayRef sizes) { return grad.new_zeros(sizes); });
  }
};

}  // namespace umbra::ops
