#include "umbra/capture/higher_order.h"

#include "capture/cond.h"
#include "umbra/autograd/grad_mode.h"

namespace umbra {

namespace {

/// A branch that is a graph, as a function.
ValueFunction branch_function(const Value& branch) {
  return [branch](const std::vector<Value>& operands) {
    Value result = fx::to_callable(branch).call(operands);
    if (result.tag() == Value::Tag::List) return result.list().vec();
    if (!result.is_tensor_list()) return std::vector<Value>{result};
    TensorList list = result.tensor_list();
    return std::vector<Value>(list.begin(), list.end());
  };
}

/// What a graph's cond computes: the chosen branch on the operands. A graph that is captured once more is captured with
/// both.
Value evaluate_cond(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 4, "cond takes a predicate, two branches and operands");
  const Value& predicate = arguments[0];
  std::vector<Value> operands;
  if (arguments[3].is_tensor_list())
    for (const Tensor& t : arguments[3].tensor_list()) operands.push_back(Value(t));
  else if (arguments[3].tag() == Value::Tag::List) operands = arguments[3].list().vec();
  else if (arguments[3].is_int_list())
    for (SymInt v : arguments[3].int_list()) operands.push_back(Value(v));
  if (predicate.is_tensor() && is_captured(predicate.tensor_ref()))
    return Value(cond(predicate, branch_function(arguments[1]), branch_function(arguments[2]), operands));
  bool chosen = predicate.is_tensor() ? is_true(predicate.tensor_ref()) : predicate.to_bool();
  return fx::to_callable(arguments[chosen ? 1 : 2]).call(std::move(operands));
}

[[maybe_unused]] const fx::Function& kCond =
    fx::define_function({.name = "torch.ops.higher_order.cond", .format = {}, .evaluate = evaluate_cond});

/// A part of a program that ran with gradients switched on or off: (enabled, part, operands...).
Value evaluate_with_grad_mode(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() >= 2, "wrap_with_set_grad_enabled takes a bool, a graph and its operands");
  SetGradEnabled mode(arguments[0].to_bool());
  return fx::to_callable(arguments[1]).call(std::vector<Value>(arguments.begin() + 2, arguments.end()));
}
[[maybe_unused]] const fx::Function& kWithGradMode =
    fx::define_function({.name = "torch.ops.higher_order.wrap_with_set_grad_enabled",
                         .format = {},
                         .evaluate = evaluate_with_grad_mode,
                         .has_side_effects = true});

/// A switch of the grad mode between the calls of a graph.
Value evaluate_set_grad_enabled(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 1, "_set_grad_enabled takes a bool");
  set_grad_enabled(arguments[0].to_bool());
  return {};
}
[[maybe_unused]] const fx::Function& kSetGradEnabled = fx::define_function({.name = "torch._C._set_grad_enabled",
                                                                            .format = {},
                                                                            .evaluate = evaluate_set_grad_enabled,
                                                                            .has_side_effects = true});

}  // namespace

}  // namespace umbra
