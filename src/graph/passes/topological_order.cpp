#include "umbra/graph/passes.h"

namespace umbra::fx {

namespace {

enum class State : uint8_t { Waiting, Entered, Placed };

/// Places what a node uses before it, then the node. An explicit stack: a long chain in reverse order would exhaust the
/// program's.
void place(Node* start, std::vector<State>& states) {
  std::vector<std::pair<Node*, size_t>> stack = {{start, 0}};
  states[start->id()] = State::Entered;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == node->inputs().size()) {
      states[node->id()] = State::Placed;
      if (node != start) node->move_before(start);
      stack.pop_back();
      continue;
    }
    Node* input = node->inputs()[next++];
    check(states[input->id()] != State::Entered, "nodes '", input->name(), "' and '", node->name(),
          "' use each other in a circle");
    if (states[input->id()] == State::Placed) continue;
    states[input->id()] = State::Entered;
    stack.emplace_back(input, 0);
  }
}

}  // namespace

void sort_topologically(Graph& graph) {
  std::vector<State> states(graph.id_bound(), State::Waiting);
  std::vector<Node*> order;
  for (Node* node : graph.nodes()) order.push_back(node);
  for (Node* node : order)
    if (states[node->id()] == State::Waiting) place(node, states);
}

}  // namespace umbra::fx
