#include "umbra/nn/utils.h"

#include <cmath>

#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::nn::utils {

namespace {
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters)
    if (Tensor gradient = p.grad(); gradient.defined()) gradients.push_back(gradient.detach());
  return gradients;
}
}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGrad values_alone;
  std::vector<Tensor> gradients = gradients_of(parameters), norms;
  if (gradients.empty()) return 0;
  for (const Tensor& g : gradients) norms.push_back(linalg_vector_norm(g, norm_type));
  Tensor total = linalg_vector_norm(stack(norms), norm_type);
  double norm = total.item<double>();
  check(!error_if_nonfinite || std::isfinite(norm), "The total norm of order ", norm_type,
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the "
        "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
  // Scaling by 1 where nothing is to be clipped would still write every gradient; a norm that is no number reaches all
  // of them, as in PyTorch.
  Tensor factor = (max_norm / (total + 1e-6)).clamp_max(1.0);
  if (factor.item<double>() == 1) return norm;
  for (const Tensor& g : gradients) g.mul_(factor.to(g.dtype()));
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGrad values_alone;
  for (const Tensor& g : gradients_of(parameters)) g.clamp_(-clip_value, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) parts.push_back(p.reshape(-1));
  return cat(parts);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t count = 0;
  for (const Tensor& p : parameters) count += p.numel();
  check<ValueError>(vector.dim() == 1 && vector.numel() == count, "the parameters have ", count,
                    " elements, and the vector is of size ", to_string(vector.sizes()));
  NoGrad values_alone;
  int64_t start = 0;
  for (const Tensor& p : parameters) {
    p.copy_(vector.slice(0, start, start + p.numel()).view_as(p));
    start += p.numel();
  }
}

}  // namespace umbra::nn::utils
