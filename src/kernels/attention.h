// Scaled dot product attention without the matrix of all scores: block by block, with a running maximum and sum.
#pragma once

#include <array>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

struct AttentionOptions {
  bool is_causal = false;
  double scale = 1;
  Tensor mask = {};  // undefined, or added to the scores: broadcast to [batch, heads, queries, keys], of the query's
                     // dtype or float32
};

/// out = softmax(scale * query key^T + mask) value, for [batch, heads, length, features]; logsumexp is [batch, heads,
/// queries], float32 (float64 for double). Queries, keys and values may differ in length and, values, in features.
void flash_attention(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                     const Tensor& value, const AttentionOptions& options);
void flash_attention_backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
                              const Tensor& grad_output, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& out, const Tensor& logsumexp, const AttentionOptions& options);

/// Queries, keys and values, each [batch, heads, length, features], from rows of all three side by side, with a bias
/// added; queries are divided by the root of how many features there are. Contiguous, of float or double.
void split_heads(const std::array<Tensor, 3>& parts, const Tensor& rows, const Tensor& bias);

}  // namespace umbra::kernels
