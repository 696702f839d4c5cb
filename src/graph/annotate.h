// Errors that name the node they came from.
#pragma once

#include <utility>

#include "umbra/graph/node.h"

namespace umbra::fx {

/// Throws the error in flight again, as the same type, with the node and the user's source line added to its text.
/// What is no error of ours (an exception of a user's callback) goes on as it is.
[[noreturn]] void rethrow_annotated(const Node& node, const std::string& detail);

/// `explain` gives what else can be said of the error; it is asked when there is one.
template <class F, class Explain> void annotate_errors(const Node& node, F&& f, Explain&& explain) {
  try {
    f();
  } catch (...) {
    rethrow_annotated(node, explain());
  }
}
template <class F> void annotate_errors(const Node& node, F&& f) {
  annotate_errors(node, f, [] { return std::string(); });
}

}  // namespace umbra::fx
