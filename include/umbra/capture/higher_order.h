// Operators that take functions. Captured, the functions become graphs of their own.
//
//     auto sine = [](const Tensor& x) { return x.sin(); };
//     auto cosine = [](const Tensor& x) { return x.cos(); };
//     Tensor y = cond(x.sum() > 0, sine, cosine, {x});
//
//     auto below = [](const Tensor& i, const Tensor& x) { return i < 10; };
//     auto twice = [](const Tensor& i, const Tensor& x) { return std::vector{i + 1, x * 2}; };
//     std::vector<Tensor> last = while_loop(below, twice, {zeros({}), x});
//
// Functions take tensors and give one, or a std::vector or std::tuple of them; or they take and give lists of values,
// numbers among them.
#pragma once

#include <optional>
#include <vector>

#include "umbra/autograd/node.h"
#include "umbra/capture/make_fx.h"
#include "umbra/core/only_result.h"

namespace UMBRA_API umbra {

/// Runs `true_function` or `false_function` on the operands. The predicate is a tensor of one bool, a bool, or a
/// symbolic bool (which is decided now, with a guard). Under capture both branches are recorded; they must give tensors
/// of the same metadata.
std::vector<Value> cond(const Value& predicate, const ValueFunction& true_function, const ValueFunction& false_function,
                        const std::vector<Value>& operands);

/// Calls `body` on what is carried for as long as `condition` of it gives true; `body` gives as many tensors as it is
/// given, of the same metadata. Under capture it becomes one call, which runs as often as the data says.
std::vector<Value> while_loop(const ValueFunction& condition, const ValueFunction& body,
                              const std::vector<Value>& carried);

/// Calls `function` on each row of the inputs (along their first dimension), and stacks what it gives.
std::vector<Value> map(const ValueFunction& function, const std::vector<Value>& inputs);

/// Calls `combine` on what is carried and on each row of the inputs in turn; it gives what is carried on, and then what
/// is collected. Gives what is carried in the end, and what was collected, stacked.
std::vector<Value> scan(const ValueFunction& combine, const std::vector<Value>& init, const std::vector<Value>& rows);

namespace detail {
template <class F>
concept FunctionOfTensors = !std::is_convertible_v<F, ValueFunction>;

/// What an operator gave, in the form in which the function F gives it.
template <class F> auto results_like(const std::vector<Value>& results) {
  if constexpr (gives_one_tensor<F>()) return only_result(results);
  else return as_tensors(results);
}
}  // namespace detail

// The same for functions of tensors. `cond` and `map` give one tensor where their functions do, else a list.
template <detail::FunctionOfTensors F, detail::FunctionOfTensors G>
auto cond(const Value& predicate, F true_function, G false_function, const std::vector<Tensor>& operands) {
  return detail::results_like<F>(cond(predicate, detail::value_function(std::move(true_function)),
                                      detail::value_function(std::move(false_function)), detail::as_values(operands)));
}
template <detail::FunctionOfTensors F, detail::FunctionOfTensors G>
std::vector<Tensor> while_loop(F condition, G body, const std::vector<Tensor>& carried) {
  return detail::as_tensors(while_loop(detail::value_function(std::move(condition)),
                                       detail::value_function(std::move(body)), detail::as_values(carried)));
}
template <detail::FunctionOfTensors F> auto map(F function, const std::vector<Tensor>& inputs) {
  return detail::results_like<F>(map(detail::value_function(std::move(function)), detail::as_values(inputs)));
}
template <detail::FunctionOfTensors F>
std::vector<Tensor> scan(F combine, const std::vector<Tensor>& init, const std::vector<Tensor>& rows) {
  return detail::as_tensors(
      scan(detail::value_function(std::move(combine)), detail::as_values(init), detail::as_values(rows)));
}

// ---- how one is defined ----
//
// A definition says what the operator does, what its functions are called with, how its results follow from theirs, and
// its gradient in terms of their gradients: see src/capture/higher_order/cond.cpp. What each layer does with a function
// is written once, in the files beside it.

struct HigherOrder;
class CostTrace;

/// The history of what functions are called with.
struct InputHistory {
  std::vector<bool> tracked;   // which inputs need gradients, if only from some step on
  std::vector<bool> computed;  // which of those are no leaves
  std::vector<Tensor> given;   // the tensors that they are, or are parts of; undefined for others
  bool grad_mode = true;
};

/// One call of an operator that takes functions.
class FunctionCall {
 public:
  FunctionCall(const Operator& op, std::vector<Value> arguments) : op_(&op), arguments_(std::move(arguments)) {}
  FunctionCall(const Operator& op, const Value* frame)
      : FunctionCall(op, std::vector<Value>(frame, frame + op.argument_count())) {}

  const Operator& op() const { return *op_; }
  const HigherOrder& rule() const { return *op_->definition().higher_order; }
  const Value& argument(size_t i) const { return arguments_.at(i); }
  void set_argument(size_t i, Value value) { arguments_.at(i) = std::move(value); }
  /// A list argument, element by element.
  std::vector<Value> list(size_t i) const { return detail::elements(arguments_.at(i)); }

  /// The positions of the functions among the arguments.
  std::vector<size_t> functions() const;
  /// What the function at `which` among `functions()` gives.
  std::vector<Value> run_function(size_t which, std::vector<Value> inputs) const;
  /// What it is called with, for example.
  std::vector<Value> inputs(size_t which) const;
  /// The call with `more` operands, which each function gets after all others.
  FunctionCall with_operands(const std::vector<Value>& more) const;
  /// The call with other values and other functions.
  FunctionCall changed(const std::function<Value(const Value&)>& value,
                       const std::function<ValueFunction(const Value& function, size_t which)>& function) const;
  /// All tensors among the arguments.
  std::vector<Tensor> tensors() const;
  /// What the functions can tell of the history of their inputs; none where they ask for nothing.
  const std::optional<InputHistory>& history() const { return history_; }
  void set_history(InputHistory history) { history_ = std::move(history); }
  /// Runs it through all layers, and through those of `keys`.
  std::vector<Value> call() const;
  std::vector<Value> redispatch(DispatchKeySet keys) const;

 private:
  const Operator* op_;
  std::vector<Value> arguments_;
  std::optional<InputHistory> history_;
};

/// A gradient: from what gradients flow in to the call's results, to one for each of the call's tensors (undefined
/// where there is none). `call` is the call with its tensors as they were saved.
using FunctionBackward =
    std::function<std::vector<Tensor>(const FunctionCall& call, const std::vector<Tensor>& incoming)>;

/// A list argument of a loop, and which of its functions gives what comes next.
struct CarriedList {
  size_t list, function;
};

/// All that is to be said about an operator that takes functions.
struct HigherOrder {
  const char* schema;               // "cond(Any pred, Callable true_fn, Callable false_fn, Any[] operands) -> Any[]"
  std::vector<const char*> graphs;  // what the functions' graphs are called, before a number: "true_graph_"
  size_t operands;  // the list that each function is given last; what functions close over is added to it
  /// What a function is called with, for example. A loop gives tensors of its own, not the operands themselves.
  std::vector<Value> (*inputs)(const FunctionCall& call, size_t which);
  /// What it does, with data.
  std::vector<Value> (*run)(const FunctionCall& call);
  /// Its results without data, from what each function gives for its inputs; an error where those do not fit.
  std::vector<Value> (*results)(const FunctionCall& call, const std::vector<std::vector<Value>>& of_functions);
  /// What a run costs, where only data says how it goes: the functions run without data as a run might call them. Null:
  /// `run` asks for no data.
  std::vector<Value> (*rehearse)(const FunctionCall& call, CostTrace& trace) = nullptr;
  /// Its gradient, made while the call runs; `results` are the call's. Null: it has none under capture.
  FunctionBackward (*gradient)(const FunctionCall& call, const std::vector<Value>& results) = nullptr;
  /// The same made of others, which can be followed forward. Null: it is one itself.
  std::vector<Value> (*by_others)(const FunctionCall& call) = nullptr;
  /// What it does inside vmap where its first argument, which decides, is a batch: nobody decides for all of it.
  std::vector<Value> (*run_undecided)(const FunctionCall& call) = nullptr;
  bool prints_lists = false;            // operands stand in lists, not tuples
  bool prints_empty_lists = false;      // where there are none, too
  bool lists_results = false;           // so do the results of its functions' graphs
  bool spreads_operands = false;        // the last arguments, which graphs give one by one
  std::vector<CarriedList> steps = {};  // lists whose values a function gives anew, first of what it gives
  size_t carried = SIZE_MAX;            // the list that the functions are given first and the last one gives anew
  size_t single_result = SIZE_MAX;      // the function whose graph gives one value, not a tuple
  const char* public_name = nullptr;    // in errors: "cond" for "torch.cond"
};

/// Defines such an operator, for dispatch (`higher_order::cond`) and for graphs (`torch.ops.higher_order.cond`).
struct RegisterHigherOrder {
  explicit RegisterHigherOrder(HigherOrder rule);
  const Operator* op;
};

/// Runs functions of a call for what they are alone: on no data, and seen by no tracer or user.
void run_aside(const FunctionCall& call, const std::function<void()>& run);

/// The node that tells of a stand-in what that of `given` tells; null where `given` has no such one.
using NodeLike = IntrusivePtr<autograd::Node> (*)(const Tensor& given);
void set_node_like(NodeLike like);

/// The gradients of a function's results, weighted, with respect to some of its inputs: a function of the inputs and
/// the weights, for definitions of gradients.
ValueFunction function_gradient(const FunctionCall& call, size_t which, const std::vector<Value>& inputs,
                                const std::vector<size_t>& wanted, const std::vector<Value>& weights,
                                const std::vector<size_t>& given);

}  // namespace umbra
