// Whole steps of optimisers over lists of parameters. The forms that return values are what functionalisation records.
#include "kernels/optimizer.h"
#include "ops/common/needs_data.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// The learning rate, given as a number or in a tensor.
double number_of(double rate) { return rate; }
double number_of(const Tensor& rate) { return rate.item().to_double(); }

/// Found an infinity among the gradients: the step is left out.
bool is_skipped(const Tensor& found_inf) { return found_inf.defined() && found_inf.item().to_double() == 1; }

kernels::GradientRule gradient_rule(bool maximize, double weight_decay, const Tensor& scale) {
  kernels::GradientRule rule{.maximize = maximize, .weight_decay = weight_decay};
  if (scale.defined()) {
    rule.scale = scale.item().to_double();
    rule.scaled = true;
  }
  return rule;
}

void check_length(const char* name, TensorList list, size_t expected) {
  check(list.size() == expected, "Expected ", name, ".size() == n_tensors to be true, but got false.");
}
/// A list that only one form of the step has.
void check_optional(const char* name, TensorList list, bool used, size_t expected) {
  if (used) return check_length(name, list, expected);
  check(list.empty(), "Expected ", name, ".empty() to be true, but got false.");
}

std::vector<Tensor> copies(TensorList list) {
  std::vector<Tensor> out;
  for (const Tensor& t : list) out.push_back(t.clone());
  return out;
}

// ---- Adam, AdamW ----

/// Writes parameters and states; Rate is a number or a tensor.
template <class Rate, bool decoupled> struct AdamInPlace {
  void operator()(OperatorBuilder& builder) const {
    builder.mutate([](TensorList self, TensorList grads, TensorList averages, TensorList squares, TensorList largest,
                      TensorList steps, const Rate& rate, double beta1, double beta2, double weight_decay, double eps,
                      bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
      check_length("grads", grads, self.size());
      check_length("exp_avgs", averages, self.size());
      check_length("exp_avg_sqs", squares, self.size());
      check_optional("max_exp_avg_sqs", largest, amsgrad, self.size());
      check_length("state_steps", steps, self.size());
      if (is_skipped(found_inf)) return;
      kernels::AdamRule rule{
          gradient_rule(maximize, weight_decay, grad_scale), number_of(rate), beta1, beta2, eps, decoupled};
      for (size_t i = 0; i < self.size(); ++i)
        kernels::adam_step(rule, self[i], grads[i], averages[i], squares[i], amsgrad ? largest[i] : Tensor(),
                           steps[i].item().to_double());
    });
  }
};

/// The same as values; `write` is the operator that writes.
template <class Rate, class Write> auto adam_values(Write write) {
  return [write](OperatorBuilder& builder) {
    builder
        .all_backends([write](TensorList self, TensorList grads, TensorList averages, TensorList squares,
                              TensorList largest, TensorList steps, const Rate& rate, double beta1, double beta2,
                              double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                              const Tensor& found_inf) {
          auto p = copies(self), g = copies(grads), m = copies(averages), v = copies(squares), most = copies(largest);
          write(p, g, m, v, most, steps, rate, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale,
                found_inf);
          return std::tuple(p, g, m, v, most);
        })
        .tags({Tag::Generated});
  };
}

UMBRA_OPERATOR(
    "_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
    "max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool "
    "amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(AdamInPlace<double, false>{})
    .functional_form("aten::_fused_adam")
    .use(NothingOnMeta{});
UMBRA_OPERATOR(
    "_fused_adam(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, "
    "Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool "
    "maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] "
    "exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)")
    .use(adam_values<double>([](auto&&... a) { _fused_adam_(std::forward<decltype(a)>(a)...); }));
UMBRA_OPERATOR(
    "_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, "
    "float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(AdamInPlace<Tensor, false>{})
    .functional_form("aten::_fused_adam.tensor_lr")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_adam.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] "
    "max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, "
    "bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] "
    "grads_out, Tensor[] exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)")
    .use(adam_values<Tensor>([](auto&&... a) { _fused_adam_(std::forward<decltype(a)>(a)...); }));
UMBRA_OPERATOR(
    "_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, "
    "float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(AdamInPlace<double, true>{})
    .functional_form("aten::_fused_adamw")
    .use(NothingOnMeta{});
UMBRA_OPERATOR(
    "_fused_adamw(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, "
    "Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool "
    "maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] "
    "exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)")
    .use(adam_values<double>([](auto&&... a) { _fused_adamw_(std::forward<decltype(a)>(a)...); }));
UMBRA_OPERATOR(
    "_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, "
    "float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(AdamInPlace<Tensor, true>{})
    .functional_form("aten::_fused_adamw.tensor_lr")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_adamw.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] "
    "max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, "
    "bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] "
    "grads_out, Tensor[] exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)")
    .use(adam_values<Tensor>([](auto&&... a) { _fused_adamw_(std::forward<decltype(a)>(a)...); }));

// ---- SGD ----

template <class Rate> struct SgdInPlace {
  void operator()(OperatorBuilder& builder) const {
    builder.mutate([](TensorList self, TensorList grads, TensorList buffers, double weight_decay, double momentum,
                      const Rate& rate, double dampening, bool nesterov, bool maximize, bool first,
                      const Tensor& grad_scale, const Tensor& found_inf) {
      check_length("grads", grads, self.size());
      check_optional("momentum_buffer_list", buffers, momentum != 0, self.size());
      if (is_skipped(found_inf)) return;
      kernels::SgdRule rule{
          gradient_rule(maximize, weight_decay, grad_scale), number_of(rate), momentum, dampening, nesterov, first};
      for (size_t i = 0; i < self.size(); ++i)
        kernels::sgd_step(rule, self[i], grads[i], momentum != 0 ? buffers[i] : Tensor());
    });
  }
};

template <class Rate, class Write> auto sgd_values(Write write) {
  return [write](OperatorBuilder& builder) {
    builder
        .all_backends([write](TensorList self, TensorList grads, TensorList buffers, double weight_decay,
                              double momentum, const Rate& rate, double dampening, bool nesterov, bool maximize,
                              bool first, const Tensor& grad_scale, const Tensor& found_inf) {
          auto p = copies(self), g = copies(grads), b = copies(buffers);
          write(p, g, b, weight_decay, momentum, rate, dampening, nesterov, maximize, first, grad_scale, found_inf);
          return std::tuple(p, g, b);
        })
        .tags({Tag::Generated});
  };
}

UMBRA_OPERATOR(
    "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, "
    "float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? "
    "grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(SgdInPlace<double>{})
    .functional_form("aten::_fused_sgd")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_sgd(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, "
    "float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? "
    "found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] momentum_buffer_list_out)")
    .use(sgd_values<double>([](auto&&... a) { _fused_sgd_(std::forward<decltype(a)>(a)...); }));
UMBRA_OPERATOR(
    "_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
    "weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, "
    "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()")
    .use(SgdInPlace<Tensor>{})
    .functional_form("aten::_fused_sgd.tensor_lr")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_sgd.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float "
    "momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, "
    "Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] momentum_buffer_list_out)")
    .use(sgd_values<Tensor>([](auto&&... a) { _fused_sgd_(std::forward<decltype(a)>(a)...); }));

// ---- Adagrad; with a number for its rate it has its step counts among its results, unchanged ----

template <class Rate>
void adagrad_in_place(TensorList self, TensorList grads, TensorList sums, TensorList steps, const Rate& rate,
                      double rate_decay, double weight_decay, double eps, bool maximize, const Tensor& grad_scale,
                      const Tensor& found_inf) {
  check_length("grads", grads, self.size());
  check_length("state_sums", sums, self.size());
  check_length("state_steps", steps, self.size());
  if (is_skipped(found_inf)) return;
  kernels::AdagradRule rule{gradient_rule(maximize, weight_decay, grad_scale), number_of(rate), rate_decay, eps};
  for (size_t i = 0; i < self.size(); ++i)
    kernels::adagrad_step(rule, self[i], grads[i], sums[i], steps[i].item().to_double());
}

UMBRA_OPERATOR(
    "_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, "
    "float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? "
    "found_inf=None) -> ()")
    .mutate(adagrad_in_place<double>)
    .functional_form("aten::_fused_adagrad")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_adagrad(Tensor[] self, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, *, float lr, float "
    "lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> "
    "(Tensor[] self_out, Tensor[] grads_out, Tensor[] state_sums_out, Tensor[] state_steps_out)")
    .all_backends([](TensorList self, TensorList grads, TensorList sums, TensorList steps, double rate,
                     double rate_decay, double weight_decay, double eps, bool maximize, const Tensor& grad_scale,
                     const Tensor& found_inf) {
      auto p = copies(self), g = copies(grads), s = copies(sums), n = copies(steps);
      _fused_adagrad_(p, g, s, n, rate, rate_decay, weight_decay, eps, maximize, grad_scale, found_inf);
      return std::tuple(p, g, s, n);
    })
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps, "
    "*, Tensor lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? "
    "found_inf=None) -> ()")
    .mutate(adagrad_in_place<Tensor>)
    .functional_form("aten::_fused_adagrad.tensor_lr")
    .use(NeedsData{});
UMBRA_OPERATOR(
    "_fused_adagrad.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, *, Tensor lr, "
    "float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> "
    "(Tensor[] self_out, Tensor[] grads_out, Tensor[] state_sums_out)")
    .all_backends([](TensorList self, TensorList grads, TensorList sums, TensorList steps, const Tensor& rate,
                     double rate_decay, double weight_decay, double eps, bool maximize, const Tensor& grad_scale,
                     const Tensor& found_inf) {
      auto p = copies(self), g = copies(grads), s = copies(sums);
      _fused_adagrad_(p, g, s, steps, rate, rate_decay, weight_decay, eps, maximize, grad_scale, found_inf);
      return std::tuple(p, g, s);
    })
    .tags({Tag::Generated});

}  // namespace
}  // namespace umbra::ops
