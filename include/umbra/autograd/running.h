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

/// Whether the pass that is running leads to chosen inputs, not to all leaves.
bool backward_to_inputs();
/// Told, while anomaly detection is on, of nodes as they are recorded and of one that fails.
struct NodeWatch {
  void (*recorded)(Node& node) = nullptr;
  void (*failed)(Node& node) = nullptr;
};
void set_node_watch(NodeWatch watch);
/// Called where a node becomes the history of a tensor.
void note_recorded(Node& node);

}  // namespace autograd
}  // namespace umbra
