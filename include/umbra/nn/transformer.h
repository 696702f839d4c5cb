// Transformers: layers of encoders and decoders, stacks of them, and both together.
//
//     nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(64, 8, {.batch_first = true}), 6);
//     Tensor y = encoder(x, {.mask = nn::Transformer::generate_square_subsequent_mask(x.size(1))});
#pragma once

#include <optional>

#include "umbra/nn/attention.h"
#include "umbra/nn/container.h"
#include "umbra/nn/dropout.h"
#include "umbra/nn/normalization.h"

namespace UMBRA_API umbra {
namespace nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // normalise what goes into a block instead of what comes out of it
  bool bias = true;
  TensorOptions tensor = {};
};

/// What attention leaves out: places by [target, source], and keys of each sample by [batch, source].
struct AttentionMasks {
  Tensor mask = {}, key_padding_mask = {};
  std::optional<bool> is_causal = {};  // whether the mask is the causal one; stacks of layers find out by themselves
};

/// What both kinds of layers have: attention to their own input, and two linear maps.
class TransformerLayer : public Layer {
 public:
  MultiheadAttention self_attn;

 protected:
  TransformerLayer(const char* type, int64_t d_model, int64_t heads, const TransformerLayerOptions& options);
  Tensor activated(const Tensor& x) const;
  LayerNorm make_norm() const;
  Tensor attended(const MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
                  const AttentionMasks& masks) const;
  /// A layer of the same kind with parameters of its own, of the same values.
  template <class L> static L copy_of(const L& layer);

  int64_t d_model_, heads_;
  TransformerLayerOptions options_;
};

class TransformerEncoderLayer : public TransformerLayer {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t heads, const TransformerLayerOptions& options = {});
  Tensor operator()(const Tensor& src, const AttentionMasks& masks = {}) const;
  Tensor forward(Tensor src) override;
  std::vector<std::string> argument_names() const override { return {"src"}; }
  TransformerEncoderLayer copy() const { return copy_of(*this); }

  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;

 private:
  friend class TransformerLayer;
  Tensor encode(const Tensor& src, const AttentionMasks& masks) const;
};

/// Attends to what was produced, then to what the encoder gave.
class TransformerDecoderLayer : public TransformerLayer {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t heads, const TransformerLayerOptions& options = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks = {},
                    const AttentionMasks& memory_masks = {}) const;
  Tensor forward(Tensor tgt, Tensor memory) override;
  std::vector<std::string> argument_names() const override { return {"tgt", "memory"}; }
  TransformerDecoderLayer copy() const { return copy_of(*this); }

  MultiheadAttention multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;

 private:
  friend class TransformerLayer;
  Tensor decode(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                const AttentionMasks& memory_masks) const;
};

/// Copies of a layer, one after the other, and a norm behind them where one is given.
class TransformerEncoder : public Layer {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, std::optional<LayerNorm> norm = {});
  Tensor operator()(const Tensor& src, const AttentionMasks& masks = {}) const;
  Tensor forward(Tensor src) override;
  std::vector<std::string> argument_names() const override { return {"src"}; }

  ModuleList<TransformerEncoderLayer> layers;
  std::shared_ptr<LayerNorm> norm;

 private:
  Tensor encode(const Tensor& src, const AttentionMasks& masks) const;
};

class TransformerDecoder : public Layer {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, std::optional<LayerNorm> norm = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks = {},
                    const AttentionMasks& memory_masks = {}) const;
  Tensor forward(Tensor tgt, Tensor memory) override;
  std::vector<std::string> argument_names() const override { return {"tgt", "memory"}; }

  ModuleList<TransformerDecoderLayer> layers;
  std::shared_ptr<LayerNorm> norm;

 private:
  Tensor decode(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                const AttentionMasks& memory_masks) const;
};

struct TransformerOptions {
  int64_t num_encoder_layers = 6, num_decoder_layers = 6;
  TransformerLayerOptions layer = {};
};

/// An encoder and a decoder.
class Transformer : public Layer {
 public:
  explicit Transformer(int64_t d_model = 512, int64_t heads = 8, const TransformerOptions& options = {});
  Tensor operator()(const Tensor& src, const Tensor& tgt, const AttentionMasks& src_masks = {},
                    const AttentionMasks& tgt_masks = {}, const AttentionMasks& memory_masks = {}) const;
  Tensor forward(Tensor src, Tensor tgt) override;
  std::vector<std::string> argument_names() const override { return {"src", "tgt"}; }
  /// Minus infinity above the diagonal: no place sees those behind it.
  static Tensor generate_square_subsequent_mask(SymInt size, const TensorOptions& options = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;

 private:
  Tensor run_both(const Tensor& src, const Tensor& tgt, const AttentionMasks& src_masks,
                  const AttentionMasks& tgt_masks, const AttentionMasks& memory_masks) const;
  int64_t d_model_;
  bool batch_first_;
};

}  // namespace nn
}  // namespace umbra
