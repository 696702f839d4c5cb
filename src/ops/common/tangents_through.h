// Forward mode of operators that have no derivative of their own, such as the fused backward passes: where an input has
// a tangent, the same is computed by operators that have one.
#pragma once

#include <utility>

#include "umbra/dispatch/define.h"

namespace umbra::ops {

void set_tangent_form(const Operator& op, BoxedFunction function);
/// What forward mode runs in place of the operator (its arguments to its results), or null.
const BoxedFunction* tangent_form(const Operator& op);

/// Part of a definition; `f` takes the operator's arguments and gives its results:
///     UMBRA_OPERATOR("native_layer_norm_backward(...) -> (Tensor, Tensor,
///     Tensor)").meta(...).cpu<3>(...).use(tangents_through(by_parts));
template <class F> auto tangents_through(F f) {
  return
      [boxed = boxing::box_function(std::move(f))](OperatorBuilder& builder) { set_tangent_form(builder.op(), boxed); };
}

}  // namespace umbra::ops
