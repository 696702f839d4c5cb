// MultiheadAttention, with PyTorch's parameters: in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias.
//
//     nn::MultiheadAttention attention(64, 8, {.batch_first = true});
//     auto [values, weights] = attention(x, x, x, {.is_causal = false});
#pragma once

#include <utility>

#include "umbra/nn/linear.h"

namespace UMBRA_API umbra {
namespace nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool batch_first = false;  // inputs are [batch, length, embedding] instead of [length, batch, embedding]
  TensorOptions tensor = {};
};

struct AttendOptions {
  Tensor key_padding_mask = {};  // [batch, source]: true where a key is left out
  Tensor attn_mask =
      {};  // [target, source] or [batch * heads, target, source]: added, or true where attention is barred
  bool need_weights = true, average_attn_weights = true;
  bool is_causal = false;
};

class MultiheadAttention : public Layer {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t heads, const MultiheadAttentionOptions& options = {});

  /// The attended values and, where they are asked for, the weights.
  std::pair<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttendOptions& options = {}) const;
  std::vector<Tensor> forward_many(std::vector<Tensor> inputs) override;
  std::vector<std::string> argument_names() const override { return {"query", "key", "value"}; }
  bool is_batch_first() const { return batch_first_; }

  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  std::pair<Tensor, Tensor> attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttendOptions& options) const;
  int64_t heads_;
  double dropout_;
  bool batch_first_;
};

}  // namespace nn
}  // namespace umbra
