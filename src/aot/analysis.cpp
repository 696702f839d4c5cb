#include "umbra/aot/analysis.h"

#include "aot/outputs.h"
#include "umbra/autograd/autograd.h"
#include "umbra/capture/lift.h"

namespace umbra::aot {

std::vector<size_t> CallInfo::written() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < primals.size(); ++i)
    if (primals[i].written) out.push_back(i);
  return out;
}

std::vector<size_t> CallInfo::differentiable_primals() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < primals.size(); ++i)
    if (primals[i].requires_grad) out.push_back(i);
  return out;
}

bool CallInfo::needs_gradients() const {
  bool any = false;
  for (const PrimalInfo& p : primals) any |= p.tracked;
  for (const OutputInfo& o : outputs) any |= o.requires_grad && o.kind == OutputInfo::Kind::Fresh;
  for (const IntermediateInfo& b : intermediates) any |= b.requires_grad;
  return any && !differentiable_primals().empty();
}

std::vector<Tensor> CallInfo::sources(const std::vector<Tensor>& arguments,
                                      const std::vector<Tensor>& all_primals) const {
  std::vector<Tensor> out = arguments;
  out.insert(out.end(), all_primals.begin() + static_cast<ptrdiff_t>(input_count()), all_primals.end());
  return out;
}

Tensor untracked(const Tensor& tensor) {
  Tensor out = alias_tensor(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  out.impl()->remove_key(DispatchKey::Autograd);
  return out;
}

namespace {

/// The history of a stand-in: it makes it a tensor that may be written, as one that was computed. Leaves are told when
/// a call runs.
class Origin final : public autograd::Node {
 public:
  std::string name() const override { return "Input"; }
  autograd::Gradients apply(autograd::Gradients) override { return {}; }
};

/// One run of the function on stand-ins.
class Analysis {
 public:
  explicit Analysis(ArgumentLayout layout) : mode_(fake_mode()) { info_.layout = std::move(layout); }

  CallInfo run(const ValueFunction& function, const std::vector<Tensor>& inputs) {
    info_.inputs = inputs;
    auto lift =
        make_counted<LiftMode>([this](const Tensor& real) { return add(real); }, LiftMode::Outside::NotFunctional);
    for (const Tensor& primal : primals_of(info_.layout, inputs)) lift->set(primal, add(primal));
    std::vector<Tensor> arguments;
    std::vector<size_t> steps;  // that each of them is from its base
    std::vector<Value> results;
    {
      EnterMode fake_scope(mode_), functional_scope(make_counted<FunctionalMode>());
      arguments = arguments_of(info_.layout, stand_ins_);
      for (size_t i = 0; i < inputs.size(); ++i) lift->set(inputs[i], arguments[i]);
      for (const Tensor& t : arguments) steps.push_back(functional_state(t).views.size());
      EnterMode lift_scope(lift);
      results = function(std::vector<Value>(arguments.begin(), arguments.end()));
    }
    for (Value& v : results)
      if (v.is_tensor()) v = Value(lift->replace(v.tensor_ref()));
    for (size_t i = 0; i < inputs.size(); ++i)
      check_metadata(concat("input ", i), functional_state(arguments[i]).views.size() == steps[i]);
    for (size_t i = info_.input_count(); i < stand_ins_.size(); ++i)
      check_metadata("a tensor that it closes over", functional_state(stand_ins_[i]).views.empty());
    for (size_t i = 0; i < stand_ins_.size(); ++i) note_writes(i);
    describe_outputs(info_, results, info_.sources(arguments, stand_ins_));
    return std::move(info_);
  }

 private:
  static IntrusivePtr<FakeModeImpl> fake_mode() {
    FakeOptions options;
    options.allow_non_fake_inputs = true;
    return make_counted<FakeModeImpl>(std::move(options));
  }

  Tensor add(const Tensor& real) {
    Tensor stand_in = to_functional(mode_->from_tensor(untracked(real)));
    if (real.requires_grad()) autograd::set_history(stand_in, make_counted<Origin>());
    origins_.push_back(autograd::grad_fn(stand_in));
    stand_ins_.push_back(stand_in);
    info_.primals.push_back({.tensor = real, .requires_grad = real.requires_grad()});
    return stand_in;
  }

  static void check_metadata(const std::string& what, bool unchanged) {
    check<NotImplementedError>(
        unchanged, "the function changes the sizes or strides of ", what,
        " in place (t_, as_strided_ and the like): ahead-of-time autograd does not support that");
  }

  void note_writes(size_t i) {
    PrimalInfo& primal = info_.primals[i];
    primal.written = was_written(stand_ins_[i]);
    primal.tracked = primal.written && autograd::grad_fn(stand_ins_[i]) != origins_[i];
    primal.counted = stand_ins_[i].version() > 0;
    const Tensor& t = stand_ins_[i];
    primal.after = TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device());
    check<NotImplementedError>(!primal.tracked || t.sym_sizes() == primal.tensor.sym_sizes(), "tensor ", i, " of size ",
                               to_string(primal.tensor.sym_sizes()), " gets size ", to_string(t.sym_sizes()),
                               " and has a gradient: that cannot be captured; make the result a new tensor");
  }

  IntrusivePtr<FakeModeImpl> mode_;
  CallInfo info_;
  std::vector<Tensor> stand_ins_;
  std::vector<IntrusivePtr<autograd::Node>> origins_;
};

/// Inputs that share memory with another primal, where one of them is written. A tensor that is closed over cannot be
/// part of that.
std::vector<bool> shared_writes(const CallInfo& info, const std::vector<Tensor>& inputs) {
  std::vector<bool> shared(inputs.size());
  for (size_t i = 0; i < info.primals.size(); ++i)
    for (size_t j = 0; j < info.primals.size(); ++j) {
      const PrimalInfo &written = info.primals[i], &other = info.primals[j];
      if (i == j || !written.written || !(written.tensor.storage() == other.tensor.storage())) continue;
      check<NotImplementedError>(
          i < info.input_count() && j < info.input_count(), "the function writes tensor ", i,
          ", which shares memory with tensor ", j,
          ", and closes over one of them: ahead-of-time autograd does not support that; make both inputs");
      for (size_t k = 0; k < inputs.size(); ++k)
        shared[k] = shared[k] || inputs[k].storage() == written.tensor.storage();
    }
  return shared;
}

}  // namespace

CallInfo analyse(const ValueFunction& function, const std::vector<Tensor>& inputs) {
  CallInfo info = Analysis(lay_out_arguments(inputs, std::vector<bool>(inputs.size()))).run(function, inputs);
  std::vector<bool> merged = shared_writes(info, inputs);
  if (std::find(merged.begin(), merged.end(), true) == merged.end()) return info;
  return Analysis(lay_out_arguments(inputs, merged)).run(function, inputs);
}

std::string to_string(const CallInfo& info) {
  std::string out;
  for (size_t i = 0; i < info.primals.size(); ++i) {
    const PrimalInfo& p = info.primals[i];
    out += concat("primal ", i, i < info.input_count() ? " (input)" : " (closed over)",
                  p.requires_grad ? ", requires grad" : "", p.written ? ", written" : "",
                  p.tracked ? " with history" : "", "\n");
  }
  for (size_t i = 0; i < info.outputs.size(); ++i) out += concat("output ", i, ": ", to_string(info.outputs[i]), "\n");
  return out;
}

}  // namespace umbra::aot
