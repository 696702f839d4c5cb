// Rows of a table by number, the gradient of the table, and a bound for the norms of its rows.
#pragma once

#include <vector>

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

/// How the rows of a bag become one; the numbers are PyTorch's.
enum class BagMode : int64_t { Sum = 0, Mean = 1, Max = 2 };

/// Where bags lie among the indices, and what counts in them.
struct Bags {
  std::vector<int64_t> indices, offsets;  // of each bag: the position of its first index
  BagMode mode = BagMode::Sum;
  int64_t padding_idx = -1;  // rows of this number count for nothing
  int64_t count() const { return static_cast<int64_t>(offsets.size()); }
  int64_t end(int64_t bag) const;
  /// The bag of each index.
  std::vector<int64_t> bag_of() const;
};

/// out[bag] from the rows of the bag. `bag_size` gets how many counted (for means and maxima), `max_indices` which row
/// each maximum came from (for maxima).
void embedding_bag(const Tensor& out, const Tensor& bag_size, const Tensor& max_indices, const Tensor& weight,
                   const Bags& bags, const Tensor& per_sample_weights);
/// The gradient of the table. `counts`: divide by how often a row was taken.
void embedding_bag_backward(const Tensor& grad_weight, const Tensor& grad_output, const std::vector<int64_t>& indices,
                            const std::vector<int64_t>& bag_of, const Tensor& bag_size, const Tensor& max_indices,
                            const Tensor& per_sample_weights, BagMode mode, int64_t padding_idx, bool scale_by_freq);
/// The gradient of the weights of single indices.
void embedding_bag_sample_backward(const Tensor& grad_samples, const Tensor& grad_output, const Tensor& weight,
                                   const std::vector<int64_t>& indices, const std::vector<int64_t>& bag_of,
                                   int64_t padding_idx);

}  // namespace umbra::kernels
