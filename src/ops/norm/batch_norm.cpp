// Batch normalisation: the operator that writes running statistics, the one that returns them, and the one that only
// reads them.
#include "dispatch/lost_tangents.h"
#include "kernels/copy.h"
#include "kernels/normalization.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/norm/batch_norm_on_meta.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using NamedTensors = std::initializer_list<std::pair<const char*, const Tensor*>>;

void check_counts(SymInt channels, NamedTensors tensors) {
  for (const auto& [name, t] : tensors)
    if (t->defined())
      check(t->sym_numel() == channels, name, " should contain ", channels, " elements not ", t->sym_numel());
}
void check_channels(SymInt channels, NamedTensors tensors) {
  check_counts(channels, tensors);
  for (const auto& [name, t] : tensors)
    if (t->defined()) check(t->dim() <= 1, "TensorAccessor expected 1 dims but tensor has ", t->dim(), " dims");
}

/// The type that a kernel reads running statistics as is that of the first parameter; without one, their own.
void check_statistics_types(const Tensor& input, const Tensor& parameter, const Tensor& mean, const Tensor& var) {
  if (!is_floating(input.dtype())) return;  // which the kernel refuses
  if (!parameter.defined()) return check_kernel_parameters(input, {mean.defined() ? &mean : &var});
  if (parameter.dtype() != input.dtype()) return check_kernel_parameters(input, {&mean, &var});
  for (const Tensor* t : {&mean, &var})
    if (t->defined()) check_read_as(input.dtype(), *t);
}

/// What the fused kernels ask of their arguments, in PyTorch's order. Its kernels read on past the end of a parameter
/// that is too short; ours refuse it.
void check_normalized(const Tensor& input, NamedTensors tensors, bool training) {
  check(input.dim() > 0, "Expected at least 2 dimensions, got input of shape []");
  if (training) input.sym_size(1);
  check_kernel_type(is_floating(input.dtype()), "batch_norm", input);
  check_channels(input.sym_size(1), tensors);
}

NormGradients batch_norm_by_parts(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                  const Tensor& var, bool training, double eps, const std::vector<bool>& needs) {
  SymShape channels(static_cast<size_t>(input.dim()), 1);
  channels[1] = input.sym_sizes()[1];
  std::vector<int64_t> others{0};
  for (int64_t d = 2; d < input.dim(); ++d) others.push_back(d);
  auto [center, scale] =
      training ? statistics(input, others, eps) : std::pair(mean.view(channels), var.add(eps).rsqrt().view(channels));
  Tensor gain = weight.defined() ? weight.view(channels) : weight;
  auto [of_input, of_weight, of_bias] = norm_backward_by_parts(
      grad, input, gain, {center, scale, training ? others : std::vector<int64_t>(), others}, needs);
  auto flat = [](const Tensor& t) { return t.defined() ? t.reshape({-1}) : t; };
  return {of_input, flat(of_weight), flat(of_bias)};
}

}  // namespace

NormGradients batch_norm_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                   const Tensor& var, const Tensor& save_mean, const Tensor& save_invstd, bool training,
                                   double eps, const std::vector<bool>& needs) {
  if (!wants_derivative({&grad, &input, &weight}))
    return native_batch_norm_backward(grad, input, weight, mean, var, save_mean, save_invstd, training, eps, needs);
  return batch_norm_by_parts(grad, input, weight, mean, var, training, eps, needs);
}

void RunningStatistics::operator()(OperatorBuilder& builder) const {
  refuse_tangents(
      builder, {"running_mean", "running_var"}, training,
      "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined");
}

void BatchNormDerivative::operator()(OperatorBuilder& builder) const {
  builder
      .gradient(
          "input, weight, bias",
          {"grad", "input", "weight", "running_mean", "running_var", "result1", "result2", "training", "eps", "needs"},
          [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& var,
             const Tensor& save_mean, const Tensor& save_invstd, bool training, double eps, std::vector<bool> needs) {
            return batch_norm_gradients(grad, input, weight, mean, var, save_mean, save_invstd, training, eps, needs);
          })
      .use(RunningStatistics{"training"});
}

Tensor normalized_nothing(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  SymInt count = input.sym_numel();
  if (count.is_symbolic() || count.value() != 0) return {};
  // Weight and bias still take part, so that they get gradients.
  Tensor out = input.clone();
  if (weight.defined()) out = out.mul(weight.select(0, 0));
  return bias.defined() ? out.add(bias.select(0, 0)) : out;
}

void check_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, bool training) {
  SymInt channels = input.dim() > 1 ? input.sym_size(1) : SymInt(0);
  for (const auto& [name, t] : {std::pair("running_mean", &mean), std::pair("running_var", &var)}) {
    check(training || t->defined(), name, " must be defined in evaluation mode");
    check_counts(channels, {{name, t}});
  }
  check_counts(channels, {{"weight", &weight}, {"bias", &bias}});
  check_running_statistics(input, mean, var, training);
}

void check_running_statistics(const Tensor& input, const Tensor& mean, const Tensor& var, bool training) {
  if (training) {
    check(input.dim() > 0, "Expected at least 2 dimensions, got input of shape []");
    input.sym_size(1);  // too few dimensions are an IndexError
    check<ValueError>(mean.defined() == var.defined(),
                      "running_mean and running_var must either both be None or neither be None");
    return;
  }
  check<ValueError>(mean.defined(), "running_mean must be defined in evaluation mode");
  check<ValueError>(var.defined(), "running_var must be defined in evaluation mode");
}

namespace {

using Specs = std::tuple<TensorSpec, TensorSpec, TensorSpec>;

/// Here what lies both ways counts as contiguous, and dimensions of one element lie any way.
MemoryFormat output_format(const Tensor& input) {
  for (MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (input.is_contiguous(format)) return format;
  return input.suggested_format();
}

Specs norm_specs(const Tensor& input, std::initializer_list<const Tensor*> parameters, bool training) {
  // An accelerator gives them for running statistics, too.
  bool kept = training || input.device().type == DeviceType::CUDA;
  TensorSpec statistics({kept ? input.sym_sizes()[1] : SymInt(0)}, statistics_dtype(input, parameters), input.device());
  return {spec_like(input, {}, {}, output_format(input)), statistics, statistics};
}

// ---- under vmap: the batch next to the channels, which are normalised one by one ----

Tensor batch_channels(const Batched& t) { return t.defined() ? fold_batch({batch_all(t), 0}, 0) : Tensor(); }

using BatchedResults = std::tuple<Batched, Batched, Batched>;
BatchedResults channels_apart(const std::tuple<Tensor, Tensor, Tensor>& results) {
  const auto& [out, mean, invstd] = results;
  return {unfold_batch(out, 1), unfold_batch(mean, 0), unfold_batch(invstd, 0)};
}

BatchedResults batch_norm_in_training(const Batched& input, const Batched& weight, const Batched& bias,
                                      const Batched& mean, const Batched& var, bool training, double momentum,
                                      double eps) {
  check(!training || (mean.is_batched() && var.is_batched()),
        "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
        "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
        "`track_running_stats` to be False. If you are using a prebuilt module and do not need eval mode, please see "
        "the functorch website for resources on how to patch your module to work with vmap");
  Tensor all_mean = batch_channels(mean), all_var = batch_channels(var);
  auto results = _native_batch_norm_legit(fold_batch({batch_all(input), 0}, 1), batch_channels(weight),
                                          batch_channels(bias), all_mean, all_var, training, momentum, eps);
  // What could not be a view of the statistics has to be written back.
  for (const auto& [to, from] : {std::pair(&mean, &all_mean), std::pair(&var, &all_var)})
    if (training && to->value.storage() != from->storage()) batch_first(*to).copy_(unfold_batch(*from, 0).value);
  return channels_apart(results);
}

UMBRA_OPERATOR(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
    "Tensor running_var_out)")
    .all_backends([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, bool training, double momentum, double eps) {
      Tensor new_mean = mean.clone(), new_var = var.clone();
      auto [out, save_mean, save_invstd] =
          _native_batch_norm_legit(input, weight, bias, new_mean, new_var, training, momentum, eps);
      return std::tuple(out, save_mean, save_invstd, new_mean, new_var);
    })
    .use(BatchNormDerivative{})
    .differentiable_outputs({true, false, false, false, false})
    .tags({Tag::Generated})
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
    "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .meta([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             bool training, double, double) {
      check_running_statistics(input, mean, var, training);
      check_kernel_parameters(input, {&weight, &bias});
      check_statistics_types(input, weight.defined() ? weight : bias, mean, var);
      check_normalized(input, {{"weight", &weight}, {"bias", &bias}, {"running_mean", &mean}, {"running_var", &var}},
                       training);
      return norm_specs(input, {&weight, &bias, &mean, &var}, training);
    })
    .cpu<3>([](const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
               const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool training,
               double momentum, double eps) {
      check_parameter_types(input, {&weight, &bias});
      kernels::batch_norm(out, save_mean, save_invstd, input, {weight, bias, mean, var}, training, momentum, eps);
    })
    .functional_form("aten::_native_batch_norm_legit_functional")
    .use(BatchNormDerivative{})
    .differentiable_outputs({true, false, false})
    .node("NativeBatchNormBackward0")
    .tags({Tag::Core})
    .batch(batch_norm_in_training)
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
    "float eps) -> (Tensor, Tensor, Tensor)")
    .out("_native_batch_norm_legit.no_stats_out", {"out", "save_mean", "save_invstd"})
    .meta([](const Tensor& input, const Tensor& weight, const Tensor& bias, bool training, double, double) {
      if (outputs_are_given()) {  // the kernel alone is asked
        check_kernel_type(is_floating(input.dtype()), "batch_norm", input);
        check_kernel_parameters(input, {&weight, &bias});
        input.sym_size(training ? 1 : 0);
        check(training, "without running statistics there is nothing to normalise by in evaluation mode");
      }
      check_running_statistics(input, {}, {}, training);
      check_kernel_parameters(input, {&weight, &bias});
      check_normalized(input, {{"weight", &weight}, {"bias", &bias}}, true);
      return norm_specs(input, {&weight, &bias}, true);
    })
    .cpu<3>([](const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
               const Tensor& weight, const Tensor& bias, bool, double momentum, double eps) {
      check_parameter_types(input, {&weight, &bias});
      kernels::batch_norm(out, save_mean, save_invstd, input, {weight, bias, {}, {}}, true, momentum, eps);
    })
    .gradient("input, weight, bias", {"grad", "input", "weight", "result1", "result2", "training", "eps", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& save_mean,
                 const Tensor& save_invstd, bool training, double eps, std::vector<bool> needs) {
                return batch_norm_gradients(grad, input, weight, {}, {}, save_mean, save_invstd, training, eps, needs);
              })
    .differentiable_outputs({true, false, false})
    .node("NativeBatchNormBackward0")
    .tags({Tag::Core})
    .batch([](const Batched& input, const Batched& weight, const Batched& bias, bool training, double momentum,
              double eps) {
      return channels_apart(_native_batch_norm_legit(fold_batch({batch_all(input), 0}, 1), batch_channels(weight),
                                                     batch_channels(bias), training, momentum, eps));
    })
    .use(BatchNormOnMeta{})
    .use(NeedsData{"_native_batch_norm_legit.no_stats_out"});

UMBRA_OPERATOR(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .generated_out("_native_batch_norm_legit_no_training.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             double, double) {
      check_kernel_parameters(input, {&weight, &bias});
      check_statistics_types(input, weight.defined() ? weight : bias, mean, var);
      check_normalized(input, {{"weight", &weight}, {"bias", &bias}, {"running_mean", &mean}, {"running_var", &var}},
                       false);
      return norm_specs(input, {&weight, &bias, &mean, &var}, false);
    })
    .cpu<3>([](const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
               const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, double momentum,
               double eps) {
      check_parameter_types(input, {&weight, &bias});
      kernels::batch_norm(out, save_mean, save_invstd, input, {weight, bias, mean, var}, false, momentum, eps);
    })
    .gradient("input, weight, bias", {"grad", "input", "weight", "running_mean", "running_var", "eps", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& var,
                 double eps, std::vector<bool> needs) {
                return batch_norm_gradients(grad, input, weight, mean, var, {}, {}, false, eps, needs);
              })
    .use(RunningStatistics{})
    .differentiable_outputs({true, false, false})
    .node("NativeBatchNormBackward0")
    .tags({Tag::Core})
    .batch([](const Batched& input, const Batched& weight, const Batched& bias, const Batched& mean, const Batched& var,
              double momentum, double eps) {
      return channels_apart(_native_batch_norm_legit_no_training(
          fold_batch({batch_all(input), 0}, 1), batch_channels(weight), batch_channels(bias), batch_channels(mean),
          batch_channels(var), momentum, eps));
    })
    .use(BatchNormOnMeta{});

UMBRA_OPERATOR(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
    "running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, "
    "Tensor, Tensor)")
    .generated_out("native_batch_norm_backward.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& var,
             const Tensor& save_mean, const Tensor& save_invstd, bool train, double,
             std::array<bool, 3> mask) -> Specs {
      check<AssertionError>(input.dim() >= 2 || !only_metadata_is_asked(), "rank of the input must be at least 2, got ",
                            input.dim());
      check_kernel_type(is_floating(input.dtype()), "batch_norm_backward_cpu", input);
      SymInt channels = input.sym_size(1);
      check(grad.sym_sizes() == input.sym_sizes(), "Expected grad_out of size ", input.sym_sizes(), ", but got ",
            grad.sym_sizes());
      check_channels(channels, {{"weight", &weight}});
      if (train) check_channels(channels, {{"save_mean", &save_mean}, {"save_invstd", &save_invstd}});
      else check_channels(channels, {{"running_mean", &mean}, {"running_var", &var}});
      TensorSpec none;
      none.defined = false;
      MemoryFormat format = input.suggested_format();
      if (grad.suggested_format() == format) format = output_format(input);
      TensorSpec channel({input.sym_sizes()[1]}, weight.defined() ? weight.dtype() : input.dtype(), input.device());
      return {mask[0] ? spec_like(input, {}, {}, format) : none, mask[1] ? channel : none, mask[2] ? channel : none};
    })
    .cpu<3>([](const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
               const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& var,
               const Tensor& save_mean, const Tensor& save_invstd, bool train, double eps, std::array<bool, 3>) {
      bool given = train ? save_mean.defined() && save_invstd.defined() : mean.defined() && var.defined();
      check(given,
            "native_batch_norm_backward(): ", train ? "save_mean and save_invstd" : "running_mean and running_var",
            " are needed");
      kernels::batch_norm_backward(grad_input, grad_weight, grad_bias, grad, input, {weight, {}, mean, var}, save_mean,
                                   save_invstd, train, eps);
    })
    .tangents_through([](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& var, const Tensor&, const Tensor&, bool train, double eps,
                         std::vector<bool> mask) {
      return batch_norm_by_parts(grad, input, weight, mean, var, train, eps, mask);
    })
    .use(BatchNormOnMeta{});

// ---- on an accelerator ----

/// What an accelerator's library (cuDNN) takes, by PyTorch's rule.
bool library_takes(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                   bool training, bool enabled) {
  if (!enabled || input.dim() < 3 || !weight.defined() || !bias.defined() || input.dtype() == DType::BFloat16)
    return false;
  if (input.dtype() == DType::Float16 && weight.dtype() == DType::Float16) return false;
  if (mean.defined() != var.defined() || (!mean.defined() && !training)) return false;
  return !less_or(training ? 880801 : 65535, input.sym_size(0), false);
}

Tensor accelerated_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                              const Tensor& var, bool training, double momentum, double eps, bool enabled) {
  using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  static const auto library_kernel =
      typed<Results(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool, double, double)>(
          "aten::cudnn_batch_norm");
  if (library_takes(input, weight, bias, mean, var, training, enabled))
    return std::get<0>(library_kernel(input, weight, bias, mean, var, training, momentum, eps));
  return std::get<0>(native_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
}

UMBRA_OPERATOR(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                  bool training, double momentum, double eps, bool enabled) {
      if (Tensor out = normalized_nothing(input, weight, bias); out.defined()) return out;
      check_batch_norm(input, weight, bias, mean, var, training);
      // The accelerator's operators do not say that they write running statistics: a program that is captured has those
      // that do.
      bool captured = active_mode(DispatchKey::Proxy) || active_mode(DispatchKey::Functionalize);
      if (input.device().type == DeviceType::CUDA && !captured)
        return accelerated_batch_norm(input, weight, bias, mean, var, training, momentum, eps, enabled);
      if (!mean.defined()) return std::get<0>(_native_batch_norm_legit(input, weight, bias, true, momentum, eps));
      if (!training)
        return std::get<0>(_native_batch_norm_legit_no_training(input, weight, bias, mean, var, momentum, eps));
      return std::get<0>(_native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps));
    })
    .tags({Tag::MaybeAliasingOrMutating});

}  // namespace
}  // namespace umbra::ops
