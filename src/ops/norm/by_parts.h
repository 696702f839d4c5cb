// The backward passes of the normalisations, out of operators that have derivatives themselves. The fused backward
// operators have none; these take their place where gradients of gradients, or tangents, are asked for.
#pragma once

#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

#include "umbra/dispatch/define.h"

namespace umbra::ops {

using NormGradients = std::tuple<Tensor, Tensor, Tensor>;  // of the input, the weight and the bias

/// Whether what is computed from these tensors now is to be differentiated once more.
bool wants_derivative(std::initializer_list<const Tensor*> tensors);

/// Mean and inverse standard deviation over the dimensions, which stay with size 1.
std::pair<Tensor, Tensor> statistics(const Tensor& input, const std::vector<int64_t>& dims, double eps);
/// The same where eps is known only by the inverse standard deviation that was computed with it.
std::pair<Tensor, Tensor> statistics(const Tensor& input, const std::vector<int64_t>& dims, const Tensor& rstd);

/// Parameters are of the input's type, or all float where that is a narrow one.
void check_parameter_types(const Tensor& input, std::initializer_list<const Tensor*> parameters);

/// The same where a kernel will read them.
void check_kernel_parameters(const Tensor& input, std::initializer_list<const Tensor*> parameters);

/// Statistics of a narrow type are kept in float where the parameters are, and on an accelerator.
DType statistics_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters);

struct Normalization {
  Tensor mean, rstd;
  std::vector<int64_t> normalized;  // what the statistics are taken over; empty: they do not depend on the input
  std::vector<int64_t> shared;      // what the weight and the bias are the same for
};
/// `weight` broadcasts to the input, or is undefined.
NormGradients norm_backward_by_parts(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                     const Normalization& n, const std::vector<bool>& needs);

/// The batch normalisation of a tensor without elements, whatever its rank; an undefined tensor where it has some.
Tensor normalized_nothing(const Tensor& input, const Tensor& weight, const Tensor& bias);
/// What batch normalisation by modules asks of its arguments.
void check_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, bool training);
/// In training there are both running statistics of a batch normalisation or none, otherwise both.
void check_running_statistics(const Tensor& input, const Tensor& mean, const Tensor& var, bool training);

/// The gradients of batch normalisation: by the fused operator, or by parts where they are to be differentiated. In
/// training the batch's own statistics count, else the running ones.
NormGradients batch_norm_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                   const Tensor& var, const Tensor& save_mean, const Tensor& save_invstd, bool training,
                                   double eps, const std::vector<bool>& needs);
/// Running statistics have no tangents where a result is made of them: unless the bool argument `training` is true, if
/// there is one.
struct RunningStatistics {
  const char* training = nullptr;
  void operator()(OperatorBuilder& builder) const;
};
/// The derivative of a batch normalisation that takes running statistics and is told whether it is in training.
struct BatchNormDerivative {
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
