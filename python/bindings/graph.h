// Graphs, nodes and graph modules as Python sees them, and the way between their arguments and Python objects.
#pragma once

#include "arguments.h"
#include "python.h"
#include "umbra/graph/graph_module.h"

namespace umbra::python {

/// A graph module behind a Python object.
struct GraphModuleObject {
  IntrusivePtr<fx::GraphModule> module;
};

/// The one object of a graph or node.
nb::object wrap(fx::Graph& graph);
nb::object wrap(fx::Node* node);
/// An argument of a node as Python has it: nodes, plain values, and lists, tuples, dicts and slices of them.
nb::object wrap(const fx::Argument& argument);
fx::Argument read_argument(PyObject* object);

std::vector<Value> read_values(nb::handle sequence);
nb::list wrap_values(const std::vector<Value>& values);

/// Makes Python's own frames the place of nodes, guards and errors.
void bind_location();

void bind_graph(nb::module_& m);
void bind_graph_module(nb::module_& m);
void bind_capture(nb::module_& m);
void bind_export(nb::module_& m);
void bind_aot(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_watch(nb::module_& m);
void bind_compiled_call(nb::module_& m);

}  // namespace umbra::python
