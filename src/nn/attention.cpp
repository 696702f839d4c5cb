#include "umbra/nn/attention.h"

#include "umbra/nn/functional.h"
#include "umbra/nn/init.h"

namespace umbra::nn {

namespace {
/// The last projection, a module of its own so that its parameters are out_proj.weight and out_proj.bias.
Linear make_out_proj(int64_t size, const MultiheadAttentionOptions& options) {
  return Linear(size, size, {.bias = options.bias, .tensor = options.tensor});
}
}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t heads, const MultiheadAttentionOptions& options)
    : Layer("torch.nn.modules.activation.MultiheadAttention"),
      in_proj_weight(parameter("in_proj_weight", empty({3 * embed_dim, embed_dim}, options.tensor))),
      in_proj_bias(parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}, options.tensor) : Tensor())),
      out_proj(add("out_proj", make_out_proj(embed_dim, options))),
      heads_(heads),
      dropout_(options.dropout),
      batch_first_(options.batch_first) {
  check<ValueError>(embed_dim > 0 && heads > 0,
                    "embed_dim and num_heads must be greater than 0, got embed_dim=", embed_dim,
                    " and num_heads=", heads, " instead");
  check<AssertionError>(embed_dim % heads == 0, "embed_dim must be divisible by num_heads");
  init::xavier_uniform_(in_proj_weight);
  if (options.bias) init::zeros_(out_proj.bias);
}

std::pair<Tensor, Tensor> MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                                         const AttendOptions& options) const {
  return run([&] { return attend(query, key, value, options); });
}

std::vector<Tensor> MultiheadAttention::forward_many(std::vector<Tensor> inputs) {
  check<TypeError>(inputs.size() == 3, "MultiheadAttention.forward() takes query, key and value, ", inputs.size(),
                   " inputs were given");
  auto [attended, weights] = attend(inputs[0], inputs[1], inputs[2], {});
  return {attended, weights};
}

std::pair<Tensor, Tensor> MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                                     const AttendOptions& options) const {
  check<AssertionError>(query.dim() == 2 || query.dim() == 3,
                        "query should be unbatched 2D or batched 3D tensor but received ", query.dim(),
                        "-D query tensor");
  bool batched = query.dim() == 3;
  // Tensors that are the same stay the same: self-attention projects them in one product.
  auto arrange = [&](const Tensor& t) { return !batched ? t.unsqueeze(1) : batch_first_ ? t.transpose(1, 0) : t; };
  Tensor q = arrange(query);
  Tensor k = key.is_same(query) ? q : arrange(key);
  Tensor v = value.is_same(key) ? k : arrange(value);
  Tensor padding =
      options.key_padding_mask.defined() && !batched ? options.key_padding_mask.unsqueeze(0) : options.key_padding_mask;
  auto [attended, weights] = functional::multi_head_attention(q, k, v,
                                                              {.heads = heads_,
                                                               .in_proj_weight = in_proj_weight,
                                                               .in_proj_bias = in_proj_bias,
                                                               .out_proj_weight = out_proj.weight,
                                                               .out_proj_bias = out_proj.bias,
                                                               .dropout = dropout_,
                                                               .training = is_training(),
                                                               .key_padding_mask = padding,
                                                               .attn_mask = options.attn_mask,
                                                               .need_weights = options.need_weights,
                                                               .average_attn_weights = options.average_attn_weights,
                                                               .is_causal = options.is_causal});
  if (!batched) return {attended.squeeze(1), weights.defined() ? weights.squeeze(0) : weights};
  return {batch_first_ ? attended.transpose(1, 0) : attended, weights};
}

}  // namespace umbra::nn
