#include "umbra/aot/compile.h"

#include <map>
#include <mutex>

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/generated/functions.h"

namespace umbra::aot {

namespace {

ValueFunction interpret(const IntrusivePtr<fx::GraphModule>& module) {
  return [module](const std::vector<Value>& inputs) { return module->run(inputs); };
}

// The first of the inputs whose memory this one shares.
size_t first_sharing(const std::vector<Tensor>& inputs, const Tensor& t) {
  size_t i = 0;
  while (!(inputs[i].storage() == t.storage())) ++i;
  return i;
}

// What has to be the same for graphs to be used again.
std::string signature_of(const std::vector<Tensor>& inputs) {
  std::string key = is_grad_enabled() ? "g" : "n";
  for (const Tensor& t : inputs)
    key += concat(name(t.dtype()), to_string(t.sym_sizes()), to_string(t.sym_strides()), t.sym_storage_offset(), t.device(), t.requires_grad(),
                  t.is_conj(), t.is_neg(), ",", first_sharing(inputs, t), ";");
  return key;
}

/// Graphs made ready to run.
struct Executable {
  CompiledGraphs graphs;
  ValueFunction forward, backward;
};

std::vector<Tensor> tensors_of(std::vector<Value> values) {
  std::vector<Tensor> out;
  for (Value& v : values) out.push_back(v.take_tensor());
  return out;
}

/// Forward outputs as differentiable tensors: the forward graph runs now, the backward graph when gradients arrive.
std::vector<Tensor> run_differentiable(const std::shared_ptr<const Executable>& e, const std::vector<Tensor>& primals) {
  const JointGraph& joint = e->graphs.joint;
  size_t outputs = joint.forward_outputs();
  auto backward = [e](autograd::FunctionContext& context, autograd::Gradients grads) {
    const JointGraph& j = e->graphs.joint;
    std::vector<Value> inputs;
    for (const Tensor& t : context.saved_tensors()) inputs.push_back(Value(t));
    for (size_t k = 0; k < j.tangents; ++k) inputs.push_back(Value(grads[j.tangent_outputs[k]]));
    check(!is_grad_enabled(), "torch.compile with aot_autograd does not currently support double backward");
    std::vector<Tensor> results = tensors_of(e->backward(inputs));
    autograd::Gradients out(j.primals);
    for (size_t k = 0; k < j.gradients.size(); ++k) out[j.gradients[k]] = results[k];
    return out;
  };
  auto node = make_counted<autograd::FunctionNode>("CompiledFunctionBackward", backward);
  std::vector<Tensor> results = autograd::apply_function(node, primals, [&](autograd::FunctionContext& context) {
    std::vector<Value> inputs(primals.begin(), primals.end());
    std::vector<Tensor> all = tensors_of(e->forward(inputs));
    std::vector<Tensor> saved(all.begin() + static_cast<ptrdiff_t>(outputs), all.end());
    // What is written when the call ends is kept as it was before.
    for (Tensor& t : saved)
      for (size_t i : joint.written)
        if (t.storage() == primals[i].storage()) t = t.clone();
    context.save_for_backward(std::move(saved));
    all.resize(outputs);
    std::vector<Tensor> plain;
    for (size_t i = 0; i < joint.written.size(); ++i) plain.push_back(all[i]);
    for (size_t k = 0; k < joint.fresh.size(); ++k)
      if (!e->graphs.info.outputs[joint.fresh[k]].requires_grad) plain.push_back(all[joint.written.size() + k]);
    context.mark_non_differentiable(plain);
    return all;
  });
  return results;
}

/// Puts results in the order and form the caller expects: writes carried out, views made of what they are views of.
std::vector<Value> finish(const CompiledGraphs& graphs, const std::vector<Tensor>& primals, std::vector<Tensor> forward) {
  const JointGraph& joint = graphs.joint;
  for (size_t k = 0; k < joint.written.size(); ++k) {
    NoGrad no_grad;
    size_t i = joint.written[k];
    // Statistics that a module keeps change without notice, as batch_norm changes them when it runs by itself: an earlier call
    // whose backward is still to come does not read them.
    bool kept_by_module = i >= graphs.info.input_count && !primals[i].requires_grad();
    (kept_by_module ? autograd::data_of(primals[i]) : primals[i]).copy_(forward[k]);
  }
  std::vector<Value> results(graphs.info.outputs.size());
  for (size_t k = 0; k < joint.fresh.size(); ++k) results[joint.fresh[k]] = Value(forward[joint.written.size() + k]);
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputInfo& o = graphs.info.outputs[i];
    switch (o.kind) {
      case OutputInfo::Kind::Fresh: break;
      case OutputInfo::Kind::Plain: results[i] = o.value; break;
      case OutputInfo::Kind::Input: results[i] = Value(primals[o.base]); break;
      case OutputInfo::Kind::InputView: results[i] = Value(replay_views(primals[o.base], o.views)); break;
      case OutputInfo::Kind::OutputView: results[i] = Value(replay_views(results[o.base].tensor(), o.views)); break;
    }
  }
  return results;
}

}  // namespace

struct CompiledFunction::Cache {
  ValueFunction function;
  CompileOptions options;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Executable>> entries;

  std::shared_ptr<const Executable> find(const std::vector<Tensor>& inputs) {
    std::string key = signature_of(inputs);
    {
      std::lock_guard lock(mutex);
      if (auto found = entries.find(key); found != entries.end()) return found->second;
    }
    std::shared_ptr<const Executable> made = build(inputs);
    std::lock_guard lock(mutex);
    return entries.emplace(std::move(key), std::move(made)).first->second;
  }

  std::shared_ptr<const Executable> build(const std::vector<Tensor>& inputs) const {
    auto e = std::make_shared<Executable>();
    e->graphs.info = analyse(function, inputs);
    if (!is_grad_enabled())
      for (PrimalInfo& p : e->graphs.info.primals) p.requires_grad = false;
    e->graphs.joint = trace_joint(function, e->graphs.info, {options.decompositions});
    GraphCompiler forward = options.forward_compiler ? options.forward_compiler : GraphCompiler(interpret);
    GraphCompiler backward = options.backward_compiler ? options.backward_compiler : GraphCompiler(interpret);
    bool differentiable = e->graphs.joint.tangents > 0;
    if (differentiable) {
      e->graphs.partition = options.partitioner(e->graphs.joint);
    } else {
      e->graphs.partition.forward = e->graphs.joint.module;
      e->graphs.partition.forward_outputs = e->graphs.joint.forward_outputs();
    }
    e->forward = forward(e->graphs.partition.forward);
    if (differentiable) e->backward = backward(e->graphs.partition.backward);
    return e;
  }
};

CompiledFunction::CompiledFunction(ValueFunction function, CompileOptions options) : cache_(std::make_shared<Cache>()) {
  cache_->function = std::move(function);
  cache_->options = std::move(options);
}

const CompiledGraphs& CompiledFunction::graphs(const std::vector<Tensor>& inputs) const { return cache_->find(inputs)->graphs; }

std::vector<Value> CompiledFunction::run(const std::vector<Value>& inputs) const {
  std::vector<Tensor> tensors;
  for (const Value& v : inputs) tensors.push_back(v.tensor());
  std::shared_ptr<const Executable> e = cache_->find(tensors);
  std::vector<Tensor> primals = tensors;
  for (size_t i = e->graphs.info.input_count; i < e->graphs.info.primals.size(); ++i) primals.push_back(e->graphs.info.primals[i].tensor);
  std::vector<Tensor> forward;
  if (e->graphs.joint.tangents > 0 && is_grad_enabled()) forward = run_differentiable(e, primals);
  else forward = tensors_of(e->forward(std::vector<Value>(primals.begin(), primals.end())));
  forward.resize(e->graphs.joint.forward_outputs());
  return finish(e->graphs, primals, std::move(forward));
}

}  // namespace umbra::aot
