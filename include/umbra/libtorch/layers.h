// Layers that are made of options which are set one after the other: `Conv2d(Conv2dOptions(1, 10, 5).stride(2))`.
#pragma once

#include "umbra/libtorch/module.h"
#include "umbra/libtorch/settings.h"

namespace torch::nn {

namespace native = umbra::nn;
template <size_t N> using ExpandingArray = native::Sizes<N>;

#define UMBRA_LAYER(Name)                                    \
  using Name##Impl = LayerImpl<native::Name, Name##Options>; \
  using Name = ModuleHolder<Name##Impl>
#define UMBRA_PLAIN_LAYER(Name)    \
  using Name##Impl = native::Name; \
  using Name = ModuleHolder<Name##Impl>
#define UMBRA_LAYER_OF_DIMENSIONS(Name)     \
  using Name##1dOptions = Name##Options<1>; \
  using Name##2dOptions = Name##Options<2>; \
  using Name##3dOptions = Name##Options<3>; \
  UMBRA_LAYER(Name##1d);                    \
  UMBRA_LAYER(Name##2d);                    \
  UMBRA_LAYER(Name##3d)

// Options of one value, and of two, which the layer takes one by one.
#define UMBRA_VALUE_OPTIONS(Name, Also, Type, option, ...)                 \
  struct Name : Also {                                                     \
    Name(Type option __VA_ARGS__) : option##_(option) {}                   \
    UMBRA_OWN_SETTING(Name, Type, option)                                  \
    template <class Layer> Layer make() const { return Layer(option##_); } \
                                                                           \
   private:                                                                \
    Type option##_;                                                        \
  }
#define UMBRA_TWO_VALUES(Name, Also, Type, option, value, OtherType, other, other_value)                    \
  struct Name : Also {                                                                                      \
    Name(Type option value, OtherType other other_value) : option##_(std::move(option)), other##_(other) {} \
    UMBRA_OWN_SETTING(Name, Type, option)                                                                   \
    UMBRA_OWN_SETTING(Name, OtherType, other)                                                               \
    template <class Layer> Layer make() const { return Layer(option##_, other##_); }                        \
                                                                                                            \
   private:                                                                                                 \
    Type option##_;                                                                                         \
    OtherType other##_;                                                                                     \
  }

// ---- linear ----

UMBRA_OPTIONS_OF(LinearOptions, native::LinearOptions, ((int64_t, in_features), (int64_t, out_features)), (bias));
UMBRA_OPTIONS_OF(BilinearOptions, native::LinearOptions,
                 ((int64_t, in1_features), (int64_t, in2_features), (int64_t, out_features)), (bias));
UMBRA_TWO_VALUES(FlattenOptions, NoPlainOptions, int64_t, start_dim, = 1, int64_t, end_dim, = -1);
UMBRA_LAYER(Linear);
UMBRA_LAYER(Bilinear);
UMBRA_LAYER(Flatten);
UMBRA_PLAIN_LAYER(Unflatten);
UMBRA_PLAIN_LAYER(Identity);

// ---- convolutions and pools ----

template <size_t N> struct ConvOptions : native::ConvOptions<N> {
  UMBRA_GIVEN_AND_SETTINGS(ConvOptions, native::ConvOptions<N>,
                           ((int64_t, in_channels), (int64_t, out_channels), (native::Sizes<N>, kernel_size)),
                           (stride, padding, dilation, groups, bias, padding_mode))
  /// `kSame`: as much on both sides as keeps the size, which takes windows of an odd length; or `kValid`.
  ConvOptions& padding(Word word) {
    same_ = std::string_view(word.text) == "same";
    return *this;
  }
  template <class Layer> Layer make() const {
    Native plain = *this;
    for (size_t i = 0; same_ && i < N; ++i) {
      int64_t both = plain.dilation[i] * (kernel_size()[i] - 1);
      if (plain.stride[i] != 1) throw ValueError("padding='same' is not supported for strided convolutions");
      if (both % 2 != 0) throw NotImplementedError("padding='same' with a window of an even length is not built");
      plain.padding[i] = both / 2;
    }
    return this->template make_of<Layer>(plain);
  }

 private:
  bool same_ = false;
};
template <size_t N>
UMBRA_OPTIONS_OF(ConvTransposeOptions, native::ConvTransposeOptions<N>,
                 ((int64_t, in_channels), (int64_t, out_channels), (native::Sizes<N>, kernel_size)),
                 (stride, padding, output_padding, dilation, groups, bias));
template <size_t N>
UMBRA_OPTIONS_OF(MaxPoolOptions, native::MaxPoolOptions<N>, ((native::Sizes<N>, kernel_size)),
                 (stride, padding, dilation, ceil_mode));
template <size_t N>
UMBRA_OPTIONS_OF(AvgPoolOptions, native::AvgPoolOptions<N>, ((native::Sizes<N>, kernel_size)),
                 (stride, padding, ceil_mode, count_include_pad, divisor_override));
template <size_t N> UMBRA_ARGUMENTS(AdaptiveAvgPoolOptions, (native::Sizes<N>, output_size));
template <size_t N> using AdaptiveMaxPoolOptions = AdaptiveAvgPoolOptions<N>;
UMBRA_LAYER_OF_DIMENSIONS(Conv);
UMBRA_LAYER_OF_DIMENSIONS(ConvTranspose);
UMBRA_LAYER_OF_DIMENSIONS(MaxPool);
UMBRA_LAYER_OF_DIMENSIONS(AvgPool);
UMBRA_LAYER_OF_DIMENSIONS(AdaptiveAvgPool);
UMBRA_LAYER_OF_DIMENSIONS(AdaptiveMaxPool);
UMBRA_PLAIN_LAYER(MaxUnpool1d);
UMBRA_PLAIN_LAYER(MaxUnpool2d);
UMBRA_PLAIN_LAYER(MaxUnpool3d);

// ---- normalisation ----

UMBRA_OPTIONS_OF(BatchNormOptions, native::BatchNormOptions, ((int64_t, num_features)),
                 (eps, momentum, affine, track_running_stats));
UMBRA_OPTIONS_OF(InstanceNormOptions, native::InstanceNormOptions, ((int64_t, num_features)),
                 (eps, momentum, affine, track_running_stats));
UMBRA_OPTIONS_OF(LayerNormOptions, native::LayerNormOptions, ((std::vector<int64_t>, normalized_shape)),
                 (eps, elementwise_affine));
UMBRA_OPTIONS_OF(GroupNormOptions, native::GroupNormOptions, ((int64_t, num_groups), (int64_t, num_channels)),
                 (eps, affine));
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;
UMBRA_LAYER(BatchNorm1d);
UMBRA_LAYER(BatchNorm2d);
UMBRA_LAYER(BatchNorm3d);
UMBRA_LAYER(InstanceNorm1d);
UMBRA_LAYER(InstanceNorm2d);
UMBRA_LAYER(InstanceNorm3d);
UMBRA_LAYER(LayerNorm);
UMBRA_LAYER(GroupNorm);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  UMBRA_OWN_SETTING(LocalResponseNormOptions, int64_t, size)
  UMBRA_OWN_SETTING(LocalResponseNormOptions, double, alpha)
  UMBRA_OWN_SETTING(LocalResponseNormOptions, double, beta)
  UMBRA_OWN_SETTING(LocalResponseNormOptions, double, k)
  template <class Layer> Layer make() const { return Layer(size_, alpha_, beta_, k_); }

 private:
  int64_t size_;
  double alpha_ = 1e-4, beta_ = 0.75, k_ = 1;
};
UMBRA_LAYER(LocalResponseNorm);

// ---- activations and dropout ----

/// The option of layers that may write their result to their input.
template <class Self> struct MayWriteInput {
  Self& inplace(bool value) {
    inplace_ = value;
    return static_cast<Self&>(*this);
  }
  bool inplace() const { return inplace_; }

 private:
  bool inplace_ = false;
};
/// Those without another option.
template <class Native> struct OnlyInPlace : MayWriteInput<OnlyInPlace<Native>> {
  OnlyInPlace() = default;
  OnlyInPlace(bool inplace) { this->inplace(inplace); }
  template <class Layer> Layer make() const { return Layer(); }
};
/// A layer that writes its input by `write` where its options say so.
template <class Native, class Options, Tensor (*write)(const Tensor& x, const Options& options, bool training)>
class LayerInPlace : public LayerImpl<Native, Options> {
 public:
  using LayerImpl<Native, Options>::LayerImpl;
  Tensor forward(Tensor x) override {
    return this->options.inplace() ? write(x, this->options, this->is_training()) : Native::forward(std::move(x));
  }
};
#define UMBRA_LAYER_IN_PLACE(Name, ...)                                                      \
  inline Tensor write_##Name(const Tensor& x, [[maybe_unused]] const Name##Options& options, \
                             [[maybe_unused]] bool training) {                               \
    return __VA_ARGS__;                                                                      \
  }                                                                                          \
  using Name##Impl = LayerInPlace<native::Name, Name##Options, write_##Name>;                \
  using Name = ModuleHolder<Name##Impl>
#define UMBRA_ACTIVATION_IN_PLACE(Name, in_place)  \
  using Name##Options = OnlyInPlace<native::Name>; \
  UMBRA_LAYER_IN_PLACE(Name, in_place)
UMBRA_ACTIVATION_IN_PLACE(ReLU, x.relu_());
UMBRA_ACTIVATION_IN_PLACE(ReLU6, umbra::relu6_(x));
UMBRA_ACTIVATION_IN_PLACE(SELU, umbra::selu_(x));
UMBRA_PLAIN_LAYER(SiLU);
UMBRA_PLAIN_LAYER(Mish);
UMBRA_PLAIN_LAYER(Hardswish);
UMBRA_PLAIN_LAYER(Hardsigmoid);
UMBRA_PLAIN_LAYER(Tanh);
UMBRA_PLAIN_LAYER(Sigmoid);
UMBRA_PLAIN_LAYER(LogSigmoid);
UMBRA_PLAIN_LAYER(Softsign);
UMBRA_PLAIN_LAYER(Tanhshrink);
UMBRA_PLAIN_LAYER(Softmax2d);

UMBRA_VALUE_OPTIONS(HardshrinkOptions, NoPlainOptions, double, lambda, = 0.5);
UMBRA_VALUE_OPTIONS(SoftshrinkOptions, NoPlainOptions, double, lambda, = 0.5);
UMBRA_VALUE_OPTIONS(SoftmaxOptions, NoPlainOptions, int64_t, dim);
UMBRA_VALUE_OPTIONS(GLUOptions, NoPlainOptions, int64_t, dim, = -1);
UMBRA_VALUE_OPTIONS(GELUOptions, NoPlainOptions, std::string, approximate, = "none");
UMBRA_VALUE_OPTIONS(PixelShuffleOptions, NoPlainOptions, int64_t, upscale_factor);
UMBRA_VALUE_OPTIONS(PixelUnshuffleOptions, NoPlainOptions, int64_t, downscale_factor);
UMBRA_TWO_VALUES(PReLUOptions, NoPlainOptions, int64_t, num_parameters, = 1, double, init, = 0.25);
UMBRA_TWO_VALUES(SoftplusOptions, NoPlainOptions, double, beta, = 1, double, threshold, = 20);
UMBRA_TWO_VALUES(CosineSimilarityOptions, NoPlainOptions, int64_t, dim, = 1, double, eps, = 1e-8);
UMBRA_TWO_VALUES(PairwiseDistanceOptions, NoPlainOptions, double, p, = 2, double, eps, = 1e-6);
using LogSoftmaxOptions = SoftmaxOptions;
using SoftminOptions = SoftmaxOptions;
UMBRA_LAYER(Hardshrink);
UMBRA_LAYER(Softshrink);
UMBRA_LAYER(Softmax);
UMBRA_LAYER(LogSoftmax);
UMBRA_LAYER(Softmin);
UMBRA_LAYER(GLU);
UMBRA_LAYER(GELU);
UMBRA_LAYER(PixelShuffle);
UMBRA_LAYER(PixelUnshuffle);
UMBRA_LAYER(PReLU);
UMBRA_LAYER(Softplus);
UMBRA_LAYER(CosineSimilarity);
UMBRA_LAYER(PairwiseDistance);

UMBRA_VALUE_OPTIONS(ELUOptions, MayWriteInput<ELUOptions>, double, alpha, = 1);
UMBRA_VALUE_OPTIONS(CELUOptions, MayWriteInput<CELUOptions>, double, alpha, = 1);
UMBRA_VALUE_OPTIONS(LeakyReLUOptions, MayWriteInput<LeakyReLUOptions>, double, negative_slope, = 0.01);
UMBRA_VALUE_OPTIONS(DropoutOptions, MayWriteInput<DropoutOptions>, double, p, = 0.5);
UMBRA_TWO_VALUES(HardtanhOptions, MayWriteInput<HardtanhOptions>, double, min_val, = -1, double, max_val, = 1);
UMBRA_TWO_VALUES(ThresholdOptions, MayWriteInput<ThresholdOptions>, double, threshold, , double, value, );
UMBRA_TWO_VALUES(RReLUOptions, MayWriteInput<RReLUOptions>, double, lower, = 1.0 / 8, double, upper, = 1.0 / 3);
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;
UMBRA_LAYER_IN_PLACE(ELU, umbra::elu_(x, options.alpha()));
UMBRA_LAYER_IN_PLACE(CELU, umbra::celu_(x, options.alpha()));
UMBRA_LAYER_IN_PLACE(LeakyReLU, umbra::leaky_relu_(x, options.negative_slope()));
UMBRA_LAYER_IN_PLACE(Hardtanh, umbra::hardtanh_(x, options.min_val(), options.max_val()));
UMBRA_LAYER_IN_PLACE(Threshold, umbra::threshold_(x, options.threshold(), options.value()));
UMBRA_LAYER_IN_PLACE(RReLU, umbra::rrelu_(x, options.lower(), options.upper(), training));
UMBRA_LAYER_IN_PLACE(Dropout, umbra::dropout_(x, options.p(), training));
UMBRA_LAYER_IN_PLACE(Dropout2d, umbra::feature_dropout_(x, options.p(), training));
UMBRA_LAYER_IN_PLACE(Dropout3d, umbra::feature_dropout_(x, options.p(), training));
UMBRA_LAYER_IN_PLACE(AlphaDropout, umbra::alpha_dropout_(x, options.p(), training));
UMBRA_LAYER_IN_PLACE(FeatureAlphaDropout, umbra::feature_alpha_dropout_(x, options.p(), training));
#undef UMBRA_ACTIVATION_IN_PLACE
#undef UMBRA_LAYER_IN_PLACE

// ---- images ----

template <size_t N> UMBRA_ARGUMENTS(PadOptions, (native::Sizes<2 * N>, padding));
template <size_t N> UMBRA_ARGUMENTS(ConstantPadOptions, (native::Sizes<2 * N>, padding), (double, value));
template <size_t N> using ReflectionPadOptions = PadOptions<N>;
template <size_t N> using ReplicationPadOptions = PadOptions<N>;
template <size_t N> using ZeroPadOptions = PadOptions<N>;
UMBRA_LAYER_OF_DIMENSIONS(ReflectionPad);
UMBRA_LAYER_OF_DIMENSIONS(ReplicationPad);
UMBRA_LAYER_OF_DIMENSIONS(ZeroPad);
UMBRA_LAYER_OF_DIMENSIONS(ConstantPad);

UMBRA_OPTIONS(UpsampleOptions, native::UpsampleOptions, size, scale_factor, mode, align_corners);
UMBRA_OPTIONS_OF(UnfoldOptions, native::UnfoldOptions, ((native::Pair, kernel_size)), (dilation, padding, stride));
UMBRA_OPTIONS_OF(FoldOptions, native::UnfoldOptions, ((native::Pair, output_size), (native::Pair, kernel_size)),
                 (dilation, padding, stride));
UMBRA_LAYER(Upsample);
UMBRA_LAYER(Unfold);
UMBRA_LAYER(Fold);

#undef UMBRA_VALUE_OPTIONS
#undef UMBRA_TWO_VALUES

}  // namespace torch::nn
