// The layer itself: what happens to an operator call on tensors that autograd has to see.
#pragma once

#include "autograd/meta.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::autograd {

/// Runs the operator below autograd, recording its history where an argument requires gradients.
void run_recorded(const Operator& op, DispatchKeySet keys, Value* frame);

/// Forward mode: runs the operator and gives its outputs the tangents that follow from those of its arguments.
void run_with_tangents(const Operator& op, DispatchKeySet keys, Value* frame);
/// The number of dual levels that count on this thread; 0: none.
int active_forward_level();
/// The tensor's tangent at the highest level that counts, or null.
const Tangent* top_tangent(const TensorImpl* t);

}  // namespace umbra::autograd
