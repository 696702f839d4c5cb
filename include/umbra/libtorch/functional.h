// Functions with options: `F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(2))`.
#pragma once

#include "umbra/libtorch/containers.h"

namespace torch::nn::functional {

using namespace umbra::nn::functional;
namespace native = umbra::nn::functional;

// ---- what the layer of the options does; templates, so that a program pays for those that it calls ----

// A name of which there are several forms here is another one's too.
#define UMBRA_AS_LAYER(function, Layer)                                                                    \
  using native::function;                                                                                  \
  using Layer##FuncOptions = Layer##Options;                                                               \
  template <std::same_as<Layer##FuncOptions> Given> Tensor function(const Tensor& x, const Given& given) { \
    return ModuleHolder<Layer##Impl>(given)->forward(x);                                                   \
  }
#define UMBRA_AS_LAYER_OF_DIMENSIONS(function, Layer) \
  UMBRA_AS_LAYER(function##1d, Layer##1d)             \
  UMBRA_AS_LAYER(function##2d, Layer##2d)             \
  UMBRA_AS_LAYER(function##3d, Layer##3d)
UMBRA_AS_LAYER_OF_DIMENSIONS(max_pool, MaxPool)
UMBRA_AS_LAYER_OF_DIMENSIONS(avg_pool, AvgPool)
UMBRA_AS_LAYER_OF_DIMENSIONS(adaptive_avg_pool, AdaptiveAvgPool)
UMBRA_AS_LAYER(relu, ReLU)
UMBRA_AS_LAYER(relu6, ReLU6)
UMBRA_AS_LAYER(selu, SELU)
UMBRA_AS_LAYER(elu, ELU)
UMBRA_AS_LAYER(celu, CELU)
UMBRA_AS_LAYER(gelu, GELU)
UMBRA_AS_LAYER(glu, GLU)
UMBRA_AS_LAYER(leaky_relu, LeakyReLU)
UMBRA_AS_LAYER(hardtanh, Hardtanh)
UMBRA_AS_LAYER(hardshrink, Hardshrink)
UMBRA_AS_LAYER(softshrink, Softshrink)
UMBRA_AS_LAYER(softplus, Softplus)
UMBRA_AS_LAYER(threshold, Threshold)
UMBRA_AS_LAYER(softmax, Softmax)
UMBRA_AS_LAYER(log_softmax, LogSoftmax)
UMBRA_AS_LAYER(softmin, Softmin)
UMBRA_AS_LAYER(pixel_shuffle, PixelShuffle)
UMBRA_AS_LAYER(pixel_unshuffle, PixelUnshuffle)
UMBRA_AS_LAYER(unfold, Unfold)
UMBRA_AS_LAYER(fold, Fold)
UMBRA_AS_LAYER(local_response_norm, LocalResponseNorm)
#undef UMBRA_AS_LAYER_OF_DIMENSIONS
#undef UMBRA_AS_LAYER
#define UMBRA_OF_TWO(function, Layer, Called)                             \
  using native::function;                                                 \
  using Called##FuncOptions = Layer##Options;                             \
  template <std::same_as<Called##FuncOptions> Given>                      \
  Tensor function(const Tensor& a, const Tensor& b, const Given& given) { \
    return given.template make<umbra::nn::Layer>()(a, b);                 \
  }
#define UMBRA_OF_THREE(function, Layer)                                                    \
  using native::function;                                                                  \
  using Layer##FuncOptions = Layer##Options;                                               \
  template <std::same_as<Layer##FuncOptions> Given>                                        \
  Tensor function(const Tensor& a, const Tensor& b, const Tensor& c, const Given& given) { \
    return given.template make<umbra::nn::Layer>()(a, b, c);                               \
  }
UMBRA_OF_TWO(cross_entropy, CrossEntropyLoss, CrossEntropy)
UMBRA_OF_TWO(nll_loss, NLLLoss, NLLLoss)
UMBRA_OF_TWO(mse_loss, MSELoss, MSELoss)
UMBRA_OF_TWO(l1_loss, L1Loss, L1Loss)
UMBRA_OF_TWO(smooth_l1_loss, SmoothL1Loss, SmoothL1Loss)
UMBRA_OF_TWO(huber_loss, HuberLoss, HuberLoss)
UMBRA_OF_TWO(binary_cross_entropy, BCELoss, BinaryCrossEntropy)
UMBRA_OF_TWO(binary_cross_entropy_with_logits, BCEWithLogitsLoss, BinaryCrossEntropyWithLogits)
UMBRA_OF_TWO(kl_div, KLDivLoss, KLDiv)
UMBRA_OF_TWO(poisson_nll_loss, PoissonNLLLoss, PoissonNLLLoss)
UMBRA_OF_TWO(hinge_embedding_loss, HingeEmbeddingLoss, HingeEmbeddingLoss)
UMBRA_OF_TWO(multi_margin_loss, MultiMarginLoss, MultiMarginLoss)
UMBRA_OF_TWO(multilabel_soft_margin_loss, MultiLabelSoftMarginLoss, MultilabelSoftMarginLoss)
UMBRA_OF_TWO(soft_margin_loss, SoftMarginLoss, SoftMarginLoss)
UMBRA_OF_TWO(cosine_similarity, CosineSimilarity, CosineSimilarity)
UMBRA_OF_TWO(pairwise_distance, PairwiseDistance, PairwiseDistance)
UMBRA_OF_THREE(margin_ranking_loss, MarginRankingLoss)
UMBRA_OF_THREE(triplet_margin_loss, TripletMarginLoss)
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using native::cosine_embedding_loss;
template <std::same_as<CosineEmbeddingLossFuncOptions> Given>
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, const Given& given) {
  return given.template make<umbra::nn::CosineEmbeddingLoss>()(a, b, target);
}
#undef UMBRA_OF_THREE
#undef UMBRA_OF_TWO
using CTCLossFuncOptions = CTCLossOptions;
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, const CTCLossFuncOptions& options = {}) {
  return options.make<umbra::nn::CTCLoss>()(log_probs, targets, input_lengths, target_lengths);
}

// ---- convolutions ----

template <size_t N> struct PlainConvFuncOptions {
  Tensor bias = {};
  umbra::nn::Sizes<N> stride = 1, padding = 0, dilation = 1, output_padding = 0;
  int64_t groups = 1;
};
template <size_t N> UMBRA_OPTIONS(ConvFuncOptions, PlainConvFuncOptions<N>, bias, stride, padding, dilation, groups);
template <size_t N>
UMBRA_OPTIONS(ConvTransposeFuncOptions, PlainConvFuncOptions<N>, bias, stride, padding, output_padding, dilation,
              groups);
#define UMBRA_CONVOLUTION(N)                                                                                     \
  using native::conv##N##d;                                                                                      \
  using native::conv_transpose##N##d;                                                                            \
  using Conv##N##dFuncOptions = ConvFuncOptions<N>;                                                              \
  using ConvTranspose##N##dFuncOptions = ConvTransposeFuncOptions<N>;                                            \
  template <std::same_as<ConvFuncOptions<N>> Given>                                                              \
  Tensor conv##N##d(const Tensor& x, const Tensor& weight, const Given& given) {                                 \
    return umbra::conv##N##d(x, weight, given.bias(), IntArrayRef(given.stride()), IntArrayRef(given.padding()), \
                             IntArrayRef(given.dilation()), given.groups());                                     \
  }                                                                                                              \
  template <std::same_as<ConvTransposeFuncOptions<N>> Given>                                                     \
  Tensor conv_transpose##N##d(const Tensor& x, const Tensor& weight, const Given& given) {                       \
    return umbra::conv_transpose##N##d(x, weight, given.bias(), IntArrayRef(given.stride()),                     \
                                       IntArrayRef(given.padding()), IntArrayRef(given.output_padding()),        \
                                       given.groups(), IntArrayRef(given.dilation()));                           \
  }
UMBRA_CONVOLUTION(1)
UMBRA_CONVOLUTION(2)
UMBRA_CONVOLUTION(3)
#undef UMBRA_CONVOLUTION

// ---- the others ----

using native::grid_sample;
using native::interpolate;
UMBRA_OPTIONS(InterpolateFuncOptions, native::InterpolateOptions, size, scale_factor, mode, align_corners,
              recompute_scale_factor, antialias);
UMBRA_OPTIONS(GridSampleFuncOptions, native::GridSampleOptions, mode, padding_mode, align_corners);

struct PlainPadOptions {
  std::string mode = "constant";
  double value = 0;
};
UMBRA_OPTIONS_OF(PadFuncOptions, PlainPadOptions, ((std::vector<int64_t>, pad)), (mode, value));
using native::pad;
template <std::same_as<PadFuncOptions> Given> Tensor pad(const Tensor& x, const Given& options) {
  bool is_constant = options.mode() == "constant";
  return umbra::pad(x, options.pad(), options.mode(), is_constant ? std::optional(options.value()) : std::nullopt);
}

struct PlainDropoutOptions {
  double p = 0.5;
  bool training = false, inplace = false;
};
UMBRA_OPTIONS(DropoutFuncOptions, PlainDropoutOptions, p, training, inplace);
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using native::dropout;
using native::dropout2d;
using native::dropout3d;
inline Tensor dropout(const Tensor& x, const DropoutFuncOptions& options) {
  if (options.inplace()) return umbra::dropout_(x, options.p(), options.training());
  return native::dropout(x, options.p(), options.training());
}
inline Tensor dropout2d(const Tensor& x, const DropoutFuncOptions& options) {
  if (options.inplace()) return umbra::feature_dropout_(x, options.p(), options.training());
  return native::dropout2d(x, options.p(), options.training());
}
inline Tensor dropout3d(const Tensor& x, const DropoutFuncOptions& options) {
  if (options.inplace()) return umbra::feature_dropout_(x, options.p(), options.training());
  return native::dropout3d(x, options.p(), options.training());
}

struct PlainNormalizeOptions {
  double p = 2, eps = 1e-12;
  int64_t dim = 1;
};
UMBRA_OPTIONS(NormalizeFuncOptions, PlainNormalizeOptions, p, dim, eps);
using native::normalize;
inline Tensor normalize(const Tensor& x, const NormalizeFuncOptions& options) {
  return native::normalize(x, options.p(), options.dim(), options.eps());
}

struct PlainLayerNormOptions {
  Tensor weight = {}, bias = {};
  double eps = 1e-5;
};
UMBRA_OPTIONS_OF(LayerNormFuncOptions, PlainLayerNormOptions, ((std::vector<int64_t>, normalized_shape)),
                 (weight, bias, eps));
UMBRA_OPTIONS_OF(GroupNormFuncOptions, PlainLayerNormOptions, ((int64_t, num_groups)), (weight, bias, eps));
using native::group_norm;
using native::layer_norm;
template <std::same_as<LayerNormFuncOptions> Given> Tensor layer_norm(const Tensor& x, const Given& options) {
  return native::layer_norm(x, as_sym(options.normalized_shape()), options.weight(), options.bias(), options.eps());
}
template <std::same_as<GroupNormFuncOptions> Given> Tensor group_norm(const Tensor& x, const Given& options) {
  return umbra::group_norm(x, options.num_groups(), options.weight(), options.bias(), options.eps());
}

UMBRA_OPTIONS(BatchNormFuncOptions, native::BatchNormArguments, weight, bias, training, momentum, eps);
using native::batch_norm;
inline Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& options = {}) {
  native::BatchNormArguments arguments = options;
  arguments.running_mean = running_mean;
  arguments.running_var = running_var;
  return native::batch_norm(x, arguments);
}

}  // namespace torch::nn::functional
