// The layer itself: what happens to an operator call on tensors that autograd has to see.
#pragma once

#include "umbra/dispatch/dispatcher.h"

namespace umbra::autograd {

/// Runs the operator: with tangents where arguments have some at a visible level, recording its history where gradients
/// are required, and below autograd in the end. `keys` are those below autograd.
void run_operator(const Operator& op, DispatchKeySet keys, Value* frame);

/// Forward mode: runs the operator and gives its outputs the tangents that follow from those of its arguments.
void run_with_tangents(const Operator& op, DispatchKeySet keys, Value* frame);

}  // namespace umbra::autograd
