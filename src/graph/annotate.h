// Errors that name the node they came from.
#pragma once

#include <utility>

#include "umbra/graph/node.h"

namespace umbra::fx {

/// Throws the error in flight again, as the same type, with the node and the user's source line added to its text.
/// What is no error of ours (an exception of a user's callback) goes on as it is.
[[noreturn]] void rethrow_annotated(const Node& node);

template <class F> void annotate_errors(const Node& node, F&& f) {
  try {
    f();
  } catch (...) {
    rethrow_annotated(node);
  }
}

}  // namespace umbra::fx
