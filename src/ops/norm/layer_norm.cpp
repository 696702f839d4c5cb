// Layer normalisation.
#include "kernels/normalization.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_shapes(const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, const Tensor& bias) {
  check(!normalized.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = ",
        normalized);
  for (const Tensor* t : {&weight, &bias})
    if (t->defined() && !(t->sym_sizes() == normalized))
      fail("Expected ", t == &weight ? "weight" : "bias", " to be of same shape as normalized_shape, but got ",
           t == &weight ? "weight" : "bias", " of shape ", t->sym_sizes(),
           " and normalized_shape = ", to_string(normalized));
  size_t rank = static_cast<size_t>(input.dim()), n = normalized.size();
  bool fits = rank >= n;
  for (size_t i = 0; fits && i < n; ++i) fits = input.sym_sizes()[rank - n + i] == normalized[i];
  if (!fits) {
    std::string wanted = "[*";
    for (SymInt s : normalized) wanted += ", " + to_string(s);
    fail("Given normalized_shape=", to_string(normalized), ", expected input with shape ", wanted,
         "], but got input of size", input.sym_sizes());
  }
}

struct Dims {
  std::vector<int64_t> leading, inner;
  Dims(const Tensor& input, SymIntArrayRef normalized) {
    for (int64_t d = 0; d < input.dim(); ++d)
      (d + static_cast<int64_t>(normalized.size()) < input.dim() ? leading : inner).push_back(d);
  }
};

NormGradients layer_norm_backward_by_parts(const Tensor& grad, const Tensor& input, SymIntArrayRef normalized,
                                           const Tensor& weight, double eps, const std::vector<bool>& needs) {
  Dims dims(input, normalized);
  auto [mean, rstd] = statistics(input, dims.inner, eps);
  return norm_backward_by_parts(grad, input, weight, {mean, rstd, dims.inner, dims.leading}, needs);
}

// The statistics that are handed over stand for those of the input: their derivative is that of the input's.
NormGradients layer_norm_backward_tangents(const Tensor& grad, const Tensor& input, SymIntArrayRef normalized,
                                           const Tensor&, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                                           std::vector<bool> mask) {
  Dims dims(input, normalized);
  auto [mean, own_rstd] = statistics(input, dims.inner, rstd);
  return norm_backward_by_parts(grad, input, weight, {mean, own_rstd, dims.inner, dims.leading},
                                {mask[0], mask[1], mask[2] && bias.defined()});
}

using NormSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec>;

UMBRA_OPERATOR(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
    "Tensor, Tensor)")
    .generated_out("native_layer_norm.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, const Tensor& bias,
             double) -> NormSpecs {
      check_shapes(input, normalized, weight, bias);
      if (input.device().type == DeviceType::CUDA)
        for (const Tensor* t : {&weight, &bias})
          if (t->defined())
            check(t->dtype() == input.dtype(), "expected scalar type ", kernel_name(input.dtype()), " but found ",
                  kernel_name(t->dtype()));
      SymShape rows(input.sym_sizes());
      for (size_t i = rows.size() - normalized.size(); i < rows.size(); ++i) rows[i] = 1;
      TensorSpec statistics(rows, statistics_dtype(input, {&weight, &bias}), input.device());
      return {TensorSpec(input.sym_sizes(), input.dtype(), input.device()), statistics, statistics};
    })
    .cpu<3>([](const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input,
               SymIntArrayRef normalized, const Tensor& weight, const Tensor& bias, double eps) {
      check_parameter_types(input, {&weight, &bias});
      kernels::layer_norm(out, mean, rstd, input, weight, bias, static_cast<int64_t>(normalized.size()), eps);
    })
    .gradient("input, weight, bias",
              {"grad", "input", "normalized_shape", "result1", "result2", "weight", "bias", "eps", "needs"},
              [](const Tensor& grad, const Tensor& input, std::vector<SymInt> normalized, const Tensor& mean,
                 const Tensor& rstd, const Tensor& weight, const Tensor& bias, double eps, std::vector<bool> needs) {
                if (wants_derivative({&grad, &input, &weight}))
                  return layer_norm_backward_by_parts(grad, input, normalized, weight, eps, needs);
                return native_layer_norm_backward(grad, input, normalized, mean, rstd, weight, bias, needs);
              })
    .differentiable_outputs({true, false, false})
    .tags({Tag::Core})
    .batch([](const Batched& input, SymIntArrayRef normalized, const Batched& weight, const Batched& bias, double eps) {
      bool mapped = weight.is_batched() || bias.is_batched();
      // Weights that differ come after, as the kernel has them: before the result is rounded.
      DType dtype = input.value.dtype();
      DType kept = statistics_dtype(input.value, {&weight.value, &bias.value});
      bool narrow = mapped && (dtype == DType::Float16 || dtype == DType::BFloat16);
      Tensor all = narrow ? batch_all(input).to(DType::Float32) : batch_all(input);
      auto [out, mean, rstd] =
          native_layer_norm(all, normalized, mapped ? Tensor() : weight.value, mapped ? Tensor() : bias.value, eps);
      if (mapped && weight.defined()) out = out.mul(batch_first(weight, input.rank()));
      if (mapped && bias.defined()) out = out.add(batch_first(bias, input.rank()));
      return std::tuple(Batched(narrow ? out.to(dtype) : out, 0), Batched(mean.to(kept), 0), Batched(rstd.to(kept), 0));
    });

UMBRA_OPERATOR(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .generated_out("native_layer_norm_backward.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& grad, const Tensor& input, SymIntArrayRef normalized, const Tensor& mean, const Tensor& rstd,
             const Tensor& weight, const Tensor& bias, std::array<bool, 3> mask) -> NormSpecs {
      check_shapes(input, normalized, weight, bias);
      check(grad.sym_sizes() == input.sym_sizes(), "Expected grad_out of size ", input.sym_sizes(), ", but got ",
            grad.sym_sizes());
      SymInt rows = product(input.sym_sizes().drop_back(normalized.size()));
      for (const Tensor* t : {&mean, &rstd})
        check(t->sym_numel() == rows, "Expected mean and rstd to have ", rows, " elements, but got ", t->sym_numel());
      TensorSpec none;
      none.defined = false;
      return {mask[0] ? TensorSpec(input.sym_sizes(), input.dtype(), input.device()) : none,
              mask[1] && weight.defined() ? TensorSpec(normalized, weight.dtype(), input.device()) : none,
              mask[2] && bias.defined() ? TensorSpec(normalized, bias.dtype(), input.device()) : none};
    })
    .cpu<3>([](const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
               const Tensor& input, SymIntArrayRef normalized, const Tensor& mean, const Tensor& rstd,
               const Tensor& weight, const Tensor&, std::array<bool, 3>) {
      kernels::layer_norm_backward(grad_input, grad_weight, grad_bias, grad, input, mean, rstd, weight,
                                   static_cast<int64_t>(normalized.size()));
    })
    .tangents_through(layer_norm_backward_tangents)
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
    "cudnn_enable=True) -> Tensor")
    .composite([](const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, const Tensor& bias, double eps,
                  bool) { return std::get<0>(native_layer_norm(input, normalized, weight, bias, eps)); });

}  // namespace
}  // namespace umbra::ops
