#include <unordered_set>

#include "umbra/graph/passes.h"
#include "umbra/graph/print.h"

namespace umbra::fx {

namespace {

using Base = SchemaType::Base;

bool value_fits(Base base, const Value& value) {
  using Tag = Value::Tag;
  switch (base) {
    case Base::Tensor: return value.is_tensor() || value.is_scalar();  // a number may stand for a tensor
    case Base::Int:
    case Base::SymInt: return value.is_int() || value.is_sym_int() || value.is_bool();
    case Base::Float:
    case Base::SymFloat:
    case Base::Scalar:
    case Base::Complex: return value.is_scalar();
    case Base::Bool:
    case Base::SymBool: return value.is_bool() || value.tag() == Tag::SymBool || value.is_int();
    case Base::String: return value.is_string();
    case Base::Device: return value.tag() == Tag::Device || value.is_string();
    case Base::DType: return value.tag() == Tag::DType;
    case Base::Layout: return value.tag() == Tag::Layout;
    case Base::MemoryFormat: return value.tag() == Tag::MemoryFormat;
    case Base::Generator: return value.tag() == Tag::Generator || value.is_object();
    default: return true;
  }
}

/// Whether an argument can be what the schema asks for. Of a node nothing is known but what its metadata says.
bool fits(const SchemaType& type, const Argument& argument) {
  if (argument.is_node()) {
    const Value& value = argument.node()->meta.val;
    return value.is_none() || fits(type, Argument(value));
  }
  if (argument.is_none()) return type.optional || type.base == Base::Tensor || type.base == Base::Any;
  if (type.base == Base::Any) return true;
  if (!argument.is_sequence())
    return argument.is_value() && (!type.list || type.list_size > 0 || type.base == Base::Any) &&
           value_fits(type.base, argument.value());
  if (!type.list) return false;
  SchemaType element = type;
  element.list = false;
  element.optional = type.element_optional;
  for (const Argument& item : argument.elements())
    if (!fits(element, item)) return false;
  return true;
}

/// Throws with the node's place in front; called only where something is wrong, since texts cost much more than checks.
template <class... Pieces> [[noreturn]] void wrong_call(const Node& node, const Pieces&... pieces) {
  fail<TypeError>("Node '", node.name(), "' calls ", node.target().op()->name(), ": ", pieces..., "\n", node.text());
}

void check_call(const Node& node) {
  const Operator* op = node.target().op();
  if (!op) return;
  const Schema& schema = op->schema();
  size_t positional = 0;
  while (positional < schema.arguments.size() && !schema.arguments[positional].keyword_only) ++positional;
  if (node.args().size() > positional)
    wrong_call(node, "it takes ", positional, " positional arguments but ", node.args().size(), " were given");
  for (const auto& [key, value] : node.kwargs()) {
    int position = schema.find(key);
    if (position < 0) wrong_call(node, "it has no argument '", key, "'");
    if (static_cast<size_t>(position) < node.args().size()) wrong_call(node, "argument '", key, "' is given twice");
  }
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& parameter = schema.arguments[i];
    const Argument* argument = node.argument(i);
    if (!argument && !parameter.default_value) wrong_call(node, "argument '", parameter.name, "' is missing");
    if (argument && !fits(parameter.type, *argument))
      wrong_call(node, "argument '", parameter.name, "' should be ", umbra::to_string(parameter.type));
  }
}

void check_inputs(const Graph& graph, const Node& node, const std::vector<bool>& defined) {
  for (Node* input : node.inputs()) {
    const char* problem = nullptr;
    if (&input->graph() != &graph)
      problem =
          "does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, "
          "make sure "
          "to use ``arg_transform`` on node_copy() to remap values";
    else if (input->is_erased()) problem = "was erased from the Graph, but is still used as an argument!";
    else if (!defined[input->id()])
      problem = "was used before it has been defined! Please check that Nodes in the graph are topologically ordered";
    if (problem) fail("Argument '", input->name(), "' of Node '", node.name(), "' ", problem, "\n", to_string(graph));
  }
}

}  // namespace

void lint(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  std::vector<bool> defined(graph.id_bound());
  const Node* output = nullptr;
  for (Node* node : graph.nodes()) {
    check(&node->graph() == &graph, "Node '", node->name(), "' does not belong to this Graph!");
    check_inputs(graph, *node, defined);
    defined[node->id()] = true;
    check(names.insert(node->name()).second, "Node redefined name ", node->name(), "!");
    bool names_something = node->op() != Op::CallFunction;
    if (names_something != (!node->target().op() && !node->target().function()))
      fail<ValueError>(
          "Node ", node->name(), " target ", node->target().text(),
          names_something ? " is a function but a str is expected" : " is a str but a Callable is expected");
    check_call(*node);
    if (node->op() != Op::Output) continue;
    check(!output, "Node '", node->name(), "' is a second output");
    output = node;
  }
}

void lint(const GraphModule& module) {
  lint(module.graph());
  for (Node* node : module.graph().nodes()) {
    if (node->op() != Op::GetAttr && node->op() != Op::CallModule) continue;
    const std::string& path = node->target().name();
    const Value* attribute = module.find(path);
    size_t dot = path.rfind('.');
    if (!attribute)
      fail("Node ", node->name(), " target ", path, " references nonexistent attribute ", path.substr(dot + 1), " of ",
           dot == std::string::npos ? "" : path.substr(0, dot));
    bool callable = attribute->is_object() && dynamic_cast<const Callable*>(attribute->object());
    check(node->op() == Op::GetAttr || callable, "Node ", node->name(), " target ", path,
          " does not reference an nn.Module");
  }
  for (const auto& [path, submodule] : module.submodules()) lint(*submodule);
}

}  // namespace umbra::fx
