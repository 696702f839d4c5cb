// Functionalisation: below it, functions are functions of values.
#include "umbra/capture/functionalize.h"

#include <algorithm>
#include <unordered_set>

#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/effects.h"
#include "umbra/dispatch/batching.h"

namespace umbra {

namespace {

constexpr DispatchKeySet kAbove = DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Autograd;

Value to_value(const Value& v) { return v.is_tensor() ? Value(from_functional(v.tensor_ref())) : v; }
Value to_wrapper(const Value& v) { return v.is_tensor() ? Value(to_functional(v.tensor_ref())) : v; }

/// The function runs as its caller does, in the layers that are switched off below.
ValueFunction lower(const ValueFunction& function) {
  return [function, exclude = dispatch_state().exclude](const std::vector<Value>& values) {
    SaveDispatchState state;
    WithoutEffectScope without_tokens;
    dispatch_state().exclude = exclude;
    std::vector<Value> wrappers;
    for (const Value& v : values) wrappers.push_back(to_wrapper(v));
    std::vector<Value> results = function(wrappers);
    for (Value& v : results) v = to_value(v);
    return results;
  };
}

void functionalize_functions(const Operator& op, DispatchKeySet, Value* frame) {
  FunctionCall lowered = FunctionCall(op, frame).changed(to_value, [](const Value& function, size_t) {
    return lower([function](const std::vector<Value>& inputs) { return call_function(function, inputs); });
  });
  ExcludeKeys off(kAbove);
  std::vector<Value> results = lowered.call();
  for (Value& v : results) v = to_wrapper(v);
  frame[0] = Value(std::move(results));
}

const RegisterFunctionLayer kFunctionalize(DispatchKey::Functionalize, functionalize_functions);

/// The values of inputs, each a tensor of its own: stand-ins of one tensor, such as what a loop carries and what every
/// step is given, have one value, and would be one input.
std::vector<Value> apart(const std::vector<Value>& inputs) {
  std::unordered_set<const TensorImpl*> seen;
  std::vector<Value> values;
  for (const Value& v : inputs) {
    Value value = to_value(v);
    bool again = value.is_tensor() && !seen.insert(value.tensor_impl()).second;
    values.push_back(again ? stand_in(value) : value);
  }
  return values;
}

}  // namespace

namespace {

ValueFunction recorded_values(const ValueFunction& function, const std::vector<Value>& inputs,
                              const RepeatedRun& repeated) {
  bool functional =
      active_mode(DispatchKey::Functionalize) && !dispatch_state().exclude.has(DispatchKey::Functionalize);
  if (!functional) return record_function(function, inputs, repeated);
  ValueFunction lowered = lower(function);
  std::vector<Value> values = apart(inputs);
  ExcludeKeys off(kAbove);
  return record_function(lowered, values, repeated);
}

/// What a batch is made of; of a derivative by it nothing is known here but what the graphs of functions tell.
void refuse_history_of_batch(const Tensor& tensor) {
  Tensor t = tensor;
  while (const BatchedState* batched = batched_state(t.impl(), nullptr)) t = batched->value;
  check<NotImplementedError>(!t.requires_grad(),
                             "the gradient of a captured operator that takes functions cannot be differentiated inside "
                             "of vmap yet");
}

/// Whether calls with these are recorded with a history.
bool has_history(const std::vector<Value>& values) {
  bool recorded = active_mode(DispatchKey::Proxy) && !dispatch_state().exclude.has(DispatchKey::Proxy);
  if (!recorded || !is_grad_enabled() || dispatch_state().exclude.has(DispatchKey::Autograd)) return false;
  if (std::ranges::any_of(values, [](const Value& v) { return v.is_tensor() && v.tensor_ref().requires_grad(); }))
    return true;
  for (const Value& v : values)
    if (v.is_tensor()) refuse_history_of_batch(v.tensor_ref());
  return false;
}

}  // namespace

ValueFunction record_lowered(const ValueFunction& function, const std::vector<Value>& inputs,
                             const ValueFunction& differentiated, const RepeatedRun& repeated) {
  return [recorded = recorded_values(function, inputs, repeated), differentiated](const std::vector<Value>& values) {
    return has_history(values) ? differentiated(values) : recorded(values);
  };
}

}  // namespace umbra
