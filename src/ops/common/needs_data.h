// Operators that PyTorch has no meta kernel for. Fake runs have their metadata all the same.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Tensors of the meta device are refused, before anything is said about the arguments, by the operator and its out
/// variants, or by the variant of that name alone. Stands behind the variants: `.out("x.out").use(NeedsData{})`.
struct NeedsData {
  const char* variant = nullptr;
  void operator()(OperatorBuilder& builder) const;
};

/// The out variant of that name takes no meta tensors: PyTorch's kernel for them has no outputs.
struct NoOutputsOnMeta {
  const char* variant;
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
