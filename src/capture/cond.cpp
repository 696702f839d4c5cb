// `cond` on its way through the layers. Autograd, functionalisation and recording each turn the call into one for what
// lies below, as layers do with operators; branches are functions of all that they use, so that each layer can hand
// them other values.
#include "capture/cond.h"

#include <optional>
#include <unordered_map>

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

bool is_active(DispatchKey key) { return active_mode(key) && !dispatch_state().exclude.has(key); }

/// A call whose branches use nothing but the operands.
struct CondCall {
  Tensor predicate;
  ValueFunction true_function, false_function;
  std::vector<Value> operands;
};

std::vector<Value> concatenate(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

IntrusivePtr<LiftMode> active_lift() {
  return IntrusivePtr<LiftMode>(static_cast<LiftMode*>(active_mode(DispatchKey::Lift)));
}

/// A branch as a function of its operands and of what it closes over: both are replaced wherever the branch uses them.
ValueFunction close_branch(const ValueFunction& branch, const std::vector<Value>& all, size_t operand_count) {
  return [=, outer = active_lift()](const std::vector<Value>& given) {
    std::unordered_map<const TensorImpl*, Tensor> replacements;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].is_tensor()) replacements[all[i].tensor_impl()] = given[i].tensor();
    auto lift = make_counted<LiftMode>([outer, replacements](const Tensor& real) {
      Tensor known = outer ? outer->replace(real) : real;
      auto found = replacements.find(known.impl());
      return found == replacements.end() ? known : found->second;
    });
    for (const auto& v : all)
      if (v.is_tensor()) lift->set(v.tensor(), replacements[v.tensor_impl()]);
    EnterMode scope(lift);
    std::vector<Value> results = branch({given.begin(), given.begin() + static_cast<ptrdiff_t>(operand_count)});
    for (Value& v : results)
      if (v.is_tensor()) v = Value(lift->replace(v.tensor_ref()));
    return results;
  };
}

// ---- recording, and running ----

std::vector<Value> run_below(const CondCall& call) {
  if (is_active(DispatchKey::Proxy))
    return record_cond(*active_tracer(DispatchKey::Proxy), call.predicate, call.true_function, call.false_function,
                       call.operands);
  if (call.predicate.is_fake()) return either_result(call.true_function, call.false_function, call.operands);
  return (is_true(call.predicate) ? call.true_function : call.false_function)(call.operands);
}

// ---- functionalisation ----

std::vector<Value> to_values(const std::vector<Value>& wrappers) {
  std::vector<Value> values;
  for (const Value& v : wrappers) values.push_back(v.is_tensor() ? Value(from_functional(v.tensor_ref())) : v);
  return values;
}

std::vector<Value> to_wrappers(const std::vector<Value>& values) {
  std::vector<Value> wrappers;
  for (const Value& v : values) wrappers.push_back(v.is_tensor() ? Value(to_functional(v.tensor_ref())) : v);
  return wrappers;
}

/// A branch as a function of values. It runs as the caller does, in the layers that are switched off below.
ValueFunction lower(const ValueFunction& branch) {
  return [branch, exclude = dispatch_state().exclude](const std::vector<Value>& values) {
    SaveDispatchState state;
    dispatch_state().exclude = exclude;
    return to_values(branch(to_wrappers(values)));
  };
}

constexpr DispatchKeySet kAbove = DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Autograd;

std::vector<Value> run_functional(const CondCall& call) {
  if (!is_active(DispatchKey::Functionalize)) return run_below(call);
  CondCall lowered{from_functional(call.predicate), lower(call.true_function), lower(call.false_function),
                   to_values(call.operands)};
  ExcludeKeys off(kAbove);
  return to_wrappers(run_below(lowered));
}

ValueFunction record_branch_function(const ValueFunction& branch, const std::vector<Value>& inputs) {
  if (!is_active(DispatchKey::Functionalize)) return record_function(branch, inputs);
  ValueFunction lowered = lower(branch);
  ExcludeKeys off(kAbove);
  return record_function(lowered, to_values(inputs));
}

// ---- autograd ----

/// Which values gradients flow to.
std::vector<size_t> differentiable(const std::vector<Value>& values, bool (*is_one)(const Tensor&)) {
  std::vector<size_t> out;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].is_tensor() && is_one(values[i].tensor_ref())) out.push_back(i);
  return out;
}
bool requires_grad(const Tensor& t) { return t.requires_grad(); }
bool has_gradient(const Tensor& t) { return is_differentiable(t.dtype()); }

bool needs_gradients(const std::vector<Value>& operands) {
  return is_grad_enabled() && !dispatch_state().exclude.has(DispatchKey::Autograd) &&
         !differentiable(operands, requires_grad).empty();
}

/// The gradients of a branch's results, weighted, with respect to some operands: a function of the operands and the
/// weights.
struct BranchGradient {
  ValueFunction branch;
  size_t operand_count;
  std::vector<size_t> wanted;  // operands
  std::vector<size_t> given;   // results that have weights

  /// A gradient may be the weight as it was given, but a branch's results are its own.
  static Tensor own(const Tensor& gradient, const std::vector<Value>& values) {
    for (const Value& v : values)
      if (v.is_tensor() && v.tensor_ref().storage() == gradient.storage()) return gradient.clone();
    return gradient;
  }

  std::vector<Value> operator()(const std::vector<Value>& values) const {
    EnableGrad grad_mode;
    std::vector<Value> operands(values.begin(), values.begin() + static_cast<ptrdiff_t>(operand_count));
    std::vector<Tensor> inputs, outputs, weights;
    for (size_t i : wanted) {
      inputs.push_back(operands[i].tensor().detach().requires_grad_());
      operands[i] = Value(inputs.back());
    }
    std::vector<Value> results = branch(operands);
    for (size_t k = 0; k < given.size(); ++k) {
      if (!results[given[k]].tensor_ref().requires_grad()) continue;
      outputs.push_back(results[given[k]].tensor());
      weights.push_back(values[operand_count + k].tensor());
    }
    std::vector<Tensor> gradients(inputs.size());
    if (!outputs.empty()) gradients = autograd::grad(outputs, inputs, weights, {}, true);
    std::vector<Value> found;
    for (size_t k = 0; k < inputs.size(); ++k)
      found.push_back(Value(gradients[k].defined() ? own(gradients[k], values) : zeros_like(inputs[k].detach())));
    return found;
  }
};

std::vector<Value> run_autograd(const CondCall& call);

/// The gradient of a cond: a cond of gradients. The branches' gradients are recorded at once, while what they refer to
/// is there.
class CondGradient {
 public:
  CondGradient(const CondCall& call, const std::vector<Value>& results)
      : wanted_(differentiable(call.operands, requires_grad)), given_(differentiable(results, has_gradient)) {
    std::vector<Value> examples = call.operands;
    for (size_t i : given_) examples.push_back(results[i]);
    size_t count = call.operands.size();
    true_gradient_ = record_branch_function(BranchGradient{call.true_function, count, wanted_, given_}, examples);
    false_gradient_ = record_branch_function(BranchGradient{call.false_function, count, wanted_, given_}, examples);
  }

  autograd::Gradients run(const Tensor& predicate, std::vector<Value> operands,
                          const autograd::Gradients& incoming) const {
    size_t count = operands.size();
    for (size_t i : given_) operands.push_back(Value(incoming[i]));
    std::vector<Value> found = run_autograd({predicate, true_gradient_, false_gradient_, std::move(operands)});
    autograd::Gradients gradients(count);
    for (size_t k = 0; k < wanted_.size(); ++k) gradients[wanted_[k]] = found[k].tensor();
    return gradients;
  }

 private:
  std::vector<size_t> wanted_, given_;
  ValueFunction true_gradient_, false_gradient_;
};

std::vector<Value> run_autograd(const CondCall& call) {
  if (!needs_gradients(call.operands)) return run_functional(call);
  std::vector<Tensor> tensors;
  for (const Value& v : call.operands) tensors.push_back(v.is_tensor() ? v.tensor() : Tensor());
  auto gradient = std::make_shared<std::optional<CondGradient>>();
  auto backward = [operands = call.operands, gradient](autograd::FunctionContext& context,
                                                       const autograd::Gradients& incoming) {
    std::vector<Tensor> saved = context.saved_tensors();
    std::vector<Value> values = operands;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].is_tensor()) values[i] = Value(saved[i]);
    return (*gradient)->run(saved.back(), std::move(values), incoming);
  };
  auto node = make_counted<autograd::FunctionNode>("CondBackward", backward);
  std::vector<Tensor> results = autograd::apply_function(node, tensors, [&](autograd::FunctionContext& context) {
    std::vector<Tensor> saved = tensors, out;
    saved.push_back(call.predicate);
    context.save_for_backward(std::move(saved));
    std::vector<Value> values = run_functional(call);
    gradient->emplace(call, values);
    for (const Value& v : values) {
      check<UserError>(v.is_tensor(), "cond: a branch gives something that is no tensor, where gradients are needed");
      out.push_back(v.tensor());
    }
    return out;
  });
  return {results.begin(), results.end()};
}

/// What a capture makes of a call: each layer in turn.
std::vector<Value> capture_cond(Tensor predicate, const ValueFunction& true_function,
                                const ValueFunction& false_function, std::vector<Value> operands) {
  if (IntrusivePtr<LiftMode> lift = active_lift()) {
    predicate = lift->replace(predicate);
    for (Value& v : operands)
      if (v.is_tensor()) v = Value(lift->replace(v.tensor_ref()));
  }
  std::vector<Tensor> closed_over = find_closed_over({true_function, false_function}, operands);
  std::vector<Value> all = concatenate(operands, {closed_over.begin(), closed_over.end()});
  return run_autograd({predicate, close_branch(true_function, all, operands.size()),
                       close_branch(false_function, all, operands.size()), all});
}

}  // namespace

bool is_captured(const Tensor& predicate) {
  for (DispatchKey key : {DispatchKey::Lift, DispatchKey::PreProxy, DispatchKey::Functionalize, DispatchKey::Proxy})
    if (is_active(key)) return true;
  return predicate.is_fake();
}

std::vector<Value> cond(const Value& predicate, const ValueFunction& true_function, const ValueFunction& false_function,
                        const std::vector<Value>& operands) {
  check(predicate.is_tensor() || predicate.is_scalar(), "Expected pred to be bool or tensor, but got ",
        tag_name(predicate.tag()));
  if (!predicate.is_tensor()) return (predicate.to_bool() ? true_function : false_function)(operands);
  const Tensor& condition = predicate.tensor_ref();
  if (!is_captured(condition)) {
    check_branches(true_function, false_function, operands);
    return (is_true(condition) ? true_function : false_function)(operands);
  }
  if (is_active(DispatchKey::PreProxy))
    return record_cond(*active_tracer(DispatchKey::PreProxy), condition, true_function, false_function, operands);
  return capture_cond(condition, true_function, false_function, operands);
}

}  // namespace umbra
