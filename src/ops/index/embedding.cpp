// Rows of a table.
#include "kernels/embedding.h"

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_indices(const Tensor& indices, int position = 1, const char* function = "embedding") {
  check(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, "Expected tensor for argument #", position,
        " 'indices' to have one of the following scalar types: Long, Int; but got torch.", kernel_name(indices.dtype()),
        "Tensor instead (while checking arguments for ", function, ")");
}

/// Rows of one table for the whole batch: the place of an index among them.
Tensor shift_by_batch(const Tensor& indices, SymInt rows) {
  Tensor start =
      arange(Scalar(batch_scope().size), {.dtype = indices.dtype(), .device = indices.device()}).mul(Scalar(rows));
  SymShape sizes(indices.sym_sizes().size(), 1);
  sizes[0] = batch_scope().size;
  return indices.add(start.view(sizes));
}

UMBRA_OPERATOR(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> Tensor")
    .generated_out("embedding.out")
    .meta([](const Tensor& weight, const Tensor& indices, SymInt, bool, bool) {
      check<AssertionError>(!only_metadata_is_asked() || weight.dim() == 2, "'weight' must be 2-D, got ", weight.dim(),
                            "-D");
      check(weight.dim() == 2, "'weight' must be 2-D");
      check_indices(indices);
      SymShape shape(indices.sym_sizes());
      shape.push_back(weight.sym_sizes()[1]);
      return TensorSpec(shape, weight.dtype(), common_device({&weight, &indices}));
    })
    .cpu([](const Tensor& out, const Tensor& weight, const Tensor& indices, SymInt, bool, bool) {
      kernels::embedding(out, weight, indices);
    })
    .gradient("weight", {"grad", "indices", "weight.sym_sizes", "padding_idx", "scale_grad_by_freq", "sparse"},
              [](const Tensor& grad, const Tensor& indices, SymIntArrayRef sizes, SymInt padding, bool scale,
                 bool sparse) {
                check_indices(indices);
                return embedding_backward(grad, indices, sizes[0], padding, scale, sparse);
              })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& weight, const Batched& indices, SymInt padding, bool scale, bool sparse) {
      if (!weight.is_batched())
        return Batched(embedding(weight.value, indices.value, padding, scale, sparse), indices.dim);
      if (!indices.is_batched()) {
        Tensor rows = embedding(fold_batch(weight, 1), indices.value, padding, scale, sparse);
        return unfold_batch(rows, rows.dim() - 1);
      }
      Tensor at = batch_first(indices), table = batch_first(weight);
      Tensor rows = embedding(fold_batch(weight, 0), shift_by_batch(at, table.sym_sizes()[1]), -1, scale, sparse);
      // The row of the padding index takes no gradient.
      if (padding >= 0) rows = where(at.eq(Scalar(padding)).unsqueeze(-1), rows.detach(), rows);
      return Batched(rows, 0);
    });

UMBRA_OPERATOR(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
    "scale_grad_by_freq) -> Tensor")
    .generated_out("embedding_dense_backward.out")
    .use(NoOutputsOnMeta{"embedding_dense_backward.out"})
    .meta([](const Tensor& grad, const Tensor& indices, SymInt count, SymInt, bool) {
      if (only_metadata_is_asked()) return TensorSpec({count, grad.sym_size(-1)}, grad.dtype(), grad.device());
      check_indices(indices);
      SymInt columns = grad.sym_size(-1);  // a number has none: an IndexError
      check(indices.sym_numel() * columns == grad.sym_numel(), "shape '[", indices.sym_numel(), ", ", columns,
            "]' is invalid for input of size ", grad.sym_numel());
      return TensorSpec({count, grad.sym_sizes().back()}, grad.dtype(), common_device({&grad, &indices}));
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& indices, SymInt, SymInt padding, bool scale) {
      kernels::embedding_dense_backward(out, grad, indices, padding.guard_int(), scale);
    })
    .gradient("grad_output", {"grad", "indices", "padding_idx"},
              [](const Tensor& grad, const Tensor& indices, SymInt padding) {
                Tensor rows = grad.index_select(0, indices.reshape({-1}));
                SymShape shape(indices.sym_sizes());
                shape.push_back(grad.sym_sizes()[1]);
                rows = rows.reshape(shape);
                return padding < 0 ? rows : rows.masked_fill(indices.eq(Scalar(padding)).unsqueeze(-1), 0);
              })
    .tags({Tag::Core})
    .batch([](const Batched& grad, const Batched& indices, SymInt rows, SymInt padding, bool scale) {
      if (!indices.is_batched()) {
        Tensor whole = embedding_dense_backward(fold_batch(grad, grad.rank() - 1), indices.value, rows, padding, scale);
        return unfold_batch(whole, 1);
      }
      Tensor at = batch_first(indices), terms = batch_all(grad);
      if (padding >= 0) terms = terms.masked_fill(at.eq(Scalar(padding)).unsqueeze(-1), 0);
      return unfold_batch(
          embedding_dense_backward(terms, shift_by_batch(at, rows), rows * batch_scope().size, -1, scale), 0);
    });

/// The gradient of the table as a sparse tensor: a row for each index that is not padding, in the order of the indices.
Tensor rows_gradient(Tensor grad, Tensor indices, SymInt rows, SymInt padding, bool scale) {
  check_indices(indices);
  check(!scale, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  if (padding != -1) {
    check<IndexError>(indices.dim() > 0 && grad.dim() > 0, "too many indices for tensor of dimension 0 (got 1)");
    Tensor kept = indices.ne(Scalar(padding));
    indices = index(indices, {kept});
    grad = index(grad, {kept});
  }
  SymInt width = grad.sym_size(-1);
  if (grad.sym_numel().same(0))
    return _sparse_coo_tensor_unsafe(indices.new_empty({1, 0}), grad.new_empty({0, width}), {rows, width});
  return _sparse_coo_tensor_unsafe(indices.reshape({1, -1}), grad.reshape({-1, width}), {rows, width});
}

UMBRA_OPERATOR(
    "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, "
    "bool sparse) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& indices, SymInt rows, SymInt padding, bool scale, bool sparse) {
      if (!grad.is_meta() && !indices.is_meta()) check_indices(indices);
      return sparse ? rows_gradient(grad, indices, rows, padding, scale)
                    : embedding_dense_backward(grad, indices, rows, padding, scale);
    });

UMBRA_OPERATOR(
    "embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) "
    "-> Tensor")
    .composite([](const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding, bool scale) {
      return rows_gradient(grad, indices, rows, padding, scale);
    });

TensorSpec renorm_spec(const Tensor& self, const Tensor& indices, double, double) {
  if (only_metadata_is_asked()) {
    check<NotImplementedError>(self.is_meta(), "Cannot inplace into non-meta tensor with meta tensor argument");
    return spec_like(self);
  }
  check(self.dim() == 2, "Expected 2-dimensional tensor, but got ", self.dim(),
        "-dimensional tensor for argument #1 'self' (while checking arguments for embedding_renorm_)");
  check_indices(indices, 2, "embedding_renorm_");
  common_device({&self, &indices});
  return spec_like(self);
}

UMBRA_OPERATOR("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor")
    .inplace("embedding_renorm_")
    .generated_out("embedding_renorm.out")
    .meta(renorm_spec)
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
      kernels::copy(out, self);
      if (indices.numel() > 0) kernels::embedding_renorm(out, indices, max_norm, norm_type);
    })
    // A table may be large, and the rows few.
    .on_inplace([](OperatorBuilder& variant) {
      variant.meta(renorm_spec)
          .mutate([](const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
            if (indices.numel() > 0) kernels::embedding_renorm(self, indices, max_norm, norm_type);
          });
    });

}  // namespace
}  // namespace umbra::ops
