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
  std::vector<size_t> wanted;           // inputs
  std::optional<InputHistory> history;  // a wanted one that is not tracked has a gradient of zeros
  std::vector<size_t> given;            // results that have weights
  RepeatedRun* repeated;                // told, while it is recorded
  bool differentiated = false;          // what it gives has a history

  bool is_tracked(size_t k) const { return !history || history->tracked[wanted[k]]; }

  InputHistory tracked_inputs() const {
    if (history) return *history;
    InputHistory out;
    out.tracked.resize(input_count);
    out.computed.resize(input_count);
    out.given.resize(input_count);
    for (size_t i : wanted) out.tracked[i] = true;
    return out;
  }

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
    for (size_t k = 0; k < wanted.size(); ++k) {
      Value& input = all[wanted[k]];
      // An alias is an end of this way back, also where another input depends on it.
      input = Value(differentiated ? input.tensor().alias() : input.tensor().detach());
      if (is_tracked(k)) inputs.push_back(input.tensor());
    }
    InputHistory seen = tracked_inputs();
    HistoryScope scope(seen, all);
    std::vector<Value> results = call_function(function, all);
    scope.leave();
    if (repeated) {
      const fx::Graph& graph = active_tracer(DispatchKey::Proxy)->graph();
      *repeated = {.detached = wanted.size(), .last = *graph.reversed().begin()};
    }
    for (size_t k = 0; k < given.size(); ++k) {
      if (!results[given[k]].tensor_ref().requires_grad()) continue;
      outputs.push_back(results[given[k]].tensor());
      weights.push_back(values[input_count + k].tensor());
    }
    std::vector<Tensor> gradients(inputs.size());
    std::vector<autograd::Edge> from, to;  // no derivative of the user's
    for (const Tensor& t : outputs) from.push_back(autograd::gradient_edge(t));
    for (const Tensor& t : inputs) to.push_back(autograd::gradient_edge(t));
    if (!outputs.empty()) gradients = autograd::grad_of_edges(from, weights, to, {.create_graph = differentiated});
    std::vector<Value> found;
    for (size_t k = 0, next = 0; k < wanted.size(); ++k) {
      Tensor gradient = is_tracked(k) ? gradients[next++] : Tensor();
      const Tensor& input = all[wanted[k]].tensor_ref();
      found.push_back(Value(gradient.defined() ? own(gradient, values) : zeros_like(input.detach())));
    }
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
  GradientFunction gradient{
      call.argument(call.functions()[which]), inputs.size(), wanted, call.history(), given, &repeated};
  GradientFunction again = gradient;
  again.repeated = nullptr;
  again.differentiated = true;
  return record_lowered(gradient, examples, again, repeated);
}

}  // namespace umbra
