#include "umbra/nn/transformer.h"

#include <algorithm>
#include <limits>

#include "umbra/core/random_engine.h"
#include "umbra/nn/init.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

namespace {

/// Leaves the default generator as it was: a layer that is a copy draws no numbers.
class DrawsNothing {
 public:
  DrawsNothing() : generator_(default_generator()), cached_(generator_->cached_normal) {
    Generator::Engine& engine = generator_->engine();
    std::lock_guard lock(engine.mutex);
    std::copy_n(engine.words, Generator::Engine::kWords, words_);
    next_ = engine.next;
  }
  ~DrawsNothing() {
    Generator::Engine& engine = generator_->engine();
    std::lock_guard lock(engine.mutex);
    std::copy_n(words_, Generator::Engine::kWords, engine.words);
    engine.next = next_;
    generator_->cached_normal = cached_;
  }
  DrawsNothing(const DrawsNothing&) = delete;

 private:
  IntrusivePtr<Generator> generator_;
  std::optional<double> cached_;
  uint32_t words_[Generator::Engine::kWords];
  int next_;
};

/// Whether a mask is the causal one, where nobody says.
bool is_causal(const AttentionMasks& masks, const Tensor& sequences, bool batch_first) {
  if (masks.is_causal || !masks.mask.defined()) return masks.is_causal.value_or(false);
  SymInt size = sequences.sym_size(batch_first && sequences.dim() == 3 ? 1 : 0);
  Tensor causal =
      Transformer::generate_square_subsequent_mask(size, {.dtype = masks.mask.dtype(), .device = masks.mask.device()});
  return masks.mask.sym_sizes() == causal.sym_sizes() && equal(masks.mask, causal);
}

std::shared_ptr<LayerNorm> shared(std::optional<LayerNorm> norm) {
  return norm ? std::make_shared<LayerNorm>(std::move(*norm)) : nullptr;
}

#define UMBRA_TYPE(Name) "torch.nn.modules.transformer." #Name

}  // namespace

// ---- layers ----

TransformerLayer::TransformerLayer(const char* type, int64_t d_model, int64_t heads,
                                   const TransformerLayerOptions& options)
    : Layer(type),
      self_attn(add("self_attn", MultiheadAttention(d_model, heads,
                                                    {.dropout = options.dropout,
                                                     .bias = options.bias,
                                                     .batch_first = options.batch_first,
                                                     .tensor = options.tensor}))),
      d_model_(d_model),
      heads_(heads),
      options_(options) {
  check(options.activation == "relu" || options.activation == "gelu", "activation should be relu/gelu, not ",
        options.activation);
}

Tensor TransformerLayer::activated(const Tensor& x) const { return options_.activation == "relu" ? relu(x) : gelu(x); }

LayerNorm TransformerLayer::make_norm() const {
  return LayerNorm(d_model_, {.eps = options_.layer_norm_eps, .bias = options_.bias, .tensor = options_.tensor});
}

Tensor TransformerLayer::attended(const MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
                                  const AttentionMasks& masks) const {
  return attention(x, memory, memory,
                   {.key_padding_mask = masks.key_padding_mask,
                    .attn_mask = masks.mask,
                    .need_weights = false,
                    .is_causal = masks.is_causal.value_or(false)})
      .first;
}

template <class L> L TransformerLayer::copy_of(const L& layer) {
  DrawsNothing as_before;
  L copy(layer.d_model_, layer.heads_, layer.options_);
  copy.load_state_dict(layer.state_dict());
  copy.train(layer.is_training());
  return copy;
}
template TransformerEncoderLayer TransformerLayer::copy_of(const TransformerEncoderLayer&);
template TransformerDecoderLayer TransformerLayer::copy_of(const TransformerDecoderLayer&);

#define UMBRA_LINEAR(from, to) Linear(from, to, {.bias = options.bias, .tensor = options.tensor})

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t heads, const TransformerLayerOptions& options)
    : TransformerLayer(UMBRA_TYPE(TransformerEncoderLayer), d_model, heads, options),
      linear1(add("linear1", UMBRA_LINEAR(d_model, options.dim_feedforward))),
      dropout(add("dropout", Dropout(options.dropout))),
      linear2(add("linear2", UMBRA_LINEAR(options.dim_feedforward, d_model))),
      norm1(add("norm1", make_norm())),
      norm2(add("norm2", make_norm())),
      dropout1(add("dropout1", Dropout(options.dropout))),
      dropout2(add("dropout2", Dropout(options.dropout))) {}

Tensor TransformerEncoderLayer::encode(const Tensor& src, const AttentionMasks& masks) const {
  auto attend = [&](const Tensor& x) { return dropout1(attended(self_attn, x, x, masks)); };
  auto feed = [&](const Tensor& x) { return dropout2(linear2(dropout(activated(linear1(x))))); };
  if (options_.norm_first) {
    Tensor x = src + attend(norm1(src));
    return x + feed(norm2(x));
  }
  Tensor x = norm1(src + attend(src));
  return norm2(x + feed(x));
}

Tensor TransformerEncoderLayer::operator()(const Tensor& src, const AttentionMasks& masks) const {
  return run([&] { return encode(src, masks); });
}
Tensor TransformerEncoderLayer::forward(Tensor src) { return encode(src, {}); }

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t heads, const TransformerLayerOptions& options)
    : TransformerLayer(UMBRA_TYPE(TransformerDecoderLayer), d_model, heads, options),
      multihead_attn(add("multihead_attn", MultiheadAttention(d_model, heads,
                                                              {.dropout = options.dropout,
                                                               .bias = options.bias,
                                                               .batch_first = options.batch_first,
                                                               .tensor = options.tensor}))),
      linear1(add("linear1", UMBRA_LINEAR(d_model, options.dim_feedforward))),
      dropout(add("dropout", Dropout(options.dropout))),
      linear2(add("linear2", UMBRA_LINEAR(options.dim_feedforward, d_model))),
      norm1(add("norm1", make_norm())),
      norm2(add("norm2", make_norm())),
      norm3(add("norm3", make_norm())),
      dropout1(add("dropout1", Dropout(options.dropout))),
      dropout2(add("dropout2", Dropout(options.dropout))),
      dropout3(add("dropout3", Dropout(options.dropout))) {}
#undef UMBRA_LINEAR

Tensor TransformerDecoderLayer::decode(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                                       const AttentionMasks& memory_masks) const {
  auto attend = [&](const Tensor& x) { return dropout1(attended(self_attn, x, x, tgt_masks)); };
  auto look = [&](const Tensor& x) { return dropout2(attended(multihead_attn, x, memory, memory_masks)); };
  auto feed = [&](const Tensor& x) { return dropout3(linear2(dropout(activated(linear1(x))))); };
  if (options_.norm_first) {
    Tensor x = tgt + attend(norm1(tgt));
    x = x + look(norm2(x));
    return x + feed(norm3(x));
  }
  Tensor x = norm1(tgt + attend(tgt));
  x = norm2(x + look(x));
  return norm3(x + feed(x));
}

Tensor TransformerDecoderLayer::operator()(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                                           const AttentionMasks& memory_masks) const {
  return run([&] { return decode(tgt, memory, tgt_masks, memory_masks); });
}
Tensor TransformerDecoderLayer::forward(Tensor tgt, Tensor memory) { return decode(tgt, memory, {}, {}); }

// ---- stacks of layers ----

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm)
    : Layer(UMBRA_TYPE(TransformerEncoder)),
      layers(add("layers", ModuleList<TransformerEncoderLayer>())),
      norm(shared(std::move(norm))) {
  for (int64_t i = 0; i < num_layers; ++i) layers.push_back(layer.copy());
  if (this->norm) add("norm", this->norm);
}

Tensor TransformerEncoder::encode(const Tensor& src, const AttentionMasks& masks) const {
  check<IndexError>(layers.size() > 0, "a TransformerEncoder has to have a layer");
  AttentionMasks settled = masks;
  settled.is_causal = is_causal(masks, src, layers[0].self_attn.is_batch_first());
  Tensor out = src;
  for (TransformerEncoderLayer& layer : layers) out = layer(out, settled);
  return norm ? (*norm)(out) : out;
}

Tensor TransformerEncoder::operator()(const Tensor& src, const AttentionMasks& masks) const {
  return run([&] { return encode(src, masks); });
}
Tensor TransformerEncoder::forward(Tensor src) { return encode(src, {}); }

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm)
    : Layer(UMBRA_TYPE(TransformerDecoder)),
      layers(add("layers", ModuleList<TransformerDecoderLayer>())),
      norm(shared(std::move(norm))) {
  for (int64_t i = 0; i < num_layers; ++i) layers.push_back(layer.copy());
  if (this->norm) add("norm", this->norm);
}

Tensor TransformerDecoder::decode(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                                  const AttentionMasks& memory_masks) const {
  check<IndexError>(layers.size() > 0, "a TransformerDecoder has to have a layer");
  AttentionMasks settled = tgt_masks;
  settled.is_causal = is_causal(tgt_masks, tgt, layers[0].self_attn.is_batch_first());
  Tensor out = tgt;
  for (TransformerDecoderLayer& layer : layers) out = layer(out, memory, settled, memory_masks);
  return norm ? (*norm)(out) : out;
}

Tensor TransformerDecoder::operator()(const Tensor& tgt, const Tensor& memory, const AttentionMasks& tgt_masks,
                                      const AttentionMasks& memory_masks) const {
  return run([&] { return decode(tgt, memory, tgt_masks, memory_masks); });
}
Tensor TransformerDecoder::forward(Tensor tgt, Tensor memory) { return decode(tgt, memory, {}, {}); }

// ---- both ----

namespace {
LayerNorm last_norm(int64_t d_model, const TransformerLayerOptions& o) {
  return LayerNorm(d_model, {.eps = o.layer_norm_eps, .bias = o.bias, .tensor = o.tensor});
}
}  // namespace

Transformer::Transformer(int64_t d_model, int64_t heads, const TransformerOptions& options)
    : Layer(UMBRA_TYPE(Transformer)),
      encoder(add("encoder", TransformerEncoder(TransformerEncoderLayer(d_model, heads, options.layer),
                                                options.num_encoder_layers, last_norm(d_model, options.layer)))),
      decoder(add("decoder", TransformerDecoder(TransformerDecoderLayer(d_model, heads, options.layer),
                                                options.num_decoder_layers, last_norm(d_model, options.layer)))),
      d_model_(d_model),
      batch_first_(options.layer.batch_first) {
  for (const Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}

Tensor Transformer::run_both(const Tensor& src, const Tensor& tgt, const AttentionMasks& src_masks,
                             const AttentionMasks& tgt_masks, const AttentionMasks& memory_masks) const {
  int64_t batch = batch_first_ ? 0 : 1;
  check(src.dim() != 3 || src.sym_size(batch) == tgt.sym_size(batch), "the batch number of src and tgt must be equal");
  check(src.sym_size(-1) == d_model_ && tgt.sym_size(-1) == d_model_,
        "the feature number of src and tgt must be equal to d_model");
  return decoder(tgt, encoder(src, src_masks), tgt_masks, memory_masks);
}

Tensor Transformer::operator()(const Tensor& src, const Tensor& tgt, const AttentionMasks& src_masks,
                               const AttentionMasks& tgt_masks, const AttentionMasks& memory_masks) const {
  return run([&] { return run_both(src, tgt, src_masks, tgt_masks, memory_masks); });
}
Tensor Transformer::forward(Tensor src, Tensor tgt) { return run_both(src, tgt, {}, {}, {}); }

Tensor Transformer::generate_square_subsequent_mask(SymInt size, const TensorOptions& options) {
  return full({size, size}, -std::numeric_limits<double>::infinity(), options).triu(1);
}

}  // namespace umbra::nn
