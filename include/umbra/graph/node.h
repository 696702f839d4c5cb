// A node of a graph: one input, attribute, call or output.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umbra/dispatch/operator.h"
#include "umbra/graph/argument.h"
#include "umbra/graph/function.h"
#include "umbra/graph/source.h"

namespace UMBRA_API umbra {
namespace fx {

class Graph;

enum class Op : uint8_t { Placeholder, GetAttr, CallFunction, CallModule, CallMethod, Output, Root };
/// "call_function" and so on.
const char* to_string(Op op);

/// What a node calls or names: an operator, a function, or the name of an input, attribute or module.
class Target {
 public:
  Target(const Operator& op) : op_(&op) {}
  Target(const Operator* op) : op_(op) {}
  Target(const Function& function) : function_(&function) {}
  Target(const Function* function) : function_(function) {}
  Target(std::string name) : name_(std::move(name)) {}
  Target(const char* name) : name_(name) {}

  const Operator* op() const { return op_; }
  const Function* function() const { return function_; }
  /// The name of an input, attribute or module; empty for calls.
  const std::string& name() const { return name_; }
  bool operator==(const Target& other) const = default;

  /// "torch.ops.aten.add.Tensor", "operator.getitem", "layers.0.weight".
  std::string text() const;

 private:
  const Operator* op_ = nullptr;
  const Function* function_ = nullptr;
  std::string name_;
};

/// What the user has noted of a node: `node.meta["custom"]`. Programs in Python note objects of their own, files have
/// JSON.
class Annotations : public RefCounted {
 public:
  /// As files have them; empty where there is nothing to keep. What JSON has no form for is an error.
  virtual std::string json() const = 0;
  /// As readable printing shows them; empty where there is nothing to show.
  virtual std::string shown() const = 0;
  /// For another node: what is noted there later does not reach this one.
  virtual IntrusivePtr<Annotations> copy() const = 0;
};

/// What is known about a node besides what it computes. Copied with the node.
/// The entry that says which part of a joint graph a node belongs to, and what it says of what a checkpoint computes
/// again.
inline constexpr const char* kPartitionerTag = "partitioner_tag";
inline constexpr const char* kBackwardOnly = "must_be_in_backward";

struct Meta {
  Value val;                            // the fake tensor, the list of them or the symbolic number that it produces
  IntrusivePtr<SourceLocation> source;  // null: not known
  IntrusivePtr<ModuleStack> modules;    // null: not known
  IntrusivePtr<Annotations> custom;     // null: none
  std::vector<std::pair<std::string, Value>> extra;  // what passes leave for one another ("partitioner_tag", "seq_nr")

  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
};

/// A node. It belongs to its graph, which frees it; an erased node stays readable as long as the graph stands.
class Node {
 public:
  Op op() const { return op_; }
  const Target& target() const { return target_; }
  void set_target(Target target);
  bool calls(const Operator& op) const { return target_.op() == &op; }
  bool calls(const Function& function) const { return target_.function() == &function; }
  const std::string& name() const { return name_; }
  /// Renames it; the graph makes the name unique.
  void set_name(std::string_view name);
  /// The same for names that code generally keeps for itself: an input may be called `input`.
  void set_reserved_name(std::string_view name);
  Graph& graph() const { return *graph_; }
  /// A small number of its own within its graph, below graph().id_bound(): passes keep what they know in arrays by it.
  uint32_t id() const { return id_; }
  bool is_erased() const { return erased_; }

  const Arguments& args() const { return args_; }
  const KeywordArguments& kwargs() const { return kwargs_; }
  const Argument& arg(size_t i) const;
  /// The keyword argument of that name, or null.
  const Argument* kwarg(std::string_view name) const;
  void set_args(Arguments args);
  void set_kwargs(KeywordArguments kwargs);
  void set_arg(size_t i, Argument value);
  void set_kwarg(std::string_view name, Argument value);
  /// The argument for a parameter of the operator's schema, wherever it stands; null where the default holds.
  const Argument* argument(size_t schema_position) const;

  /// The nodes whose values it takes, each once, in the order of its arguments.
  ArrayRef<Node*> inputs() const { return {inputs_.data(), inputs_.size()}; }
  /// The nodes that take its value, each once.
  ArrayRef<Node*> users() const { return {users_.data(), users_.size()}; }

  Node* next() const { return next_; }
  Node* previous() const { return previous_; }
  /// Moves it to another place in its graph.
  void move_before(Node* other);
  void move_after(Node* other);

  /// Every user of this node takes `other` instead; gives the users changed. `keep`, where given, may refuse a user.
  std::vector<Node*> replace_all_uses_with(Node* other, const std::function<bool(Node*)>& wanted = {});
  void replace_input(Node* old_input, Node* new_input);

  /// Must not be removed though nobody uses its value: inputs, outputs, writes to arguments, assertions, random
  /// numbers.
  bool is_impure() const;
  /// "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {})"
  std::string text() const;

  Meta meta;

 private:
  friend class Graph;
  Node(Graph* graph, uint32_t id, Op op, Target target) : op_(op), id_(id), graph_(graph), target_(std::move(target)) {}
  void link_before(Node* other);
  void unlink();
  /// Tells the inputs that this node uses them (or no longer does).
  void add_uses();
  void remove_uses();

  Op op_;
  bool erased_ = false;
  uint32_t id_;
  Graph* graph_;
  Node* previous_ = this;
  Node* next_ = this;
  Target target_;
  std::string name_;
  Arguments args_;
  KeywordArguments kwargs_;
  SmallVector<Node*, 4> inputs_;
  SmallVector<Node*, 4> users_;
};

}  // namespace fx
}  // namespace umbra
