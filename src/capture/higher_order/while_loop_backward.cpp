// The way back through a while_loop: the loop runs once more and keeps what each step was given; then the steps'
// gradients are taken from the last to the first. n steps cost n, and the memory of what was carried into each.
#include "autograd/forward_state.h"
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "capture/higher_order/while_loop.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/fake/cost.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kCondition, kBody, kStepGradient, kCarried, kGradients, kAdditional };

/// A step of the way back is given what the step was, the gradients of what it gave, and the additional values.
std::vector<Value> inputs(const FunctionCall& call, size_t which) {
  std::vector<Value> out;
  for (const Value& v : call.list(kCarried)) out.push_back(stand_in(v));
  if (which == kStepGradient)
    for (const Value& v : call.list(kGradients)) out.push_back(stand_in(v));
  return joined(std::move(out), call.list(kAdditional));
}

bool goes_on(const FunctionCall& call, const std::vector<Value>& carried) {
  Value answer = call.run_function(kCondition, joined(carried, call.list(kAdditional))).at(0);
  return answer.is_tensor() ? answer.tensor_ref().item().to_bool() : answer.to_bool();
}

/// What flows back so far: the gradients of what is carried, and the sums for what every step is given.
struct Flow {
  std::vector<Value> carried, sums;

  explicit Flow(const FunctionCall& call) : carried(call.list(kGradients)) {
    for (Value& v : carried) v = Value(v.tensor_ref().clone());  // results are the call's own
    std::vector<Value> additional = call.list(kAdditional);
    for (size_t i : differentiable(additional)) sums.push_back(Value(zeros_like(additional[i].tensor().detach())));
  }

  /// Constants that a step's gradient was found to use stand last among the additional values, and have none.
  void step(const FunctionCall& call, const std::vector<Value>& given) {
    std::vector<Value> found = call.run_function(kStepGradient, joined(joined(given, carried), call.list(kAdditional)));
    check(found.size() >= carried.size() && found.size() <= carried.size() + sums.size(), "while_loop: a step has ",
          found.size(), " gradients, ", carried.size() + sums.size(), " are wanted");
    for (size_t k = 0; k < found.size() - carried.size(); ++k)
      sums[k] = Value(sums[k].tensor_ref().add(found[carried.size() + k].tensor_ref()));
    carried = part(found, 0, carried.size());
  }

  std::vector<Value> results() const { return joined(carried, sums); }
};

std::vector<Value> run(const FunctionCall& call) {
  std::vector<std::vector<Value>> steps;
  for (std::vector<Value> carried = call.list(kCarried); goes_on(call, carried);) {
    std::vector<Value> next = call.run_function(kBody, joined(carried, call.list(kAdditional)));
    steps.push_back(std::move(carried));
    carried = std::move(next);
  }
  Flow flow(call);
  for (; !steps.empty(); steps.pop_back()) flow.step(call, steps.back());
  return flow.results();
}

std::vector<Value> results(const FunctionCall&, const std::vector<std::vector<Value>>& of) {
  forget_memory(of[kStepGradient]);
  return fresh(of[kStepGradient]);
}

/// One step forth and one back.
std::vector<Value> rehearse(const FunctionCall& call, CostTrace&) {
  std::vector<Value> given = joined(call.list(kCarried), call.list(kAdditional));
  call.run_function(kCondition, given);
  call.run_function(kBody, given);
  Flow flow(call);
  flow.step(call, call.list(kCarried));
  return flow.results();
}

// ---- the gradient of the gradient ----

/// The same way back made of loops, which can be differentiated: what went into a step is computed anew from the start,
/// so that n steps cost about n * n / 2.
struct ByLoops {
  LoopFunctions functions;
  std::vector<Value> start, gradients, additional;
  size_t sums;

  static const Operator& loop() {
    static const Operator& op = get_operator("higher_order::while_loop");
    return op;
  }
  static std::vector<Value> repeat(const ValueFunction& condition, const ValueFunction& body,
                                   const std::vector<Value>& carried, const std::vector<Value>& additional) {
    return FunctionCall(
               loop(), {function_value(condition, true), function_value(body, true), Value(carried), Value(additional)})
        .call();
  }

  /// A step of the loop that counts, before all that is carried; the first `own` of the additional values are the
  /// condition's.
  static ValueFunction counting(const ValueFunction& body, size_t carried, size_t own) {
    return [=](const std::vector<Value>& v) {
      std::vector<Value> inputs = joined(part(v, 1, 1 + carried), part(v, 1 + carried + own, v.size()));
      return joined({Value(v[0].tensor().add(1))}, body(inputs));
    };
  }
  static Value zero() { return Value(zeros(SymShape{}, {.dtype = DType::Int64})); }

  Value count_steps() const {
    ValueFunction condition = [goes_on = functions.condition](const std::vector<Value>& v) {
      return goes_on(part(v, 1, v.size()));
    };
    return repeat(condition, counting(functions.body, start.size(), 0), joined({zero()}, start), additional)[0];
  }

  /// [steps left, gradients carried, sums, start, additional] to the first three.
  std::vector<Value> step_back(const std::vector<Value>& v) const {
    size_t count = start.size(), first_sum = 1 + gradients.size(), state = first_sum + sums;
    Value left(v[0].tensor().sub(1));
    std::vector<Value> rest = part(v, state + count, v.size());
    ValueFunction until = [limit = 1 + count](const std::vector<Value>& w) -> std::vector<Value> {
      return {Value(w[0].tensor().lt(w[limit].tensor()))};
    };
    std::vector<Value> before = repeat(until, counting(functions.body, count, 1),
                                       joined({zero()}, part(v, state, state + count)), joined({left}, rest));
    std::vector<Value> found =
        functions.step_gradient(joined(joined(part(before, 1, before.size()), part(v, 1, first_sum)), rest));
    std::vector<Value> next = joined({left}, part(found, 0, gradients.size()));
    for (size_t k = 0; k < sums; ++k)
      next.push_back(Value(v[first_sum + k].tensor().add(found[gradients.size() + k].tensor())));
    return next;
  }

  std::vector<Value> run() const {
    std::vector<Value> carry = joined({count_steps()}, gradients);
    std::vector<size_t> summed = differentiable(additional);
    for (size_t k = 0; k < sums; ++k) carry.push_back(Value(zeros_like(additional[summed[k]].tensor().detach())));
    ValueFunction any_left = [](const std::vector<Value>& v) -> std::vector<Value> {
      return {Value(v[0].tensor().gt(0))};
    };
    ValueFunction back = [self = *this](const std::vector<Value>& v) { return self.step_back(v); };
    std::vector<Value> found = repeat(any_left, back, carry, joined(start, additional));
    return part(found, 1, found.size());
  }
};

std::vector<Value> by_loops(const FunctionCall& call) {
  LoopFunctions functions{plain_function(call, kCondition), plain_function(call, kBody),
                          plain_function(call, kStepGradient)};
  std::vector<Value> additional = call.list(kAdditional), given = joined(call.list(kCarried), call.list(kGradients));
  size_t sums = 0;
  run_aside(call, [&] {
    sums = call.run_function(kStepGradient, joined(given, additional)).size() - call.list(kGradients).size();
  });
  return ByLoops{functions, call.list(kCarried), call.list(kGradients), additional, sums}.run();
}

FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  auto recorded = [&](size_t which) {
    ValueFunction function = plain_function(call, which);
    return record_lowered(function, call.inputs(which), function);
  };
  LoopFunctions functions{recorded(kCondition), recorded(kBody), recorded(kStepGradient)};
  size_t sums = results.size() - call.list(kGradients).size();
  return [functions, sums](const FunctionCall& saved, const std::vector<Tensor>& incoming) {
    std::vector<Tensor> inputs, wanted;
    bool again = is_grad_enabled();
    EnableGrad grad_mode;
    auto cut_off = [&](size_t argument) {
      std::vector<Value> values = saved.list(argument);
      for (Value& v : values) {
        if (!v.is_tensor()) continue;
        inputs.push_back(v.tensor());
        if (!is_differentiable(inputs.back().dtype())) continue;
        // An alias is an end of this way back, and goes on where that is differentiated itself.
        bool goes_on = again && inputs.back().requires_grad();
        wanted.push_back(goes_on ? inputs.back().alias() : inputs.back().detach().requires_grad_());
        v = Value(wanted.back());
      }
      return values;
    };
    std::vector<Value> carried = cut_off(kCarried), gradients = cut_off(kGradients), additional = cut_off(kAdditional);
    std::vector<Tensor> outputs, weights;
    std::vector<Value> results = ByLoops{functions, carried, gradients, additional, sums}.run();
    for (size_t i = 0; i < results.size(); ++i) {
      check<NotImplementedError>(!autograd::is_batch(results[i].tensor_ref()),
                                 "while_loop: its second derivative cannot be captured inside of vmap yet");
      if (!results[i].tensor_ref().requires_grad() || !incoming[i].defined()) continue;
      outputs.push_back(results[i].tensor());
      weights.push_back(incoming[i]);
    }
    std::vector<Tensor> found(wanted.size()), out;
    if (!outputs.empty()) found = autograd::grad(outputs, wanted, weights, {.create_graph = again}, true);
    size_t next = 0;
    for (const Tensor& t : inputs) out.push_back(is_differentiable(t.dtype()) ? found[next++] : Tensor());
    return out;
  };
}

const RegisterHigherOrder kWayBack({
    .schema = "while_loop_backward(Callable cond_fn, Callable body_fn, Callable step_gradient, Any[] carried_inputs, "
              "Any[] gradients, Any[] additional_inputs) -> Any[]",
    .graphs = {"while_loop_cond_graph_", "while_loop_body_graph_", "while_loop_gradient_graph_"},
    .operands = kAdditional,
    .inputs = inputs,
    .run = run,
    .results = results,
    .rehearse = rehearse,
    .gradient = gradient,
    .by_others = by_loops,
    .steps = {{kCarried, kBody}, {kGradients, kStepGradient}},
    .single_result = kCondition,
});

}  // namespace

std::vector<Value> while_loop_way_back(const LoopFunctions& functions, const std::vector<Value>& carried,
                                       const std::vector<Value>& gradients, const std::vector<Value>& additional) {
  size_t count = carried.size(), incoming = gradients.size();
  // The gradients come in before what every step is given, where the function has them last.
  ValueFunction of_step = [=, gradient = functions.step_gradient](const std::vector<Value>& v) {
    std::vector<Value> step = joined(part(v, 0, count), part(v, count + incoming, v.size()));
    return gradient(joined(step, part(v, count, count + incoming)));
  };
  return FunctionCall(*kWayBack.op,
                      {function_value(functions.condition, true), function_value(functions.body, true),
                       function_value(of_step, true), Value(carried), Value(gradients), Value(additional)})
      .call();
}

}  // namespace umbra
