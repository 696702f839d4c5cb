#include "umbra/aot/joint.h"

#include "umbra/autograd/autograd.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/passes.h"

namespace umbra::aot {

namespace {

/// The function of primals and tangents that is traced.
class Joint {
 public:
  Joint(const ValueFunction& function, const CallInfo& info, JointGraph& layout)
      : function_(function), info_(info), layout_(layout) {}

  std::vector<Value> operator()(const std::vector<Value>& inputs) const {
    std::vector<Value> results;
    std::vector<Tensor> gradients, primals;
    {
      EnterMode functional_scope(make_counted<FunctionalMode>());
      std::vector<Tensor> leaves;
      for (size_t i = 0; i < info_.primals.size(); ++i) {
        leaves.push_back(to_functional(inputs[i].tensor()));
        if (info_.primals[i].requires_grad) leaves.back().requires_grad_();
        // A leaf must not be written where autograd sees it.
        primals.push_back(info_.primals[i].tracked ? leaves[i].clone() : leaves[i]);
      }
      std::vector<Tensor> forward = run_forward(primals);
      // What is written is copied to its place; other results are made of what the graph gives, and have to lie as they
      // did. What the backward writes comes later.
      for (size_t k = 0; k < forward.size(); ++k)
        results.push_back(
            Value(k < layout_.written.size() ? from_functional(forward[k]) : from_functional_as_shown(forward[k])));
      if (layout_.is_differentiable()) gradients = run_backward(leaves, primals, forward, inputs);
    }
    for (const Tensor& t : gradients) results.push_back(t.defined() ? Value(from_functional(t)) : Value());
    for (size_t i : layout_.written_by_backward) results.push_back(Value(from_functional(primals[i])));
    return results;
  }

 private:
  std::vector<Tensor> run_forward(const std::vector<Tensor>& primals) const {
    auto lift = make_counted<LiftMode>(nullptr, LiftMode::Outside::NotFunctional);
    for (size_t i = 0; i < primals.size(); ++i) lift->set(info_.primals[i].tensor, primals[i]);
    std::vector<Tensor> arguments = arguments_of(info_.layout, primals);
    for (size_t i = 0; i < arguments.size(); ++i) lift->set(info_.inputs[i], arguments[i]);
    std::vector<Value> results;
    {
      EnterMode lift_scope(lift);
      results = function_(std::vector<Value>(arguments.begin(), arguments.end()));
    }
    std::vector<Tensor> forward;
    for (size_t i : layout_.written) forward.push_back(primals[i]);
    for (size_t i : layout_.results) forward.push_back(lift->replace(results.at(i).tensor()));
    for (const IntermediateInfo& b : info_.intermediates)
      forward.push_back(Tensor(results.at(b.output).tensor_ref().impl()->view_base()));
    return forward;
  }

  /// One gradient for each primal, undefined where none is needed.
  std::vector<Tensor> run_backward(const std::vector<Tensor>& leaves, const std::vector<Tensor>& primals,
                                   const std::vector<Tensor>& forward, const std::vector<Value>& inputs) const {
    std::vector<Tensor> outputs, tangents, wanted;
    for (size_t k = 0; k < layout_.tangents; ++k) {
      outputs.push_back(forward[layout_.tangent_outputs[k]]);
      tangents.push_back(to_functional(inputs[info_.primals.size() + k].tensor()));
    }
    size_t position = info_.primals.size() + layout_.tangents;
    for (size_t i : layout_.written_by_backward) set_contents(primals[i], inputs[position++].tensor());
    std::vector<uint64_t> before;
    for (const Tensor& t : primals) before.push_back(functional_state(t).base->generation);
    std::vector<size_t> differentiable = info_.differentiable_primals();
    for (size_t i : differentiable) wanted.push_back(leaves[i]);
    std::vector<Tensor> found = autograd::grad(outputs, wanted, tangents, {}, true), gradients(leaves.size());
    for (size_t k = 0; k < differentiable.size(); ++k) gradients[differentiable[k]] = found[k];
    layout_.written_by_backward.clear();
    for (size_t i = 0; i < primals.size(); ++i)
      if (functional_state(primals[i]).base->generation != before[i]) layout_.written_by_backward.push_back(i);
    return gradients;
  }

  const ValueFunction& function_;
  const CallInfo& info_;
  JointGraph& layout_;
};

/// How the gradient of a forward output is expected: with its strides, but not with elements that share memory.
TensorSpec tangent_of(const TensorSpec& output) {
  for (size_t d = 0; d < output.sizes.size(); ++d)
    if (output.strides[d] == SymInt(0) && !(output.sizes[d] == SymInt(1)))
      return TensorSpec(output.sizes, output.dtype, output.device);
  return output;
}

JointGraph plan(const CallInfo& info) {
  JointGraph layout;
  layout.primals = info.primals.size();
  layout.written = info.written();
  layout.intermediates = info.intermediates.size();
  for (size_t i = 0; i < info.outputs.size(); ++i)
    if (info.outputs[i].kind != OutputInfo::Kind::Plain) layout.results.push_back(i);
  if (!info.needs_gradients()) return layout;
  size_t position = 0;
  auto add = [&](bool differentiable, const TensorSpec& spec) {
    if (differentiable) {
      layout.tangent_outputs.push_back(position);
      layout.tangent_specs.push_back(tangent_of(spec));
    }
    ++position;
  };
  for (size_t i : layout.written) add(info.primals[i].tracked, info.primals[i].after);
  for (size_t i : layout.results)
    add(info.outputs[i].kind == OutputInfo::Kind::Fresh && info.outputs[i].requires_grad, info.outputs[i].spec);
  for (const IntermediateInfo& b : info.intermediates) add(b.requires_grad, b.spec);
  layout.tangents = layout.tangent_outputs.size();
  return layout;
}

}  // namespace

namespace {

IntrusivePtr<fx::GraphModule> trace(const ValueFunction& function, const CallInfo& info, const JointOptions& options,
                                    JointGraph& joint) {
  FakeOptions fake;
  fake.allow_non_fake_inputs = true;
  auto mode = make_counted<FakeModeImpl>(std::move(fake));
  CaptureOptions capture;
  capture.mode = TracingMode::Fake;
  capture.fake_mode = mode;
  capture.decompositions = options.decompositions;
  std::vector<Value> stand_ins;
  for (const PrimalInfo& p : info.primals) {
    size_t number = stand_ins.size();
    stand_ins.push_back(Value(mode->from_tensor(untracked(p.tensor))));
    capture.names.push_back(joint.is_differentiable() ? concat("primals_", number + 1) : concat("arg", number, "_1"));
  }
  for (const TensorSpec& spec : joint.tangent_specs) {
    stand_ins.push_back(Value(mode->make(spec)));
    capture.names.push_back(concat("tangents_", stand_ins.size() - info.primals.size()));
  }
  for (size_t i : joint.written_by_backward) {
    stand_ins.push_back(Value(mode->make(info.primals[i].after)));
    capture.names.push_back(concat("later_", i + 1));
  }
  return make_fx(ValueFunction(Joint(function, info, joint)), stand_ins, capture);
}

}  // namespace

JointGraph trace_joint(const ValueFunction& function, const CallInfo& info, const JointOptions& options) {
  JointGraph joint = plan(info);
  joint.module = trace(function, info, options, joint);
  // Only the backward itself tells what it writes.
  if (!joint.written_by_backward.empty()) joint.module = trace(function, info, options, joint);
  fx::eliminate_common_subexpressions(joint.module->graph());
  fx::eliminate_dead_code(joint.module->graph());
  return joint;
}

}  // namespace umbra::aot
