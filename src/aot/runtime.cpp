#include "aot/runtime.h"

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/generated/functions.h"

namespace umbra::aot {

namespace {

std::vector<Tensor> tensors_of(std::vector<Value> values) {
  std::vector<Tensor> out;
  for (Value& v : values) out.push_back(v.is_tensor() ? v.take_tensor() : Tensor());
  return out;
}

std::vector<Tensor> primals_for(const CallInfo& info, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> primals = primals_of(info.layout, inputs);
  for (size_t i = info.input_count(); i < info.primals.size(); ++i) primals.push_back(info.primals[i].tensor);
  return primals;
}

/// The graphs were made for tensors that may be written; before they run, what eager code would say of leaves.
void check_writes(const CallInfo& info, const std::vector<Tensor>& primals) {
  for (size_t i = 0; i < primals.size(); ++i) {
    if (!info.primals[i].tracked) continue;
    const Tensor& t = primals[i];
    check(!t.requires_grad() || !t.is_leaf(),
          "a leaf Variable that requires grad is being used in an in-place operation.");
    if (!t.is_view()) continue;
    Tensor base(t.impl()->view_base());
    check(!base.requires_grad() || !base.is_leaf(),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
}

/// Whether each forward output is the caller's (or the caller's by way of views), and whether it has a gradient.
struct Use {
  bool used, differentiable;
};
std::vector<Use> uses_of(const CompiledGraphs& graphs) {
  const CallInfo& info = graphs.info;
  std::vector<Use> uses;
  for (size_t i : graphs.joint.written) uses.push_back({true, info.primals[i].tracked});
  for (size_t i : graphs.joint.results)
    uses.push_back({info.outputs[i].kind == OutputInfo::Kind::Fresh, info.outputs[i].requires_grad});
  for (const IntermediateInfo& b : info.intermediates) uses.push_back({true, b.requires_grad});
  return uses;
}

/// A gradient with the strides that the backward graph was made for: it may view it.
Tensor fit_tangent(const Tensor& gradient, const TensorSpec& spec) {
  if (gradient.sym_strides() == SymIntArrayRef(spec.strides)) return gradient;
  return gradient.new_empty_strided(spec.sizes, spec.strides).copy_(gradient);
}

/// What the backward graph computes: gradients of the primals, and what it writes to some of them.
autograd::Gradients run_backward(const Executable& e, const std::vector<Tensor>& saved,
                                 const std::vector<Tensor>& later, const autograd::Gradients& incoming) {
  const JointGraph& joint = e.graphs.joint;
  std::vector<Value> inputs(saved.begin(), saved.end());
  for (size_t k = 0; k < joint.tangents; ++k)
    inputs.push_back(Value(fit_tangent(incoming[joint.tangent_outputs[k]], joint.tangent_specs[k])));
  for (const Tensor& t : later) inputs.push_back(Value(untracked(t)));
  std::vector<Tensor> results = tensors_of(e.backward(inputs));
  for (size_t k = 0; k < later.size(); ++k)
    write_contents(later[k], e.graphs.info.primals[joint.written_by_backward[k]].after, results[joint.primals + k]);
  results.resize(joint.primals);
  return results;
}

/// Gradients that are asked for with a history get one that refuses to be followed.
autograd::Gradients with_refusing_history(const std::vector<Tensor>& sources, const autograd::Gradients& gradients) {
  auto refuse = [](autograd::FunctionContext&, const autograd::Gradients&) -> autograd::Gradients {
    fail("torch.compile with aot_autograd does not currently support double backward");
  };
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackwardBackward", refuse);
  return autograd::apply_function(node, sources, [&](autograd::FunctionContext&) { return gradients; });
}

/// Forward outputs as differentiable tensors: the forward graph runs now, the backward graph when gradients arrive.
std::vector<Tensor> run_differentiable(const std::shared_ptr<const Executable>& e, const std::vector<Tensor>& primals) {
  const JointGraph& joint = e->graphs.joint;
  std::vector<Tensor> later;
  for (size_t i : joint.written_by_backward) later.push_back(primals[i]);
  auto backward = [e, later](autograd::FunctionContext& context, const autograd::Gradients& incoming) {
    std::vector<Tensor> sources = context.saved_tensors();
    autograd::Gradients gradients;
    {
      NoGrad no_grad;
      gradients = run_backward(*e, sources, later, incoming);
    }
    if (!is_grad_enabled()) return gradients;
    sources.insert(sources.end(), incoming.begin(), incoming.end());
    return with_refusing_history(sources, gradients);
  };
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackward", backward);
  return autograd::apply_function(node, primals, [&](autograd::FunctionContext& context) {
    std::vector<Tensor> all = tensors_of(e->forward({primals.begin(), primals.end()}));
    std::vector<Tensor> saved(all.begin() + static_cast<ptrdiff_t>(joint.forward_outputs()), all.end());
    // What is written when the call ends is kept as it was before.
    for (Tensor& t : saved)
      for (size_t i : joint.written)
        if (t.storage() == primals[i].storage()) t = t.clone();
    context.save_for_backward(std::move(saved));
    all.resize(joint.forward_outputs());
    std::vector<Tensor> plain;
    std::vector<Use> uses = uses_of(e->graphs);
    for (size_t k = 0; k < all.size(); ++k) {
      if (!uses[k].used) all[k] = Tensor();
      else if (!uses[k].differentiable) plain.push_back(all[k]);
    }
    context.mark_non_differentiable(plain);
    return all;
  });
}

std::vector<Tensor> run_forward(const std::shared_ptr<const Executable>& e, const std::vector<Tensor>& primals) {
  if (e->graphs.joint.is_differentiable()) return run_differentiable(e, primals);
  NoGrad no_grad;
  std::vector<Tensor> forward = tensors_of(e->forward({primals.begin(), primals.end()}));
  forward.resize(e->graphs.joint.forward_outputs());
  return forward;
}

void carry_out_writes(const CompiledGraphs& graphs, const std::vector<Tensor>& primals, std::vector<Tensor>& forward) {
  const std::vector<size_t>& written = graphs.joint.written;
  // Contents that lie where another write goes are taken out of the way first.
  for (size_t k = 0; k < written.size(); ++k)
    for (size_t i : written)
      if (forward[k].storage() == primals[i].storage()) forward[k] = forward[k].clone();
  for (size_t k = 0; k < written.size(); ++k) {
    const PrimalInfo& info = graphs.info.primals[written[k]];
    const Tensor& target = primals[written[k]];
    SetGradEnabled mode(info.tracked);
    write_contents(info.counted ? target : autograd::data_of(target), info.after, forward[k]);
  }
}

/// The function's outputs in its order, each as what it is to inputs and to other outputs.
std::vector<Value> results_of(const CompiledGraphs& graphs, const std::vector<Tensor>& sources,
                              const std::vector<Tensor>& forward) {
  const JointGraph& joint = graphs.joint;
  const std::vector<OutputInfo>& outputs = graphs.info.outputs;
  auto first_intermediate = forward.begin() + static_cast<ptrdiff_t>(joint.written.size() + joint.results.size());
  std::vector<Tensor> intermediates(first_intermediate, forward.end());
  std::vector<Tensor> results(outputs.size());
  for (size_t k = 0; k < joint.results.size(); ++k) {
    size_t i = joint.results[k];
    if (outputs[i].kind != OutputInfo::Kind::Fresh) continue;
    results[i] = forward[joint.written.size() + k];
    // It may lie in memory that the graph made, but it is no view of anything that the caller knows.
    if (!outputs[i].requires_grad) results[i].impl()->set_view_base(nullptr);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputInfo& o = outputs[i];
    SetGradEnabled mode(is_grad_enabled() && !o.made_without_grad);
    switch (o.kind) {
      case OutputInfo::Kind::Fresh:
      case OutputInfo::Kind::Plain: break;
      case OutputInfo::Kind::Input: results[i] = sources[o.base]; break;
      case OutputInfo::Kind::InputView: results[i] = replay_views(sources[o.base], o.views); break;
      case OutputInfo::Kind::Output: results[i] = results[o.base]; break;
      case OutputInfo::Kind::OutputView: results[i] = replay_views(results[o.base], o.views); break;
      case OutputInfo::Kind::IntermediateView: results[i] = replay_views(intermediates[o.base], o.views); break;
    }
  }
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); ++i)
    values.push_back(results[i].defined() ? Value(results[i]) : outputs[i].value);
  return values;
}

}  // namespace

std::vector<Value> execute(const std::shared_ptr<const Executable>& e, const std::vector<Tensor>& inputs) {
  const CallInfo& info = e->graphs.info;
  std::vector<Tensor> primals = primals_for(info, inputs);
  check_writes(info, primals);
  std::vector<Tensor> forward = run_forward(e, primals);
  carry_out_writes(e->graphs, primals, forward);
  return results_of(e->graphs, info.sources(inputs, primals), forward);
}

}  // namespace umbra::aot
