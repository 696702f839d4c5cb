// while_loop: a function called on its own results for as long as a condition of them holds.
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/fake/cost.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kCondition, kBody, kCarried, kAdditional };

/// An integer that is carried: what it is in one step or in the end, only the run tells.
Value unknown_integer(const FunctionCall& call) {
  sym::ShapeEnv* env = symbols_for(call);
  check<NotImplementedError>(env,
                             "while_loop: an int that is carried cannot be captured without symbolic shapes; "
                             "carry a tensor, or capture with tracing_mode=\"symbolic\"");
  return Value(env->create_unbacked());
}

std::vector<Value> inputs(const FunctionCall& call, size_t) {
  std::vector<Value> out;
  for (const Value& v : call.list(kCarried)) out.push_back(is_integer(v) ? unknown_integer(call) : stand_in(v));
  for (const Value& v : call.list(kAdditional)) out.push_back(v);
  return out;
}

bool holds(const FunctionCall& call, const std::vector<Value>& carried) {
  std::vector<Value> result = call.run_function(0, joined(carried, call.list(kAdditional)));
  check(result.size() == 1, "while_loop: the condition gives one bool, got ", result.size(), " values");
  if (!result[0].is_tensor()) return result[0].to_bool();
  const Tensor& t = result[0].tensor_ref();
  check(t.dtype() == DType::Bool && t.numel() == 1, "cond_fn must return a boolean scalar tensor or a boolean but got ",
        t.dtype(), " of sizes ", to_string(t.sym_sizes()));
  return t.item().to_bool();
}

void check_carried(const std::vector<Value>& before, const std::vector<Value>& after) {
  check<UserError>(before.size() == after.size(), "while_loop: body_fn is given ", before.size(),
                   " values to carry and gives ", after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    check<UserError>((before[i].is_tensor() && after[i].is_tensor()) || (is_integer(before[i]) && is_integer(after[i])),
                     "while_loop: carried value ", i, " is ", tag_name(before[i].tag()), " and becomes ",
                     tag_name(after[i].tag()), "; tensors and ints can be carried");
    if (!before[i].is_tensor()) continue;
    const Tensor &a = before[i].tensor_ref(), &b = after[i].tensor_ref();
    bool same = a.dtype() == b.dtype() && a.device() == b.device() && a.sym_sizes() == b.sym_sizes();
    check<UserError>(same, "Expected carried_inputs and body_output to have same metadata but found: carried value ", i,
                     " is ", a.dtype(), to_string(a.sym_sizes()), " and becomes ", b.dtype(), to_string(b.sym_sizes()));
  }
}

std::vector<Value> run(const FunctionCall& call) {
  std::vector<Value> carried = call.list(kCarried);
  // Results are the call's own also where the body never runs.
  if (!holds(call, carried)) {
    for (Value& v : carried)
      if (v.is_tensor()) v = Value(v.tensor_ref().clone());
    return carried;
  }
  do {
    std::vector<Value> next = call.run_function(1, joined(carried, call.list(kAdditional)));
    check_carried(carried, next);
    carried = std::move(next);
  } while (holds(call, carried));
  return carried;
}

std::vector<Value> results(const FunctionCall& call, const std::vector<std::vector<Value>>& of) {
  bool one_bool = of[0].size() == 1 && of[0][0].is_tensor() && of[0][0].tensor_ref().dtype() == DType::Bool &&
                  of[0][0].tensor_ref().numel() == 1;
  bool number = of[0].size() == 1 && (of[0][0].is_bool() || of[0][0].tag() == Value::Tag::SymBool);
  check<UserError>(one_bool || number, "while_loop: cond_fn must return a boolean scalar tensor or a boolean");
  check_carried(call.list(kCarried), of[1]);
  forget_memory(of[1]);
  std::vector<Value> out = fresh(of[1]);
  for (Value& v : out)
    if (is_integer(v)) v = unknown_integer(call);
  return out;
}

/// Two steps, of which one counts: nobody can say how many there will be, and in the second the values of the one
/// before are still there.
std::vector<Value> rehearse(const FunctionCall& call, CostTrace& trace) {
  std::vector<Value> carried = call.list(kCarried), additional = call.list(kAdditional);
  CostTrace::OneOf steps(trace);
  for (int step = 0; step < 2; ++step) {
    call.run_function(0, joined(carried, additional));
    std::vector<Value> next = call.run_function(1, joined(carried, additional));
    check_carried(carried, next);
    carried = std::move(next);
    steps.next();
  }
  call.run_function(0, joined(carried, additional));
  for (Value& v : carried)
    if (is_integer(v)) v = unknown_integer(call);
  return carried;
}

// ---- gradient ----

/// The way back, from the last step to the first. How many steps there were is counted by running the loop once more,
/// and what went into each is computed anew from the start: nothing is kept, whatever the number, and n steps cost
/// about n * n / 2.
struct WayBack {
  ValueFunction condition, body, gradient;  // `gradient` is that of one step
  std::vector<size_t> wanted, given;        // inputs that have gradients, results that do
  size_t carried;

  /// A loop that counts its steps first of all it carries. The first `own` of the additional values are the
  /// condition's.
  std::vector<Value> count_steps(const Operator& op, const ValueFunction& goes_on, const std::vector<Value>& start,
                                 const std::vector<Value>& additional, size_t own) const {
    WayBack self = *this;
    auto step = [self, own](const std::vector<Value>& v) {
      std::vector<Value> inputs = joined(part(v, 1, 1 + self.carried), part(v, 1 + self.carried + own, v.size()));
      return joined({Value(v[0].tensor().add(1))}, self.body(inputs));
    };
    std::vector<Value> all = joined({Value(zeros(SymShape{}, {.dtype = DType::Int64}))}, start);
    return FunctionCall(op, {function_value(goes_on, true), function_value(step, true), Value(all), Value(additional)})
        .call();
  }

  /// What is carried after so many steps.
  std::vector<Value> advance(const Operator& op, const Tensor& steps, const std::vector<Value>& start,
                             const std::vector<Value>& additional) const {
    size_t limit = 1 + carried;
    auto goes_on = [limit](const std::vector<Value>& v) -> std::vector<Value> {
      return {Value(v[0].tensor().lt(v[limit].tensor()))};
    };
    std::vector<Value> all = count_steps(op, goes_on, start, joined({Value(steps)}, additional), 1);
    return part(all, 1, all.size());
  }

  bool is_carried(size_t input) const { return input < carried; }

  /// [steps left, gradients carried, sums for what every step is given, start, additional] to the first three.
  std::vector<Value> step_back(const Operator& op, const std::vector<Value>& v) const {
    size_t gradients = 1 + given.size(), state = 1 + wanted.size();
    Tensor left = v[0].tensor().sub(1);
    std::vector<Value> start = part(v, state, state + carried), additional = part(v, state + carried, v.size());
    std::vector<Value> before = advance(op, left, start, additional);
    std::vector<Value> found = gradient(joined(joined(before, additional), part(v, 1, gradients)));
    std::vector<Value> next{Value(left)};
    for (size_t k = 0, sum = gradients; k < wanted.size(); ++k)
      next.push_back(is_carried(wanted[k]) ? found[k] : Value(v[sum++].tensor().add(found[k].tensor())));
    return next;
  }

  std::vector<Tensor> run(const FunctionCall& saved, const std::vector<Tensor>& incoming) const {
    std::vector<Value> start = saved.list(kCarried), additional = saved.list(kAdditional),
                       inputs = joined(start, additional);
    WayBack self = *this;
    const Operator& op = saved.op();
    auto goes_on = [self](const std::vector<Value>& v) { return self.condition(part(v, 1, v.size())); };
    std::vector<Value> carry{count_steps(op, goes_on, start, additional, 0)[0]};
    for (size_t i : given) carry.push_back(Value(incoming[i]));
    for (size_t i : wanted)
      if (!is_carried(i)) carry.push_back(Value(zeros_like(inputs[i].tensor().detach())));
    auto any_left = [](const std::vector<Value>& v) -> std::vector<Value> { return {Value(v[0].tensor().gt(0))}; };
    auto back = [self, &op](const std::vector<Value>& v) { return self.step_back(op, v); };
    std::vector<Value> found =
        FunctionCall(op, {function_value(any_left, true), function_value(back, true), Value(carry), Value(inputs)})
            .call();
    return gradients_of(inputs, wanted, [&](size_t k, size_t) { return found[1 + k].tensor(); });
  }
};

FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  std::vector<Value> examples = call.inputs(1), weights;
  for (const Value& v : call.list(kCarried))
    check<NotImplementedError>(v.is_tensor(),
                               "while_loop: the gradient of a loop that carries an int cannot be captured "
                               "yet; carry a tensor");
  WayBack back;
  back.carried = call.list(kCarried).size();
  back.wanted = differentiable(examples);
  back.given = differentiable(results);
  for (size_t i : back.given) weights.push_back(stand_in(results[i]));
  back.gradient = function_gradient(call, 1, examples, back.wanted, weights, back.given);
  auto recorded = [&](size_t which) {
    return record_lowered([call, which](const std::vector<Value>& v) { return call.run_function(which, v); }, examples);
  };
  back.condition = recorded(0);
  back.body = recorded(1);
  return [back](const FunctionCall& saved, const std::vector<Tensor>& incoming) { return back.run(saved, incoming); };
}

const RegisterHigherOrder kWhileLoop({
    .schema = "while_loop(Callable cond_fn, Callable body_fn, Any[] carried_inputs, Any[] additional_inputs) -> Any[]",
    .graphs = {"while_loop_cond_graph_", "while_loop_body_graph_"},
    .operands = kAdditional,
    .inputs = inputs,
    .run = run,
    .results = results,
    .rehearse = rehearse,
    .gradient = gradient,
    .single_result = 0,
});

}  // namespace

std::vector<Value> while_loop(const ValueFunction& condition, const ValueFunction& body,
                              const std::vector<Value>& carried) {
  return FunctionCall(*kWhileLoop.op,
                      {function_value(condition), function_value(body), Value(carried), Value(std::vector<Value>{})})
      .call();
}

}  // namespace umbra
