#include "umbra/optim/optim.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include "optim/options.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::optim {

// ---- what all share ----

struct Optimizer::States final : RefCounted {
  std::unordered_map<const TensorImpl*, ParameterState> of;
};

Optimizer::Optimizer() : states_(make_counted<States>()) {}
Optimizer::~Optimizer() = default;

void Optimizer::take(const std::vector<Tensor>& parameters) {
  check<ValueError>(!parameters.empty(), "optimizer got an empty parameter list");
  for (const Tensor& p : parameters) {
    check<ValueError>(p.is_leaf(), "can't optimize a non-leaf Tensor");
    check<ValueError>(states_->of.try_emplace(p.impl()).second,
                      "some parameters appear in more than one parameter group");
    parameters_.push_back(p);
  }
  group_sizes_.push_back(parameters.size());
}

namespace {

/// A complex parameter's state as pairs of real numbers, and back: views both ways, so that writes reach it.
ParameterState with_pairs(const ParameterState& state) {
  ParameterState pairs;
  for (const auto& [name, value] : state) pairs[name] = value.is_complex() ? view_as_real(value) : value;
  return pairs;
}
ParameterState without_pairs(const ParameterState& pairs, const Tensor& parameter) {
  SymShape sizes(parameter.sym_sizes());
  sizes.push_back(2);
  ParameterState state;
  for (const auto& [name, value] : pairs)
    state[name] = value.sym_sizes() == SymIntArrayRef(sizes) ? view_as_complex(value) : value;
  return state;
}

}  // namespace

void Optimizer::step() {
  NoGrad no_grad;
  size_t number = 0;
  for (size_t group = 0; group < group_sizes_.size(); ++group) {
    for (size_t i = 0; i < group_sizes_[group]; ++i, ++number) {
      const Tensor& p = parameters_[number];
      Tensor gradient = p.grad();
      if (!gradient.defined()) continue;
      ParameterState& state = states_->of[p.impl()];
      if (p.is_complex()) {  // real and imaginary parts are parameters of their own, as in PyTorch
        ParameterState pairs = with_pairs(state);
        update(group, view_as_real(p), view_as_real(gradient), pairs);
        state = without_pairs(pairs, p);
      } else {
        update(group, p, gradient, state);
      }
    }
  }
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    SetGradEnabled recording(true);
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters_) {
    Tensor gradient = p.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) p.set_grad({});
    else gradient.detach().zero_();
  }
}

ParameterState& Optimizer::state(const Tensor& parameter) { return states_->of[parameter.impl()]; }

// ---- state in and out ----

OptimizerState Optimizer::state_dict() const {
  OptimizerState out;
  int64_t number = 0;
  for (size_t group = 0; group < group_sizes_.size(); ++group) {
    OptimizerState::Group& into = out.param_groups.emplace_back();
    // Reading visits as writing does; nothing is written here.
    const_cast<Optimizer*>(this)->visit_options(
        group, [&](const std::string& name, double& value) { into.options[name] = value; });
    for (size_t i = 0; i < group_sizes_[group]; ++i, ++number) {
      into.parameters.push_back(number);
      const ParameterState& kept = states_->of.at(parameters_[static_cast<size_t>(number)].impl());
      if (!kept.empty()) out.state[number] = kept;
    }
  }
  return out;
}

void Optimizer::check_state(const Tensor& parameter, const ParameterState& state) const {
  for (const auto& [name, tensor] : state)
    check<ValueError>(name == "step" || tensor.sym_sizes() == parameter.sym_sizes(), "loaded state dict has a '", name,
                      "' of the size ", to_string(tensor.sym_sizes()), " for a parameter of the size ",
                      to_string(parameter.sym_sizes()));
}

namespace {

/// Adam and AdamW differ in this alone, which no user sets.
constexpr const char* kDecoupled = "decoupled_weight_decay";

/// Options of PyTorch's that say how a step is computed, and what schedulers keep beside the rate: no matter here.
bool says_nothing_here(const std::string& name) {
  static const std::set<std::string> names = {"foreach", "fused",  "capturable",    "differentiable", "initial_lr",
                                              "max_lr",  "min_lr", "base_momentum", "max_momentum"};
  return names.contains(name);
}

}  // namespace

/// Looks at the options of a group that is to be loaded, and changes nothing.
void Optimizer::check_options_of(const OptimizerState::Group& given, size_t group) {
  std::set<std::string> known;
  visit_options(group, [&](const std::string& name, double& value) {
    known.insert(name);
    auto found = given.options.find(name);
    bool is_kind = name == kDecoupled;  // older files do not have it
    check<ValueError>(found != given.options.end() || is_kind, "loaded state dict has no option '", name, "'");
    if (is_kind && found != given.options.end())
      check<ValueError>(found->second == value, "loaded state dict is one of ", value != 0 ? "Adam" : "AdamW",
                        ", the optimizer is ", value != 0 ? "AdamW" : "Adam");
  });
  for (const auto& [name, value] : given.options)
    check<ValueError>(known.contains(name) || says_nothing_here(name), "loaded state dict has an option '", name,
                      "', which this optimizer does not have");
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  check<ValueError>(state.param_groups.size() == group_sizes_.size(),
                    "loaded state dict has a different number of parameter groups");
  std::map<int64_t, Tensor> owners;
  size_t number = 0;
  for (size_t group = 0; group < group_sizes_.size(); ++group) {
    const OptimizerState::Group& from = state.param_groups[group];
    check<ValueError>(from.parameters.size() == group_sizes_[group],
                      "loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
    for (int64_t known_as : from.parameters) owners[known_as] = parameters_[number++];
  }
  for (const auto& [known_as, kept] : state.state)
    check<ValueError>(owners.contains(known_as), "loaded state dict has state of a parameter ", known_as,
                      " that no group has");
  for (const auto& [known_as, kept] : state.state) check_state(owners[known_as], kept);
  for (size_t group = 0; group < group_sizes_.size(); ++group) check_options_of(state.param_groups[group], group);
  for (size_t group = 0; group < group_sizes_.size(); ++group)
    visit_options(group, [&](const std::string& name, double& value) {
      auto found = state.param_groups[group].options.find(name);
      if (found != state.param_groups[group].options.end()) value = found->second;
    });
  for (auto& [known_as, parameter] : owners) {
    ParameterState& into = states_->of[parameter.impl()];
    into.clear();
    auto found = state.state.find(known_as);
    if (found == state.state.end()) continue;
    for (const auto& [name, tensor] : found->second) {
      bool follows = name != "step" && tensor.sym_sizes() == parameter.sym_sizes();  // a count stays one
      into[name] = follows ? tensor.to(parameter.dtype()) : tensor;
    }
  }
}

namespace {

/// The gradient to descend along: turned round to maximize, with that of the weight decay.
template <class Options> Tensor decayed(const Options& options, const Tensor& parameter, Tensor gradient) {
  if (options.maximize) gradient = -gradient;
  return options.weight_decay != 0 ? add(gradient, parameter, options.weight_decay) : gradient;
}

bool is_sparse_gradient(const Tensor& gradient) { return gradient.layout() == Layout::SparseCoo; }

void refuse_sparse(const char* name, const Tensor& gradient, const char* instead = "") {
  check(!is_sparse_gradient(gradient), name, " does not support sparse gradients", instead);
}

/// A COO tensor with the places of another one that is in order.
Tensor at_places(const Tensor& coalesced, const Tensor& values) {
  return _sparse_coo_tensor_unsafe(coalesced.indices(), values, coalesced.sym_sizes(), {.dtype = values.dtype()}, true);
}

}  // namespace

template <class Options> void GroupedOptimizer<Options>::add_all(std::vector<Group> groups) {
  check<ValueError>(!groups.empty(), "optimizer got an empty parameter list");
  for (Group& group : groups) add_param_group(std::move(group));
}

#define UMBRA_CONSTRUCTORS(Name)                                             \
  Name::Name(std::vector<Tensor> parameters, const Name##Options& options) { \
    add_param_group({std::move(parameters), options});                       \
  }                                                                          \
  Name::Name(std::vector<Group> groups) { add_all(std::move(groups)); }

// ---- SGD ----

UMBRA_CONSTRUCTORS(SGD)

void SGD::check_options(const SGDOptions& options) const {
  check_not_negative("learning rate", options.lr);
  check_not_negative("momentum value", options.momentum);
  check_not_negative("weight_decay value", options.weight_decay);
  check<ValueError>(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "Nesterov momentum requires a momentum and zero dampening");
}

void SGD::visit_options(size_t group, const OptionVisitor& visit) {
  SGDOptions& o = param_groups()[group].options;
  Visit{visit}("lr", o.lr)("momentum", o.momentum)("dampening", o.dampening)("weight_decay", o.weight_decay)(
      "nesterov", o.nesterov)("maximize", o.maximize);
}

void SGD::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const SGDOptions& options = options_of(group);
  gradient = decayed(options, parameter, gradient);
  if (options.momentum != 0) {
    Tensor& momentum = state["momentum_buffer"];
    if (momentum.defined()) momentum.mul_(options.momentum).add_(gradient, 1 - options.dampening);
    else momentum = gradient.detach().clone();
    gradient = options.nesterov ? add(gradient, momentum, options.momentum) : momentum;
  }
  parameter.add_(gradient, -options.lr);
}

// ---- Adam and AdamW ----

namespace {

template <class Options> void check_adam(const Options& options) {
  check_not_negative("learning rate", options.lr);
  check_not_negative("epsilon value", options.eps);
  auto check_beta = [](int index, double beta) {
    check<ValueError>(beta >= 0 && beta < 1, "Invalid beta parameter at index ", index, ": ", beta);
  };
  check_beta(0, options.betas.first);
  check_beta(1, options.betas.second);
  check_not_negative("weight_decay value", options.weight_decay);
}

template <class Options>
void visit_adam(Options& o, bool decoupled, const std::function<void(const std::string&, double&)>& visit) {
  Visit{visit}("lr", o.lr)("betas", o.betas)("eps", o.eps)("weight_decay", o.weight_decay)("amsgrad", o.amsgrad)(
      "maximize", o.maximize)(kDecoupled, decoupled);
}

template <class Options>
void adaptive_step(const Options& options, const Tensor& parameter, const Tensor& gradient, ParameterState& state) {
  if (state.empty()) {
    state["step"] = tensor(0.0, {.dtype = DType::Float32});  // a literal: fake tensors know it
    state["exp_avg"] = zeros_like(parameter);
    state["exp_avg_sq"] = zeros_like(parameter);
    if (options.amsgrad) state["max_exp_avg_sq"] = zeros_like(parameter);
  }
  auto [beta1, beta2] = options.betas;
  state["step"] += 1;
  double step = state["step"].item().to_double();
  Tensor average = state["exp_avg"].lerp_(gradient, 1 - beta1);
  Tensor square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  if (options.amsgrad) {
    Tensor& largest = state["max_exp_avg_sq"];
    largest.copy_(maximum(largest, square));
    square = largest;
  }
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  Tensor denominator = square.sqrt().div_(std::sqrt(correction2)).add_(options.eps);
  parameter.addcdiv_(average, denominator, -options.lr / correction1);
}

}  // namespace

UMBRA_CONSTRUCTORS(Adam)
UMBRA_CONSTRUCTORS(AdamW)

void Adam::check_options(const AdamOptions& options) const { check_adam(options); }
void AdamW::check_options(const AdamWOptions& options) const { check_adam(options); }

void Adam::visit_options(size_t group, const OptionVisitor& visit) {
  visit_adam(param_groups()[group].options, false, visit);
}
void AdamW::visit_options(size_t group, const OptionVisitor& visit) {
  visit_adam(param_groups()[group].options, true, visit);
}

void Adam::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const AdamOptions& options = options_of(group);
  refuse_sparse("Adam", gradient, ", please consider SparseAdam instead");
  adaptive_step(options, parameter, decayed(options, parameter, gradient), state);
}

void AdamW::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const AdamWOptions& options = options_of(group);
  refuse_sparse("Adam", gradient, ", please consider SparseAdam instead");
  if (options.maximize) gradient = -gradient;
  if (options.weight_decay != 0) parameter.mul_(1 - options.lr * options.weight_decay);
  adaptive_step(options, parameter, gradient, state);
}

// ---- RMSprop ----

UMBRA_CONSTRUCTORS(RMSprop)

void RMSprop::check_options(const RMSpropOptions& options) const {
  check_not_negative("learning rate", options.lr);
  check_not_negative("epsilon value", options.eps);
  check_not_negative("momentum value", options.momentum);
  check_not_negative("weight_decay value", options.weight_decay);
  check_not_negative("alpha value", options.alpha);
}

void RMSprop::visit_options(size_t group, const OptionVisitor& visit) {
  RMSpropOptions& o = param_groups()[group].options;
  Visit{visit}("lr", o.lr)("alpha", o.alpha)("eps", o.eps)("weight_decay", o.weight_decay)("momentum", o.momentum)(
      "centered", o.centered)("maximize", o.maximize);
}

void RMSprop::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const RMSpropOptions& options = options_of(group);
  refuse_sparse("RMSprop", gradient);
  if (state.empty()) {
    state["step"] = tensor(0.0, {.dtype = DType::Float32});  // a literal: fake tensors know it
    state["square_avg"] = zeros_like(parameter);
    if (options.momentum > 0) state["momentum_buffer"] = zeros_like(parameter);
    if (options.centered) state["grad_avg"] = zeros_like(parameter);
  }
  gradient = decayed(options, parameter, gradient);
  state["step"] += 1;
  Tensor square = state["square_avg"].mul_(options.alpha).addcmul_(gradient, gradient, 1 - options.alpha);
  if (options.centered) {
    Tensor mean = state["grad_avg"].lerp_(gradient, 1 - options.alpha);
    square = addcmul(square, mean, mean, -1);
  }
  Tensor size = square.sqrt().add_(options.eps);
  if (options.momentum > 0) {
    Tensor buffer = state["momentum_buffer"].mul_(options.momentum).addcdiv_(gradient, size);
    parameter.add_(buffer, -options.lr);
  } else {
    parameter.addcdiv_(gradient, size, -options.lr);
  }
}

// ---- Adagrad ----

UMBRA_CONSTRUCTORS(Adagrad)

void Adagrad::check_options(const AdagradOptions& options) const {
  check_not_negative("learning rate", options.lr);
  check_not_negative("lr_decay value", options.lr_decay);
  check_not_negative("weight_decay value", options.weight_decay);
  check_not_negative("initial_accumulator_value value", options.initial_accumulator_value);
  check_not_negative("epsilon value", options.eps);
}

void Adagrad::visit_options(size_t group, const OptionVisitor& visit) {
  AdagradOptions& o = param_groups()[group].options;
  Visit{visit}("lr", o.lr)("lr_decay", o.lr_decay)("weight_decay", o.weight_decay)(
      "initial_accumulator_value", o.initial_accumulator_value)("eps", o.eps)("maximize", o.maximize);
}

namespace {

/// A step at the places that a sparse gradient has.
void adagrad_at_places(const AdagradOptions& options, const Tensor& parameter, Tensor gradient, const Tensor& sum,
                       double rate) {
  check(options.weight_decay == 0, "weight_decay option is not compatible with sparse gradients");
  gradient = (options.maximize ? -gradient : gradient).coalesce();
  Tensor values = gradient.values();
  sum.add_(at_places(gradient, values.square()));
  Tensor spread = sum.sparse_mask(gradient).values().sqrt().add_(options.eps);
  parameter.add_(at_places(gradient, values.div(spread)), -rate);
}

}  // namespace

void Adagrad::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const AdagradOptions& options = options_of(group);
  if (state.empty()) {
    state["step"] = tensor(0.0, {.dtype = DType::Float32});  // a literal: fake tensors know it
    state["sum"] = full_like(parameter, options.initial_accumulator_value);
  }
  state["step"] += 1;
  double rate = options.lr / (1 + (state["step"].item().to_double() - 1) * options.lr_decay);
  if (is_sparse_gradient(gradient)) return adagrad_at_places(options, parameter, gradient, state["sum"], rate);
  gradient = decayed(options, parameter, gradient);
  Tensor sum = state["sum"].addcmul_(gradient, gradient, 1);
  parameter.addcdiv_(gradient, sum.sqrt().add_(options.eps), -rate);
}

// ---- SparseAdam ----

UMBRA_CONSTRUCTORS(SparseAdam)

void SparseAdam::check_options(const SparseAdamOptions& options) const {
  check<ValueError>(options.lr > 0, "Invalid learning rate: ", options.lr);
  check<ValueError>(options.eps > 0, "Invalid epsilon value: ", options.eps);
  for (int i : {0, 1}) {
    double beta = i == 0 ? options.betas.first : options.betas.second;
    check<ValueError>(beta >= 0 && beta < 1, "Invalid beta parameter at index ", i, ": ", beta);
  }
}

void SparseAdam::visit_options(size_t group, const OptionVisitor& visit) {
  SparseAdamOptions& o = param_groups()[group].options;
  Visit{visit}("lr", o.lr)("betas", o.betas)("eps", o.eps)("maximize", o.maximize);
}

namespace {

/// Moves a running average at the gradient's places towards the values; what it is there afterwards.
Tensor move_average(const Tensor& average, const Tensor& gradient, const Tensor& values, double beta) {
  Tensor before = average.sparse_mask(gradient).values(), change = values.sub(before).mul(1 - beta);
  average.add_(at_places(gradient, change));
  return before.add(change);
}

}  // namespace

void SparseAdam::update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) {
  const SparseAdamOptions& options = options_of(group);
  check(is_sparse_gradient(gradient), "SparseAdam does not support dense gradients, please consider Adam instead");
  if (state.empty()) {
    state["step"] = tensor(0.0, {.dtype = DType::Float32});
    state["exp_avg"] = zeros_like(parameter);
    state["exp_avg_sq"] = zeros_like(parameter);
  }
  state["step"] += 1;
  double step = state["step"].item().to_double();
  gradient = (options.maximize ? -gradient : gradient).coalesce();
  Tensor values = gradient.values();
  if (values.numel() == 0) return;
  Tensor mean = move_average(state["exp_avg"], gradient, values, options.betas.first);
  Tensor square = move_average(state["exp_avg_sq"], gradient, values.square(), options.betas.second);
  double correction = std::sqrt(1 - std::pow(options.betas.second, step)) / (1 - std::pow(options.betas.first, step));
  parameter.add_(at_places(gradient, mean.div(square.sqrt().add_(options.eps)).mul(-options.lr * correction)));
}

}  // namespace umbra::optim
