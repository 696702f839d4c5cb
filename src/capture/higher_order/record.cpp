// Recording: a function becomes a graph of its own, with what it closes over among its inputs.
#include <cstring>
#include <unordered_set>

#include "capture/higher_order/layers.h"
#include "core/per_thread.h"
#include "fake/own_numbers.h"
#include "umbra/capture/operand_order.h"
#include "umbra/capture/tracer.h"
#include "umbra/dispatch/effects.h"
#include "umbra/graph/passes.h"

namespace umbra {

namespace {

/// A recorded function.
struct Recorded {
  IntrusivePtr<fx::GraphModule> module;
  std::vector<Value> results;
};

/// The constants that a function writes out (torch.tensor([1, 2])): each run makes them anew, and they mean those of
/// the run before, in the same order.
class Literals {
 public:
  void start() { next_ = 0; }

  /// The constant that this one was before; undefined where it is new.
  Tensor earlier(const Tensor& tensor) {
    if (next_ == met_.size() || tensor.is_fake() || !is_equal(met_[next_], tensor)) return {};
    return met_[next_++];
  }

  /// After a run: what is used by nothing but a copy was written out there.
  void note(const Tensor& tensor, const fx::Node& node) {
    static const Operator& copies = get_operator("aten::lift_fresh_copy");
    bool written_out = std::ranges::all_of(node.users(), [](const fx::Node* user) { return user->calls(copies); });
    if (written_out && !node.users().empty() && !tensor.is_fake()) met_.push_back(tensor);
  }

 private:
  static bool is_equal(const Tensor& a, const Tensor& b) {
    if (a.dtype() != b.dtype() || a.sym_sizes() != b.sym_sizes() || a.sym_strides() != b.sym_strides()) return false;
    const StorageImpl &x = *a.storage(), &y = *b.storage();
    return x.has_data() && y.has_data() && x.bytes() == y.bytes() &&
           std::memcmp(x.data(), y.data(), static_cast<size_t>(x.bytes().value())) == 0;
  }
  std::vector<Tensor> met_;
  size_t next_ = 0;
};

/// What autograd kept of results for a history that nobody uses.
void leave_out_kept(fx::Graph& graph) {
  static const Operator& detach = get_operator("aten::detach");
  std::vector<fx::Node*> found;
  for (fx::Node* node : graph.nodes())
    if (node->op() == fx::Op::CallFunction && node->calls(detach) && node->users().empty()) found.push_back(node);
  for (fx::Node* node : found) graph.erase_node(node);
}

/// Runs a function with the layer that records the caller, on such inputs; `own` of them are handed to it, the others
/// it closes over. What it meets besides is added to `closed_over`.
Recorded record_one(Tracer& outer, const Value& function, const std::vector<Value>& inputs, size_t own,
                    std::vector<Value>& closed_over, Literals& literals) {
  Recorded out{make_counted<fx::GraphModule>(make_counted<fx::Graph>()), {}};
  auto inner = make_counted<Tracer>(outer.key(), out.module);
  inner->decompositions = outer.decompositions;
  inner->locations = outer.locations;
  inner->sizes_after_inputs = outer.sizes_after_inputs;
  inner->refuses_data = outer.refuses_data;
  fx::Node* last = nullptr;
  size_t count = 0;
  auto name = [&] { return "arg" + std::to_string(count++) + "_1"; };
  for (const Value& v : inputs) last = inner->add_input(name(), v);
  auto lift = [&](const Value& value) {
    closed_over.push_back(value);
    return last = inner->add_input_after(last, name(), value);
  };
  size_t known = closed_over.size();
  literals.start();
  inner->on_constant = [&](const Tensor& tensor) {
    Tensor earlier = literals.earlier(tensor);
    fx::Node* node = earlier.defined() ? inner->node_of(earlier) : lift(Value(tensor));
    if (earlier.defined()) inner->alias(tensor, node);
    return node;
  };
  inner->on_symbol = lift;
  {
    WithoutMode without(outer.key());
    EnterMode scope(inner);
    OwnNumbers own_numbers;
    out.results = call_function(function, {inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(own)});
  }
  inner->set_output(out.results);
  if (shows_history()) leave_out_kept(out.module->graph());
  remove_unused_sizes(out.module->graph());
  for (size_t i = known; i < closed_over.size(); ++i)
    if (closed_over[i].is_tensor())
      literals.note(closed_over[i].tensor_ref(), *inner->node_of(closed_over[i].tensor_ref()));
  return out;
}

/// All functions of a call, as graphs of the same inputs.
struct RecordedCall {
  std::vector<Recorded> functions;
  std::vector<Value> closed_over;
};

RecordedCall record_all(Tracer& tracer, const FunctionCall& call) {
  RecordedCall out;
  std::vector<size_t> positions = call.functions();
  out.functions.resize(positions.size());
  std::vector<size_t> known(positions.size(), SIZE_MAX);
  std::vector<Literals> literals(positions.size());
  // A function that closes over more makes the earlier ones be recorded once more, with the same inputs.
  constexpr int kMostRuns = 64;
  int runs = 0;
  for (bool again = true; again;) {
    again = false;
    check(++runs <= kMostRuns, public_name(call), ": a function uses other constants each time it is run");
    for (size_t which = 0; which < positions.size(); ++which) {
      if (known[which] == out.closed_over.size()) continue;
      std::vector<Value> inputs = call.inputs(which);
      size_t own = inputs.size();
      inputs.insert(inputs.end(), out.closed_over.begin(), out.closed_over.end());
      out.functions[which] =
          record_one(tracer, call.argument(positions[which]), inputs, own, out.closed_over, literals[which]);
      known[which] = out.closed_over.size();
      again = true;
    }
  }
  return out;
}

bool all_data(const FunctionCall& call) {
  for (const Tensor& t : call.tensors())
    if (!t.storage()->has_data()) return false;
  return true;
}

fx::Node* add_graph(Tracer& tracer, const char* prefix, const IntrusivePtr<fx::GraphModule>& graph) {
  std::string path = tracer.module()->unused_path(prefix);
  tracer.module()->set_submodule(path, graph);
  return tracer.graph().get_attr(path);
}

/// The graph of a function that gives one value gives it as it is.
void give_one_value(fx::Graph& graph) {
  fx::Node* output = graph.output_node();
  fx::Argument all = output->args()[0];
  check(all.items().size() == 1, "a condition gives one value, this one gives ", all.items().size());
  output->set_args({all.items()[0]});
}

void give_a_list(fx::Graph& graph) {
  fx::Node* output = graph.output_node();
  output->set_args({fx::Argument::list(output->args()[0].items())});
}

/// Puts the inputs of a function's graph into another order: those up to `first`, and then `order` of the others. What
/// is left out is used by nobody.
void arrange_inputs(fx::Graph& graph, size_t first, const std::vector<size_t>& order) {
  std::vector<fx::Node*> inputs = graph.placeholders(),
                         kept(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(first));
  for (size_t i : order) kept.push_back(inputs.at(first + i));
  for (size_t i = 1; i < kept.size(); ++i) kept[i]->move_after(kept[i - 1]);
  for (fx::Node* input : inputs)
    if (std::ranges::find(kept, input) == kept.end()) graph.erase_node(input);
}

/// The call with all that its functions use among its operands, in the caller's order where it has one: `first` inputs
/// of the functions stay where they are.
FunctionCall whole_call(const FunctionCall& call, const RecordedCall& recorded) {
  FunctionCall whole = call.with_operands(recorded.closed_over);
  if (!operand_order()) return whole;
  std::vector<Value> operands = whole.list(call.rule().operands);
  size_t first = call.inputs(0).size() - call.list(call.rule().operands).size();
  std::vector<std::vector<bool>> used;
  for (const Recorded& function : recorded.functions) {
    std::vector<fx::Node*> inputs = function.module->graph().placeholders();
    std::vector<bool>& uses = used.emplace_back();
    for (size_t i = first; i < inputs.size(); ++i) uses.push_back(!inputs[i]->users().empty());
  }
  std::vector<size_t> order = operand_order()(operands, used);
  std::vector<Value> arranged;
  for (size_t i : order) arranged.push_back(operands.at(i));
  for (const Recorded& function : recorded.functions) arrange_inputs(function.module->graph(), first, order);
  whole.set_argument(call.rule().operands, Value(std::move(arranged)));
  return whole;
}

fx::Arguments node_arguments(Tracer& tracer, const FunctionCall& call, const RecordedCall& recorded) {
  const HigherOrder& rule = call.rule();
  bool above = tracer.key() == DispatchKey::PreProxy;
  FunctionCall whole = above ? whole_call(call, recorded) : call.with_operands(recorded.closed_over);
  // What is computed for the call comes before its graphs are named.
  std::vector<fx::Argument> plain(call.op().argument_count());
  const auto& schema = call.op().schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].type.base == SchemaType::Base::Callable) continue;
    if (!schema[i].type.list) {
      plain[i] = tracer.argument(whole.argument(i));
      continue;
    }
    fx::Arguments items;
    for (const Value& v : whole.list(i)) items.push_back(tracer.argument(v));
    bool as_list = items.empty() ? rule.prints_empty_lists : rule.prints_lists && schema[i].name != "additional_inputs";
    plain[i] = as_list ? fx::Argument::list(std::move(items)) : fx::Argument::tuple(std::move(items));
  }
  size_t which = 0;
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].type.base == SchemaType::Base::Callable) {
      plain[i] = add_graph(tracer, rule.graphs[which], recorded.functions[which].module);
      ++which;
    }
  if (rule.spreads_operands) {
    fx::Arguments operands = plain.back().items();
    plain.pop_back();
    plain.insert(plain.end(), operands.begin(), operands.end());
  }
  return plain;
}

/// A loop must do the same in each step, also where only later ones carry what needs gradients.
void check_steps(FunctionCall call) {
  if (call.rule().carried >= call.op().argument_count()) return;
  WithoutMode without_the_program(DispatchKey::PreProxy);
  note_history(call);
}

}  // namespace

OperandOrder& operand_order() {
  static PerThread<OperandOrder> order;
  return *order;
}

namespace {

void record_functions(const Operator& op, DispatchKeySet keys, Value* frame) {
  DispatchKey key = keys.highest();
  Tracer& tracer = *active_tracer(key);
  FunctionCall call(op, frame);
  RecordedCall recorded = record_all(tracer, call);
  std::vector<std::vector<Value>> of_functions;
  for (size_t which = 0; which < recorded.functions.size(); ++which) {
    Recorded& function = recorded.functions[which];
    // The user's functions; below, layers have made them theirs.
    if (key == DispatchKey::PreProxy) refuse_effects(call, function.module->graph(), function.results);
    of_functions.push_back(function.results);
    if (which == call.rule().single_result) give_one_value(function.module->graph());
    if (call.rule().lists_results) give_a_list(function.module->graph());
  }
  std::vector<Value> results;
  {
    ExcludeKeys off(key);
    results = call.rule().results(call, of_functions);  // refuses what the functions give differently
    if (all_data(call)) results = call.redispatch(keys.below(key));
  }
  if (key == DispatchKey::PreProxy) {
    // Derivatives are those of the functions: their graphs do not tell a custom function's gradient.
    FunctionCall closed = closed_over(call, recorded.closed_over);
    if (needs_gradients(closed)) check_steps(call);
    results = with_recorded_gradient(closed, std::move(results));
  }
  fx::Node* made = tracer.record_call(fx::function("torch.ops.higher_order." + op.schema().name),
                                      node_arguments(tracer, call, recorded), Value(results));
  for (fx::Node* given : made->inputs()) {
    if (given->op() != fx::Op::GetAttr) continue;
    given->meta.source = made->meta.source;
    given->meta.modules = made->meta.modules;
  }
  frame[0] = Value(std::move(results));
}

const RegisterFunctionLayer kProxy(DispatchKey::Proxy, record_functions);
const RegisterFunctionLayer kPreProxy(DispatchKey::PreProxy, record_functions);

// ---- what a captured function must not do ----

/// The input of the graph that lies in the same memory, or null.
const fx::Node* input_behind(const fx::Graph& graph, const Value& value) {
  if (!value.is_tensor()) return nullptr;
  for (const fx::Node* input : graph.placeholders())
    if (const Value& given = input->meta.val;
        given.is_tensor() && given.tensor_ref().storage() == value.tensor_ref().storage())
      return input;
  return nullptr;
}

void refuse_aliases(const std::string& name, const fx::Graph& graph, const std::vector<Value>& results) {
  std::string text = "Encountered aliasing during higher order op tracing\n  Higher Order Operator: " + name +
                     "\n  Explanation: Higher order ops do not support aliasing. Found in " + name.substr(6) +
                     "\n  Hint: Replace `return input` with `return input.clone()` to avoid aliasing.\n  ";
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor()) continue;
    if (const fx::Node* input = input_behind(graph, results[i]))
      fail<UserError>(text, "Input-to-output aliasing: result ", i, " is or is a view of ", input->name());
    for (size_t k = 0; k < i; ++k)
      if (results[k].is_tensor() && results[k].tensor_ref().storage() == results[i].tensor_ref().storage())
        fail<UserError>(text, "Output-to-output aliasing: results ", k, " and ", i, " lie in the same memory");
  }
}

void refuse_writes(const std::string& name, const fx::Graph& graph) {
  for (const fx::Node* node : graph.nodes()) {
    const Operator* op = node->target().op();
    if (!op || !op->is_mutable()) continue;
    const auto& arguments = op->schema().arguments;
    for (size_t i = 0; i < node->args().size(); ++i)
      if (fx::Node* written = node->args()[i].node(); written && arguments[i].alias.write)
        if (const fx::Node* input = input_behind(graph, written->meta.val))
          fail<UserError>("Encountered input mutation during higher order op tracing\n  Higher Order Operator: ", name,
                          "\n  Explanation: Higher order ops do not support input mutation. Found in ", name.substr(6),
                          "\n  A function writes ", input->name(), ", an operand or a tensor from outside, by ",
                          op->name(), ": return the new value instead.");
  }
}

}  // namespace

std::string public_name(const FunctionCall& call) {
  const char* name = call.rule().public_name;
  return std::string("torch.") + (name ? name : call.op().schema().name);
}

// Which function runs, and how often, must not show in anything but the results, and those must be the call's own.
void refuse_effects(const FunctionCall& call, const fx::Graph& graph, const std::vector<Value>& results) {
  refuse_writes(public_name(call), graph);
  refuse_aliases(public_name(call), graph, results);
}

namespace {

/// Random numbers, or an effect, in a call or in a graph that it calls: a second call does not give what the first
/// gave.
const fx::Node* differs_when_repeated(const fx::GraphModule& module, const fx::Node& node) {
  if (const Operator* op = node.target().op())
    return op->definition().random || op->has_tag(Tag::NondeterministicSeeded) || has_effect(*op) ? &node : nullptr;
  for (const fx::Node* input : node.inputs()) {
    if (input->op() != fx::Op::GetAttr) continue;
    const Value* value = module.find(input->target().name());
    auto* called = value && value->is_object() ? dynamic_cast<const fx::GraphModule*>(value->object()) : nullptr;
    if (!called) continue;
    for (const fx::Node* inner : called->graph().nodes())
      if (const fx::Node* found = differs_when_repeated(*called, *inner)) return found;
  }
  return nullptr;
}

/// The calls that only cut values off from their history: a graph has none, and the gradient of this one goes on to the
/// inputs. They are the first ones, of the inputs, and those of results that autograd keeps, which the repeated run
/// itself does not use.
void leave_out_detaches(fx::Graph& graph, const RepeatedRun& repeated) {
  static const Operator& detach = get_operator("aten::detach");
  std::vector<fx::Node*> found;
  std::unordered_set<const fx::Node*> run;
  for (fx::Node* node : graph.nodes()) {
    run.insert(node);
    if (node == repeated.last) break;
  }
  auto in_run = [&](const fx::Node* node) { return run.contains(node); };
  for (fx::Node* node : graph.nodes()) {
    if (!in_run(node)) break;
    if (node->op() != fx::Op::CallFunction || !node->calls(detach)) continue;
    bool kept_by_autograd = std::ranges::none_of(node->users(), in_run);
    if (found.size() < repeated.detached || kept_by_autograd) found.push_back(node);
  }
  for (fx::Node* node : found) {
    node->replace_all_uses_with(node->args()[0].node());
    graph.erase_node(node);
  }
}

void tidy_repeated(fx::GraphModule& module, const RepeatedRun& repeated) {
  fx::Graph& graph = module.graph();
  std::vector<fx::Node*> again;
  for (fx::Node* node : graph.nodes()) {
    if (differs_when_repeated(module, *node)) again.push_back(node);
    if (node == repeated.last) break;
  }
  if (repeated.last) leave_out_detaches(graph, repeated);
  fx::eliminate_dead_code(
      graph, [&](const fx::Node& node) { return node.is_impure() && std::ranges::find(again, &node) == again.end(); });
  for (fx::Node* node : again)
    check<NotImplementedError>(
        node->is_erased(), "a captured gradient needs the result of ",
        differs_when_repeated(module, *node)->target().text(),
        " inside a function of cond, while_loop, map or scan, and would call it once more: random numbers would be "
        "others, effects would come twice. Compute it outside, and hand it in.");
}

}  // namespace

ValueFunction record_function(const ValueFunction& function, const std::vector<Value>& inputs,
                              const RepeatedRun& repeated) {
  auto module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
  auto tracer = make_counted<Tracer>(DispatchKey::Proxy, module);
  for (const Value& v : inputs) tracer->add_input("arg" + std::to_string(module->graph().size()) + "_1", v);
  {
    WithoutMode without_tracer(DispatchKey::Proxy);
    EnterMode scope(tracer);
    tracer->set_output(function(inputs));
  }
  tidy_repeated(*module, repeated);
  for (fx::Node* node : module->graph().nodes()) node->meta.val = Value();  // would keep the example's memory
  return [module](const std::vector<Value>& given) { return module->run(given); };
}

}  // namespace umbra
