// map: a function called on each row, its results stacked.
#include "capture/higher_order/metadata.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kFunction, kRows, kAdditional };

std::vector<Value> inputs(const FunctionCall& call, size_t) {
  row_count("map", call.list(kRows));
  std::vector<Value> out;
  for (const Value& v : call.list(kRows)) out.push_back(row_stand_in(v));
  return joined(std::move(out), call.list(kAdditional));
}

std::vector<Value> run(const FunctionCall& call) {
  std::vector<Value> all = call.list(kRows), additional = call.list(kAdditional);
  int64_t count = row_count("map", all).guard_int();
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(call.run_function(0, joined(row(all, i), additional)));
  return stack_rows(rows);
}

std::vector<Value> results(const FunctionCall& call, const std::vector<std::vector<Value>>& of) {
  return fresh_stacked(of[0], row_count("map", call.list(kRows)));
}

/// A map of the function's gradient over the rows and the gradients of their results; what every row is given gets the
/// sum.
FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  std::vector<Value> rows = call.list(kRows), additional = call.list(kAdditional), weights;
  std::vector<size_t> wanted = requiring_gradients(joined(rows, additional)), given = differentiable(results);
  for (size_t i : given) weights.push_back(row_stand_in(results[i]));
  ValueFunction of_row = function_gradient(call, 0, call.inputs(0), wanted, weights, given);
  size_t row_inputs = rows.size(), weight_count = given.size();
  // Gradients of results come in as rows, too: before what every row is given, where the function has them last.
  ValueFunction function = [=](const std::vector<Value>& values) {
    auto at = [&](size_t i) { return values.begin() + static_cast<ptrdiff_t>(i); };
    std::vector<Value> arranged(values.begin(), at(row_inputs));
    arranged.insert(arranged.end(), at(row_inputs + weight_count), values.end());
    arranged.insert(arranged.end(), at(row_inputs), at(row_inputs + weight_count));
    return of_row(arranged);
  };
  return [=](const FunctionCall& saved, const std::vector<Tensor>& incoming) {
    std::vector<Value> all = saved.list(kRows), shared = saved.list(kAdditional), inputs = joined(all, shared);
    for (size_t i : given) all.push_back(Value(incoming[i]));
    std::vector<Value> found =
        FunctionCall(saved.op(), {function_value(function, true), Value(std::move(all)), Value(shared)}).call();
    return gradients_of(inputs, wanted, [&](size_t k, size_t i) {
      return i < row_inputs ? found[k].tensor() : found[k].tensor().sum({0});
    });
  };
}

const RegisterHigherOrder kMap({
    .schema = "map_impl(Callable f, Any[] xs, Any[] pos_args) -> Any[]",
    .graphs = {"body_graph_"},
    .operands = kAdditional,
    .inputs = inputs,
    .run = run,
    .results = results,
    .gradient = gradient,
    .prints_lists = true,
    .prints_empty_lists = true,
    .public_name = "map",
});

}  // namespace

std::vector<Value> map(const ValueFunction& function, const std::vector<Value>& inputs) {
  return FunctionCall(*kMap.op, {function_value(function), Value(inputs), Value(std::vector<Value>{})}).call();
}

}  // namespace umbra
