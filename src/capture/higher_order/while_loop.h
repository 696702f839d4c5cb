// The gradient of while_loop.
#pragma once

#include "umbra/capture/higher_order.h"

namespace umbra {

/// What the way back calls: the loop's functions, and the gradient of a step, which takes a step's inputs and then the
/// gradients of what the step gives, and gives those of what it takes, carried values first.
struct LoopFunctions {
  ValueFunction condition, body, step_gradient;
};

/// Goes from the last step to the first. Gives the gradients of what is carried into the loop, and of those of the
/// additional values that have one.
std::vector<Value> while_loop_way_back(const LoopFunctions& functions, const std::vector<Value>& carried,
                                       const std::vector<Value>& gradients, const std::vector<Value>& additional);

}  // namespace umbra
