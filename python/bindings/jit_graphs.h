// Nodes, values and blocks of graphs as Python holds them.
#pragma once

#include "jit.h"

namespace umbra::python {

/// A node or value together with the graph that keeps it.
struct NodeRef {
  std::shared_ptr<jit::Graph> graph;
  jit::Node* node;
};
struct VariableRef {
  std::shared_ptr<jit::Graph> graph;
  jit::Variable* variable;
};
struct BlockRef {
  std::shared_ptr<jit::Graph> graph;
  jit::Block* block;
};

}  // namespace umbra::python
