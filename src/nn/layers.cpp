// The layers: parameters with PyTorch's initial values, and one operator each.
#include <cmath>

#include "umbra/autograd/grad_mode.h"
#include "umbra/nn/activation.h"
#include "umbra/nn/convolution.h"
#include "umbra/nn/embedding.h"
#include "umbra/nn/functional.h"
#include "umbra/nn/init.h"
#include "umbra/nn/linear.h"
#include "umbra/nn/normalization.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

namespace {
// Weights of linear and convolutional layers, then their bias, are drawn uniformly with a width that follows from the
// number of inputs.
void reset_affine(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  int64_t inputs = init::fans_of(weight).in;
  double bound = inputs > 0 ? 1 / std::sqrt(static_cast<double>(inputs)) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor optional_empty(bool wanted, SymIntArrayRef sizes, const TensorOptions& options) {
  return wanted ? empty(sizes, options) : Tensor();
}
}  // namespace

// ---- linear ----

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options)
    : Layer("torch.nn.modules.linear.Linear") {
  weight = parameter("weight", empty({out_features, in_features}, options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_features}, options.tensor));
  reset_affine(weight, bias);
}
Tensor Linear::forward(Tensor x) { return linear(x, weight, bias); }

Flatten::Flatten(int64_t start_dim, int64_t end_dim)
    : Layer("torch.nn.modules.flatten.Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}
Tensor Flatten::forward(Tensor x) { return x.flatten(start_dim_, end_dim_); }

Identity::Identity() : Layer("torch.nn.modules.linear.Identity") {}

// ---- convolution and pooling ----

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const Conv2dOptions& options)
    : Layer("torch.nn.modules.conv.Conv2d"), options_(options) {
  check<ValueError>(options.groups > 0, "groups must be a positive integer");
  check<ValueError>(in_channels % options.groups == 0, "in_channels must be divisible by groups");
  check<ValueError>(out_channels % options.groups == 0, "out_channels must be divisible by groups");
  weight = parameter(
      "weight", empty({out_channels, in_channels / options.groups, kernel_size[0], kernel_size[1]}, options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_channels}, options.tensor));
  reset_affine(weight, bias);
}
Tensor Conv2d::forward(Tensor x) {
  auto pair = [](const Pair& p) { return SymShape{p[0], p[1]}; };
  return conv2d(x, weight, bias, pair(options_.stride), pair(options_.padding), pair(options_.dilation),
                options_.groups);
}

MaxPool2d::MaxPool2d(Pair kernel_size, const PoolOptions& options)
    : Layer("torch.nn.modules.pooling.MaxPool2d"), kernel_size_(kernel_size), options_(options) {}
Tensor MaxPool2d::forward(Tensor x) {
  return max_pool2d(x, kernel_size_, options_.stride.value_or(kernel_size_), options_.padding, options_.dilation,
                    options_.ceil_mode);
}

AvgPool2d::AvgPool2d(Pair kernel_size, const PoolOptions& options)
    : Layer("torch.nn.modules.pooling.AvgPool2d"), kernel_size_(kernel_size), options_(options) {}
Tensor AvgPool2d::forward(Tensor x) {
  return avg_pool2d(x, kernel_size_, options_.stride.value_or(kernel_size_), options_.padding, options_.ceil_mode,
                    options_.count_include_pad);
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Pair output_size)
    : Layer("torch.nn.modules.pooling.AdaptiveAvgPool2d"), output_size_(output_size) {}
Tensor AdaptiveAvgPool2d::forward(Tensor x) { return adaptive_avg_pool2d(x, {output_size_[0], output_size_[1]}); }

// ---- normalisation ----

BatchNorm2d::BatchNorm2d(int64_t features, const BatchNormOptions& options)
    : Layer("torch.nn.modules.batchnorm.BatchNorm2d"), features_(features), options_(options) {
  weight = parameter("weight", options.affine ? ones({features}, options.tensor) : Tensor());
  bias = parameter("bias", options.affine ? zeros({features}, options.tensor) : Tensor());
  if (!options.track_running_stats) return;
  running_mean = buffer("running_mean", zeros({features}, options.tensor));
  running_var = buffer("running_var", ones({features}, options.tensor));
  num_batches_tracked =
      buffer("num_batches_tracked", zeros({}, {.dtype = DType::Int64, .device = options.tensor.device}));
}

Tensor BatchNorm2d::forward(Tensor x) {
  check<ValueError>(x.dim() == 4, "expected 4D input (got ", x.dim(), "D input)");
  bool follow = is_training() && options_.track_running_stats;
  if (follow) num_batches_tracked += 1;
  double momentum = options_.momentum.value_or(0);
  if (follow && !options_.momentum) momentum = 1 / num_batches_tracked.item().to_double();
  return functional::batch_norm(x, {.running_mean = running_mean,
                                    .running_var = running_var,
                                    .weight = weight,
                                    .bias = bias,
                                    .training = is_training() || !options_.track_running_stats,
                                    .momentum = momentum,
                                    .eps = options_.eps});
}

LayerNorm::LayerNorm(std::vector<int64_t> normalized_shape, const LayerNormOptions& options)
    : Layer("torch.nn.modules.normalization.LayerNorm"),
      normalized_shape_(std::move(normalized_shape)),
      eps_(options.eps) {
  SymShape sizes;
  for (int64_t s : normalized_shape_) sizes.push_back(s);
  weight = parameter("weight", options.elementwise_affine ? ones(sizes, options.tensor) : Tensor());
  bias = parameter("bias", options.elementwise_affine && options.bias ? zeros(sizes, options.tensor) : Tensor());
}
Tensor LayerNorm::forward(Tensor x) {
  SymShape sizes;
  for (int64_t s : normalized_shape_) sizes.push_back(s);
  return functional::layer_norm(x, sizes, weight, bias, eps_);
}

// ---- embedding ----

Embedding::Embedding(int64_t rows, int64_t size, const EmbeddingOptions& options)
    : Layer("torch.nn.modules.sparse.Embedding"), padding_idx_(options.padding_idx) {
  if (padding_idx_) {
    check<AssertionError>(-rows <= *padding_idx_ && *padding_idx_ < rows, "Padding_idx must be within num_embeddings");
    if (*padding_idx_ < 0) *padding_idx_ += rows;
  }
  weight = parameter("weight", empty({rows, size}, options.tensor));
  init::normal_(weight);
  if (padding_idx_) init::zeros_(weight.detach().select(0, *padding_idx_));
}
Tensor Embedding::forward(Tensor indices) { return functional::embedding(indices, weight, padding_idx_); }

// ---- activations ----

ReLU::ReLU() : Layer("torch.nn.modules.activation.ReLU") {}
Tensor ReLU::forward(Tensor x) { return relu(x); }

GELU::GELU(std::string approximate) : Layer("torch.nn.modules.activation.GELU"), approximate_(std::move(approximate)) {}
Tensor GELU::forward(Tensor x) { return gelu(x, approximate_); }

SiLU::SiLU() : Layer("torch.nn.modules.activation.SiLU") {}
Tensor SiLU::forward(Tensor x) { return silu(x); }

Tanh::Tanh() : Layer("torch.nn.modules.activation.Tanh") {}
Tensor Tanh::forward(Tensor x) { return tanh(x); }

Sigmoid::Sigmoid() : Layer("torch.nn.modules.activation.Sigmoid") {}
Tensor Sigmoid::forward(Tensor x) { return sigmoid(x); }

Softmax::Softmax(int64_t dim) : Layer("torch.nn.modules.activation.Softmax"), dim_(dim) {}
Tensor Softmax::forward(Tensor x) { return softmax(x, dim_); }

Dropout::Dropout(double p) : Layer("torch.nn.modules.dropout.Dropout"), p_(p) {
  check<ValueError>(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}
Tensor Dropout::forward(Tensor x) { return dropout(x, p_, is_training()); }

}  // namespace umbra::nn
