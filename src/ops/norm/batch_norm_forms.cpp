// Other forms of batch normalisation: with statistics that may be absent, with a reserve, instance by instance.
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/norm/batch_norm_on_meta.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Result = std::tuple<Tensor, Tensor, Tensor>;
using ReservedResult = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// What a library of kernels would keep for the backward pass; there is none.
Tensor no_reserve(const Tensor& input) { return empty({0}, {.dtype = DType::UInt8, .device = input.device()}); }

/// Statistics of a tensor without elements, which say nothing.
Tensor no_statistics(const Tensor& input) {
  DType type = is_reduced_floating(input.dtype())  ? DType::Float32
               : input.dtype() == DType::Float32   ? DType::Float64
               : input.dtype() == DType::Complex64 ? DType::Complex128
                                                   : input.dtype();
  return zeros({input.dim() > 1 ? input.sym_size(1) : SymInt(0)}, {.dtype = type, .device = input.device()});
}

Result normalized(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                  bool training, double momentum, double eps) {
  check_running_statistics(input, mean, var, training);
  check_kernel_parameters(input, {&weight, &bias});
  if (mean.defined()) return _native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps);
  return _native_batch_norm_legit(input, weight, bias, training, momentum, eps);
}

UMBRA_OPERATOR(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .out("native_batch_norm.out", {"out", "save_mean", "save_invstd"})
    .use(out_asks("native_batch_norm.out",
                  [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, bool, double, double, const Tensor&, const Tensor&, const Tensor&) {
                    for (const Tensor* t : {&input, &weight, &bias, &mean, &var})
                      if (t->defined() && t->is_meta()) return;  // which is described by parts
                    check<ValueError>(mean.defined() == var.defined(),
                                      "running_mean and running_var must either both be None or neither be None");
                    check_kernel_type(is_floating(input.dtype()), "batch_norm", input);
                    check_kernel_parameters(input, {&weight, &bias});
                  }))
    .all_backends(normalized)
    .use(BatchNormDerivative{})
    .differentiable_outputs({true, false, false})
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool "
    "training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                  bool training, double momentum, double eps, bool) {
      Tensor reserve = no_reserve(input);
      if (Tensor nothing = normalized_nothing(input, weight, bias); nothing.defined())
        return std::tuple(nothing, no_statistics(input), no_statistics(input), reserve, int64_t{0});
      check_batch_norm(input, weight, bias, mean, var, training);
      auto [out, save_mean, save_invstd] = native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
      return std::tuple(out, save_mean, save_invstd, reserve, int64_t{0});
    })
    .tags({Tag::MaybeAliasingOrMutating});

// ---- with a reserve ----

UMBRA_OPERATOR(
    "_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor "
    "running_var_out)")
    .all_backends([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, double momentum, double eps) {
      Tensor new_mean = mean.clone(), new_var = var.clone();
      auto [out, save_mean, save_invstd] =
          _native_batch_norm_legit(input, weight, bias, new_mean, new_var, true, momentum, eps);
      return std::tuple(out, save_mean, save_invstd, no_reserve(input), new_mean, new_var);
    })
    .gradient("input, weight, bias", {"grad", "input", "weight", "result1", "result2", "eps", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& save_mean,
                 const Tensor& save_invstd, double eps, std::vector<bool> needs) {
                return batch_norm_gradients(grad, input, weight, {}, {}, save_mean, save_invstd, true, eps, needs);
              })
    .differentiable_outputs({true, false, false, false, false, false})
    .tags({Tag::Generated});

UMBRA_OPERATOR(
    "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
    "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
    .all_backends([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, double momentum, double eps) {
      auto [out, save_mean, save_invstd] =
          _native_batch_norm_legit(input, weight, bias, mean, var, true, momentum, eps);
      return ReservedResult(out, save_mean, save_invstd, no_reserve(input));
    })
    .functional_form("aten::_batch_norm_with_update_functional")
    .gradient("input, weight, bias",
              {"grad", "input", "weight", "running_mean", "running_var", "result1", "result2", "eps", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor&, const Tensor&,
                 const Tensor& save_mean, const Tensor& save_invstd, double eps, std::vector<bool> needs) {
                return batch_norm_gradients(grad, input, weight, {}, {}, save_mean, save_invstd, true, eps, needs);
              })
    .differentiable_outputs({true, false, false, false})
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "float "
    "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
    .generated_out("_batch_norm_no_update.out", {"out0", "out1", "out2", "out3"})
    .all_backends([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, double momentum, double eps) {
      auto [out, save_mean, save_invstd] = normalized(input, weight, bias, mean, var, false, momentum, eps);
      return ReservedResult(out, save_mean, save_invstd, no_reserve(input));
    })
    .use(BatchNormOnMeta{});

Result backward_with_reserve(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                             const Tensor& var, const Tensor& save_mean, const Tensor& save_var, bool update,
                             double eps, std::vector<bool> mask, const Tensor&) {
  return native_batch_norm_backward(grad, input, weight, mean, var, save_mean, save_var, update, eps, mask);
}

UMBRA_OPERATOR(
    "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, "
    "Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, "
    "Tensor, Tensor)")
    .all_backends(backward_with_reserve)
    .tangents_through(backward_with_reserve)
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, "
    "Tensor)")
    .generated_out("batch_norm_update_stats.out", {"out0", "out1"})
    .all_backends([](const Tensor& input, const Tensor& mean, const Tensor& var, double momentum) {
      check_kernel_type(is_floating(input.dtype()), "batch_norm_update_stats_cpu", input);
      check_kernel_parameters(input, {&mean, &var});
      wrap_dim(1, input.dim(), false);
      check(input.sym_numel() != 0,
            "input tensor must have at least one element, but got input_sizes = ", to_string(input.sym_sizes()));
      std::vector<int64_t> others{0};
      for (int64_t d = 2; d < input.dim(); ++d) others.push_back(d);
      Tensor batch_mean = input.mean(others), batch_var = input.var(others, Scalar(0));
      if (mean.defined()) mean.mul_(1 - momentum).add_(batch_mean, momentum);
      if (var.defined()) var.mul_(1 - momentum).add_(input.var(others, Scalar(1)), momentum);
      return std::tuple(batch_mean, batch_var);
    })
    .use(NeedsData{});

// ---- instance by instance: every channel of every sample is a channel of one large sample ----

UMBRA_OPERATOR(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                  bool use_input_stats, double momentum, double eps, bool cudnn) {
      check(use_input_stats || (mean.defined() && var.defined()),
            "Expected running_mean and running_var to be defined when use_input_stats is false");
      SymInt batch = input.sym_size(0), channels = input.sym_size(1);
      SymShape shape(input.sym_sizes());
      shape[0] = 1;
      shape[1] = batch * channels;
      auto repeated = [&](const Tensor& t) { return t.defined() ? t.repeat({batch}) : t; };
      Tensor all_weight = repeated(weight), all_bias = repeated(bias), all_mean = repeated(mean),
             all_var = repeated(var);
      Tensor out = batch_norm(input.contiguous().view(shape), all_weight, all_bias, all_mean, all_var, use_input_stats,
                              momentum, eps, cudnn);
      for (const auto& [to, from] : {std::pair(&mean, &all_mean), std::pair(&var, &all_var)})
        if (to->defined()) to->alias().copy_(from->view({batch, channels}).mean(IntArrayRef{0}, false));
      return out.view(input.sym_sizes());
    });

}  // namespace
}  // namespace umbra::ops
