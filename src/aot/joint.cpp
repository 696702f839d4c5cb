#include "umbra/aot/joint.h"

#include "umbra/autograd/autograd.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/graph/passes.h"

namespace umbra::aot {

namespace {

/// The function of primals and tangents that is traced.
class Joint {
 public:
  Joint(const ValueFunction& function, const CallInfo& info, const JointGraph& layout) : function_(function), info_(info), layout_(layout) {}

  std::vector<Value> operator()(const std::vector<Value>& inputs) const {
    std::vector<Tensor> wrappers;
    auto lift = make_counted<LiftMode>(nullptr);
    for (size_t i = 0; i < info_.primals.size(); ++i) {
      Tensor wrapper = to_functional(inputs[i].tensor());
      if (info_.primals[i].requires_grad) wrapper.requires_grad_();
      lift->set(info_.primals[i].tensor, wrapper);
      wrappers.push_back(std::move(wrapper));
    }
    std::vector<Tensor> forward, gradients;
    {
      EnterMode functional_scope(make_counted<FunctionalMode>());
      {
        EnterMode lift_scope(lift);
        forward = run_forward(wrappers);
      }
      gradients = run_backward(wrappers, forward, inputs);
    }
    std::vector<Value> results;
    for (const Tensor& t : forward) results.push_back(Value(from_functional(t)));
    for (const Tensor& t : gradients) results.push_back(t.defined() ? Value(from_functional(t)) : Value());
    return results;
  }

 private:
  std::vector<Tensor> run_forward(const std::vector<Tensor>& wrappers) const {
    std::vector<Value> arguments(wrappers.begin(), wrappers.begin() + static_cast<ptrdiff_t>(info_.input_count));
    std::vector<Value> results = function_(arguments);
    std::vector<Tensor> forward;
    for (size_t i : layout_.written) forward.push_back(wrappers[i]);
    for (size_t i : layout_.fresh) forward.push_back(results.at(i).tensor());
    return forward;
  }

  std::vector<Tensor> run_backward(const std::vector<Tensor>& wrappers, const std::vector<Tensor>& forward, const std::vector<Value>& inputs) const {
    if (layout_.tangents == 0) return {};
    std::vector<Tensor> outputs, tangents, primals;
    for (size_t k = 0; k < layout_.tangents; ++k) {
      outputs.push_back(forward[layout_.tangent_outputs[k]]);
      tangents.push_back(to_functional(inputs[info_.primals.size() + k].tensor()));
    }
    for (size_t i : layout_.gradients) primals.push_back(wrappers[i]);
    return autograd::grad(outputs, primals, tangents, {}, true);
  }

  const ValueFunction& function_;
  const CallInfo& info_;
  const JointGraph& layout_;
};

JointGraph plan(const CallInfo& info) {
  JointGraph layout;
  layout.primals = info.primals.size();
  layout.written = info.written();
  for (size_t i = 0; i < info.outputs.size(); ++i)
    if (info.outputs[i].kind == OutputInfo::Kind::Fresh) layout.fresh.push_back(i);
  if (!info.needs_gradients()) return layout;
  layout.gradients = info.differentiable_primals();
  for (size_t k = 0; k < layout.fresh.size(); ++k)
    if (info.outputs[layout.fresh[k]].requires_grad) layout.tangent_outputs.push_back(layout.written.size() + k);
  layout.tangents = layout.tangent_outputs.size();
  return layout;
}

}  // namespace

JointGraph trace_joint(const ValueFunction& function, const CallInfo& info, const JointOptions& options) {
  JointGraph joint = plan(info);
  FakeOptions fake;
  fake.allow_non_fake_inputs = true;
  auto mode = make_counted<FakeModeImpl>(std::move(fake));
  CaptureOptions capture;
  capture.mode = TracingMode::Fake;
  capture.fake_mode = mode;
  capture.decompositions = options.decompositions;
  std::vector<Value> inputs;
  for (const PrimalInfo& p : info.primals) {
    inputs.push_back(Value(mode->from_tensor(untracked(p.tensor))));
    capture.names.push_back("primals_" + std::to_string(capture.names.size() + 1));
  }
  for (size_t k = 0; k < joint.tangents; ++k) {
    const OutputInfo& o = info.outputs[joint.fresh[joint.tangent_outputs[k] - joint.written.size()]];
    inputs.push_back(Value(mode->make(TensorSpec(o.sizes, o.strides, o.dtype, o.device))));
    capture.names.push_back("tangents_" + std::to_string(k + 1));
  }
  joint.module = make_fx(ValueFunction(Joint(function, info, joint)), inputs, capture);
  fx::eliminate_common_subexpressions(joint.module->graph());
  fx::eliminate_dead_code(joint.module->graph());
  return joint;
}

}  // namespace umbra::aot
