#include "umbra/graph/passes.h"

namespace umbra::fx {

namespace {

/// Nodes, by id, that the outputs need and the inputs do not give.
std::vector<bool> needed_nodes(const Graph& graph, ArrayRef<Node*> inputs, const Arguments& outputs) {
  std::vector<bool> given(graph.id_bound()), needed(graph.id_bound());
  for (Node* input : inputs) given[input->id()] = true;
  std::vector<Node*> pending;
  auto need = [&](Node* node) {
    check(&node->graph() == &graph, "node '", node->name(), "' belongs to another graph");
    if (needed[node->id()] || given[node->id()]) return;
    needed[node->id()] = true;
    pending.push_back(node);
  };
  for (const Argument& output : outputs) output.each_node(need);
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    check(node->op() != Op::Placeholder, "the subgraph needs the input '", node->name(),
          "', which is not among its inputs");
    for (Node* input : node->inputs()) need(input);
  }
  return needed;
}

}  // namespace

IntrusivePtr<Graph> extract_subgraph(const Graph& graph, ArrayRef<Node*> inputs, const Arguments& outputs,
                                     NodeMap* map) {
  NodeMap own;
  NodeMap& nodes = map ? *map : own;
  std::vector<bool> needed = needed_nodes(graph, inputs, outputs);
  auto result = make_counted<Graph>();
  for (Node* input : inputs) {
    check(!nodes.contains(input), "node '", input->name(), "' is given twice as an input of the subgraph");
    Node* placeholder = result->create_node(Op::Placeholder, input->name(), {}, {}, input->name());
    placeholder->meta = input->meta;
    nodes[input] = placeholder;
  }
  auto mapped = [&](Node* node) { return Argument(nodes.at(node)); };
  for (Node* node : graph.nodes())
    if (needed[node->id()]) nodes[node] = result->copy_node(*node, mapped);
  Arguments results;
  for (const Argument& output : outputs) results.push_back(output.map_nodes(mapped));
  result->output(Argument::tuple(std::move(results)));
  for (const auto& object : graph.kept_alive()) result->keep_alive(object);
  return result;
}

}  // namespace umbra::fx
