// The gradient of a function that an operator takes: a function again.
#include "autograd/hooks_off.h"
#include "capture/higher_order/layers.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/tracer.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

/// The gradients of one function, as a function.
struct GradientFunction {
  Value function;
  size_t input_count;
  std::vector<size_t> wanted;  // inputs
  std::vector<size_t> given;   // results that have weights
  RepeatedRun* repeated;       // told, while it is recorded

  /// A gradient may be the weight as it was given, but a function's results are its own.
  static Tensor own(const Tensor& gradient, const std::vector<Value>& values) {
    for (const Value& v : values)
      if (v.is_tensor() && v.tensor_ref().storage() == gradient.storage()) return gradient.clone();
    return gradient;
  }

  std::vector<Value> operator()(const std::vector<Value>& values) const {
    EnableGrad grad_mode;
    autograd::WithoutSavedTensorHooks
        of_the_run_alone;  // a checkpoint's would run its function once more, and that would be recorded
    std::vector<Value> all(values.begin(), values.begin() + static_cast<ptrdiff_t>(input_count));
    std::vector<Tensor> inputs, outputs, weights;
    for (size_t i : wanted) {
      inputs.push_back(all[i].tensor().detach().requires_grad_());
      all[i] = Value(inputs.back());
    }
    std::vector<Value> results = call_function(function, all);
    const fx::Graph& graph = active_tracer(DispatchKey::Proxy)->graph();
    *repeated = {.detached = wanted.size(), .last = *graph.reversed().begin()};
    for (size_t k = 0; k < given.size(); ++k) {
      if (!results[given[k]].tensor_ref().requires_grad()) continue;
      outputs.push_back(results[given[k]].tensor());
      weights.push_back(values[input_count + k].tensor());
    }
    std::vector<Tensor> gradients(inputs.size());
    if (!outputs.empty()) gradients = autograd::grad(outputs, inputs, weights, {}, true);
    std::vector<Value> found;
    for (size_t k = 0; k < inputs.size(); ++k)
      found.push_back(Value(gradients[k].defined() ? own(gradients[k], values) : zeros_like(inputs[k].detach())));
    return found;
  }
};

}  // namespace

ValueFunction function_gradient(const FunctionCall& call, size_t which, const std::vector<Value>& inputs,
                                const std::vector<size_t>& wanted, const std::vector<Value>& weights,
                                const std::vector<size_t>& given) {
  std::vector<Value> examples = inputs;
  examples.insert(examples.end(), weights.begin(), weights.end());
  RepeatedRun repeated;
  GradientFunction gradient{call.argument(call.functions()[which]), inputs.size(), wanted, given, &repeated};
  return record_lowered(gradient, examples, repeated);
}

}  // namespace umbra
