#include "umbra/capture/higher_order.h"

#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/passes.h"

namespace umbra {

namespace {

bool is_true(const Tensor& predicate) {
  check(predicate.numel() == 1, "Expected pred to be bool or single-element tensor, but got a tensor of ",
        predicate.numel(), " elements");
  return predicate.item().to_bool();
}

/// A branch as a graph of its own: its inputs are the operands, then what it closes over.
struct Branch {
  IntrusivePtr<fx::GraphModule> module;
  std::vector<Value> results;
};

/// Records a branch with the layer that records the caller, on the same (fake) operands.
Branch record_branch(Tracer& outer, const ValueFunction& function, const std::vector<Value>& operands,
                     std::vector<Value>& closed_over) {
  Branch branch{make_counted<fx::GraphModule>(make_counted<fx::Graph>()), {}};
  auto inner = make_counted<Tracer>(outer.key(), branch.module);
  inner->decompositions = outer.decompositions;
  inner->locations = outer.locations;
  fx::Node* last = nullptr;
  auto add = [&](const Value& value) {
    last = inner->add_input("arg" + std::to_string(branch.module->graph().size()) + "_1", value);
    return last;
  };
  for (const Value& v : operands) add(v);
  for (const Value& v : closed_over) add(v);
  // What the branch meets and did not make was closed over: it becomes a further operand of both branches.
  auto lift = [&](const Value& value) {
    closed_over.push_back(value);
    return last = inner->add_input_after(last, "arg" + std::to_string(operands.size() + closed_over.size() - 1) + "_1", value);
  };
  inner->on_constant = [&](const Tensor& tensor) { return lift(Value(tensor)); };
  inner->on_symbol = lift;
  {
    WithoutMode without(outer.key());
    EnterMode scope(inner);
    branch.results = function(operands);
  }
  inner->set_output(branch.results);
  fx::eliminate_dead_code(branch.module->graph());
  return branch;
}

bool same_metadata(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.device() == b.device() && a.dim() == b.dim() &&
         to_string(a.sym_sizes()) == to_string(b.sym_sizes());
}

std::string describe(const Tensor& t) {
  return concat("shape=", to_string(t.sym_sizes()), ", dtype=", t.dtype(), ", device=", t.device());
}

void check_same_outputs(const Branch& a, const Branch& b) {
  check<UserError>(a.results.size() == b.results.size(),
                   "Unmatched number of outputs from cond() branches: true branch gives ", a.results.size(),
                   ", false branch gives ", b.results.size());
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (!a.results[i].is_tensor() || !b.results[i].is_tensor()) continue;
    const Tensor &x = a.results[i].tensor_ref(), &y = b.results[i].tensor_ref();
    check<UserError>(same_metadata(x, y), "Expected each tensor to have same metadata but got:\n  true branch returns ",
                     describe(x), "\n  false branch returns ", describe(y));
  }
}

/// The results of the call as tensors of its own. Fake ones are like those of either branch; with data, the predicate
/// decides.
std::vector<Value> fresh_results(const Tensor& predicate, const Branch& yes, const Branch& no) {
  bool has_data = !predicate.is_fake();
  std::vector<Value> out;
  for (const Value& v : has_data && !is_true(predicate) ? no.results : yes.results)
    out.push_back(v.is_tensor() ? Value(has_data ? v.tensor_ref().clone() : empty_like(v.tensor_ref())) : v);
  return out;
}

std::vector<Value> record_cond(Tracer& tracer, const Value& predicate, const ValueFunction& true_function,
                               const ValueFunction& false_function, const std::vector<Value>& operands) {
  std::vector<Value> closed_over;
  Branch yes = record_branch(tracer, true_function, operands, closed_over);
  size_t known = closed_over.size();
  Branch no = record_branch(tracer, false_function, operands, closed_over);
  if (closed_over.size() > known) {  // the false branch closes over more: the true one is recorded with the same inputs
    std::vector<Value> all = closed_over;
    yes = record_branch(tracer, true_function, operands, all);
  }
  check_same_outputs(yes, no);
  std::vector<Value> results;
  {
    ExcludeKeys off(tracer.key());
    results = fresh_results(predicate.tensor_ref(), yes, no);
  }
  fx::Arguments inputs;
  for (const Value& v : operands) inputs.push_back(tracer.argument(v));
  for (const Value& v : closed_over) inputs.push_back(tracer.argument(v));
  fx::Argument condition = tracer.argument(predicate);
  auto attribute = [&](const char* prefix, const IntrusivePtr<fx::GraphModule>& branch) {
    std::string path = tracer.module()->unused_path(prefix);
    tracer.module()->set_submodule(path, branch);
    return tracer.graph().get_attr(path);
  };
  fx::Node* true_graph = attribute("true_graph_", yes.module);
  fx::Node* false_graph = attribute("false_graph_", no.module);
  tracer.record_call(fx::function("torch.ops.higher_order.cond"),
                     {condition, true_graph, false_graph, fx::Argument::tuple(std::move(inputs))}, Value(results));
  return results;
}

/// What a graph's cond computes: the chosen branch on the operands.
Value evaluate_cond(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 4, "cond takes a predicate, two branches and operands");
  const Value& predicate = arguments[0];
  bool chosen = predicate.is_tensor() ? is_true(predicate.tensor_ref()) : predicate.to_bool();
  std::vector<Value> operands;
  if (arguments[3].is_tensor_list())
    for (const Tensor& t : arguments[3].tensor_list()) operands.push_back(Value(t));
  else if (arguments[3].tag() == Value::Tag::List)
    operands = arguments[3].list().vec();
  else if (arguments[3].is_int_list())
    for (SymInt v : arguments[3].int_list()) operands.push_back(Value(v));
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
[[maybe_unused]] const fx::Function& kWithGradMode = fx::define_function(
    {.name = "torch.ops.higher_order.wrap_with_set_grad_enabled", .format = {}, .evaluate = evaluate_with_grad_mode});

}  // namespace

std::vector<Value> cond(const Value& predicate, const ValueFunction& true_function, const ValueFunction& false_function,
                        const std::vector<Value>& operands) {
  check(predicate.is_tensor() || predicate.is_scalar(), "Expected pred to be bool or tensor, but got ",
        tag_name(predicate.tag()));
  if (!predicate.is_tensor()) return (predicate.to_bool() ? true_function : false_function)(operands);
  for (DispatchKey key : {DispatchKey::PreProxy, DispatchKey::Proxy})
    if (Tracer* tracer = active_tracer(key); tracer && !dispatch_state().exclude.has(key))
      return record_cond(*tracer, predicate, true_function, false_function, operands);
  return (is_true(predicate.tensor_ref()) ? true_function : false_function)(operands);
}

}  // namespace umbra
