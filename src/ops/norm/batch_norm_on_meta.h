// Batch normalisation where a tensor is on the meta device.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Where a tensor is on the meta device the operator, forward or backward, is described by its parts, each of which
/// refuses what does not fit it; sizes are not compared beforehand.
struct BatchNormOnMeta {
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
