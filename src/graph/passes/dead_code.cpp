#include <algorithm>
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

namespace {
/// Whether a node has effects, or calls a graph (a branch of a cond) in which one has.
bool has_effects(const GraphModule& module, const Node& node) {
  if (node.is_impure()) return true;
  if (!node.target().function()) return false;
  for (const Node* input : node.inputs()) {
    if (input->op() != Op::GetAttr) continue;
    const Value* value = module.find(input->target().name());
    auto* called = value && value->is_object() ? dynamic_cast<const GraphModule*>(value->object()) : nullptr;
    if (!called) continue;
    for (const Node* inner : called->graph().nodes())
      if (inner->op() != Op::Placeholder && inner->op() != Op::Output && has_effects(*called, *inner)) return true;
  }
  return false;
}
}  // namespace

bool eliminate_dead_code(GraphModule& module, const std::function<bool(const Node&)>& is_impure) {
  auto stays = [&](const Node& node) { return is_impure ? is_impure(node) : has_effects(module, node); };
  bool changed = eliminate_dead_code(module.graph(), stays);
  std::unordered_set<std::string_view> wanted;
  for (Node* node : module.graph().nodes())
    if (node->op() == Op::GetAttr) wanted.insert(node->target().name());
  for (auto& [path, submodule] : module.submodules())
    if (wanted.contains(path)) changed |= eliminate_dead_code(*submodule, is_impure);
  return changed;
}

void remove_unused_submodules(GraphModule& module) {
  std::unordered_set<std::string_view> wanted;
  for (Node* node : module.graph().nodes())
    if (node->op() == Op::GetAttr || node->op() == Op::CallModule) wanted.insert(node->target().name());
  for (auto& [path, submodule] : module.submodules()) {
    auto leads_to = [&](std::string_view target) { return target == path || target.starts_with(path + "."); };
    if (std::ranges::none_of(wanted, leads_to)) module.remove(path);
  }
}

}  // namespace umbra::fx
