// Pooling over one, two or three spatial dimensions: as many as the kernel has numbers. Tensors are [batch, channels,
// spatial...] or without the batch; the output's sizes, and so ceil_mode, are the caller's decision.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

struct PoolOptions {
  IntArrayRef kernel, stride, padding, dilation = {};  // dilation is of use to max pooling only
  bool count_include_pad = true;                       // these two to average pooling
  std::optional<int64_t> divisor = {};
};

/// The largest element of each window, and its position in the flattened spatial dimensions. A NaN is larger than all.
void max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, const PoolOptions& options);
/// The values alone, of floating point numbers in contiguous planes.
void max_pool_values(const Tensor& out, const Tensor& self, const PoolOptions& options);
void max_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                       int64_t spatial_dims);

void average_pool(const Tensor& out, const Tensor& self, const PoolOptions& options);
void average_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const PoolOptions& options);

/// Windows that divide the input into as many parts as the output has elements.
void adaptive_average_pool(const Tensor& out, const Tensor& self, int64_t spatial_dims);
void adaptive_average_pool_backward(const Tensor& grad_input, const Tensor& grad_output, int64_t spatial_dims);
void adaptive_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, int64_t spatial_dims);

/// Windows of the kernel's size at places that numbers between 0 and 1 choose: `samples` has one for each spatial
/// dimension of each channel, [batch, channels, dims]; with two dimensions that of the last one comes first.
void fractional_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, const Tensor& samples,
                         IntArrayRef kernel);
/// Each element at its place in planes of zeros.
void max_unpool(const Tensor& out, const Tensor& self, const Tensor& indices, int64_t spatial_dims);

}  // namespace umbra::kernels
