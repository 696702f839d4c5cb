// A graph prepared for running: arguments found, defaults filled in, and the point known where each value is last used.
#pragma once

#include <memory>
#include <vector>

#include "dispatch/host_lock.h"
#include "umbra/graph/graph_module.h"
#include "umbra/graph/interpreter.h"

namespace umbra::fx {

/// Where an argument comes from.
struct Operand {
  enum class Kind : uint8_t { Constant, Slot, Sequence };
  Kind kind = Kind::Constant;
  uint32_t slot = 0;
  Value constant;
  std::vector<Operand> items;        // of a list or tuple with nodes in it
  const SchemaType* type = nullptr;  // what the operator expects; null: anything

  /// The value, borrowed from the plan or the slots where possible.
  Value load(const Value* slots) const;
  /// The value, owned.
  Value load_owned(const Value* slots) const;
};

/// One node's execution.
struct Step {
  enum class Kind : uint8_t { Operator, Function, Module, Attribute };
  Kind kind;
  Node* node = nullptr;
  const Operator* op = nullptr;
  const Function* function = nullptr;
  const Value* attribute = nullptr;  // the attribute, or the module to call
  std::vector<Operand> operands;
  uint32_t slot = 0;               // where the result goes
  std::vector<uint32_t> released;  // slots that nobody needs afterwards

  /// Calls with the arguments given; they are used up.
  Value run(Value* arguments) const;
  /// The function's result of these arguments.
  Value evaluate(ArrayRef<Value> arguments) const;
};

class Plan {
 public:
  Plan(const GraphModule& module, uint64_t graph_version, uint64_t attribute_version);
  bool is_current(uint64_t graph_version, uint64_t attribute_version) const {
    return graph_version == graph_version_ && attribute_version == attribute_version_;
  }
  bool keeps(const Graph& graph) const { return graph_.get() == &graph; }

  /// What a run reports to, besides its results.
  struct Hooks {
    const std::function<Value(NodeCall&)>* call = nullptr;
    const std::function<void(Node&, const Value&)>* value = nullptr;
  };
  std::vector<Value> run(std::vector<Value> inputs, const Hooks& hooks) const;
  /// The output is a tuple or list, not a single value.
  bool returns_sequence() const { return returns_sequence_; }

 private:
  void add_node(const GraphModule& module, Node* node);
  void add_call(const GraphModule& module, Node* node, Step& step);
  Operand operand(const Argument& argument, const SchemaType* type) const;
  void find_last_uses();
  std::vector<Value> take_inputs(std::vector<Value> inputs, const Hooks& hooks) const;
  static void run_step(const Step& step, Value* slots, const Hooks& hooks, RunUnlocked& unlocked);
  /// The numbers that an assertion is about, where they are out of their range.
  std::string out_of_range(const Node& assertion, const std::vector<Value>& slots) const;

  uint64_t graph_version_, attribute_version_;
  IntrusivePtr<Graph> graph_;  // its nodes are named in errors
  std::vector<Node*> inputs_;
  std::vector<uint32_t> unused_inputs_;
  std::vector<Step> steps_;
  std::vector<Operand> outputs_;
  bool returns_sequence_ = false;
  std::vector<uint32_t> slot_of_;  // by node id
  uint32_t slot_count_ = 0;
};

}  // namespace umbra::fx
