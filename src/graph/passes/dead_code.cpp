#include <unordered_set>

#include "umbra/graph/passes.h"

namespace umbra::fx {

bool eliminate_dead_code(Graph& graph, const std::function<bool(const Node&)>& is_impure) {
  bool changed = false;
  // From the back, so that what only dead nodes used is dead by the time it is met.
  for (Node* node : graph.reversed()) {
    if (!node->users().empty() || (is_impure ? is_impure(*node) : node->is_impure())) continue;
    graph.erase_node(node);
    changed = true;
  }
  return changed;
}

bool eliminate_dead_code(GraphModule& module, const std::function<bool(const Node&)>& is_impure) {
  bool changed = eliminate_dead_code(module.graph(), is_impure);
  std::unordered_set<std::string_view> wanted;
  for (Node* node : module.graph().nodes())
    if (node->op() == Op::GetAttr) wanted.insert(node->target().name());
  for (auto& [path, submodule] : module.submodules())
    if (wanted.contains(path)) changed |= eliminate_dead_code(*submodule, is_impure);
  return changed;
}

}  // namespace umbra::fx
