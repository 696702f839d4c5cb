// Steps of optimisers in one pass over each parameter.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// What every step has: the factor that gradients were scaled by (1: none), and whether the objective is to grow.
struct GradientRule {
  double scale = 1;
  bool scaled = false;  // the gradient is written back without its scale
  bool maximize = false;
  double weight_decay = 0;
};

struct AdamRule {
  GradientRule gradient;
  double rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  bool decoupled = false;  // weight decay apart from the gradient: AdamW
};
/// `largest_square` may be undefined: no AMSGrad.
void adam_step(const AdamRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& average,
               const Tensor& square, const Tensor& largest_square, double step);

struct SgdRule {
  GradientRule gradient;
  double rate = 0, momentum = 0, dampening = 0;
  bool nesterov = false, first = false;
};
/// `buffer` may be undefined: no momentum.
void sgd_step(const SgdRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& buffer);

struct AdagradRule {
  GradientRule gradient;
  double rate = 0, rate_decay = 0, epsilon = 0;
};
void adagrad_step(const AdagradRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& sum,
                  double step);

}  // namespace umbra::kernels
