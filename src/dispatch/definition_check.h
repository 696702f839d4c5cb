// Whether the functions of a definition fit the operator's schema.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra {

/// A TypeError that names the operator and what does not fit. A function written over frames, which has no signature,
/// is taken as it is.
void check_slot(const Operator& op, Slot slot, const FunctionSignature* function);
void check_gradient(const Operator& op, const Gradient& gradient);
/// Of the function that makes a pointwise operator's functor of the arguments behind its inputs.
void check_functor(const Operator& op, size_t inputs, const FunctionSignature& function);

}  // namespace umbra
