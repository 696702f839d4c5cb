// Graphs of TorchScript programs: their nodes, values and blocks.
#include "jit_graphs.h"

#include <nanobind/stl/shared_ptr.h>

#include "umbra/jit/passes.h"

namespace umbra::python {

using jit::Block;
using jit::Graph;
using jit::Node;
using jit::Variable;

namespace {

using GraphPtr = std::shared_ptr<Graph>;
using TypeRef = JitType;

std::vector<VariableRef> refs(const GraphPtr& graph, const jit::OwnVariables& values) {
  std::vector<VariableRef> out;
  for (const auto& v : values) out.push_back({graph, v.get()});
  return out;
}
std::vector<VariableRef> refs(const GraphPtr& graph, const jit::Variables& values) {
  std::vector<VariableRef> out;
  for (Variable* v : values) out.push_back({graph, v});
  return out;
}
std::vector<NodeRef> nodes_of(const GraphPtr& graph, Block& block) {
  std::vector<NodeRef> out;
  for (const auto& n : block.nodes()) out.push_back({graph, n.get()});
  return out;
}

const Value& attribute_of(const NodeRef& n, const std::string& name) {
  const Value* value = n.node->attribute(name);
  check(value != nullptr, "required keyword attribute '", name, "' is undefined");
  return *value;
}

}  // namespace

void bind_jit_graphs(nb::module_& m) {
  nb::class_<Graph>(m, "_jit_Graph")
      .def("__str__", [](const Graph& g) { return g.text(); })
      .def("__repr__", [](const Graph& g) { return g.text(); })
      .def(
          "str", [](const Graph& g, bool sources) { return g.text(sources); }, nb::arg("print_source_ranges") = true)
      .def("nodes", [](const GraphPtr& g) { return nb::iter(nb::cast(nodes_of(g, g->block()))); })
      .def("inputs", [](const GraphPtr& g) { return nb::iter(nb::cast(refs(g, g->block().inputs()))); })
      .def("outputs", [](const GraphPtr& g) { return nb::iter(nb::cast(refs(g, g->block().outputs))); })
      .def(
          "findNode",
          [](const GraphPtr& g, const std::string& kind, bool) -> nb::object {
            Node* found = nullptr;
            each_node(g->block(), [&](Node& n) {
              if (!found && n.is(kind)) found = &n;
            });
            return found ? nb::cast(NodeRef{g, found}) : nb::none();
          },
          nb::arg("kind"), nb::arg("recurse") = true)
      .def(
          "findAllNodes",
          [](const GraphPtr& g, const std::string& kind, bool) {
            std::vector<NodeRef> out;
            each_node(g->block(), [&](Node& n) {
              if (n.is(kind)) out.push_back({g, &n});
            });
            return out;
          },
          nb::arg("kind"), nb::arg("recurse") = true)
      .def("copy", [](const Graph& g) { return g.copy(); })
      .def("lint", [](const Graph& g) { jit::lint(g); });
  m.def(
      "parse_ir",
      [](const std::string& text, bool tensors) {
        check<NotImplementedError>(!tensors, "parse_ir(parse_tensor_constants=True) is not in Umbra yet");
        return jit::parse_graph(text);
      },
      nb::arg("input"), nb::arg("parse_tensor_constants") = false);
  nb::class_<NodeRef>(m, "_jit_Node")
      .def("kind", [](const NodeRef& n) { return n.node->kind(); })
      .def("inputs", [](const NodeRef& n) { return nb::iter(nb::cast(refs(n.graph, n.node->inputs))); })
      .def("outputs", [](const NodeRef& n) { return nb::iter(nb::cast(refs(n.graph, n.node->outputs()))); })
      .def("inputsSize", [](const NodeRef& n) { return n.node->inputs.size(); })
      .def("outputsSize", [](const NodeRef& n) { return n.node->outputs().size(); })
      .def("output",
           [](const NodeRef& n) {
             check(n.node->outputs().size() == 1, "the node has ", n.node->outputs().size(), " outputs");
             return VariableRef{n.graph, n.node->output()};
           })
      .def("input",
           [](const NodeRef& n) {
             return VariableRef{n.graph, n.node->inputs.at(0)};
           })
      .def("inputsAt",
           [](const NodeRef& n, size_t i) {
             return VariableRef{n.graph, n.node->inputs.at(i)};
           })
      .def("outputsAt",
           [](const NodeRef& n, size_t i) {
             return VariableRef{n.graph, n.node->output(i)};
           })
      .def("blocks",
           [](const NodeRef& n) {
             std::vector<BlockRef> out;
             for (const auto& b : n.node->blocks()) out.push_back({n.graph, b.get()});
             return nb::iter(nb::cast(out));
           })
      .def("scopeName", [](const NodeRef& n) { return n.node->scope.str(); })
      .def("sourceRange", [](const NodeRef& n) { return n.node->source.str(); })
      .def("schema", [](const NodeRef& n) { return n.node->op ? to_string(n.node->op->schema()) : "(no schema)"; })
      .def("hasAttribute", [](const NodeRef& n, const std::string& name) { return n.node->attribute(name) != nullptr; })
      .def("hasAttributes", [](const NodeRef& n) { return !n.node->attributes.empty(); })
      .def("attributeNames",
           [](const NodeRef& n) {
             std::vector<std::string> out;
             for (const auto& a : n.node->attributes) out.push_back(a.first);
             return out;
           })
      .def("i", [](const NodeRef& n, const std::string& name) { return attribute_of(n, name).to_int(); })
      .def("f", [](const NodeRef& n, const std::string& name) { return attribute_of(n, name).to_double(); })
      .def("s", [](const NodeRef& n, const std::string& name) { return attribute_of(n, name).to_string(); })
      .def("t", [](const NodeRef& n, const std::string& name) { return attribute_of(n, name).tensor(); })
      .def("ival", [](const NodeRef& n, const std::string& name) { return from_jit(attribute_of(n, name)); })
      .def("__eq__", [](const NodeRef& a, const NodeRef& b) { return a.node == b.node; })
      .def("__hash__", [](const NodeRef& a) { return reinterpret_cast<intptr_t>(a.node) >> 4; })
      .def("__str__", [](const NodeRef& n) { return n.node->kind(); });
  nb::class_<BlockRef>(m, "_jit_Block")
      .def("nodes", [](const BlockRef& b) { return nb::iter(nb::cast(nodes_of(b.graph, *b.block))); })
      .def("inputs", [](const BlockRef& b) { return nb::iter(nb::cast(refs(b.graph, b.block->inputs()))); })
      .def("outputs", [](const BlockRef& b) { return nb::iter(nb::cast(refs(b.graph, b.block->outputs))); });
  nb::class_<VariableRef>(m, "_jit_Value")
      .def("debugName", [](const VariableRef& v) { return v.variable->debug_name(); })
      .def("setDebugName", [](const VariableRef& v, const std::string& name) { v.variable->set_name(name); })
      .def("unique", [](const VariableRef& v) { return v.variable->unique(); })
      .def("type", [](const VariableRef& v) { return TypeRef{v.variable->type()}; })
      .def("node",
           [](const VariableRef& v) {
             return NodeRef{v.graph, v.variable->node()};
           })
      .def("isCompleteTensor", [](const VariableRef& v) { return v.variable->type()->tensor.sizes.has_value(); })
      .def("requires_grad",
           [](const VariableRef& v) { return v.variable->type()->tensor.requires_grad.value_or(false); })
      .def("toIValue",
           [](const VariableRef& v) -> nb::object {
             const Value* value = v.variable->node()->attribute("value");
             return value ? from_jit(*value) : nb::none();
           })
      .def("__eq__", [](const VariableRef& a, const VariableRef& b) { return a.variable == b.variable; })
      .def("__hash__", [](const VariableRef& a) { return reinterpret_cast<intptr_t>(a.variable) >> 4; })
      .def("__str__",
           [](const VariableRef& v) { return v.variable->debug_name() + " defined in " + v.variable->node()->kind(); });
}

}  // namespace umbra::python
