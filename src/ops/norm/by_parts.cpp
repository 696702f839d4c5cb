#include "ops/norm/by_parts.h"

#include "ops/common/kernel_type.h"
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

std::pair<Tensor, Tensor> statistics(const Tensor& input, const std::vector<int64_t>& dims, const Tensor& rstd) {
  Tensor mean = input.mean(IntArrayRef(dims), true), centered = input.sub(mean);
  Tensor variance = centered.mul(centered).mean(IntArrayRef(dims), true);
  Tensor eps = rstd.pow(-2).sub(variance).detach();
  return {mean, variance.add(eps).rsqrt()};
}

void check_parameter_types(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  bool mixed = false, all_float = true;
  for (const Tensor* t : parameters) {
    if (!t->defined()) continue;
    mixed |= t->dtype() != input.dtype();
    all_float &= t->dtype() == DType::Float32;
  }
  if (!mixed || !input.is_floating_point()) return;  // other types have no kernel, which is the better message
  check(all_float, "mixed dtype (CPU): expect parameter to have scalar type of Float");
  check(is_reduced_floating(input.dtype()), "mixed dtype (CPU): all inputs must share same datatype.");
}

void check_kernel_parameters(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  if (has_elements(input)) check_parameter_types(input, parameters);
}

DType statistics_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  bool narrow = is_reduced_floating(input.dtype());
  if (input.device().type == DeviceType::CUDA) return narrow ? DType::Float32 : input.dtype();
  for (const Tensor* t : parameters)
    if (t->defined() && narrow && t->dtype() == DType::Float32) return DType::Float32;
  return input.dtype();
}

NormGradients norm_backward_by_parts(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                     const Normalization& n, const std::vector<bool>& needs) {
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
