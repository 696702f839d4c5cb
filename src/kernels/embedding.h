// Rows of a table by number, the gradient of the table, and a bound for the norms of its rows.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out[i...] = weight[indices[i...]], for 32- and 64-bit indices.
void embedding(const Tensor& out, const Tensor& weight, const Tensor& indices);
/// Adds up the rows of grad_output that came of each row of the table; rows numbered `padding_idx` count for nothing,
/// and with `scale_grad_by_freq` each sum is divided by how often its row was taken.
void embedding_dense_backward(const Tensor& grad_weight, const Tensor& grad_output, const Tensor& indices,
                              int64_t padding_idx, bool scale_grad_by_freq);
/// Scales each row that is named, once, so that its norm is no more than `max_norm`.
void embedding_renorm(const Tensor& table, const Tensor& indices, double max_norm, double norm_type);

}  // namespace umbra::kernels
