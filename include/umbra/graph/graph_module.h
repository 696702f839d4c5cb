// A graph with the tensors and subgraphs it refers to: something that can be run, printed and saved.
//
//     auto module = make_counted<fx::GraphModule>(graph);
//     module->set("linear.weight", weight, fx::AttributeKind::Parameter);
//     std::vector<Value> results = module->run({x});
//     Tensor y = (*module)(x);
#pragma once

#include <iosfwd>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/core/callable.h"
#include "umbra/core/only_result.h"
#include "umbra/graph/graph.h"

namespace UMBRA_API umbra {
namespace fx {

class Plan;

enum class AttributeKind : uint8_t { Parameter, Buffer, Constant, Module, Object };

struct Attribute {
  std::string path;  // "layers.0.weight"
  Value value;
  AttributeKind kind;
};

class GraphModule final : public Callable {
 public:
  explicit GraphModule(IntrusivePtr<Graph> graph, std::string class_name = "GraphModule");
  ~GraphModule() override;

  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  const IntrusivePtr<Graph>& graph_pointer() const { return graph_; }
  void set_graph(IntrusivePtr<Graph> graph);
  /// How many of the counted references to the graph are this module's: its own, and that of what was prepared for
  /// running.
  uint32_t references_to_graph() const;
  const std::string& class_name() const { return class_name_; }
  void set_class_name(std::string name) { class_name_ = std::move(name); }

  // ---- attributes, by dotted path ----
  void set(std::string_view path, Value value, AttributeKind kind = AttributeKind::Constant);
  void set_submodule(std::string_view path, IntrusivePtr<GraphModule> module);
  void remove(std::string_view path);
  /// The attribute, here or in a submodule on the way; null where there is none.
  const Value* find(std::string_view path) const;
  /// The same, or an AttributeError.
  const Value& get(std::string_view path) const;
  Tensor tensor(std::string_view path) const { return get(path).tensor(); }
  GraphModule& submodule(std::string_view path) const;
  const std::list<Attribute>& attributes() const { return attributes_; }
  /// The submodules that are graphs, in the order they were added.
  std::vector<std::pair<std::string, GraphModule*>> submodules() const;
  /// A path that no attribute has: "true_graph_0", "true_graph_1".
  std::string unused_path(std::string_view prefix) const;
  /// Removes attributes that no node refers to.
  void remove_unused_attributes();

  // ---- running ----
  /// Runs the graph. Gives its results: the elements of the output where that is a tuple or list, else the one.
  std::vector<Value> run(std::vector<Value> inputs) const;
  Value call(std::vector<Value> inputs) const override;
  /// The same for a graph of one result.
  template <class... Tensors> Tensor operator()(const Tensors&... inputs) const {
    return detail::only_result(run({Value(inputs)...}));
  }

  // ---- text ----
  /// The Python code: "def forward(self, x): ...".
  std::string code() const;
  /// A module of its own with a copy of the graph and the same attributes.
  IntrusivePtr<GraphModule> copy(NodeMap* map = nullptr) const;

 private:
  friend class Interpreter;
  /// The graph prepared for running; made anew after changes.
  std::shared_ptr<const Plan> plan() const;

  IntrusivePtr<Graph> graph_;
  std::string class_name_;
  // Elements do not move, and removed ones stay as empty shells: plans, also those of modules around this one, point to
  // their values.
  std::list<Attribute> attributes_, removed_;
  uint64_t attribute_version_ = 0;
  struct Derived;  // attributes by path, and the plan
  IntrusivePtr<Derived> derived_;
};

/// The module as torch.fx prints it: its class, its submodules and its code.
std::string to_string(const GraphModule& module);
std::ostream& operator<<(std::ostream& out, const GraphModule& module);

}  // namespace fx
}  // namespace umbra
