#include <functional>
#include <unordered_map>

#include "umbra/graph/passes.h"

namespace umbra::fx {

namespace {

void mix(size_t& seed, size_t more) { seed ^= more + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2); }

size_t hash_of(const Value& value) {
  size_t seed = static_cast<size_t>(value.tag());
  switch (value.tag()) {
    case Value::Tag::None: break;
    case Value::Tag::Int:
    case Value::Tag::SymInt: mix(seed, static_cast<size_t>(value.to_sym_int().raw())); break;
    case Value::Tag::Double: mix(seed, std::hash<double>()(value.to_double())); break;
    case Value::Tag::Bool: mix(seed, value.to_bool()); break;
    case Value::Tag::String: mix(seed, std::hash<std::string>()(value.to_string())); break;
    case Value::Tag::Tensor: mix(seed, std::hash<const void*>()(value.tensor_impl())); break;
    case Value::Tag::DType: mix(seed, static_cast<size_t>(value.to_dtype())); break;
    default: break;  // rare as arguments: the comparison tells them apart
  }
  return seed;
}

size_t hash_of(const Argument& argument) {
  if (argument.is_node()) return std::hash<const void*>()(argument.node());
  if (argument.is_value() && !argument.is_sequence()) return hash_of(argument.value());
  size_t seed = argument.kind() == Argument::Kind::Tuple;
  for (const Argument& item : argument.is_sequence() ? argument.elements() : argument.items()) mix(seed, hash_of(item));
  return seed;
}

size_t hash_of(const Node& node) {
  const Target& target = node.target();
  size_t seed = std::hash<const void*>()(target.op() ? static_cast<const void*>(target.op()) : target.function());
  if (node.op() == Op::GetAttr) seed = std::hash<std::string>()(target.name());
  for (const Argument& a : node.args()) mix(seed, hash_of(a));
  for (const auto& [key, value] : node.kwargs()) mix(seed, hash_of(value));
  return seed;
}

bool same_call(const Node& a, const Node& b) {
  auto same = [](const Argument& x, const Argument& y) { return x.equals(y); };
  auto same_entry = [](const auto& x, const auto& y) { return x.first == y.first && x.second.equals(y.second); };
  return a.op() == b.op() && a.target() == b.target() &&
         std::equal(a.args().begin(), a.args().end(), b.args().begin(), b.args().end(), same) &&
         std::equal(a.kwargs().begin(), a.kwargs().end(), b.kwargs().begin(), b.kwargs().end(), same_entry);
}

/// The result may be a view of an argument.
bool may_alias_inputs(const Node& node) {
  if (const Operator* op = node.target().op()) return op->is_view() || op->is_mutable();
  return node.op() == Op::CallFunction;  // getitem hands on what it is given
}

/// Nodes, by id, whose memory the caller gets to see: two of them must not become one.
std::vector<bool> nodes_given_out(const Graph& graph) {
  std::vector<bool> given(graph.id_bound());
  for (Node* node : graph.reversed()) {
    if (node->op() != Op::Output && !(given[node->id()] && may_alias_inputs(*node))) continue;
    for (Node* input : node->inputs()) given[input->id()] = true;
  }
  return given;
}

/// Whether the node writes what other nodes computed; inputs may be written.
bool writes_computed(const Node& node) {
  const Operator* op = node.target().op();
  if (!op || !op->is_mutable()) return false;
  const auto& arguments = op->schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].alias.write) continue;
    bool input = i < node.args().size() && node.args()[i].is_node() && node.args()[i].node()->op() == Op::Placeholder;
    if (!input) return true;
  }
  return false;
}

bool makes_no_tensors(const Node& node) {
  if (const Operator* op = node.target().op()) {
    for (const SchemaReturn& result : op->schema().returns)
      if (result.type.base == SchemaType::Base::Tensor) return false;
    return true;
  }
  const Function* function = node.target().function();
  return function && function != &fx::function("operator.getitem") && !function->name.starts_with("torch.ops.");
}

}  // namespace

bool eliminate_common_subexpressions(Graph& graph, const std::function<bool(const Node&)>& stays) {
  bool functional = true;
  for (Node* node : graph.nodes()) functional = functional && !writes_computed(*node);
  std::vector<bool> given_out = nodes_given_out(graph);
  std::unordered_multimap<size_t, Node*> known;
  bool changed = false;
  for (Node* node : graph.nodes()) {
    if (node->op() != Op::CallFunction && node->op() != Op::GetAttr) continue;
    if (node->is_impure()) {
      const Operator* op = node->target().op();
      if (op && op->is_mutable()) known.clear();  // what was read before may read differently now
      continue;
    }
    if (given_out[node->id()] || !(functional || makes_no_tensors(*node)) || (stays && stays(*node))) continue;
    size_t hash = hash_of(*node);
    auto [first, last] = known.equal_range(hash);
    Node* earlier = nullptr;
    for (; first != last && !earlier; ++first)
      if (same_call(*first->second, *node)) earlier = first->second;
    if (!earlier) {
      known.emplace(hash, node);
      continue;
    }
    node->replace_all_uses_with(earlier);
    graph.erase_node(node);
    changed = true;
  }
  return changed;
}

}  // namespace umbra::fx
