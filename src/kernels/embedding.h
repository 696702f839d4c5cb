// Rows of a table by number, and the gradient of the table.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out[i...] = weight[indices[i...]], for 32- and 64-bit indices.
void embedding(const Tensor& out, const Tensor& weight, const Tensor& indices);
/// Adds up the rows of grad_output that came of each row of the table; rows numbered `padding_idx` count for nothing,
/// and with `scale_grad_by_freq` each sum is divided by how often its row was taken.
void embedding_dense_backward(const Tensor& grad_weight, const Tensor& grad_output, const Tensor& indices,
                              int64_t padding_idx, bool scale_grad_by_freq);

}  // namespace umbra::kernels
