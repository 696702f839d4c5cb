// Reading and writing elements by their position: index tensors.
//
// What writes does so in place; an operator that returns a new tensor copies first. Negative positions count from the
// end where PyTorch has them do so.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out = self[indices]: one index tensor for each leading dimension of self, undefined where the whole dimension is
/// taken. Index tensors are of integers (masks became those of nonzero before) and broadcast together; the dimensions
/// they span stand where the first indexed dimension was if the indexed ones are adjacent, else first.
void index(const Tensor& out, const Tensor& self, TensorList indices);
/// self[indices] = values, or += where `accumulate`; values are broadcast to the shape of self[indices].
void index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate);
/// The shape that tensors have together; undefined ones have none.
std::vector<int64_t> broadcast_shape(TensorList tensors);
/// The shape that self[indices] has.
std::vector<int64_t> indexed_shape(IntArrayRef self_sizes, TensorList indices);

/// Slices of self along `dim`, chosen by a vector of positions.
void index_select(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index);
/// Rows of self (along dimension 0), chosen by positions of any shape.
void select_rows(const Tensor& out, const Tensor& self, const Tensor& index);
/// self.select(dim, index[i]) += alpha * source.select(dim, i), and so on for the others.
void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha);
void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
void index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);

}  // namespace umbra::kernels
