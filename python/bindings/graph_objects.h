// The Python objects of graphs and nodes. A graph has one object and each of its nodes one, made when somebody asks for
// it and kept as long as the graph: identity and attributes of users' own stay.
//
// The object of a graph keeps the graph, itself, and the objects of its nodes, which keep it. The garbage collector
// sees these references when no C++ object keeps the graph besides, or when a single GraphModule does that belongs to
// Python.
#pragma once

#include "graph.h"

namespace umbra::python {

class GraphHandle {
 public:
  /// `self` is the Python object that this is part of.
  GraphHandle(nb::handle self, IntrusivePtr<fx::Graph> graph);
  GraphHandle(const GraphHandle&) = delete;
  ~GraphHandle();
  fx::Graph* get() const { return graph_.get(); }
  fx::Graph* operator->() const { return graph_.get(); }

  /// The object of a graph if it has one, else null.
  static GraphHandle* find(const fx::Graph& graph);
  static GraphHandle& of(fx::Graph& graph);
  nb::handle object() const { return object_; }
  nb::object wrap(fx::Node* node);

  int traverse(visitproc visit, void* arg) const;
  /// What the graph itself keeps of Python: its object, and what nodes' metadata have. For the graph's only owner.
  int visit_as_owner(visitproc visit, void* arg) const;
  void clear();

 private:
  IntrusivePtr<fx::Graph> graph_;
  PyObject* object_;
  bool keeps_itself_ = true;      // until the collector finds that nobody else does
  std::vector<PyObject*> nodes_;  // by the nodes' ids; null where nobody has asked
};

class NodeHandle {
 public:
  NodeHandle(fx::Node* node, nb::handle graph) : node_(node), graph_(nb::borrow(graph)) {}
  NodeHandle(const NodeHandle&) = delete;
  fx::Node* get() const { return node_; }
  fx::Node* operator->() const { return node_; }
  nb::handle graph() const { return graph_; }

 private:
  fx::Node* node_;
  nb::object graph_;  // nodes live as long as their graph
};

/// What makes the garbage collector see through each kind of object, for `nb::type_slots`.
extern PyType_Slot graph_slots[], node_slots[], graph_module_slots[];

}  // namespace umbra::python
