#include "graph_objects.h"

#include <unordered_map>

namespace umbra::python {

namespace {

std::unordered_map<const fx::Graph*, GraphHandle*>& handles() {
  static auto* map = new std::unordered_map<const fx::Graph*, GraphHandle*>();
  return *map;
}

int visit_attributes(PyObject* self, visitproc visit, void* arg) {
  if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_VISIT(*attributes);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
void clear_attributes(PyObject* self) {
  if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_CLEAR(*attributes);
}

/// The Python object that a value alone keeps, else null.
PyObject* kept_by(const Value& value) {
  if (value.tag() != Value::Tag::Object || value.object()->use_count() != 1) return nullptr;
  auto* held = dynamic_cast<const PythonObject*>(value.object());
  return held ? held->get() : nullptr;
}

int traverse_graph(PyObject* self, visitproc visit, void* arg) {
  if (int stop = visit_attributes(self, visit, arg)) return stop;
  return nb::inst_ready(self) ? nb::inst_ptr<GraphHandle>(self)->traverse(visit, arg) : 0;
}
int clear_graph(PyObject* self) {
  clear_attributes(self);
  if (nb::inst_ready(self)) nb::inst_ptr<GraphHandle>(self)->clear();
  return 0;
}

int traverse_node(PyObject* self, visitproc visit, void* arg) {
  if (int stop = visit_attributes(self, visit, arg)) return stop;
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<NodeHandle>(self)->graph().ptr());
  return 0;
}
/// Keeps the graph: a node without one could not be looked at. The graph lets go of its nodes.
int clear_node(PyObject* self) {
  clear_attributes(self);
  return 0;
}

/// A module that only this object keeps, and that alone keeps its graph besides the graph's object, owns what the graph
/// owns.
int traverse_graph_module(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& module = nb::inst_ptr<GraphModuleObject>(self)->module;
  if (!module || module->use_count() != 1) return 0;
  const fx::Graph& graph = module->graph();
  GraphHandle* handle = GraphHandle::find(graph);
  return handle && graph.use_count() == 1 + module->references_to_graph() ? handle->visit_as_owner(visit, arg) : 0;
}
/// Nothing to let go of: the graph's object ends the cycle.
int clear_graph_module(PyObject*) { return 0; }

}  // namespace

PyType_Slot graph_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_graph)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear_graph)},
                             {0, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_node)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_node)},
                            {0, nullptr}};
PyType_Slot graph_module_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_graph_module)},
                                    {Py_tp_clear, reinterpret_cast<void*>(clear_graph_module)},
                                    {0, nullptr}};

GraphHandle::GraphHandle(nb::handle self, IntrusivePtr<fx::Graph> graph)
    : graph_(std::move(graph)), object_(Py_NewRef(self.ptr())) {
  handles()[graph_.get()] = this;
}

GraphHandle::~GraphHandle() {
  handles().erase(graph_.get());
  for (PyObject* node : nodes_) Py_XDECREF(node);
}

GraphHandle* GraphHandle::find(const fx::Graph& graph) {
  auto found = handles().find(&graph);
  return found == handles().end() ? nullptr : found->second;
}

GraphHandle& GraphHandle::of(fx::Graph& graph) {
  if (GraphHandle* known = find(graph)) return *known;
  nb::object made = nb::inst_alloc(nb::type<GraphHandle>());
  auto* handle = new (nb::inst_ptr<GraphHandle>(made)) GraphHandle(made, IntrusivePtr<fx::Graph>(&graph));
  nb::inst_mark_ready(made);
  return *handle;
}

nb::object GraphHandle::wrap(fx::Node* node) {
  if (nodes_.size() <= node->id()) nodes_.resize(std::max<size_t>(graph_->id_bound(), node->id() + 1));
  PyObject*& known = nodes_[node->id()];
  if (known) return nb::borrow(known);
  nb::object made = nb::inst_alloc(nb::type<NodeHandle>());
  new (nb::inst_ptr<NodeHandle>(made)) NodeHandle(node, object_);
  nb::inst_mark_ready(made);
  // The collector may have run meanwhile, and what it ran may have asked for nodes: the place is looked up anew.
  nodes_[node->id()] = Py_NewRef(made.ptr());
  return made;
}

int GraphHandle::traverse(visitproc visit, void* arg) const {
  for (PyObject* node : nodes_) Py_VISIT(node);
  return graph_->use_count() == 1 ? visit_as_owner(visit, arg) : 0;
}

int GraphHandle::visit_as_owner(visitproc visit, void* arg) const {
  if (keeps_itself_) Py_VISIT(object_);
  for (const fx::Node* node : graph_->nodes())
    for (const auto& [key, value] : node->meta.extra) Py_VISIT(kept_by(value));
  return 0;
}

void GraphHandle::clear() {
  for (fx::Node* node : graph_->nodes()) std::exchange(node->meta.extra, {});
  for (PyObject* node : std::exchange(nodes_, {})) Py_XDECREF(node);
  if (std::exchange(keeps_itself_, false)) Py_DECREF(object_);
}

nb::object wrap(fx::Graph& graph) { return nb::borrow(GraphHandle::of(graph).object()); }
nb::object wrap(fx::Node* node) { return GraphHandle::of(node->graph()).wrap(node); }

}  // namespace umbra::python
