// Recording of `cond`: branches as graphs of their own.
#include "capture/cond.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/passes.h"

namespace umbra {

bool is_true(const Tensor& predicate) {
  check(predicate.numel() == 1, "Expected pred to be bool or single-element tensor, but got a tensor of ",
        predicate.numel(), " elements");
  return predicate.item().to_bool();
}

namespace {

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
  inner->sizes_after_inputs = outer.sizes_after_inputs;
  inner->refuses_data = outer.refuses_data;
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
    return last = inner->add_input_after(last, "arg" + std::to_string(operands.size() + closed_over.size() - 1) + "_1",
                                         value);
  };
  inner->on_constant = [&](const Tensor& tensor) { return lift(Value(tensor)); };
  inner->on_symbol = lift;
  {
    WithoutMode without(outer.key());
    EnterMode scope(inner);
    branch.results = function(operands);
  }
  inner->set_output(branch.results);
  remove_unused_sizes(branch.module->graph());
  return branch;
}

template <class T> void check_same(const char* what, const T& a, const T& b) {
  if (!(a == b))
    fail<UserError>("When merging two branches' output in torch.cond,  expected same ", what, " but got ", a, " and ",
                    b, ".");
}

void check_same_kind(const std::vector<Value>& a, const std::vector<Value>& b) {
  check<UserError>(a.size() == b.size(), "Unmatched number of outputs from cond() branches: true branch gives ",
                   a.size(), ", false branch gives ", b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    auto is_number = [](const Value& v) { return v.is_int() || v.is_sym_int(); };
    bool tensors = a[i].is_tensor() && b[i].is_tensor();
    check<UserError>(tensors || (is_number(a[i]) && is_number(b[i])),
                     "torch.cond: unsupported branch return type (constant non-int)\n"
                     "  Explanation: Constants returned from branches must be ints; result ",
                     i, " is ", tag_name(a[i].tag()), " in the true branch and ", tag_name(b[i].tag()),
                     " in the false branch");
    if (!tensors) continue;
    const Tensor &x = a[i].tensor_ref(), &y = b[i].tensor_ref();
    check_same("dtype", x.dtype(), y.dtype());
    check_same("device", x.device(), y.device());
    check_same("dim", x.dim(), y.dim());
  }
}

/// The same where one graph's results have to serve for both branches.
void check_same_results(const std::vector<Value>& a, const std::vector<Value>& b) {
  check_same_kind(a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_tensor())
      check_same("size", to_string(a[i].tensor_ref().sym_sizes()), to_string(b[i].tensor_ref().sym_sizes()));
    else check_same("number", to_string(a[i].to_sym_int()), to_string(b[i].to_sym_int()));
  }
}

/// The results of the call as tensors of its own. Fake ones are like those of either branch; with data, the predicate
/// decides.
std::vector<Value> fresh_results(const Tensor& predicate, const Branch& yes, const Branch& no) {
  bool has_data = predicate.storage()->has_data();
  std::vector<Value> out;
  for (const Value& v : has_data && !is_true(predicate) ? no.results : yes.results)
    out.push_back(v.is_tensor() ? Value(has_data ? v.tensor_ref().clone() : empty_like(v.tensor_ref())) : v);
  return out;
}

/// The input of the graph that lies in the same memory, or null.
const fx::Node* input_behind(const fx::Graph& graph, const Value& value) {
  if (!value.is_tensor()) return nullptr;
  for (const fx::Node* input : graph.placeholders())
    if (const Value& given = input->meta.val;
        given.is_tensor() && given.tensor_ref().storage() == value.tensor_ref().storage())
      return input;
  return nullptr;
}

/// Which branch is taken must not show in anything but the results, and those must be the call's own.
void refuse_aliases(const fx::Graph& graph, const std::vector<Value>& results) {
  constexpr const char* kText =
      "Encountered aliasing during higher order op tracing\n  Higher Order Operator: torch.cond\n"
      "  Explanation: Higher order ops do not support aliasing. Found in cond\n"
      "  Hint: Replace `return input` with `return input.clone()` to avoid aliasing.\n  ";
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor()) continue;
    if (const fx::Node* input = input_behind(graph, results[i]))
      fail<UserError>(kText, "Input-to-output aliasing: result ", i, " is or is a view of ", input->name());
    for (size_t k = 0; k < i; ++k)
      if (results[k].is_tensor() && results[k].tensor_ref().storage() == results[i].tensor_ref().storage())
        fail<UserError>(kText, "Output-to-output aliasing: results ", k, " and ", i, " lie in the same memory");
  }
}

void refuse_written_inputs(const fx::Graph& graph) {
  for (const fx::Node* node : graph.nodes()) {
    const Operator* op = node->target().op();
    if (!op || !op->is_mutable()) continue;
    const auto& arguments = op->schema().arguments;
    for (size_t i = 0; i < node->args().size(); ++i)
      if (fx::Node* written = node->args()[i].node(); written && arguments[i].alias.write)
        if (const fx::Node* input = input_behind(graph, written->meta.val))
          fail<UserError>(
              "Encountered input mutation during higher order op tracing\n  Higher Order Operator: torch.cond\n"
              "  Explanation: Higher order ops do not support input mutation. Found in cond\n  A branch writes ",
              input->name(), ", an operand or a tensor from outside, by ", op->name(),
              ": return the new value instead.");
  }
}

}  // namespace

std::vector<Value> record_cond(Tracer& tracer, const Tensor& predicate, const ValueFunction& true_function,
                               const ValueFunction& false_function, const std::vector<Value>& operands) {
  std::vector<Value> closed_over;
  Branch yes = record_branch(tracer, true_function, operands, closed_over);
  size_t known = closed_over.size();
  Branch no = record_branch(tracer, false_function, operands, closed_over);
  if (closed_over.size() > known) {  // the false branch closes over more: the true one is recorded with the same inputs
    std::vector<Value> all = closed_over;
    yes = record_branch(tracer, true_function, operands, all);
  }
  check_same_results(yes.results, no.results);
  if (tracer.key() == DispatchKey::PreProxy) {  // the user's branches; below, layers have made them theirs
    for (const Branch* branch : {&yes, &no}) {
      refuse_written_inputs(branch->module->graph());
      refuse_aliases(branch->module->graph(), branch->results);
    }
  }
  std::vector<Value> results;
  {
    ExcludeKeys off(tracer.key());
    results = fresh_results(predicate, yes, no);
  }
  fx::Arguments inputs;
  for (const Value& v : operands) inputs.push_back(tracer.argument(v));
  for (const Value& v : closed_over) inputs.push_back(tracer.argument(v));
  fx::Argument condition = tracer.argument(Value(predicate));
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

std::vector<Value> either_result(const ValueFunction& true_function, const ValueFunction& false_function,
                                 const std::vector<Value>& operands) {
  std::vector<Value> yes = true_function(operands), no = false_function(operands);
  check_same_results(yes, no);
  for (Value& v : yes)
    if (v.is_tensor()) v = Value(empty_like(v.tensor_ref()));
  return yes;
}

ValueFunction record_function(const ValueFunction& function, const std::vector<Value>& inputs) {
  auto module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
  auto tracer = make_counted<Tracer>(DispatchKey::Proxy, module);
  for (const Value& v : inputs) tracer->add_input("arg" + std::to_string(module->graph().size()) + "_1", v);
  {
    WithoutMode without_tracer(DispatchKey::Proxy);
    EnterMode scope(tracer);
    tracer->set_output(function(inputs));
  }
  fx::eliminate_dead_code(module->graph());
  return [module](const std::vector<Value>& given) { return module->run(given); };
}

std::vector<Tensor> find_closed_over(const std::vector<ValueFunction>& branches, const std::vector<Value>& operands) {
  std::vector<Tensor> closed_over;
  std::vector<std::vector<Value>> results;
  // A graph that nobody keeps, recorded above all other layers: what it does not know is closed over.
  WithoutMode without_tracer(DispatchKey::Proxy);
  for (const ValueFunction& branch : branches) {
    auto module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    auto tracer = make_counted<Tracer>(DispatchKey::PreProxy, module);
    fx::Node* last = nullptr;
    auto name = [&] { return "arg" + std::to_string(module->graph().size()) + "_1"; };
    for (const Value& v : operands) last = tracer->add_input(name(), v);
    for (const Tensor& t : closed_over) last = tracer->add_input(name(), Value(t));
    auto meet = [&](const Value& value) { return last = tracer->add_input_after(last, name(), value); };
    tracer->on_constant = [&](const Tensor& tensor) {
      closed_over.push_back(tensor);
      return meet(Value(tensor));
    };
    tracer->on_symbol = meet;  // numbers are the same in all layers
    EnterMode scope(tracer);
    results.push_back(branch(operands));
    tracer->set_output(results.back());
    refuse_written_inputs(module->graph());
    refuse_aliases(module->graph(), results.back());
  }
  check_same_kind(results[0], results[1]);
  return closed_over;
}

void check_branches(const ValueFunction& true_function, const ValueFunction& false_function,
                    const std::vector<Value>& operands) {
  FakeOptions options{.shape_env = make_counted<sym::ShapeEnv>(), .allow_non_fake_inputs = true};
  options.allow_scalar_outputs = options.allow_dynamic_output_shapes = true;
  auto mode = make_counted<FakeModeImpl>(std::move(options));
  std::vector<Value> stand_ins;
  for (const Value& v : operands) stand_ins.push_back(v.is_tensor() ? Value(mode->from_tensor(v.tensor_ref())) : v);
  EnterMode scope(mode);
  find_closed_over({true_function, false_function}, stand_ins);
}

}  // namespace umbra
