// Whole slices along one dimension, chosen by a vector of positions: index_select, index_add.
#include "kernels/copy.h"
#include "kernels/index.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_vector(int64_t rank) { check<IndexError>(rank <= 1, "index_select(): Index is supposed to be a vector"); }
bool is_position(const Tensor& index) { return index.dtype() == DType::Int32 || index.dtype() == DType::Int64; }

/// An index along `dim` for each element of the batch, at every place of `like` ([batch, ...]): what gather takes.
Tensor spread_index(const Batched& index, const Tensor& like, int64_t dim) {
  Tensor flat = batch_flat({batch_all(index), 0});
  SymShape sizes(like.sym_sizes()), ones(like.sym_sizes().size(), 1);
  sizes[dim] = flat.sym_sizes()[1];
  ones[0] = flat.sym_sizes()[0];
  ones[dim] = flat.sym_sizes()[1];
  return flat.view(ones).expand(sizes);
}

UMBRA_OPERATOR("index_select(Tensor self, int dim, Tensor index) -> Tensor")
    .out("index_select.out")
    .use(out_asks("index_select.out",
                  [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
                    if (only_metadata_is_asked()) return;
                    wrap_dim(dim, self.dim());
                    check_vector(index.dim());
                    check_no_overlap(get_operator("aten::index_select"), out);  // as it was given
                  }))
    .meta([](const Tensor& self, int64_t dim, const Tensor& index) {
      if (only_metadata_is_asked() && self.dim() == 0) return TensorSpec({}, self.dtype(), self.device());
      int64_t at = wrap_dim(dim, self.dim());
      if (only_metadata_is_asked()) {  // a position for each number there is
        SymShape shape(self.sym_sizes());
        shape[at] = index.sym_numel();
        return TensorSpec(shape, self.dtype(), self.device());
      }
      check_vector(index.dim());
      check(is_position(index), "index_select(): Expected dtype int32 or int64 for index");
      SymShape shape(self.sym_sizes());
      if (self.dim() > 0) shape[at] = index.sym_numel();
      else
        check(index.sym_numel() == 1, "index_select(): Index to scalar can have only 1 value, got ", index.sym_numel(),
              " value(s)");
      return TensorSpec(shape, self.dtype(), common_device({&self, &index}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
      kernels::index_select(out, self, wrap_dim(dim, self.dim()), index);
    })
    .sparse(sparse::index_select)
    .gradient("self", {"grad", "self.sym_sizes", "dim", "index"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, const Tensor& index) {
                return grad.new_zeros(sizes).index_add(dim, index, grad);
              })
    .tags({Tag::Core})
    .batch([](const Batched& self, int64_t dim, const Batched& index) {
      check_vector(index.rank());
      int64_t at = wrap_dim(dim, self.rank()) + 1;
      bool scalar = self.rank() == 0;
      if (!index.is_batched() && !scalar) return Batched(batch_first(self).index_select(at, index.value), 0);
      Tensor all = scalar ? batch_all(self).unsqueeze(1) : batch_all(self);
      Tensor picked = all.gather(at, spread_index(index, all, at).to(DType::Int64));
      return Batched(scalar ? picked.squeeze(1) : picked, 0);
    });

// A slice of the source for each position, of the shape that slices of `self` have.
void check_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check(dim == 0 || dim < source.dim(), "index_add_(): Indexing dim ", dim,
        " is out of bounds of the source tensor with dim ", source.dim());
  SymInt count = index.sym_numel(), slices = source.dim() == 0 && count == 1 ? count : source.sym_size(dim);
  check(expect_equal(count, slices), "index_add_(): Number of indices (", count,
        ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  bool fits = self.dim() == source.dim();
  for (int64_t d = 0; fits && d < self.dim(); ++d)
    fits = d == dim || expect_equal(self.sym_sizes()[d], source.sym_sizes()[d]);
  check(fits, "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        self.sym_sizes(), " source.shape = ", source.sym_sizes());
}

UMBRA_OPERATOR("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
    .inplace("index_add_")
    .out("index_add.out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar&) {
      int64_t at = wrap_dim(dim, self.dim());
      check(!only_metadata_is_asked() || (index.device() == self.device() && source.device() == self.device()),
            "index_add(): self, index and source expected to be in the same device, but got (self) ", self.device(),
            ", (index) ", index.device(), ", and (source) ", source.device());
      check<IndexError>(index.dim() <= 1, "index_add_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                        " with type: ", kernel_name(index.dtype()), " and size: ", index.sym_sizes());
      check(is_position(index) || only_metadata_is_asked(),
            "index_add_(): Expected dtype int32/int64 for index but got: ", kernel_name(index.dtype()));
      check(self.dtype() == source.dtype(), "index_add_(): self (", kernel_name(self.dtype()), ") and source (",
            kernel_name(source.dtype()), ") must have the same scalar type");
      check_slices(self, at, index, source);
      return TensorSpec(self.sym_sizes(), self.dtype(), common_device({&self, &index, &source}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
            const Scalar& alpha) {
      if (out.numel() == 0) return;  // PyTorch does not look at the index then
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::index_add(out, wrap_dim(dim, out.dim()), index, source, alpha);
    })
    .writes_straight()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .gradient("source", {"grad", "dim", "index", "alpha", "source.sym_sizes"},
              [](const Tensor& grad, int64_t dim, const Tensor& index, const Scalar& alpha, SymIntArrayRef sizes) {
                Tensor rows = grad.index_select(dim, index).expand(sizes);
                return alpha.equals(1) ? rows : rows.mul(alpha);
              })
    .batch([](const Batched& self, int64_t dim, const Batched& index, const Batched& source, const Scalar& alpha) {
      bool scalar = self.rank() == 0;
      int64_t at = wrap_dim(dim, self.rank()) + 1;
      Tensor all = scalar ? batch_all(self).unsqueeze(1) : batch_all(self);
      Tensor terms = source.rank() == 0 ? batch_all(source).unsqueeze(1) : batch_all(source);
      Tensor out = index.is_batched() ? all.scatter_add(at, spread_index(index, terms, at).to(DType::Int64),
                                                        alpha.equals(1) ? terms : terms.mul(alpha))
                                      : all.index_add(at, index.value, terms, alpha);
      return Batched(scalar ? out.squeeze(1) : out, 0);
    });

}  // namespace
}  // namespace umbra::ops
