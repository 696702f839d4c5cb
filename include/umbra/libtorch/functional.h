// Functions with options: `F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(2))`.
#pragma once

#include "umbra/libtorch/containers.h"

namespace torch::nn::functional {

using namespace umbra::nn::functional;
namespace native = umbra::nn::functional;

// A name of which there are several forms here is another one's too.
using native::avg_pool1d;
using native::avg_pool2d;
using native::avg_pool3d;
using native::batch_norm;
using native::binary_cross_entropy;
using native::binary_cross_entropy_with_logits;
using native::conv1d;
using native::conv2d;
using native::conv3d;
using native::cross_entropy;
using native::dropout;
using native::elu;
using native::gelu;
using native::grid_sample;
using native::interpolate;
using native::kl_div;
using native::l1_loss;
using native::layer_norm;
using native::leaky_relu;
using native::log_softmax;
using native::max_pool1d;
using native::max_pool2d;
using native::max_pool3d;
using native::mse_loss;
using native::nll_loss;
using native::normalize;
using native::pad;
using native::relu;
using native::smooth_l1_loss;
using native::softmax;

using MaxPool1dFuncOptions = MaxPool1dOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using MaxPool3dFuncOptions = MaxPool3dOptions;
using AvgPool1dFuncOptions = AvgPool1dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AvgPool3dFuncOptions = AvgPool3dOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ELUFuncOptions = ELUOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using MSELossFuncOptions = MSELossOptions;
using L1LossFuncOptions = L1LossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;

// ---- what the layer of the options does; templates, so that a program pays for those that it calls ----

#define UMBRA_AS_LAYER(function, Layer, Options)                                                  \
  template <std::same_as<Options> Given> Tensor function(const Tensor& x, const Given& options) { \
    return options.template make<umbra::nn::Layer>()(x);                                          \
  }
UMBRA_AS_LAYER(max_pool1d, MaxPool1d, MaxPool1dFuncOptions)
UMBRA_AS_LAYER(max_pool2d, MaxPool2d, MaxPool2dFuncOptions)
UMBRA_AS_LAYER(max_pool3d, MaxPool3d, MaxPool3dFuncOptions)
UMBRA_AS_LAYER(avg_pool1d, AvgPool1d, AvgPool1dFuncOptions)
UMBRA_AS_LAYER(avg_pool2d, AvgPool2d, AvgPool2dFuncOptions)
UMBRA_AS_LAYER(avg_pool3d, AvgPool3d, AvgPool3dFuncOptions)
UMBRA_AS_LAYER(leaky_relu, LeakyReLU, LeakyReLUFuncOptions)
UMBRA_AS_LAYER(elu, ELU, ELUFuncOptions)
UMBRA_AS_LAYER(softmax, Softmax, SoftmaxFuncOptions)
UMBRA_AS_LAYER(log_softmax, LogSoftmax, LogSoftmaxFuncOptions)
#undef UMBRA_AS_LAYER
#define UMBRA_AS_LOSS(function, Layer, Options)                                      \
  template <std::same_as<Options> Given>                                             \
  Tensor function(const Tensor& input, const Tensor& target, const Given& options) { \
    return options.template make<umbra::nn::Layer>()(input, target);                 \
  }
UMBRA_AS_LOSS(cross_entropy, CrossEntropyLoss, CrossEntropyFuncOptions)
UMBRA_AS_LOSS(nll_loss, NLLLoss, NLLLossFuncOptions)
UMBRA_AS_LOSS(mse_loss, MSELoss, MSELossFuncOptions)
UMBRA_AS_LOSS(l1_loss, L1Loss, L1LossFuncOptions)
UMBRA_AS_LOSS(smooth_l1_loss, SmoothL1Loss, SmoothL1LossFuncOptions)
UMBRA_AS_LOSS(binary_cross_entropy, BCELoss, BinaryCrossEntropyFuncOptions)
UMBRA_AS_LOSS(binary_cross_entropy_with_logits, BCEWithLogitsLoss, BinaryCrossEntropyWithLogitsFuncOptions)
UMBRA_AS_LOSS(kl_div, KLDivLoss, KLDivFuncOptions)
#undef UMBRA_AS_LOSS

// ---- the others ----

template <size_t N> struct ConvFuncOptions {
  using Sizes = umbra::nn::Sizes<N>;
  UMBRA_OWN_SETTING(ConvFuncOptions, Tensor, bias)
  UMBRA_OWN_SETTING(ConvFuncOptions, Sizes, stride)
  UMBRA_OWN_SETTING(ConvFuncOptions, Sizes, padding)
  UMBRA_OWN_SETTING(ConvFuncOptions, Sizes, dilation)
  UMBRA_OWN_SETTING(ConvFuncOptions, int64_t, groups)

 private:
  Tensor bias_;
  Sizes stride_ = 1, padding_ = 0, dilation_ = 1;
  int64_t groups_ = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;
#define UMBRA_CONVOLUTION(function, Options)                                                                         \
  template <std::same_as<Options> Given>                                                                             \
  Tensor function(const Tensor& x, const Tensor& weight, const Given& options) {                                     \
    return umbra::function(x, weight, options.bias(), IntArrayRef(options.stride()), IntArrayRef(options.padding()), \
                           IntArrayRef(options.dilation()), options.groups());                                       \
  }
UMBRA_CONVOLUTION(conv1d, Conv1dFuncOptions)
UMBRA_CONVOLUTION(conv2d, Conv2dFuncOptions)
UMBRA_CONVOLUTION(conv3d, Conv3dFuncOptions)
#undef UMBRA_CONVOLUTION

struct InterpolateFuncOptions : native::InterpolateOptions {
  using Native = native::InterpolateOptions;
  UMBRA_SETTING(InterpolateFuncOptions, size)
  UMBRA_SETTING(InterpolateFuncOptions, scale_factor)
  UMBRA_SETTING(InterpolateFuncOptions, mode)
  UMBRA_SETTING(InterpolateFuncOptions, align_corners)
  UMBRA_SETTING(InterpolateFuncOptions, recompute_scale_factor)
  UMBRA_SETTING(InterpolateFuncOptions, antialias)
};
struct GridSampleFuncOptions : native::GridSampleOptions {
  using Native = native::GridSampleOptions;
  UMBRA_SETTING(GridSampleFuncOptions, mode)
  UMBRA_SETTING(GridSampleFuncOptions, padding_mode)
  UMBRA_SETTING(GridSampleFuncOptions, align_corners)
};

struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  UMBRA_OWN_SETTING(PadFuncOptions, std::vector<int64_t>, pad)
  UMBRA_OWN_SETTING(PadFuncOptions, std::string, mode)
  UMBRA_OWN_SETTING(PadFuncOptions, double, value)

 private:
  std::vector<int64_t> pad_;
  std::string mode_ = "constant";
  double value_ = 0;
};
template <std::same_as<PadFuncOptions> Given> Tensor pad(const Tensor& x, const Given& options) {
  bool is_constant = options.mode() == "constant";
  return umbra::pad(x, options.pad(), options.mode(), is_constant ? std::optional(options.value()) : std::nullopt);
}

struct DropoutFuncOptions {
  UMBRA_OWN_SETTING(DropoutFuncOptions, double, p)
  UMBRA_OWN_SETTING(DropoutFuncOptions, bool, training)

 private:
  double p_ = 0.5;
  bool training_ = false;
};
inline Tensor dropout(const Tensor& x, const DropoutFuncOptions& options) {
  return native::dropout(x, options.p(), options.training());
}

struct NormalizeFuncOptions {
  UMBRA_OWN_SETTING(NormalizeFuncOptions, double, p)
  UMBRA_OWN_SETTING(NormalizeFuncOptions, int64_t, dim)
  UMBRA_OWN_SETTING(NormalizeFuncOptions, double, eps)

 private:
  double p_ = 2, eps_ = 1e-12;
  int64_t dim_ = 1;
};
inline Tensor normalize(const Tensor& x, const NormalizeFuncOptions& options) {
  return native::normalize(x, options.p(), options.dim(), options.eps());
}

struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  UMBRA_OWN_SETTING(LayerNormFuncOptions, std::vector<int64_t>, normalized_shape)
  UMBRA_OWN_SETTING(LayerNormFuncOptions, Tensor, weight)
  UMBRA_OWN_SETTING(LayerNormFuncOptions, Tensor, bias)
  UMBRA_OWN_SETTING(LayerNormFuncOptions, double, eps)

 private:
  std::vector<int64_t> normalized_shape_;
  Tensor weight_, bias_;
  double eps_ = 1e-5;
};
template <std::same_as<LayerNormFuncOptions> Given> Tensor layer_norm(const Tensor& x, const Given& options) {
  return native::layer_norm(x, as_sym(options.normalized_shape()), options.weight(), options.bias(), options.eps());
}

struct BatchNormFuncOptions : native::BatchNormArguments {
  using Native = native::BatchNormArguments;
  UMBRA_SETTING(BatchNormFuncOptions, weight)
  UMBRA_SETTING(BatchNormFuncOptions, bias)
  UMBRA_SETTING(BatchNormFuncOptions, training)
  UMBRA_SETTING(BatchNormFuncOptions, momentum)
  UMBRA_SETTING(BatchNormFuncOptions, eps)
};
inline Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& options = {}) {
  native::BatchNormArguments arguments = options;
  arguments.running_mean = running_mean;
  arguments.running_var = running_var;
  return native::batch_norm(x, arguments);
}

}  // namespace torch::nn::functional
