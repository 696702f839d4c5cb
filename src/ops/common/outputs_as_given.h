// Out variants of operators whose results have a size that only data can tell.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Without data there is no telling what an output would be resized to: it is taken to have its size already. Stands
/// behind the variants: `.out("x.out").use(OutputsAsGiven{})`.
struct OutputsAsGiven {
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
