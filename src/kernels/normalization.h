// Batch, layer and group normalisation, and their gradients. Tensors that may be absent (weights, running statistics,
// unwanted gradients) are undefined where they are. Statistics of narrow floating types are computed in float.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Weight, bias and running statistics of batch normalisation.
struct BatchNormState {
  Tensor weight, bias, running_mean, running_var;
};

/// Normalises each channel (dimension 1). In training by the batch's statistics, which go to save_mean and save_invstd
/// and, with weight `momentum`, into the running ones; else by the running ones.
void batch_norm(const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
                const BatchNormState& state, bool training, double momentum, double eps);
void batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const BatchNormState& state,
                         const Tensor& save_mean, const Tensor& save_invstd, bool training, double eps);

/// Normalises over the last `dims` dimensions. Mean and reciprocal deviation have one element a row.
void layer_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input, const Tensor& weight,
                const Tensor& bias, int64_t dims, double eps);
void layer_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, int64_t dims);

/// Normalises over each of `groups` groups of channels of each sample; mean and rstd are [batch, groups].
void group_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input, const Tensor& weight,
                const Tensor& bias, int64_t groups, double eps);
void group_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, int64_t groups);

}  // namespace umbra::kernels
