// Passes over graphs of TorchScript programs, and what is known of memory in them.
#include <nanobind/stl/shared_ptr.h>

#include "jit_graphs.h"
#include "umbra/jit/alias.h"
#include "umbra/jit/passes.h"

namespace umbra::python {

using jit::AliasAnalysis;
using jit::Graph;

namespace {

/// What is known of a graph's memory, together with the graph.
struct Aliases {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<const AliasAnalysis> known;
};

void bind_aliases(nb::module_& m) {
  nb::class_<Aliases>(m, "AliasDb")
      .def("may_alias", [](const Aliases& a, const VariableRef& x,
                           const VariableRef& y) { return a.known->may_alias(x.variable, y.variable); })
      .def("may_contain_alias", [](const Aliases& a, const VariableRef& x,
                                   const VariableRef& y) { return a.known->may_contain_alias(x.variable, y.variable); })
      .def("has_writers", [](const Aliases& a, const VariableRef& v) { return a.known->has_writers(v.variable); })
      .def("has_writers", [](const Aliases& a, const NodeRef& n) { return a.known->has_writers(*n.node); })
      .def("move_after_topologically_valid",
           [](const Aliases& a, const NodeRef& n, const NodeRef& other) {
             return a.known->move_after(*n.node, *other.node);
           })
      .def("move_before_topologically_valid",
           [](const Aliases& a, const NodeRef& n, const NodeRef& other) {
             return a.known->move_before(*n.node, *other.node);
           })
      .def("__str__", [](const Aliases& a) { return a.known->text(); })
      .def("dump", [](const Aliases& a) { nb::print(a.known->text().c_str()); });
}

Aliases aliases_of(const std::shared_ptr<Graph>& graph) {
  return {graph, std::make_shared<const AliasAnalysis>(*graph)};
}

}  // namespace

void bind_jit_passes(nb::module_& m) {
  bind_aliases(m);
  m.attr("_jit_Graph").attr("alias_db") =
      nb::cpp_function(aliases_of, nb::is_method(), nb::scope(m.attr("_jit_Graph")), nb::name("alias_db"));
  m.def("_jit_pass_dce", [](Graph& g) { jit::eliminate_dead_writes(g); });
  m.def("_jit_pass_cse", [](Graph& g) { jit::eliminate_common_subexpressions(g); });
  m.def("_jit_pass_constant_propagation", [](Graph& g) { jit::propagate_constant_tensors(g); });
  m.def("_jit_pass_constant_propagation_immutable_types", [](Graph& g) { jit::propagate_constants(g); });
  m.def("_jit_pass_constant_pooling", [](Graph& g) { jit::pool_constants(g); });
  m.def("_jit_pass_inline", [](Graph& g) { jit::inline_calls(g); });
  m.def(
      "_jit_pass_peephole", [](Graph& g, bool without_shapes) { return jit::peephole(g, !without_shapes); },
      nb::arg("graph"), nb::arg("disable_shape_peepholes") = false);
  m.def("_jit_pass_lower_graph", [](const Graph& method, const JitObject& module) {
    auto [graph, tensors] = jit::lower_module(method, module.value);
    nb::list parameters;
    for (const Value& t : tensors) parameters.append(from_jit(t));
    return nb::make_tuple(graph, parameters);
  });
  m.def("_jit_pass_lint", [](Graph& g) { jit::lint(g); });
  m.def("_jit_pass_propagate_shapes_on_graph", [](Graph& g) { jit::propagate_shapes(g); });
  m.def("_jit_pass_erase_shape_information", [](Graph& g) { jit::erase_shapes(g); });
  m.def("_jit_pass_complete_shape_analysis", [](Graph& g, nb::tuple inputs, bool with_grad) {
    std::vector<Value> examples;
    for (nb::handle input : inputs) examples.push_back(to_jit(input.ptr(), nullptr));
    jit::set_input_shapes(g, examples, with_grad);
    jit::propagate_shapes(g);
  });
  m.def("_jit_same_structure", [](const Graph& a, const Graph& b) { return jit::same_structure(a, b); });
}

}  // namespace umbra::python
