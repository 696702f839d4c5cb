// Other names of operators: `greater` is `gt`, `arcsin` is `asin`, in place and with out as well.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Makes an operator (and the variants declared before) another name of `target`:
///     UMBRA_OPERATOR("greater.Scalar(Tensor self, Scalar other) ->
///     Tensor").inplace("greater_.Scalar").out("greater.Scalar_out").use(AliasOf{"gt.Scalar"});
struct AliasOf {
  const char* target;
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
