// Layers that are made of options which are set one after the other: `Conv2d(Conv2dOptions(1, 10, 5).stride(2))`.
#pragma once

#include "umbra/libtorch/module.h"

namespace torch::nn {

namespace native = umbra::nn;
template <size_t N> using ExpandingArray = native::Sizes<N>;

// ---- linear ----

struct LinearOptions : native::LinearOptions {
  using Native = native::LinearOptions;
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  UMBRA_OWN_SETTING(LinearOptions, int64_t, in_features)
  UMBRA_OWN_SETTING(LinearOptions, int64_t, out_features)
  UMBRA_SETTING(LinearOptions, bias)
  template <class Layer> Layer make() const { return Layer(in_features_, out_features_, Native(*this)); }

 private:
  int64_t in_features_, out_features_;
};
struct BilinearOptions : native::LinearOptions {
  using Native = native::LinearOptions;
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  UMBRA_OWN_SETTING(BilinearOptions, int64_t, in1_features)
  UMBRA_OWN_SETTING(BilinearOptions, int64_t, in2_features)
  UMBRA_OWN_SETTING(BilinearOptions, int64_t, out_features)
  UMBRA_SETTING(BilinearOptions, bias)
  template <class Layer> Layer make() const {
    return Layer(in1_features_, in2_features_, out_features_, Native(*this));
  }

 private:
  int64_t in1_features_, in2_features_, out_features_;
};
struct FlattenOptions {
  UMBRA_OWN_SETTING(FlattenOptions, int64_t, start_dim)
  UMBRA_OWN_SETTING(FlattenOptions, int64_t, end_dim)
  template <class Layer> Layer make() const { return Layer(start_dim_, end_dim_); }

 private:
  int64_t start_dim_ = 1, end_dim_ = -1;
};

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

UMBRA_LAYER(Linear);
UMBRA_LAYER(Bilinear);
UMBRA_LAYER(Flatten);
UMBRA_PLAIN_LAYER(Unflatten);
UMBRA_PLAIN_LAYER(Identity);

// ---- convolutions and pools ----

template <size_t N> struct ConvOptions : native::ConvOptions<N> {
  using Native = native::ConvOptions<N>;
  using Sizes = native::Sizes<N>;
  ConvOptions(int64_t in_channels, int64_t out_channels, Sizes kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  UMBRA_OWN_SETTING(ConvOptions, int64_t, in_channels)
  UMBRA_OWN_SETTING(ConvOptions, int64_t, out_channels)
  UMBRA_OWN_SETTING(ConvOptions, Sizes, kernel_size)
  UMBRA_SETTING(ConvOptions, stride)
  UMBRA_SETTING(ConvOptions, padding)
  UMBRA_SETTING(ConvOptions, dilation)
  UMBRA_SETTING(ConvOptions, groups)
  UMBRA_SETTING(ConvOptions, bias)
  UMBRA_SETTING(ConvOptions, padding_mode)
  /// `kSame`: as much on both sides as keeps the size, which takes windows of an odd length; or `kValid`.
  ConvOptions& padding(Word word) {
    same_ = std::string_view(word.text) == "same";
    return *this;
  }
  template <class Layer> Layer make() const {
    Native given = *this;
    for (size_t i = 0; same_ && i < N; ++i) {
      int64_t both = given.dilation[i] * (kernel_size_[i] - 1);
      if (given.stride[i] != 1) throw ValueError("padding='same' is not supported for strided convolutions");
      if (both % 2 != 0) throw NotImplementedError("padding='same' with a window of an even length is not built");
      given.padding[i] = both / 2;
    }
    return Layer(in_channels_, out_channels_, kernel_size_, given);
  }

 private:
  int64_t in_channels_, out_channels_;
  Sizes kernel_size_;
  bool same_ = false;
};
template <size_t N> struct ConvTransposeOptions : native::ConvTransposeOptions<N> {
  using Native = native::ConvTransposeOptions<N>;
  using Sizes = native::Sizes<N>;
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, Sizes kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  UMBRA_OWN_SETTING(ConvTransposeOptions, int64_t, in_channels)
  UMBRA_OWN_SETTING(ConvTransposeOptions, int64_t, out_channels)
  UMBRA_OWN_SETTING(ConvTransposeOptions, Sizes, kernel_size)
  UMBRA_SETTING(ConvTransposeOptions, stride)
  UMBRA_SETTING(ConvTransposeOptions, padding)
  UMBRA_SETTING(ConvTransposeOptions, output_padding)
  UMBRA_SETTING(ConvTransposeOptions, dilation)
  UMBRA_SETTING(ConvTransposeOptions, groups)
  UMBRA_SETTING(ConvTransposeOptions, bias)
  template <class Layer> Layer make() const { return Layer(in_channels_, out_channels_, kernel_size_, Native(*this)); }

 private:
  int64_t in_channels_, out_channels_;
  Sizes kernel_size_;
};
template <size_t N> struct MaxPoolOptions : native::MaxPoolOptions<N> {
  using Native = native::MaxPoolOptions<N>;
  using Sizes = native::Sizes<N>;
  MaxPoolOptions(Sizes kernel_size) : kernel_size_(kernel_size) {}
  UMBRA_OWN_SETTING(MaxPoolOptions, Sizes, kernel_size)
  MaxPoolOptions& stride(Sizes value) {
    Native::stride = value;
    return *this;
  }
  UMBRA_SETTING(MaxPoolOptions, padding)
  UMBRA_SETTING(MaxPoolOptions, dilation)
  UMBRA_SETTING(MaxPoolOptions, ceil_mode)
  template <class Layer> Layer make() const { return Layer(kernel_size_, Native(*this)); }

 private:
  Sizes kernel_size_;
};
template <size_t N> struct AvgPoolOptions : native::AvgPoolOptions<N> {
  using Native = native::AvgPoolOptions<N>;
  using Sizes = native::Sizes<N>;
  AvgPoolOptions(Sizes kernel_size) : kernel_size_(kernel_size) {}
  UMBRA_OWN_SETTING(AvgPoolOptions, Sizes, kernel_size)
  AvgPoolOptions& stride(Sizes value) {
    Native::stride = value;
    return *this;
  }
  UMBRA_SETTING(AvgPoolOptions, padding)
  UMBRA_SETTING(AvgPoolOptions, ceil_mode)
  UMBRA_SETTING(AvgPoolOptions, count_include_pad)
  UMBRA_SETTING(AvgPoolOptions, divisor_override)
  template <class Layer> Layer make() const { return Layer(kernel_size_, Native(*this)); }

 private:
  Sizes kernel_size_;
};
template <size_t N> struct AdaptiveAvgPoolOptions {
  using Sizes = native::Sizes<N>;
  AdaptiveAvgPoolOptions(Sizes output_size) : output_size_(output_size) {}
  UMBRA_OWN_SETTING(AdaptiveAvgPoolOptions, Sizes, output_size)
  template <class Layer> Layer make() const { return Layer(output_size_); }

 private:
  Sizes output_size_;
};
template <size_t N> using AdaptiveMaxPoolOptions = AdaptiveAvgPoolOptions<N>;
UMBRA_LAYER_OF_DIMENSIONS(Conv);
UMBRA_LAYER_OF_DIMENSIONS(ConvTranspose);
UMBRA_LAYER_OF_DIMENSIONS(MaxPool);
UMBRA_LAYER_OF_DIMENSIONS(AvgPool);
UMBRA_LAYER_OF_DIMENSIONS(AdaptiveAvgPool);
UMBRA_LAYER_OF_DIMENSIONS(AdaptiveMaxPool);

// ---- normalisation ----

struct BatchNormOptions : native::BatchNormOptions {
  using Native = native::BatchNormOptions;
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  UMBRA_OWN_SETTING(BatchNormOptions, int64_t, num_features)
  UMBRA_SETTING(BatchNormOptions, eps)
  UMBRA_SETTING(BatchNormOptions, momentum)
  UMBRA_SETTING(BatchNormOptions, affine)
  UMBRA_SETTING(BatchNormOptions, track_running_stats)
  template <class Layer> Layer make() const { return Layer(num_features_, Native(*this)); }

 private:
  int64_t num_features_;
};
struct InstanceNormOptions : native::InstanceNormOptions {
  using Native = native::InstanceNormOptions;
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  UMBRA_OWN_SETTING(InstanceNormOptions, int64_t, num_features)
  UMBRA_SETTING(InstanceNormOptions, eps)
  UMBRA_SETTING(InstanceNormOptions, momentum)
  UMBRA_SETTING(InstanceNormOptions, affine)
  UMBRA_SETTING(InstanceNormOptions, track_running_stats)
  template <class Layer> Layer make() const { return Layer(num_features_, Native(*this)); }

 private:
  int64_t num_features_;
};
struct LayerNormOptions : native::LayerNormOptions {
  using Native = native::LayerNormOptions;
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  UMBRA_OWN_SETTING(LayerNormOptions, std::vector<int64_t>, normalized_shape)
  UMBRA_SETTING(LayerNormOptions, eps)
  UMBRA_SETTING(LayerNormOptions, elementwise_affine)
  template <class Layer> Layer make() const { return Layer(normalized_shape_, Native(*this)); }

 private:
  std::vector<int64_t> normalized_shape_;
};
struct GroupNormOptions : native::GroupNormOptions {
  using Native = native::GroupNormOptions;
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  UMBRA_OWN_SETTING(GroupNormOptions, int64_t, num_groups)
  UMBRA_OWN_SETTING(GroupNormOptions, int64_t, num_channels)
  UMBRA_SETTING(GroupNormOptions, eps)
  UMBRA_SETTING(GroupNormOptions, affine)
  template <class Layer> Layer make() const { return Layer(num_groups_, num_channels_, Native(*this)); }

 private:
  int64_t num_groups_, num_channels_;
};
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

// ---- activations and dropout: those of one number have options of that number ----

#define UMBRA_NUMBER_OPTIONS(Name, Type, option, ...)                      \
  struct Name {                                                            \
    Name(Type option __VA_ARGS__) : option##_(option) {}                   \
    UMBRA_OWN_SETTING(Name, Type, option)                                  \
    template <class Layer> Layer make() const { return Layer(option##_); } \
                                                                           \
   private:                                                                \
    Type option##_;                                                        \
  }
UMBRA_NUMBER_OPTIONS(DropoutOptions, double, p, = 0.5);
UMBRA_NUMBER_OPTIONS(ELUOptions, double, alpha, = 1);
UMBRA_NUMBER_OPTIONS(CELUOptions, double, alpha, = 1);
UMBRA_NUMBER_OPTIONS(LeakyReLUOptions, double, negative_slope, = 0.01);
UMBRA_NUMBER_OPTIONS(HardshrinkOptions, double, lambda, = 0.5);
UMBRA_NUMBER_OPTIONS(SoftshrinkOptions, double, lambda, = 0.5);
UMBRA_NUMBER_OPTIONS(SoftmaxOptions, int64_t, dim);
UMBRA_NUMBER_OPTIONS(GLUOptions, int64_t, dim, = -1);
UMBRA_NUMBER_OPTIONS(PixelShuffleOptions, int64_t, upscale_factor);
UMBRA_NUMBER_OPTIONS(PReLUOptions, int64_t, num_parameters, = 1);
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;
using LogSoftmaxOptions = SoftmaxOptions;
using SoftminOptions = SoftmaxOptions;
UMBRA_LAYER(Dropout);
UMBRA_LAYER(Dropout2d);
UMBRA_LAYER(Dropout3d);
UMBRA_LAYER(AlphaDropout);
UMBRA_LAYER(FeatureAlphaDropout);
UMBRA_LAYER(ELU);
UMBRA_LAYER(CELU);
UMBRA_LAYER(LeakyReLU);
UMBRA_LAYER(Hardshrink);
UMBRA_LAYER(Softshrink);
UMBRA_LAYER(Softmax);
UMBRA_LAYER(LogSoftmax);
UMBRA_LAYER(Softmin);
UMBRA_LAYER(GLU);
UMBRA_LAYER(PReLU);
UMBRA_LAYER(PixelShuffle);

struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}
  UMBRA_OWN_SETTING(ReLUOptions, bool, inplace)

 private:
  bool inplace_;
};
struct ReLUImpl : native::ReLU {
  explicit ReLUImpl(const ReLUOptions& options = {}) : options(options) {}
  Tensor forward(Tensor x) override { return options.inplace() ? x.relu_() : x.relu(); }
  ReLUOptions options;
};
using ReLU = ModuleHolder<ReLUImpl>;
UMBRA_PLAIN_LAYER(ReLU6);
UMBRA_PLAIN_LAYER(SELU);
UMBRA_PLAIN_LAYER(SiLU);
UMBRA_PLAIN_LAYER(Mish);
UMBRA_PLAIN_LAYER(Tanh);
UMBRA_PLAIN_LAYER(Sigmoid);
UMBRA_PLAIN_LAYER(LogSigmoid);
UMBRA_PLAIN_LAYER(Softsign);
UMBRA_PLAIN_LAYER(Tanhshrink);
UMBRA_PLAIN_LAYER(Softmax2d);
UMBRA_PLAIN_LAYER(GELU);
UMBRA_PLAIN_LAYER(Softplus);
UMBRA_PLAIN_LAYER(Hardtanh);
UMBRA_PLAIN_LAYER(Threshold);
UMBRA_PLAIN_LAYER(CosineSimilarity);
UMBRA_PLAIN_LAYER(PairwiseDistance);
#define UMBRA_PADDINGS(Name)   \
  UMBRA_PLAIN_LAYER(Name##1d); \
  UMBRA_PLAIN_LAYER(Name##2d); \
  UMBRA_PLAIN_LAYER(Name##3d)
UMBRA_PADDINGS(ReflectionPad);
UMBRA_PADDINGS(ReplicationPad);
UMBRA_PADDINGS(ZeroPad);
UMBRA_PADDINGS(ConstantPad);
#undef UMBRA_PADDINGS

struct UpsampleOptions : native::UpsampleOptions {
  using Native = native::UpsampleOptions;
  UMBRA_SETTING(UpsampleOptions, size)
  UMBRA_SETTING(UpsampleOptions, scale_factor)
  UMBRA_SETTING(UpsampleOptions, mode)
  UMBRA_SETTING(UpsampleOptions, align_corners)
  template <class Layer> Layer make() const { return Layer(Native(*this)); }
};
UMBRA_LAYER(Upsample);

// ---- words and sequences ----

struct EmbeddingOptions : native::EmbeddingOptions {
  using Native = native::EmbeddingOptions;
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  UMBRA_OWN_SETTING(EmbeddingOptions, int64_t, num_embeddings)
  UMBRA_OWN_SETTING(EmbeddingOptions, int64_t, embedding_dim)
  UMBRA_SETTING(EmbeddingOptions, padding_idx)
  template <class Layer> Layer make() const { return Layer(num_embeddings_, embedding_dim_, Native(*this)); }

 private:
  int64_t num_embeddings_, embedding_dim_;
};
UMBRA_LAYER(Embedding);

struct RecurrentOptions : native::RecurrentOptions {
  using Native = native::RecurrentOptions;
  RecurrentOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  UMBRA_OWN_SETTING(RecurrentOptions, int64_t, input_size)
  UMBRA_OWN_SETTING(RecurrentOptions, int64_t, hidden_size)
  UMBRA_SETTING(RecurrentOptions, num_layers)
  UMBRA_SETTING(RecurrentOptions, bias)
  UMBRA_SETTING(RecurrentOptions, batch_first)
  UMBRA_SETTING(RecurrentOptions, dropout)
  UMBRA_SETTING(RecurrentOptions, bidirectional)
  template <class Layer> Layer make() const { return Layer(input_size_, hidden_size_, Native(*this)); }

 private:
  int64_t input_size_, hidden_size_;
};
using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;
using RNNOptions = RecurrentOptions;

struct LSTMImpl : LayerImpl<native::LSTM, LSTMOptions> {
  using State = std::tuple<Tensor, Tensor>;
  using LayerImpl::LayerImpl;
  std::tuple<Tensor, State> forward(const Tensor& input, const std::optional<State>& state = {}) {
    auto [hidden, cell] = state.value_or(State());
    native::LSTMResult result = run_sequence(input, hidden, cell);
    return {result.output, {result.hidden, result.cell}};
  }
};
template <class Native> struct RecurrentImpl : LayerImpl<Native, RecurrentOptions> {
  using LayerImpl<Native, RecurrentOptions>::LayerImpl;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hidden = {}) {
    native::RecurrentResult result = this->run_sequence(input, hidden);
    return {result.output, result.hidden};
  }
};
using GRUImpl = RecurrentImpl<native::GRU>;
using RNNImpl = RecurrentImpl<native::RNN>;
using LSTM = ModuleHolder<LSTMImpl>;
using GRU = ModuleHolder<GRUImpl>;
using RNN = ModuleHolder<RNNImpl>;

struct LSTMCellImpl : native::LSTMCell {
  using State = std::tuple<Tensor, Tensor>;
  using native::LSTMCell::LSTMCell;
  State forward(const Tensor& input, const std::optional<State>& state = {}) {
    auto [hidden, cell] = state.value_or(State());
    return (*this)(input, hidden, cell);
  }
};
using LSTMCell = ModuleHolder<LSTMCellImpl>;
UMBRA_PLAIN_LAYER(GRUCell);
UMBRA_PLAIN_LAYER(RNNCell);

struct MultiheadAttentionOptions : native::MultiheadAttentionOptions {
  using Native = native::MultiheadAttentionOptions;
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  UMBRA_OWN_SETTING(MultiheadAttentionOptions, int64_t, embed_dim)
  UMBRA_OWN_SETTING(MultiheadAttentionOptions, int64_t, num_heads)
  UMBRA_SETTING(MultiheadAttentionOptions, dropout)
  UMBRA_SETTING(MultiheadAttentionOptions, bias)
  template <class Layer> Layer make() const { return Layer(embed_dim_, num_heads_, Native(*this)); }

 private:
  int64_t embed_dim_, num_heads_;
};
struct MultiheadAttentionImpl : LayerImpl<native::MultiheadAttention, MultiheadAttentionOptions> {
  using LayerImpl::LayerImpl;
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true) {
    return (*this)(query, key, value,
                   {.key_padding_mask = key_padding_mask,
                    .attn_mask = attn_mask,
                    .need_weights = need_weights,
                    .average_attn_weights = average_attn_weights});
  }
};
using MultiheadAttention = ModuleHolder<MultiheadAttentionImpl>;

struct TransformerEncoderLayerOptions : native::TransformerLayerOptions {
  using Native = native::TransformerLayerOptions;
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  UMBRA_OWN_SETTING(TransformerEncoderLayerOptions, int64_t, d_model)
  UMBRA_OWN_SETTING(TransformerEncoderLayerOptions, int64_t, nhead)
  UMBRA_SETTING(TransformerEncoderLayerOptions, dim_feedforward)
  UMBRA_SETTING(TransformerEncoderLayerOptions, dropout)
  UMBRA_SETTING(TransformerEncoderLayerOptions, activation)
  template <class Layer> Layer make() const { return Layer(d_model_, nhead_, Native(*this)); }

 private:
  int64_t d_model_, nhead_;
};
using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;
struct TransformerEncoderLayerImpl : LayerImpl<native::TransformerEncoderLayer, TransformerEncoderLayerOptions> {
  using LayerImpl::LayerImpl;
  Tensor forward(Tensor src) override { return LayerImpl::forward(std::move(src)); }
  Tensor forward(const Tensor& src, const Tensor& mask, const Tensor& key_padding_mask = {}) {
    return encoder_layer()(src, {.mask = mask, .key_padding_mask = key_padding_mask});
  }
  const native::TransformerEncoderLayer& encoder_layer() const { return *this; }
};
using TransformerEncoderLayer = ModuleHolder<TransformerEncoderLayerImpl>;
UMBRA_LAYER(TransformerDecoderLayer);

struct TransformerEncoderOptions {
  TransformerEncoderOptions(const TransformerEncoderLayer& layer, int64_t num_layers)
      : layer(layer), num_layers(num_layers) {}
  template <class Layer> Layer make() const { return Layer(layer->encoder_layer(), num_layers); }
  TransformerEncoderLayer layer;
  int64_t num_layers;
};
UMBRA_LAYER(TransformerEncoder);

// ---- losses ----

#define UMBRA_REDUCTION(Self)                                       \
  Self& reduction(native::Reduction value) {                        \
    Native::reduction = value;                                      \
    return *this;                                                   \
  }                                                                 \
  native::Reduction reduction() const { return Native::reduction; } \
  template <class Layer> Layer make() const { return Layer(Native(*this)); }

struct ReductionOptions : native::ReductionOptions {
  using Native = native::ReductionOptions;
  ReductionOptions(native::Reduction reduction = native::Reduction::Mean) : Native(reduction) {}
  ReductionOptions(Word reduction) : Native(reduction) {}
  UMBRA_REDUCTION(ReductionOptions)
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
using SoftMarginLossOptions = ReductionOptions;
struct CrossEntropyLossOptions : native::CrossEntropyLossOptions {
  using Native = native::CrossEntropyLossOptions;
  UMBRA_SETTING(CrossEntropyLossOptions, weight)
  UMBRA_SETTING(CrossEntropyLossOptions, ignore_index)
  UMBRA_SETTING(CrossEntropyLossOptions, label_smoothing)
  UMBRA_REDUCTION(CrossEntropyLossOptions)
};
struct NLLLossOptions : native::NLLLossOptions {
  using Native = native::NLLLossOptions;
  UMBRA_SETTING(NLLLossOptions, weight)
  UMBRA_SETTING(NLLLossOptions, ignore_index)
  UMBRA_REDUCTION(NLLLossOptions)
};
struct BCELossOptions : native::BCELossOptions {
  using Native = native::BCELossOptions;
  UMBRA_SETTING(BCELossOptions, weight)
  UMBRA_REDUCTION(BCELossOptions)
};
struct BCEWithLogitsLossOptions : native::BCEWithLogitsLossOptions {
  using Native = native::BCEWithLogitsLossOptions;
  UMBRA_SETTING(BCEWithLogitsLossOptions, weight)
  UMBRA_SETTING(BCEWithLogitsLossOptions, pos_weight)
  UMBRA_REDUCTION(BCEWithLogitsLossOptions)
};
struct SmoothL1LossOptions : native::SmoothL1LossOptions {
  using Native = native::SmoothL1LossOptions;
  UMBRA_SETTING(SmoothL1LossOptions, beta)
  UMBRA_REDUCTION(SmoothL1LossOptions)
};
struct HuberLossOptions : native::HuberLossOptions {
  using Native = native::HuberLossOptions;
  UMBRA_SETTING(HuberLossOptions, delta)
  UMBRA_REDUCTION(HuberLossOptions)
};
struct KLDivLossOptions : native::KLDivLossOptions {
  using Native = native::KLDivLossOptions;
  UMBRA_SETTING(KLDivLossOptions, log_target)
  KLDivLossOptions& reduction(Word word) {
    Native::batchmean = std::string_view(word.text) == "batchmean";
    if (!Native::batchmean) Native::reduction = word;
    return *this;
  }
  template <class Layer> Layer make() const { return Layer(Native(*this)); }
};
struct MarginRankingLossOptions : native::MarginRankingLossOptions {
  using Native = native::MarginRankingLossOptions;
  UMBRA_SETTING(MarginRankingLossOptions, margin)
  UMBRA_REDUCTION(MarginRankingLossOptions)
};
using CosineEmbeddingLossOptions = MarginRankingLossOptions;
struct TripletMarginLossOptions : native::TripletMarginLossOptions {
  using Native = native::TripletMarginLossOptions;
  UMBRA_SETTING(TripletMarginLossOptions, margin)
  UMBRA_SETTING(TripletMarginLossOptions, p)
  UMBRA_SETTING(TripletMarginLossOptions, eps)
  UMBRA_SETTING(TripletMarginLossOptions, swap)
  UMBRA_REDUCTION(TripletMarginLossOptions)
};
UMBRA_LAYER(L1Loss);
UMBRA_LAYER(MSELoss);
UMBRA_LAYER(SoftMarginLoss);
UMBRA_LAYER(CrossEntropyLoss);
UMBRA_LAYER(NLLLoss);
UMBRA_LAYER(BCELoss);
UMBRA_LAYER(BCEWithLogitsLoss);
UMBRA_LAYER(SmoothL1Loss);
UMBRA_LAYER(HuberLoss);
UMBRA_LAYER(KLDivLoss);
UMBRA_LAYER(MarginRankingLoss);
UMBRA_LAYER(CosineEmbeddingLoss);
UMBRA_LAYER(TripletMarginLoss);
#undef UMBRA_REDUCTION
#undef UMBRA_NUMBER_OPTIONS

}  // namespace torch::nn
