// The backward pass that runs on this thread, seen from what it calls.
#pragma once

#include <functional>

#include "umbra/autograd/node.h"

namespace UMBRA_API umbra {
namespace autograd {

/// The node whose gradient is being computed, or null.
const Node* running_node();
/// The number that the next node gets.
uint64_t upcoming_sequence_number();
/// Tells one backward pass from another; 0 outside of all.
uint64_t backward_pass();
/// Whether the backward pass of this thread comes to a node.
bool will_run(const Node* node);
/// Calls a function when the backward pass of this thread has ended and all gradients are in place.
void after_backward(std::function<void()> function);

}  // namespace autograd
}  // namespace umbra
