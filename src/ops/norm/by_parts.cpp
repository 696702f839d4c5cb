#include "ops/norm/by_parts.h"

#include "umbra/core/grad_mode.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

bool wants_derivative(std::initializer_list<const Tensor*> tensors) {
  if (!is_grad_enabled()) return false;
  for (const Tensor* t : tensors)
    if (t->defined() && t->requires_grad()) return true;
  return false;
}

std::pair<Tensor, Tensor> statistics(const Tensor& input, const std::vector<int64_t>& dims, double eps) {
  Tensor mean = input.mean(IntArrayRef(dims), true);
  Tensor centered = input.sub(mean);
  return {mean, centered.mul(centered).mean(IntArrayRef(dims), true).add(eps).rsqrt()};
}

NormGradients norm_backward_by_parts(const Tensor& grad, const Tensor& input, const Tensor& weight, const Normalization& n,
                                     const std::vector<bool>& needs) {
  Tensor standard = input.sub(n.mean).mul(n.rstd);
  Tensor of_input, of_weight, of_bias;
  if (needs[0]) {
    Tensor scaled = weight.defined() ? grad.mul(weight) : grad;
    of_input = scaled;
    if (!n.normalized.empty()) {
      IntArrayRef dims(n.normalized);
      of_input = scaled.sub(scaled.mean(dims, true)).sub(standard.mul(scaled.mul(standard).mean(dims, true)));
    }
    of_input = of_input.mul(n.rstd);
  }
  auto over_shared = [&](const Tensor& t) { return n.shared.empty() ? t : t.sum(IntArrayRef(n.shared), false); };
  if (needs[1] && weight.defined()) of_weight = over_shared(grad.mul(standard));
  if (needs[2]) of_bias = over_shared(grad);
  return {of_input, of_weight, of_bias};
}

}  // namespace umbra::ops
