#include "aot/runtime.h"

#include <algorithm>

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/generated/functions.h"

namespace umbra::aot {

namespace {

/// One call: its primals, the values of symbols in it, and what the forward graph gave.
struct Call {
  std::shared_ptr<const Executable> executable;
  std::vector<Value> values;    // the primals
  std::vector<Tensor> primals;  // the same, undefined where one is no tensor
  sym::Bindings symbols;
  std::vector<Value> forward;  // outputs of the forward graph, as it gave them
};

Call start_call(const std::shared_ptr<const Executable>& e, const std::vector<Value>& inputs) {
  const CallInfo& info = e->graphs.info;
  Call call{e, {}, primals_of(info.layout, tensors_among(inputs)), e->sizes.bind(inputs), {}};
  for (size_t i = info.input_count(); i < info.primals.size(); ++i) call.primals.push_back(info.primals[i].tensor);
  for (size_t i = 0; i < call.primals.size(); ++i)
    call.values.push_back(call.primals[i].defined() ? Value(call.primals[i]) : inputs[info.layout.arguments_of[i][0]]);
  // What the graph writes without counting it as a version is no business of who has the tensor.
  for (size_t i : e->graphs.joint.written_in_graph)
    if (!info.primals[i].counted) call.values[i] = Value(autograd::data_of(call.primals[i]));
  return call;
}

/// The look of a tensor in a call; that of an output whose sizes only the run tells is taken from itself.
TensorSpec spec_in(const Call& call, const TensorSpec& spec, const Tensor& actual) {
  auto numbers = [&](const SymShape& symbols) -> std::optional<SymShape> {
    std::optional<Value> list = call.executable->sizes.evaluate(Value::borrow(SymIntArrayRef(symbols)), call.symbols);
    return list ? std::optional<SymShape>(SymShape(list->int_list())) : std::nullopt;
  };
  std::optional<SymShape> sizes = numbers(spec.sizes), strides = numbers(spec.strides);
  if (sizes && strides) return TensorSpec(*sizes, *strides, spec.dtype, spec.device);
  return TensorSpec(actual.sym_sizes(), actual.sym_strides(), spec.dtype, spec.device);
}

/// The graphs were made for tensors that may be written; before they run, what eager code would say of leaves.
void check_writes(const CallInfo& info, const std::vector<Tensor>& primals, const std::vector<Tensor>& arguments) {
  std::vector<Tensor> changed;
  for (size_t i = 0; i < primals.size(); ++i)
    if (info.primals[i].tracked) changed.push_back(primals[i]);
  for (const MetadataChange& change : info.changes)
    if (change.tracked) changed.push_back(arguments[change.argument]);
  for (const Tensor& t : changed) {
    if (!t.requires_grad()) continue;
    check(!t.is_view() || !Tensor(t.impl()->view_base()).is_leaf(),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    check(!t.is_leaf(), "a leaf Variable that requires grad is being used in an in-place operation.");
  }
}

std::vector<OutputUse> uses_of(const CompiledGraphs& graphs) {
  const CallInfo& info = graphs.info;
  std::vector<OutputUse> uses;
  for (size_t i : graphs.joint.updated) uses.push_back({info.primals[i].written, info.primals[i].tracked});
  for (size_t i : graphs.joint.results)
    uses.push_back({info.outputs[i].kind == OutputInfo::Kind::Fresh, info.outputs[i].requires_grad});
  uses.resize(graphs.joint.first_intermediate(), {false, false});
  for (const IntermediateInfo& b : info.intermediates) uses.push_back({true, b.requires_grad});
  return uses;
}

std::vector<size_t> primals_without_gradient(const CompiledGraphs& graphs) {
  std::vector<size_t> found;
  if (!graphs.joint.differentiable) return found;
  const fx::Arguments gradients = graphs.partition.backward->graph().outputs();
  for (size_t i = 0; i < graphs.joint.primals && i < gradients.size(); ++i)
    if (gradients[i].is_none()) found.push_back(i);
  return found;
}

bool is_direct(const CompiledGraphs& graphs) {
  const CallInfo& info = graphs.info;
  const JointGraph& joint = graphs.joint;
  if (!joint.updated.empty() || !joint.written_in_graph.empty() || !info.changes.empty() || joint.intermediates > 0)
    return false;
  for (size_t i = 0; i < info.layout.arguments.size(); ++i)
    if (info.layout.arguments[i].primal != i || info.layout.arguments[i].is_view) return false;
  using Kind = OutputInfo::Kind;
  return std::all_of(info.outputs.begin(), info.outputs.end(), [](const OutputInfo& o) {
    return o.kind == Kind::Fresh || o.kind == Kind::Plain || o.kind == Kind::Computed;
  });
}

/// Casts are part of the graphs: while these run, nothing is cast again.
template <class Run> auto without_autocast(const Run& run) {
  ExcludeKeys off(DispatchKey::Autocast);
  return run();
}

/// Runs the forward graph, which a compiler may have replaced by anything.
std::vector<Value> run_graph(const Call& call) {
  std::vector<Value> all = without_autocast([&] { return call.executable->forward(call.values); });
  size_t count = call.executable->forward_count;
  check<AssertionError>(all.size() == count, "expected ", count, " outputs, got ", all.size());
  return all;
}

/// What the backward graph gives: tensors, or none.
std::vector<Tensor> run_backward_graph(const Executable& e, const std::vector<Value>& inputs) {
  std::vector<Value> all = without_autocast([&] { return e.backward(inputs); });
  check(all.size() == e.backward_count, "function CompiledFunctionBackward returned an incorrect number of gradients ",
        "(expected ", e.backward_count, ", got ", all.size(), ")");
  for (const Value& v : all)
    check(v.is_tensor() || v.is_none(), "expected Variable or None (got ", tag_name(v.tag()), ")");
  return tensors_among(all);
}

/// A gradient with the strides that the backward graph was made for: it may view it.
Tensor fit_tangent(const Tensor& gradient, const TensorSpec& spec) {
  if (gradient.sym_strides() == SymIntArrayRef(spec.strides)) return gradient;
  return gradient.new_empty_strided(spec.sizes, spec.strides).copy_(gradient);
}

bool is_subclass(const Tensor& t) { return t.keys().has(DispatchKey::Subclass); }

/// What is kept of a call for its backward, beside the saved tensors.
struct Kept {
  std::vector<Value> numbers;
  std::vector<TensorSpec> tangents;  // what the graph expects
  std::vector<bool> subclass_tangents;
  std::vector<Tensor> later;             // primals that the backward writes
  std::vector<TensorSpec> after;         // what they look like then
  const autograd::Node* node = nullptr;  // the call's own, which keeps this
};

/// What the backward graph computes: gradients of the primals, and what it writes to some of them.
autograd::Gradients run_backward(const Executable& e, const std::vector<Tensor>& saved, const Kept& kept,
                                 const autograd::Gradients& incoming) {
  const JointGraph& joint = e.graphs.joint;
  std::vector<Value> inputs = kept.numbers;
  inputs.insert(inputs.end(), saved.begin(), saved.end());
  for (size_t k = 0; k < joint.tangents; ++k) {
    const Tensor& tangent = incoming[joint.tangent_outputs[k]];
    check(is_subclass(tangent) == kept.subclass_tangents[k],
          "During the backward, we encountered a tensor subclass where we guessed its metadata incorrectly: an output "
          "that is ",
          kept.subclass_tangents[k] ? "a" : "no", " tensor subclass got a gradient that is ",
          is_subclass(tangent) ? "one" : "none");
    inputs.push_back(Value(fit_tangent(tangent, kept.tangents[k])));
  }
  for (const Tensor& t : kept.later) inputs.push_back(Value(untracked(t)));
  std::vector<Tensor> results = run_backward_graph(e, inputs);
  for (size_t k = 0; k < kept.later.size(); ++k)
    write_contents(kept.later[k], kept.after[k], results[joint.primals + k]);
  results.resize(joint.primals);
  return results;
}

autograd::Gradients refuse(autograd::FunctionContext&, const autograd::Gradients&) {
  fail("torch.compile with aot_autograd does not currently support double backward");
}

/// A tensor with the history of a call's inputs: what is saved of their values need not have one.
Tensor with_history_of(const autograd::Node& call) {
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackward", refuse);
  node->set_next_edges(call.next_edges());
  Tensor link = empty({0});
  autograd::set_history(link, node);
  return link;
}

/// Gradients that are asked for with a history get one that refuses to be followed.
autograd::Gradients with_refusing_history(const std::vector<Tensor>& sources, const autograd::Gradients& gradients) {
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackwardBackward", refuse);
  return autograd::apply_function(node, sources, [&](autograd::FunctionContext&) { return gradients; });
}

Kept keep(const Call& call) {
  const CompiledGraphs& graphs = call.executable->graphs;
  const JointGraph& joint = graphs.joint;
  Kept kept;
  for (size_t k = 0; k < joint.tangents; ++k) {
    const Tensor& output = call.forward[joint.tangent_outputs[k]].tensor_ref();
    kept.tangents.push_back(tangent_of(spec_in(call, joint.tangent_specs[k], output)));
    kept.subclass_tangents.push_back(is_subclass(output));
  }
  for (size_t i : joint.written_by_backward) {
    kept.later.push_back(call.primals[i]);
    kept.after.push_back(spec_in(call, graphs.info.primals[i].after, call.primals[i]));
  }
  return kept;
}

/// Runs the forward graph; gives what it saves, numbers apart.
std::vector<Tensor> run_and_save(Call& call, Kept& kept) {
  const CompiledGraphs& graphs = call.executable->graphs;
  const JointGraph& joint = graphs.joint;
  std::vector<Value> all = run_graph(call);
  auto first_saved = all.begin() + static_cast<ptrdiff_t>(joint.forward_outputs());
  auto first_number = all.end() - static_cast<ptrdiff_t>(graphs.partition.saved_numbers);
  call.forward.assign(all.begin(), first_saved);
  const autograd::Node* node = kept.node;
  kept = keep(call);
  kept.node = node;
  kept.numbers.assign(first_number, all.end());
  std::vector<Tensor> saved = tensors_among({first_saved, first_number});
  // What is written when the call ends is kept as it was before.
  for (Tensor& t : saved)
    for (size_t i : joint.updated)
      if (graphs.info.primals[i].written && t.storage() == call.primals[i].storage()) t = t.clone();
  return saved;
}

/// What the results do not depend on hears nothing of their gradients: its hooks are not called.
void detach_unmoved(const Executable& e, autograd::Node& call) {
  if (e.unmoved.empty()) return;
  std::vector<autograd::Edge> edges = call.next_edges();
  for (size_t i : e.unmoved) edges[i] = {};
  call.set_next_edges(std::move(edges));
}

/// Forward outputs as differentiable tensors: the forward graph runs now, the backward graph when gradients arrive.
std::vector<Tensor> run_differentiable(Call& call) {
  std::shared_ptr<const Executable> e = call.executable;
  auto kept = std::make_shared<Kept>();
  auto backward = [e, kept](autograd::FunctionContext& context, const autograd::Gradients& incoming) {
    for (const Tensor& written : kept->later)
      check(!is_grad_enabled() || !written.requires_grad(),
            "aot_autograd does not support input mutations with requires_grad in backward for create_graph=True");
    std::vector<Tensor> sources = context.saved_tensors();
    bool has_saved = !sources.empty() || !kept->numbers.empty();
    autograd::Gradients gradients;
    {
      NoGrad no_grad;
      gradients = run_backward(*e, sources, *kept, incoming);
    }
    if (!is_grad_enabled()) return gradients;
    sources.insert(sources.end(), incoming.begin(), incoming.end());
    if (has_saved) sources.push_back(with_history_of(*kept->node));
    return with_refusing_history(sources, gradients);
  };
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackward", backward);
  kept->node = node.get();
  EnableGrad of_the_function;  // it needs gradients, whatever the mode around it
  std::vector<Tensor> results = autograd::apply_function(node, call.primals, [&](autograd::FunctionContext& context) {
    context.save_for_backward(run_and_save(call, *kept));
    std::vector<Tensor> outputs = tensors_among(call.forward), plain;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!e->uses[k].used) outputs[k] = Tensor();
      else if (!e->uses[k].differentiable) plain.push_back(outputs[k]);
    }
    context.mark_non_differentiable(plain);
    return outputs;
  });
  detach_unmoved(*e, *node);
  return results;
}

/// The forward graph's outputs that are tensors.
std::vector<Tensor> run_forward(Call& call) {
  const JointGraph& joint = call.executable->graphs.joint;
  if (joint.differentiable) return run_differentiable(call);
  NoGrad no_grad;
  call.forward = run_graph(call);
  call.forward.resize(joint.forward_outputs());
  return tensors_among(call.forward);
}

/// Views with the numbers of a call; nothing where only the graph's run tells them.
std::optional<std::vector<ViewStep>> steps_in(const Call& call, std::vector<ViewStep> steps) {
  for (ViewStep& step : steps)
    for (Value& argument : step.arguments) {
      std::optional<Value> value = call.executable->sizes.evaluate(argument, call.symbols);
      if (!value) return std::nullopt;
      argument = std::move(*value);
    }
  return steps;
}

/// Arguments that became views of themselves, in place.
void change_metadata(const Call& call, const std::vector<Tensor>& arguments) {
  for (const MetadataChange& change : call.executable->graphs.info.changes) {
    std::optional<std::vector<ViewStep>> steps = steps_in(call, change.views);
    check<NotImplementedError>(steps.has_value(),
                               "an input gets a size in place that depends on data: ahead-of-time "
                               "autograd does not support that");
    SetGradEnabled mode(change.tracked);
    Tensor target = arguments[change.argument], view = replay_views(untracked(target), *steps);
    as_strided_(target, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  }
}

/// Whether the primal is what several arguments are views of. One of them may be that tensor itself.
bool is_shared(const CallInfo& info, size_t primal) {
  if (primal >= info.input_count()) return false;
  const std::vector<size_t>& arguments = info.layout.arguments_of[primal];
  return std::any_of(arguments.begin(), arguments.end(), [&](size_t i) { return info.layout.arguments[i].is_view; });
}

/// The places of inputs' new contents among the graph's outputs.
std::vector<size_t> written_places(const CompiledGraphs& graphs) {
  std::vector<size_t> written;
  for (size_t k = 0; k < graphs.joint.updated.size(); ++k)
    if (graphs.info.primals[graphs.joint.updated[k]].written) written.push_back(k);
  return written;
}

/// Contents that lie where another write goes are taken out of the way first.
void part_contents(const Call& call, std::vector<Tensor>& forward) {
  const CompiledGraphs& graphs = call.executable->graphs;
  std::vector<size_t> written = written_places(graphs);
  for (size_t k : written)
    for (size_t j : written)
      if (forward[k].storage() == call.primals[graphs.joint.updated[j]].storage()) forward[k] = forward[k].clone();
}

/// Writes to the primals that several arguments are views of, or to all others, in the look that these have by then.
void carry_out_writes(const Call& call, const std::vector<Tensor>& forward, bool shared) {
  const CompiledGraphs& graphs = call.executable->graphs;
  for (size_t k : written_places(graphs)) {
    size_t primal = graphs.joint.updated[k];
    if (is_shared(graphs.info, primal) != shared) continue;
    const PrimalInfo& info = graphs.info.primals[primal];
    const Tensor& target = call.primals[primal];
    SetGradEnabled mode(info.tracked);
    write_contents(info.counted ? target : autograd::data_of(target), spec_in(call, info.after, forward[k]),
                   forward[k]);
  }
}

/// An output that is a view of what the caller has. Where the views' sizes are only known since the graph has run, it
/// is the view that lies where the graph's own output lies.
Tensor view_of(const Call& call, const Tensor& base, const OutputInfo& output, const Value& computed) {
  if (std::optional<std::vector<ViewStep>> steps = steps_in(call, output.views)) return replay_views(base, *steps);
  const Tensor& place = computed.tensor_ref();
  check<NotImplementedError>(place.dtype() == base.dtype() && place.is_conj() == base.is_conj(),
                             "an output is a view of another type, and of a size that depends on data: ahead-of-time "
                             "autograd does not support that; clone() it");
  return as_strided(base, place.sym_sizes(), place.sym_strides(), place.sym_storage_offset());
}

/// The function's outputs in its order, each as what it is to inputs and to other outputs.
std::vector<Value> results_of(const Call& call, const std::vector<Tensor>& sources,
                              const std::vector<Tensor>& forward) {
  const CompiledGraphs& graphs = call.executable->graphs;
  const JointGraph& joint = graphs.joint;
  const std::vector<OutputInfo>& outputs = graphs.info.outputs;
  auto first_intermediate = forward.begin() + static_cast<ptrdiff_t>(joint.first_intermediate());
  std::vector<Tensor> intermediates(first_intermediate, forward.end());
  std::vector<Value> results(outputs.size()), computed(outputs.size());
  for (size_t k = 0; k < joint.results.size(); ++k) {
    size_t i = joint.results[k], position = joint.first_result() + k;
    computed[i] = call.forward[position];
    if (outputs[i].kind != OutputInfo::Kind::Fresh) continue;
    results[i] = Value(forward[position]);
    // It may lie in memory that the graph made, but it is no view of anything that the caller knows.
    if (forward[position].defined() && !outputs[i].requires_grad) forward[position].impl()->set_view_base(nullptr);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputInfo& o = outputs[i];
    SetGradEnabled mode((o.requires_grad || is_grad_enabled()) && !o.made_without_grad);
    auto view = [&](const Tensor& base) {
      Tensor taken = view_of(call, base, o, computed[i]);
      if (o.requires_grad && !taken.requires_grad()) taken.requires_grad_();  // the function made a leaf of it
      return Value(taken);
    };
    switch (o.kind) {
      case OutputInfo::Kind::Fresh: break;
      case OutputInfo::Kind::Plain: results[i] = o.value; break;
      case OutputInfo::Kind::Computed: results[i] = computed[i]; break;
      case OutputInfo::Kind::Input: results[i] = Value(sources[o.base]); break;
      case OutputInfo::Kind::InputView: results[i] = view(sources[o.base]); break;
      case OutputInfo::Kind::Output: results[i] = results[o.base]; break;
      case OutputInfo::Kind::OutputView: results[i] = view(results[o.base].tensor()); break;
      case OutputInfo::Kind::IntermediateView: results[i] = view(intermediates[o.base]); break;
    }
  }
  return results;
}

/// The function's outputs, each of which is one of the graph's or a plain value.
std::vector<Value> direct_results(const Executable& e, std::vector<Value> forward) {
  const JointGraph& joint = e.graphs.joint;
  const std::vector<OutputInfo>& outputs = e.graphs.info.outputs;
  std::vector<Value> results(outputs.size());
  for (size_t k = 0; k < joint.results.size(); ++k) results[joint.results[k]] = std::move(forward[k]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].kind == OutputInfo::Kind::Plain) results[i] = outputs[i].value;
    // It may lie in memory that the graph made, but it is no view of anything that the caller knows.
    else if (!outputs[i].requires_grad && results[i].is_tensor())
      results[i].tensor_ref().impl()->set_view_base(nullptr);
  }
  return results;
}

/// A call of graphs that are `direct`.
std::vector<Value> execute_directly(const std::shared_ptr<const Executable>& e, const std::vector<Value>& inputs) {
  const CallInfo& info = e->graphs.info;
  Call call{e, inputs, {}, e->sizes.bind(inputs), {}};
  for (size_t i = info.input_count(); i < info.primals.size(); ++i) call.values.emplace_back(info.primals[i].tensor);
  if (!e->graphs.joint.differentiable) {
    NoGrad no_grad;
    return direct_results(*e, run_graph(call));
  }
  call.primals = tensors_among(call.values);
  std::vector<Tensor> forward = run_differentiable(call);
  std::vector<Value> values(forward.size());
  for (size_t k = 0; k < forward.size(); ++k) values[k] = forward[k].defined() ? Value(forward[k]) : call.forward[k];
  return direct_results(*e, std::move(values));
}

}  // namespace

void Executable::finish() {
  uses = uses_of(graphs);
  unmoved = primals_without_gradient(graphs);
  direct = is_direct(graphs);
}

std::vector<Value> execute(const std::shared_ptr<const Executable>& e, const std::vector<Value>& inputs) {
  if (e->direct) return execute_directly(e, inputs);
  const CallInfo& info = e->graphs.info;
  Call call = start_call(e, inputs);
  std::vector<Tensor> arguments = tensors_among(inputs);
  check_writes(info, call.primals, arguments);
  std::vector<Tensor> forward = run_forward(call);
  part_contents(call, forward);
  carry_out_writes(call, forward, true);
  change_metadata(call, arguments);
  carry_out_writes(call, forward, false);
  return results_of(call, info.sources(arguments, call.primals), forward);
}

}  // namespace umbra::aot
