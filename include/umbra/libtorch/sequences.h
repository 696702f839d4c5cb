// Layers of words and sequences: embeddings, recurrent networks, attention and transformers.
#pragma once

#include "umbra/libtorch/layers.h"

namespace torch::nn {

// ---- embeddings ----

UMBRA_OPTIONS_OF(EmbeddingOptions, native::EmbeddingOptions, ((int64_t, num_embeddings), (int64_t, embedding_dim)),
                 (padding_idx));
UMBRA_OPTIONS_OF(EmbeddingBagOptions, native::EmbeddingBagOptions,
                 ((int64_t, num_embeddings), (int64_t, embedding_dim)),
                 (max_norm, norm_type, scale_grad_by_freq, mode, include_last_offset, padding_idx));
struct EmbeddingImpl : LayerImpl<native::Embedding, EmbeddingOptions> {
  using LayerImpl::LayerImpl;
  /// A table of its own over the rows of `weight`, which are not trained where they are `frozen`.
  static std::shared_ptr<EmbeddingImpl> from_pretrained(const Tensor& weight, bool frozen = true) {
    auto made = std::make_shared<EmbeddingImpl>(weight.size(0), weight.size(1));
    NoGradGuard no_grad;
    made->weight.copy_(weight);
    made->weight.requires_grad_(!frozen);
    return made;
  }
};
using Embedding = ModuleHolder<EmbeddingImpl>;
UMBRA_LAYER(EmbeddingBag);

// ---- recurrent networks ----

#define UMBRA_RECURRENT_OPTIONS(Name, ...)                                                          \
  UMBRA_OPTIONS_OF(Name, native::RecurrentOptions, ((int64_t, input_size), (int64_t, hidden_size)), \
                   (num_layers, bias, batch_first, dropout, bidirectional __VA_OPT__(, ) __VA_ARGS__))
UMBRA_RECURRENT_OPTIONS(LSTMOptions);
UMBRA_RECURRENT_OPTIONS(GRUOptions);
UMBRA_RECURRENT_OPTIONS(RNNOptions, nonlinearity);
#undef UMBRA_RECURRENT_OPTIONS

struct LSTMImpl : LayerImpl<native::LSTM, LSTMOptions> {
  using State = std::tuple<Tensor, Tensor>;
  using PackedSequence = native::utils::rnn::PackedSequence;
  using LayerImpl::LayerImpl;
  std::tuple<Tensor, State> forward(const Tensor& input, const std::optional<State>& state = {}) {
    auto [hidden, cell] = state.value_or(State());
    native::LSTMResult result = run_sequence(input, hidden, cell);
    return {result.output, {result.hidden, result.cell}};
  }
  std::tuple<PackedSequence, State> forward_with_packed_input(const PackedSequence& input,
                                                              const std::optional<State>& state = {}) {
    auto [hidden, cell] = state.value_or(State());
    auto [output, last_hidden, last_cell] = run_packed(input, hidden, cell);
    return {output, {last_hidden, last_cell}};
  }
  /// Weights lie as they are here.
  void flatten_parameters() {}
};
template <class Native, class Options> struct RecurrentImpl : LayerImpl<Native, Options> {
  using PackedSequence = native::utils::rnn::PackedSequence;
  using LayerImpl<Native, Options>::LayerImpl;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hidden = {}) {
    native::RecurrentResult result = this->run_sequence(input, hidden);
    return {result.output, result.hidden};
  }
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& input, const Tensor& hidden = {}) {
    auto [output, last_hidden] = this->run_packed(input, hidden);
    return {output, last_hidden};
  }
  void flatten_parameters() {}
};
using GRUImpl = RecurrentImpl<native::GRU, GRUOptions>;
using RNNImpl = RecurrentImpl<native::RNN, RNNOptions>;
using LSTM = ModuleHolder<LSTMImpl>;
using GRU = ModuleHolder<GRUImpl>;
using RNN = ModuleHolder<RNNImpl>;

UMBRA_OPTIONS_OF(LSTMCellOptions, native::RecurrentCellOptions, ((int64_t, input_size), (int64_t, hidden_size)),
                 (bias));
UMBRA_OPTIONS_OF(GRUCellOptions, native::RecurrentCellOptions, ((int64_t, input_size), (int64_t, hidden_size)), (bias));
UMBRA_OPTIONS_OF(RNNCellOptions, native::RecurrentCellOptions, ((int64_t, input_size), (int64_t, hidden_size)),
                 (bias, nonlinearity));
struct LSTMCellImpl : LayerImpl<native::LSTMCell, LSTMCellOptions> {
  using State = std::tuple<Tensor, Tensor>;
  using LayerImpl::LayerImpl;
  State forward(const Tensor& input, const std::optional<State>& state = {}) {
    auto [hidden, cell] = state.value_or(State());
    return (*this)(input, hidden, cell);
  }
};
using LSTMCell = ModuleHolder<LSTMCellImpl>;
UMBRA_LAYER(GRUCell);
UMBRA_LAYER(RNNCell);

// ---- attention and transformers ----

UMBRA_OPTIONS_OF(MultiheadAttentionOptions, native::MultiheadAttentionOptions,
                 ((int64_t, embed_dim), (int64_t, num_heads)), (dropout, bias));
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

UMBRA_OPTIONS_OF(TransformerEncoderLayerOptions, native::TransformerLayerOptions,
                 ((int64_t, d_model), (int64_t, nhead)), (dim_feedforward, dropout, activation));
using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;
struct TransformerEncoderLayerImpl : LayerImpl<native::TransformerEncoderLayer, TransformerEncoderLayerOptions> {
  using LayerImpl::LayerImpl;
  Tensor forward(Tensor src) override { return LayerImpl::forward(std::move(src)); }
  Tensor forward(const Tensor& src, const Tensor& mask, const Tensor& key_padding_mask = {}) {
    return plain_layer()(src, {.mask = mask, .key_padding_mask = key_padding_mask});
  }
  const native::TransformerEncoderLayer& plain_layer() const { return *this; }
};
struct TransformerDecoderLayerImpl : LayerImpl<native::TransformerDecoderLayer, TransformerDecoderLayerOptions> {
  using LayerImpl::forward;
  using LayerImpl::LayerImpl;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    return plain_layer()(tgt, memory, {.mask = tgt_mask, .key_padding_mask = tgt_key_padding_mask},
                         {.mask = memory_mask, .key_padding_mask = memory_key_padding_mask});
  }
  const native::TransformerDecoderLayer& plain_layer() const { return *this; }
};
using TransformerEncoderLayer = ModuleHolder<TransformerEncoderLayerImpl>;
using TransformerDecoderLayer = ModuleHolder<TransformerDecoderLayerImpl>;

/// A layer, or its options, and how many copies of it there are.
template <class LayerType, class LayerOptions> struct TransformerStackOptions {
  TransformerStackOptions(const LayerType& layer, int64_t num_layers) : layer(layer), num_layers_(num_layers) {}
  TransformerStackOptions(const LayerOptions& options, int64_t num_layers)
      : TransformerStackOptions(LayerType(options), num_layers) {}
  UMBRA_OWN_SETTING(TransformerStackOptions, int64_t, num_layers)
  /// The norm behind the last layer.
  TransformerStackOptions& norm(const LayerNorm& norm) {
    norm_ = *norm;
    return *this;
  }
  template <class Layer> Layer make() const { return Layer(layer->plain_layer(), num_layers_, norm_); }
  LayerType layer;

 private:
  int64_t num_layers_;
  std::optional<native::LayerNorm> norm_;
};
using TransformerEncoderOptions = TransformerStackOptions<TransformerEncoderLayer, TransformerEncoderLayerOptions>;
using TransformerDecoderOptions = TransformerStackOptions<TransformerDecoderLayer, TransformerDecoderLayerOptions>;

struct TransformerEncoderImpl : LayerImpl<native::TransformerEncoder, TransformerEncoderOptions> {
  using LayerImpl::LayerImpl;
  Tensor forward(Tensor src) override { return LayerImpl::forward(std::move(src)); }
  Tensor forward(const Tensor& src, const Tensor& mask, const Tensor& key_padding_mask = {}) {
    const native::TransformerEncoder& encoder = *this;
    return encoder(src, {.mask = mask, .key_padding_mask = key_padding_mask});
  }
};
struct TransformerDecoderImpl : LayerImpl<native::TransformerDecoder, TransformerDecoderOptions> {
  using LayerImpl::forward;
  using LayerImpl::LayerImpl;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    const native::TransformerDecoder& decoder = *this;
    return decoder(tgt, memory, {.mask = tgt_mask, .key_padding_mask = tgt_key_padding_mask},
                   {.mask = memory_mask, .key_padding_mask = memory_key_padding_mask});
  }
};
using TransformerEncoder = ModuleHolder<TransformerEncoderImpl>;
using TransformerDecoder = ModuleHolder<TransformerDecoderImpl>;

struct TransformerOptions : native::TransformerLayerOptions {
  UMBRA_GIVEN_AND_SETTINGS(TransformerOptions, native::TransformerLayerOptions, ((int64_t, d_model), (int64_t, nhead)),
                           (dim_feedforward, dropout, activation))
  TransformerOptions() : TransformerOptions(512, 8) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : TransformerOptions(d_model, nhead) {
    num_encoder_layers_ = num_encoder_layers;
    num_decoder_layers_ = num_decoder_layers;
  }
  UMBRA_OWN_SETTING(TransformerOptions, int64_t, num_encoder_layers)
  UMBRA_OWN_SETTING(TransformerOptions, int64_t, num_decoder_layers)
  template <class Layer> Layer make() const {
    return Layer(
        d_model(), nhead(),
        {.num_encoder_layers = num_encoder_layers_, .num_decoder_layers = num_decoder_layers_, .layer = Native(*this)});
  }

 private:
  int64_t num_encoder_layers_ = 6, num_decoder_layers_ = 6;
};
struct TransformerImpl : LayerImpl<native::Transformer, TransformerOptions> {
  using LayerImpl::forward;
  using LayerImpl::LayerImpl;
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    const native::Transformer& transformer = *this;
    return transformer(src, tgt, {.mask = src_mask, .key_padding_mask = src_key_padding_mask},
                       {.mask = tgt_mask, .key_padding_mask = tgt_key_padding_mask},
                       {.mask = memory_mask, .key_padding_mask = memory_key_padding_mask});
  }
};
using Transformer = ModuleHolder<TransformerImpl>;

}  // namespace torch::nn
