// What layers compute, as functions: `namespace F = umbra::nn::functional`.
#pragma once

#include <optional>
#include <utility>

#include "umbra/core/tensor.h"
#include "umbra/generated/functions.h"

namespace UMBRA_API umbra {
namespace nn::functional {

using umbra::adaptive_avg_pool2d;
using umbra::conv2d;
using umbra::gelu;
using umbra::linear;
using umbra::log_softmax;
using umbra::relu;
using umbra::scaled_dot_product_attention;
using umbra::sigmoid;
using umbra::silu;
using umbra::softmax;
using umbra::tanh;

enum class Reduction : uint8_t { None, Mean, Sum };

struct CrossEntropyOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;
};
/// Of logits [N, C, ...] and class numbers [N, ...] (or probabilities of the logits' shape).
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true);
Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx = {});
Tensor layer_norm(const Tensor& input, SymIntArrayRef normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

struct BatchNormArguments {
  Tensor running_mean = {}, running_var = {}, weight = {}, bias = {};
  bool training = false;
  double momentum = 0.1, eps = 1e-5;
};
Tensor batch_norm(const Tensor& input, const BatchNormArguments& arguments);

/// Everything attention needs besides query, key and value ([length, batch, embedding]).
struct MultiheadArguments {
  int64_t heads = 1;
  Tensor in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias;
  double dropout = 0;
  bool training = false;
  Tensor key_padding_mask = {}, attn_mask = {};
  bool need_weights = true, average_attn_weights = true, is_causal = false;
};
/// The attended values and, where they are asked for, the weights [batch, (heads,) target, source].
std::pair<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const MultiheadArguments& arguments);

}  // namespace nn::functional
}  // namespace umbra
