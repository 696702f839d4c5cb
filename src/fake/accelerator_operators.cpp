// Operators of accelerators' libraries, which programs on fake tensors of such a device meet: metadata and gradients,
// and no kernel. They are no part of the generated functions; who calls one does so by name.
#include "dispatch/layers.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra {
namespace {

using ops::NormGradients;

TensorSpec like_input(const Tensor& input) {
  return TensorSpec(input.sym_sizes(), strides_for(input.sym_sizes(), input.suggested_format()), input.dtype(),
                    input.device());
}

/// On the meta device what the library has no part in is described.
void describe_norm(const Operator&, DispatchKeySet, Value* frame) {
  Tensor input = frame[0].tensor(), weight = frame[1].tensor();
  bool training = frame[5].to_bool();
  auto [out, mean, invstd] = native_batch_norm(input, weight, frame[2].tensor(), frame[3].tensor(), frame[4].tensor(),
                                               training, frame[6].to_double(), frame[7].to_double());
  frame[0] = Value(out);
  frame[1] = Value(training ? mean : weight.new_zeros({SymInt(0)}));
  frame[2] = Value(training ? invstd : weight.new_zeros({SymInt(0)}));
  frame[3] = Value(input.new_zeros({SymInt(0)}, {.dtype = DType::UInt8}));
}

void describe_norm_backward(const Operator&, DispatchKeySet, Value* frame) {
  auto [of_input, of_weight, of_bias] = native_batch_norm_backward(
      frame[1].tensor(), frame[0].tensor(), frame[2].tensor(), frame[3].tensor(), frame[4].tensor(), frame[5].tensor(),
      frame[6].tensor(), true, frame[7].to_double(), {true, true, true});
  frame[0] = Value(of_input);
  frame[1] = Value(of_weight);
  frame[2] = Value(of_bias);
}

UMBRA_OPERATOR(
    "cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor, Tensor)")
    .meta([](const Tensor& input, const Tensor& weight, const Tensor&, const Tensor&, const Tensor&, bool training,
             double, double) {
      // Statistics are kept for the backward pass alone; what else that needs only the run tells, and is not counted.
      DType kept = is_reduced_floating(input.dtype()) ? DType::Float32 : input.dtype();
      TensorSpec statistics({training ? input.sym_size(1) : SymInt(0)}, training ? kept : weight.dtype(),
                            input.device());
      return std::tuple(like_input(input), statistics, statistics,
                        TensorSpec({SymInt(0)}, DType::UInt8, input.device()));
    })
    .gradient("input, weight, bias",
              {"grad", "input", "weight", "running_mean", "running_var", "result1", "result2", "result3", "training",
               "epsilon", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& var,
                 const Tensor& save_mean, const Tensor& save_var, const Tensor& reserve, bool training, double eps,
                 std::vector<bool> needs) -> NormGradients {
                static const auto backward =
                    typed<NormGradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                        const Tensor&, const Tensor&, double, const Tensor&)>(
                        "aten::cudnn_batch_norm_backward");
                if (!training || ops::wants_derivative({&grad, &input, &weight}))
                  return ops::batch_norm_gradients(grad, input, weight, mean, var, save_mean, save_var, training, eps,
                                                   needs);
                return backward(input, grad.contiguous(), weight, mean, var, save_mean, save_var, eps, reserve);
              })
    .use(ops::RunningStatistics{"training"})
    .differentiable_outputs({true, false, false, false})
    .use([](OperatorBuilder& builder) { set_own_layer(builder.op(), DispatchKey::Meta, describe_norm); });

UMBRA_OPERATOR(
    "cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor? "
    "running_var, Tensor? save_mean, Tensor? save_var, float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)")
    .meta([](const Tensor& input, const Tensor&, const Tensor& weight, const Tensor&, const Tensor&, const Tensor&,
             const Tensor&, double, const Tensor&) {
      check<AssertionError>(input.dim() >= 2, "rank of the input must be at least 2, got ", input.dim());
      TensorSpec channels(weight.sym_sizes(), weight.dtype(), input.device());
      return std::tuple(like_input(input), channels, channels);
    })
    .use([](OperatorBuilder& builder) { set_own_layer(builder.op(), DispatchKey::Meta, describe_norm_backward); });

}  // namespace
}  // namespace umbra
