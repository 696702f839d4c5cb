// What PyTorch's guards of a program's inputs compute where the program is captured again: its nodes are numbered with
// theirs.
#pragma once

#include <string>
#include <vector>

#include "umbra/graph/graph.h"

namespace UMBRA_API umbra {

struct GuardCalls {
  struct Size {
    size_t input;  // of the user's
    int64_t dimension;
    bool operator==(const Size&) const = default;
  };
  std::vector<Size> sizes;             // that they read
  std::vector<std::string> operators;  // by the names of their nodes: "ge"
};

/// Takes the names of those calls in a graph. Sizes are read, for the reads are counted; nothing uses them. An input is
/// null where the graph has no node for it.
void take_names(const GuardCalls& calls, fx::Graph& graph, ArrayRef<fx::Node*> inputs);

}  // namespace umbra
