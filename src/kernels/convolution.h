// Convolutions over one, two or three spatial dimensions, and their gradients.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// One number for each spatial dimension. `output_padding` counts for transposed convolutions only.
struct ConvolutionOptions {
  SmallVector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

/// out = input convolved with weight, plus bias where that is defined. Input is [batch, channels, spatial...]; weight
/// [out channels, channels / groups, kernel...], or for transposed ones [channels, out channels / groups, kernel...].
void convolution(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const ConvolutionOptions& options);

/// The gradients with respect to what is wanted: an undefined output is left out.
void convolution_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                          const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          const ConvolutionOptions& options);

/// The bytes that the two take beside their results while they run; tensors need no data.
int64_t convolution_workspace(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias,
                              const ConvolutionOptions& options);
int64_t convolution_backward_workspace(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_output,
                                       const Tensor& input, const Tensor& weight, const ConvolutionOptions& options);

}  // namespace umbra::kernels
