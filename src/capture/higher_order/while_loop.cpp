// while_loop: a function called on its own results for as long as a condition of them holds.
#include "capture/higher_order/while_loop.h"

#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/capture/needs_symbols.h"
#include "umbra/fake/cost.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kCondition, kBody, kCarried, kAdditional };

/// An integer that is carried: what it is in one step or in the end, only the run tells.
Value unknown_integer(const FunctionCall& call) {
  sym::ShapeEnv* env = symbols_for(call);
  check<NeedsSymbols>(env,
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
    check<UserError>(same,
                     "Expected body_fn_output and carried_inputs to have same metadata but found:\ncarried value ", i,
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

/// The way back, for whoever calls it with these functions.
FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  for (const Value& v : call.list(kCarried))
    check<NotImplementedError>(v.is_tensor(),
                               "while_loop: the gradient of a loop that carries an int cannot be captured "
                               "yet; carry a tensor");
  std::vector<Value> examples = call.inputs(1), weights;
  std::vector<size_t> wanted = differentiable(examples), given = differentiable(results);
  for (size_t i : given) weights.push_back(stand_in(results[i]));
  ValueFunction of_step = function_gradient(call, 1, examples, wanted, weights, given);
  auto recorded = [&](size_t which) {
    return record_lowered(with_history(call, which), examples, plain_function(call, which));
  };
  ValueFunction condition = recorded(0), body = recorded(1);
  return [=](const FunctionCall& saved, const std::vector<Tensor>& incoming) {
    std::vector<Value> carried = saved.list(kCarried), additional = saved.list(kAdditional), gradients;
    for (size_t i : given) gradients.push_back(Value(incoming[i]));
    std::vector<Value> found = while_loop_way_back({condition, body, of_step}, carried, gradients, additional);
    return gradients_of(joined(carried, additional), wanted, [&](size_t k, size_t) { return found[k].tensor(); });
  };
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
    .steps = {{kCarried, 1}},
    .carried = kCarried,
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
