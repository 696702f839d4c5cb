// Running a graph node by node: through the dispatcher, with real or fake tensors, under any mode.
//
//     fx::Interpreter interpreter(module);
//     interpreter.on_call([](fx::NodeCall& call) {
//       Value result = call.run();
//       std::cout << call.node().name() << "\n";
//       return result;
//     });
//     std::vector<Value> results = interpreter.run({x});
#pragma once

#include <functional>
#include <vector>

#include "umbra/graph/graph_module.h"

namespace UMBRA_API umbra {
namespace fx {

struct Step;

/// One call that a running graph is about to make.
class NodeCall {
 public:
  NodeCall(const Step& step, Value* arguments, size_t count) : step_(step), arguments_(arguments), count_(count) {}
  Node& node() const;
  /// What it is called with: for operators all arguments of the schema, defaults included. They may be changed; whoever
  /// keeps them copies.
  Value* arguments() const { return arguments_; }
  size_t count() const { return count_; }
  /// Makes the call. Several results come as one list.
  Value run();

 private:
  const Step& step_;
  Value* arguments_;
  size_t count_;
};

class Interpreter {
 public:
  explicit Interpreter(IntrusivePtr<GraphModule> module) : module_(std::move(module)) {}

  /// Is asked for the result of every call in place of the graph's own way.
  void on_call(std::function<Value(NodeCall&)> hook) { hook_ = std::move(hook); }
  /// Is shown the value of every node, inputs included, once it is there.
  void on_value(std::function<void(Node&, const Value&)> hook) { value_hook_ = std::move(hook); }

  /// Runs the graph. An error of a node comes out as its own type, with the node and the user's source line added to
  /// its text.
  std::vector<Value> run(std::vector<Value> inputs);

 private:
  IntrusivePtr<GraphModule> module_;
  std::function<Value(NodeCall&)> hook_;
  std::function<void(Node&, const Value&)> value_hook_;
};

/// Runs the graph on the inputs and writes each node's value (fake tensors, symbolic sizes) to its `meta.val`.
void propagate_values(const IntrusivePtr<GraphModule>& module, std::vector<Value> inputs);

/// While it lives, errors of this thread say what went wrong and not where: as calls of a graph's source would.
class PlainErrors {
 public:
  PlainErrors();
  ~PlainErrors();
  PlainErrors(const PlainErrors&) = delete;
  PlainErrors& operator=(const PlainErrors&) = delete;

 private:
  bool before_;
};

}  // namespace fx
}  // namespace umbra
