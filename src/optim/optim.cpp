#include "umbra/optim/optim.h"

#include <cmath>

#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::optim {

// ---- what all share ----

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  check<ValueError>(!parameters_.empty(), "optimizer got an empty parameter list");
  for (const Tensor& p : parameters_) check<ValueError>(p.is_leaf(), "can't optimize a non-leaf Tensor");
}

void Optimizer::step() {
  NoGrad no_grad;
  for (const Tensor& p : parameters_)
    if (Tensor gradient = p.grad(); gradient.defined()) update(p, gradient, states_[p.impl()]);
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters_) {
    Tensor gradient = p.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) p.set_grad({});
    else gradient.detach().zero_();
  }
}

ParameterState& Optimizer::state(const Tensor& parameter) { return states_[parameter.impl()]; }

namespace {
void check_not_negative(const char* what, double value) {
  check<ValueError>(value >= 0, "Invalid ", what, ": ", value);
}
}  // namespace

// ---- SGD ----

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  check_not_negative("learning rate", options.lr);
  check_not_negative("momentum value", options.momentum);
  check_not_negative("weight_decay value", options.weight_decay);
  check<ValueError>(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "Nesterov momentum requires a momentum and zero dampening");
}

void SGD::update(const Tensor& parameter, Tensor gradient, ParameterState& state) {
  if (options_.maximize) gradient = -gradient;
  if (options_.weight_decay != 0) gradient = add(gradient, parameter, options_.weight_decay);
  if (options_.momentum != 0) {
    Tensor& momentum = state["momentum_buffer"];
    if (momentum.defined()) momentum.mul_(options_.momentum).add_(gradient, 1 - options_.dampening);
    else momentum = gradient.detach().clone();
    gradient = options_.nesterov ? add(gradient, momentum, options_.momentum) : momentum;
  }
  parameter.add_(gradient, -options_.lr);
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
void adaptive_step(const Options& options, const Tensor& parameter, const Tensor& gradient, ParameterState& state) {
  if (state.empty()) {
    state["step"] = zeros({}, {.dtype = DType::Float32});
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

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  check_adam(options);
}

void Adam::update(const Tensor& parameter, Tensor gradient, ParameterState& state) {
  if (options_.maximize) gradient = -gradient;
  if (options_.weight_decay != 0) gradient = add(gradient, parameter, options_.weight_decay);
  adaptive_step(options_, parameter, gradient, state);
}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  check_adam(options);
}

void AdamW::update(const Tensor& parameter, Tensor gradient, ParameterState& state) {
  if (options_.maximize) gradient = -gradient;
  if (options_.weight_decay != 0) parameter.mul_(1 - options_.lr * options_.weight_decay);
  adaptive_step(options_, parameter, gradient, state);
}

}  // namespace umbra::optim
