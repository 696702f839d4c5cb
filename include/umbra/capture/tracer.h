// Recording: while a tracer is on the thread's stack, each operator call that reaches its layer becomes a node of its
// graph.
//
// Which node stands for which tensor is kept in a table of the tracer, not in the tensor. Symbolic sizes get nodes when
// a call needs them: `sym_size` of an input after the inputs (or, for make_fx, where it is first needed), that of a
// result whose size only the run will tell after the call, arithmetic on sizes just before its first use.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/capture/decomposition.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/graph/graph_module.h"

namespace UMBRA_API umbra {

namespace sym {
class Expression;
}

class Tracer final : public Mode {
 public:
  /// `key` is the layer that is recorded: Proxy below autograd, PreProxy above it.
  explicit Tracer(DispatchKey key, IntrusivePtr<fx::GraphModule> module);

  fx::Graph& graph() const { return module_->graph(); }
  const IntrusivePtr<fx::GraphModule>& module() const { return module_; }

  /// Declares an input of the graph and what stands for it: a tensor, a symbolic number, or a plain value that is baked
  /// in. Of a `later` one, which is not there yet while most of the graph runs (a gradient), only sizes that depend on
  /// data are asked for.
  fx::Node* add_input(const std::string& name, const Value& value, bool later = false);
  /// Makes the graph refer to a tensor by an attribute of its module wherever it appears.
  void add_attribute(const std::string& path, const Tensor& tensor, fx::AttributeKind kind);
  /// The node (or plain value) that stands for a value; tensors met for the first time become constants of the module.
  fx::Argument argument(const Value& value);
  /// Makes a node stand for a result, element by element where it is a list.
  void track(fx::Node* node, const Value& result);
  /// The same for a node that the caller has made: it learns where the program is, and what it gave.
  void stand_for(fx::Node* node, const Value& result) {
    finish(node, result);
    track(node, result);
  }
  /// The node behind a tensor, or null.
  fx::Node* node_of(const Tensor& tensor) const;
  /// Adds the output node. Results may be nested in lists.
  void set_output(const std::vector<Value>& results);
  /// Records a switch of the grad mode since the last call, where the graph is one that will be differentiated
  /// (PreProxy): a call of torch._C._set_grad_enabled. Each call does this by itself; after the last one it is for the
  /// caller to do.
  void record_grad_mode();
  /// Records that the program has set the grad mode, to what it was too, where `keeps_switches`.
  void record_switch();
  /// A node for a call that is no operator (a higher-order one); `result` is what it gave.
  fx::Node* record_call(const fx::Function& function, fx::Arguments arguments, const Value& result,
                        fx::KeywordArguments keywords = {});
  /// An operator's arguments as a node has them: those that have their default are left out, as a caller would.
  struct CallArguments {
    fx::Arguments positional;
    fx::KeywordArguments keywords;
  };
  CallArguments arguments_of(const Operator& op, const Value* arguments);

  /// Declares an input between earlier ones and the rest: parameters and constants found on the way. After `after`, or
  /// first.
  fx::Node* add_input_after(fx::Node* after, const std::string& name, const Value& value);
  /// Says that a symbolic number was asked for as a tensor's number of elements: the graph then asks in the same way.
  void note_numel(const Tensor& tensor, SymInt value);
  /// Says by which call the program made a symbolic number: the graph then makes it in the same way.
  void note_symbol_call(const fx::Function& function, std::vector<Value> arguments, const Value& result);
  /// Makes another tensor stand for what `node` stands for.
  void alias(const Tensor& tensor, fx::Node* node) { tensors_[tensor.impl()] = {tensor, node}; }
  /// Says that a gradient takes a tensor that the forward run saved: an output, which autograd keeps by another handle,
  /// or something inside of a composite, of which the graph knows nothing unless `splits_composites`.
  void take_saved(const Tensor& tensor);
  /// Asked for the node of a tensor that is not known; without it, or where it gives null, the tensor becomes an
  /// attribute.
  std::function<fx::Node*(const Tensor& tensor)> on_constant;
  /// Of a tensor that becomes an attribute: whether it is a parameter. With it, each use is a `get_attr` of its own.
  std::function<bool(const Tensor& tensor)> is_parameter;
  /// Asked for the node of a symbol that is no size of an input and follows from none.
  std::function<fx::Node*(const Value& symbol)> on_symbol;
  /// Counts the calls of a module; PyTorch tells them apart by keys such as "L__self__layers.0@1".
  int count_call(const std::string& module_path) { return module_calls_[module_path]++; }
  /// Operators that are recorded as what they are made of.
  DecompositionTable decompositions;
  /// Whether nodes get the line of the user's program they come from.
  bool locations = true;
  /// `sym_size` nodes stand after the inputs, as export has them, rather than where they are first needed.
  bool sizes_after_inputs = true;
  /// The function runs on its inputs' data: a number read from them would be taken for a part of the program.
  bool refuses_data = false;
  /// Composites are recorded as their parts: gradients that the program takes need what is inside of them.
  bool splits_composites = false;
  /// Whether a gradient failed for the want of that.
  bool needs_split_composites = false;
  /// Every switch of the grad mode is a call, not only those that change it.
  bool keeps_switches = false;

 private:
  friend void record_operator(const Operator& op, DispatchKeySet keys, Value* frame);
  friend void read_data(const Tracer& tracer, const Operator& op, DispatchKeySet keys, Value* frame);
  fx::Argument symbol_argument(SymInt value);
  /// Whether a number is a plain one, or one that a node stands for or is asked for by one call.
  bool has_node(const Value& value) const;
  fx::Argument expression_argument(const SymNode* node, int64_t key);
  fx::Argument unknown_symbol(const sym::Expression* symbol);
  fx::Node* derived_symbol(const sym::Expression* symbol);
  fx::Node* equal_symbol(const sym::Expression* symbol);
  fx::Node* symbol_call(const fx::Function& function, fx::Arguments arguments, const sym::Expression* result);
  fx::Node* constant_node(const Tensor& tensor);
  std::string constant_path(const Tensor& tensor);
  void record(const Operator& op, const Value* arguments, Value* results);
  void finish(fx::Node* node, const Value& result);
  IntrusivePtr<SourceLocation> line();
  void note_unbacked_sizes(fx::Node* node, const Tensor& tensor);
  /// Nodes made so far keep the metadata of a tensor that they were made with, which are those of `before`. To be
  /// called before the call is recorded that changes them.
  void keep_metadata(const Tensor& tensor, const Tensor& before);
  /// Whether the tensors of users' classes among the arguments have nodes: inputs of the program, and what became of
  /// them.
  bool knows_subclasses(const Operator& op, const Value* frame) const;
  /// Whether all tensors of a call are constants of the program; `some`: and there is one.
  bool all_constant(const Operator& op, const Value* arguments, bool& some) const;
  void mark_constant(const Value& result);

  struct Tracked {
    Tensor tensor;  // kept: the table is by address, which must not be used again
    fx::Node* node;
    bool constant = false;  // one element that follows from literals: programs may read it
  };
  struct SymbolSource {
    fx::Node* input;
    int64_t dim;  // or one of:
    static constexpr int64_t kItself = -1, kNumel = -2;
    bool is_result = false;  // of a call, whose size only the run will tell
  };
  IntrusivePtr<fx::GraphModule> module_;
  std::unordered_map<const TensorImpl*, Tracked> tensors_;
  std::unordered_map<int64_t, fx::Node*> symbols_;        // by the bits of the SymInt
  std::unordered_map<const SymNode*, fx::Node*> floats_;  // symbolic floats and bools
  std::unordered_map<int64_t, SymbolSource> sources_;
  struct NotedCall {
    const fx::Function* function;
    std::vector<Value> arguments;
  };
  std::unordered_map<const SymNode*, NotedCall> noted_;  // how the program made numbers that no node stands for yet
  fx::Node* last_input_ = nullptr;
  fx::Node* last_size_ = nullptr;  // sym_size nodes stand after the inputs, in the order they were needed
  std::unordered_map<std::string, int> module_calls_;
  int constants_ = 0, parameters_ = 0;  // attributes so far, by kind
  struct Constant {
    Tensor tensor;
    std::string path;
  };
  std::unordered_map<const TensorImpl*, Constant> constant_paths_;  // where each use is a node
  bool grad_enabled_;                                               // as the nodes so far leave it
  /// The line of each call so far, with the number that a node of autograd made for it gets.
  std::vector<std::pair<uint64_t, IntrusivePtr<SourceLocation>>> lines_;
};

/// The tracer that records at this layer now, or null.
Tracer* active_tracer(DispatchKey key);
/// Tells the tracers that a program reads a tensor's number of elements.
void note_numel(const Tensor& tensor, SymInt value);

/// Tells the tracers of a call that made a number of symbolic ones: `note_symbol_call("operator.sub", {a, b}, result)`.
void note_symbol_call(const char* function, std::vector<Value> arguments, const Value& result);
/// Whether somebody wants to be told.
bool are_symbol_calls_noted();

/// The function that the program calls now, for the nodes' `torch_fn`: ("relu_2", "function.relu"). It gets its number,
/// among the calls of the same function, with its first node.
struct CalledFunction final : RefCounted {
  std::string name, kind;
  const void* identity = nullptr;
  int number = 0;
};
/// Says which function is called from now on, or with null that none is; gives what was said before.
IntrusivePtr<CalledFunction> set_called_function(IntrusivePtr<CalledFunction> function);
/// Counts calls from the first again.
void forget_called_functions();

/// What the user notes of all that this thread records from now on; null: nothing.
void set_annotations(IntrusivePtr<fx::Annotations> annotations);
/// Whether this thread computes what a checkpoint did not keep: nodes made meanwhile belong to the backward, where they
/// are no copies of those in the forward. Gives what held before.
bool set_recomputing(bool recomputing);

/// While a node is run again: what is recorded takes over its line, its modules and what users noted of it.
class InheritMeta {
 public:
  explicit InheritMeta(const fx::Meta& meta);
  ~InheritMeta();
  InheritMeta(const InheritMeta&) = delete;

 private:
  const fx::Meta* before_;
};

/// The modules that are running, for the nodes' module paths: nn::Module enters one around forward, and leaves it
/// however that ends.
/// Keys of the stack are the paths behind `prefix`.
void enter_module(const std::string& path, std::string type, std::string_view prefix = "L__self__");
void leave_module();
/// The modules running now, outermost first; null outside all.
IntrusivePtr<fx::ModuleStack> current_modules();
/// Replaces the stack as a whole, or with null ends that: for callers that keep their own (Python). Gives what was set
/// before.
IntrusivePtr<fx::ModuleStack> set_current_modules(IntrusivePtr<fx::ModuleStack> modules);

}  // namespace umbra
