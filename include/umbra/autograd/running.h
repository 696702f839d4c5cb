// The backward pass that runs on this thread, seen from what it calls.
#pragma once

#include "umbra/autograd/node.h"

namespace UMBRA_API umbra {
namespace autograd {

/// The node whose gradient is being computed, or null.
const Node* running_node();

}  // namespace autograd
}  // namespace umbra
