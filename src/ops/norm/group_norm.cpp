// Group normalisation: channels in groups, each group of each sample by itself. Instance normalisation has one channel
// a group.
#include "kernels/copy.h"
#include "kernels/normalization.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt channels, int64_t groups) {
  check(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  check(channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        input.sym_sizes(), " and num_groups=", groups);
  for (const Tensor* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    const char* name = t == &weight ? "weight" : "bias";
    check(t->dim() == 1 && t->sym_size(0) == channels, "Expected ", name,
          " to be a vector of size equal to the number of channels in input, but got ", name, " of shape ",
          t->sym_sizes(), " and input of shape ", input.sym_sizes());
  }
  if (input.device().type != DeviceType::CUDA) check_parameter_types(input, {&weight, &bias});
}

using NormSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec>;

// The kernels work on rows; what lies otherwise goes by way of a copy.
template <class Fn> void in_rows(const Tensor& out, const Fn& fn) {
  if (!out.defined() || out.is_contiguous()) return fn(out);
  Tensor rows = kernels::scratch(out.sizes(), out.dtype());
  fn(rows);
  kernels::copy(out, rows);
}

/// The backward pass by operators that have derivatives; the statistics, which follow from the input, have gradients of
/// their own. `known` is what they follow from besides: eps, or the rstd that was found.
template <class Known>
NormGradients group_norm_by_parts(const std::array<Tensor, 3>& grads, const Tensor& input, const Tensor& weight,
                                  SymInt n, SymInt channels, SymInt inner, int64_t groups, const Known& known,
                                  const std::vector<bool>& needs) {
  SymShape split{n, SymInt(groups), channels / groups, inner};
  Tensor x = input.reshape(split);
  auto [mean, rstd] = statistics(x, {2, 3}, known);
  Tensor of_input, of_weight, of_bias;
  if (grads[0].defined()) {
    Tensor gain = weight.defined() ? weight.reshape({1, SymInt(groups), channels / groups, 1}) : weight;
    std::tie(of_input, of_weight, of_bias) =
        norm_backward_by_parts(grads[0].reshape(split), x, gain, {mean, rstd, {2, 3}, {0, 3}}, needs);
  }
  if (needs[0]) {
    SymInt count = (channels / groups) * inner;
    auto add = [&](const Tensor& term) { of_input = of_input.defined() ? of_input.add(term) : term.expand(split); };
    SymShape statistic{n, SymInt(groups), 1, 1};
    if (grads[1].defined()) add(grads[1].reshape(statistic).div(Scalar(count)));
    if (grads[2].defined()) add(grads[2].reshape(statistic).mul(rstd.pow(3)).mul(x.sub(mean)).div(Scalar(count)).neg());
  }
  auto shaped = [](const Tensor& t, SymIntArrayRef sizes) { return t.defined() ? t.reshape(sizes) : t; };
  return {shaped(of_input, input.sym_sizes()), shaped(of_weight, {channels}), shaped(of_bias, {channels})};
}

UMBRA_OPERATOR(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
    "eps) -> (Tensor, Tensor, Tensor)")
    .generated_out("native_group_norm.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt n, SymInt channels, SymInt inner,
             int64_t group, double) -> NormSpecs {
      check(channels.is_symbolic() || channels.value() > 0, "Expected number of channels to be greater than 0, got ",
            channels);
      check_group_norm(input, weight, bias, channels, group);
      check(inner.is_symbolic() || inner.value() > 0, "Expected HxW to be greater than 0, got ", inner);
      check(input.sym_numel() == n * channels * inner, "Expected an input of ", n * channels * inner,
            " elements, but got one of shape ", input.sym_sizes());
      bool as_weight = weight.defined() && input.device().type != DeviceType::CUDA;
      TensorSpec statistics({n, SymInt(group)}, as_weight ? weight.dtype() : input.dtype(), input.device());
      return {spec_like(input, {}, {}, input.suggested_format()), statistics, statistics};
    })
    .cpu<3>([](const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input, const Tensor& weight,
               const Tensor& bias, SymInt, SymInt, SymInt, int64_t group, double eps) {
      in_rows(out, [&](const Tensor& rows) { kernels::group_norm(rows, mean, rstd, input, weight, bias, group, eps); });
    })
    .gradient(
        "input, weight, bias",
        {"grad0", "grad1", "grad2", "input", "weight", "result1", "result2", "N", "C", "HxW", "group", "eps", "needs"},
        [](const Tensor& grad, const Tensor& of_mean, const Tensor& of_rstd, const Tensor& input, const Tensor& weight,
           const Tensor& mean, const Tensor& rstd, SymInt n, SymInt channels, SymInt inner, int64_t group, double eps,
           std::vector<bool> needs) -> NormGradients {
          if (!of_mean.defined() && !of_rstd.defined() && grad.defined() && !wants_derivative({&grad, &input, &weight}))
            return native_group_norm_backward(grad, input, mean, rstd, weight, n, channels, inner, group, needs);
          return group_norm_by_parts({grad, of_mean, of_rstd}, input, weight, n, channels, inner, group, eps, needs);
        })
    .tags({Tag::Core})
    .batch([](const Batched& input, const Batched& weight, const Batched& bias, SymInt n, SymInt channels, SymInt inner,
              int64_t group, double eps) {
      SymInt size = batch_scope().size;
      bool mapped = weight.is_batched() || bias.is_batched();
      // Weights that differ come after, as the kernel has them: before the result is rounded.
      DType dtype = input.value.dtype(), kept = weight.defined() ? weight.value.dtype() : dtype;
      bool narrow = mapped && is_reduced_floating(dtype);
      Tensor all = narrow ? batch_all(input).to(DType::Float32) : batch_all(input);
      auto [out, mean, rstd] = native_group_norm(fold_batch({all, 0}, 0).contiguous(), mapped ? Tensor() : weight.value,
                                                 mapped ? Tensor() : bias.value, n * size, channels, inner, group, eps);
      Tensor whole = unfold_batch(out, 0).value;
      auto each = [&](const Batched& t) {
        Tensor all = batch_all(t).unsqueeze(1);
        while (all.dim() < whole.dim()) all = all.unsqueeze(-1);
        return all;
      };
      if (mapped && weight.defined()) whole = whole.mul(each(weight));
      if (mapped && bias.defined()) whole = whole.add(each(bias));
      return std::tuple(Batched(narrow ? whole.to(dtype) : whole, 0), unfold_batch(mean.to(kept), 0),
                        unfold_batch(rstd.to(kept), 0));
    });

UMBRA_OPERATOR(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
    "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .generated_out("native_group_norm_backward.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
             SymInt n, SymInt channels, SymInt inner, int64_t group, std::array<bool, 3> mask) -> NormSpecs {
      check_group_norm(input, weight, {}, channels, group);
      check(grad.sym_sizes() == input.sym_sizes() && grad.dtype() == input.dtype(), "Expected grad_out of size ",
            input.sym_sizes(), ", but got ", grad.sym_sizes());
      check(input.sym_numel() == n * channels * inner, "Expected an input of ", n * channels * inner,
            " elements, but got one of shape ", input.sym_sizes());
      for (const Tensor* t : {&mean, &rstd})
        check(t->sym_numel() == n * group, "Expected mean and rstd to have ", n * group, " elements, but got ",
              t->sym_numel());
      TensorSpec none;
      none.defined = false;
      TensorSpec channel({channels}, weight.defined() ? weight.dtype() : input.dtype(), input.device());
      return {mask[0] ? spec_like(input, {}, {}, input.suggested_format()) : none, mask[1] ? channel : none,
              mask[2] ? channel : none};
    })
    .cpu<3>([](const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
               const Tensor& input, const Tensor& mean, const Tensor& rstd, const Tensor& weight, SymInt, SymInt,
               SymInt, int64_t group, std::array<bool, 3>) {
      in_rows(grad_input, [&](const Tensor& rows) {
        kernels::group_norm_backward(rows, grad_weight, grad_bias, grad, input, mean, rstd, weight, group);
      });
    })
    .tangents_through([](const Tensor& grad, const Tensor& input, const Tensor&, const Tensor& rstd,
                         const Tensor& weight, SymInt n, SymInt channels, SymInt inner, int64_t group,
                         std::vector<bool> mask) {
      Tensor known = rstd.reshape({n, SymInt(group), 1, 1});
      return group_norm_by_parts({grad, {}, {}}, input, weight, n, channels, inner, group, known, mask);
    })
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor")
    .composite([](const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias, double eps, bool) {
      SymInt n = input.sym_size(0), channels = input.sym_size(1), inner = 1;
      check_group_norm(input, weight, bias, channels, groups);
      for (int64_t d = 2; d < input.dim(); ++d) inner *= input.sym_size(d);
      check(channels > 0, "Expected number of channels to be greater than 0, got ", channels);
      check(inner > 0, "Expected HxW to be greater than 0, got ", inner);
      return std::get<0>(
          native_group_norm(input.contiguous(input.suggested_format()), weight, bias, n, channels, inner, groups, eps));
    });

}  // namespace
}  // namespace umbra::ops
