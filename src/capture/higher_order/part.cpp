// Operators that call one function once, so that it stays a part of its own in the graph: invoke_subgraph, strict_mode,
// run_const_graph.
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"

namespace umbra {

namespace {

std::vector<Value> operands(const FunctionCall& call, size_t) { return call.list(call.rule().operands); }

std::vector<Value> run(const FunctionCall& call) { return call.run_function(0, operands(call, 0)); }

std::vector<Value> results(const FunctionCall&, const std::vector<std::vector<Value>>& of) { return fresh(of[0]); }

/// The same operator once more, of the function's gradient.
FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  std::vector<Value> inputs = operands(call, 0), weights;
  std::vector<size_t> wanted = requiring_gradients(inputs), given = differentiable(results);
  for (size_t i : given) weights.push_back(results[i]);
  Value function = function_value(function_gradient(call, 0, inputs, wanted, weights, given), true);
  return [=](const FunctionCall& saved, const std::vector<Tensor>& incoming) {
    std::vector<Value> before = operands(saved, 0), all = before;
    for (size_t i : given) all.push_back(Value(incoming[i]));
    FunctionCall backward = saved;
    backward.set_argument(saved.functions()[0], function);
    backward.set_argument(saved.rule().operands, Value(std::move(all)));
    std::vector<Value> found = backward.call();
    return gradients_of(before, wanted, [&](size_t k, size_t) { return found[k].tensor(); });
  };
}

const RegisterHigherOrder kInvokeSubgraph({
    .schema = "invoke_subgraph(Callable subgraph, Any identifier, Any[] operands) -> Any[]",
    .graphs = {"repeated_subgraph"},
    .operands = 2,
    .inputs = operands,
    .run = run,
    .results = results,
    .gradient = gradient,
    .spreads_operands = true,
});

const RegisterHigherOrder kStrictMode({
    .schema = "strict_mode(Callable callable, Any[] operands) -> Any[]",
    .graphs = {"strict_graph_"},
    .operands = 1,
    .inputs = operands,
    .run = run,
    .results = results,
    .gradient = gradient,
});

const RegisterHigherOrder kRunConstGraph({
    .schema = "run_const_graph(Callable graph, Any[] args) -> Any[]",
    .graphs = {"_const_graph"},
    .operands = 1,
    .inputs = operands,
    .run = run,
    .results = results,
    .gradient = gradient,
});

}  // namespace
}  // namespace umbra
