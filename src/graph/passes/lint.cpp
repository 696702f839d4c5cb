#include <unordered_set>

#include "umbra/graph/passes.h"
#include "umbra/graph/print.h"

namespace umbra::fx {

namespace {

using Base = SchemaType::Base;

bool value_fits(Base base, const Value& value) {
  using Tag = Value::Tag;
  switch (base) {
    case Base::Tensor: return value.is_tensor();
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
    return argument.is_value() && (!type.list || type.list_size > 0 || type.base == Base::Any) && value_fits(type.base, argument.value());
  if (!type.list) return false;
  SchemaType element = type;
  element.list = false;
  element.optional = type.element_optional;
  for (const Argument& item : argument.elements())
    if (!fits(element, item)) return false;
  return true;
}

void check_call(const Node& node) {
  const Operator* op = node.target().op();
  if (!op) return;
  const Schema& schema = op->schema();
  size_t positional = 0;
  while (positional < schema.arguments.size() && !schema.arguments[positional].keyword_only) ++positional;
  auto where = [&] { return concat("Node '", node.name(), "' calls ", op->name(), ": "); };
  check<TypeError>(node.args().size() <= positional, where(), "it takes ", positional, " positional arguments but ",
                   node.args().size(), " were given\n", node.text());
  for (const auto& [key, value] : node.kwargs()) {
    int position = schema.find(key);
    check<TypeError>(position >= 0, where(), "it has no argument '", key, "'\n", node.text());
    check<TypeError>(static_cast<size_t>(position) >= node.args().size(), where(), "argument '", key, "' is given twice\n", node.text());
  }
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& parameter = schema.arguments[i];
    const Argument* argument = node.argument(i);
    check<TypeError>(argument || parameter.default_value, where(), "argument '", parameter.name, "' is missing\n", node.text());
    check<TypeError>(!argument || fits(parameter.type, *argument), where(), "argument '", parameter.name, "' should be ",
                     umbra::to_string(parameter.type), "\n", node.text());
  }
}

void check_inputs(const Graph& graph, const Node& node, const std::vector<bool>& defined) {
  for (Node* input : node.inputs()) {
    check(&input->graph() == &graph, "Argument '", input->name(), "' of Node '", node.name(),
          "' does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make sure to "
          "use ``arg_transform`` on node_copy() to remap values\n", to_string(graph));
    check(!input->is_erased(), "Argument '", input->name(), "' of Node '", node.name(), "' was erased from the Graph\n", to_string(graph));
    check(defined[input->id()], "Argument '", input->name(), "' of Node '", node.name(),
          "' was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n", to_string(graph));
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
    check<ValueError>(names_something == (!node->target().op() && !node->target().function()), "Node ", node->name(), " target ",
                      node->target().text(), names_something ? " is a function but a str is expected" : " is a str but a Callable is expected");
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
    check(attribute, "Node ", node->name(), " target ", path, " references nonexistent attribute ",
          dot == std::string::npos ? path : path.substr(dot + 1), " of ", dot == std::string::npos ? "" : path.substr(0, dot));
    bool callable = attribute->is_object() && dynamic_cast<const Callable*>(attribute->object());
    check(node->op() == Op::GetAttr || callable, "Node ", node->name(), " target ", path, " does not reference an nn.Module");
  }
  for (const auto& [path, submodule] : module.submodules()) lint(*submodule);
}

}  // namespace umbra::fx
