// Whole slices along one dimension, written at a vector of positions: index_fill, index_copy.
#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/index.h"
#include "ops/common/batching.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// ---- one value ----

void check_fill(const Tensor& self, int64_t dim, const Tensor& index) {
  check(index.dim() <= 1 || !only_metadata_is_asked(), "Index should have dimension 1 or 0 (got ", index.dim(), ")");
  wrap_dim(dim, self.dim());
  check<IndexError>(only_metadata_is_asked() || index.dtype() == DType::Int64,
                    "index_fill_(): Expected dtype int64 for index.");
  check(index.dim() <= 1, "Index has to be a vector/scalar");
  check(!only_metadata_is_asked() || index.device() == self.device(),
        "index_copy(): self, index and source expected to be in the same device, but got (self) ", self.device(),
        ", (index) ", index.device(), ", and (source) ", self.device());
}
void check_real_value(const Tensor& self, bool complex) {
  check(self.is_complex() || !complex, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

void warn_of_expanded(const Tensor& out) {
  if (overlaps_itself(out))
    warn("Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this ",
         "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
}

/// A one where slices are written: [batch, 1, .., n, .., 1], for a vector of positions along `dim` of `all`.
Tensor filled_places(const Tensor& all, const Batched& index, int64_t dim) {
  Tensor places = batch_all(index);
  if (index.rank() == 0) places = places.unsqueeze(1);
  SymInt batch = places.sym_size(0), size = all.sym_size(dim);
  Tensor mask = places.new_zeros({batch, size}, {.dtype = DType::Bool});
  mask = mask.scatter(1, places.remainder(Scalar(size)), Scalar(true));
  SymShape sizes(all.sym_sizes().size(), 1);
  sizes[0] = batch;
  sizes[dim] = size;
  return mask.view(sizes);
}

UMBRA_OPERATOR("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    .inplace("index_fill_.int_Scalar")
    .generated_out("index_fill.int_Scalar_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
      if (only_metadata_is_asked()) kernels::check_fits(value, self.dtype());
      check_fill(self, dim, index);
      check_real_value(self, value.is_complex());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
      warn_of_expanded(out);
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::index_fill(out, wrap_dim(dim, out.dim()), index, value);
    })
    .writes_straight()
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) {
                return grad.index_fill(dim, index, Scalar(0));
              })
    .tags({Tag::WritesOverlapping})
    .batch([](const Batched& self, int64_t dim, const Batched& index, const Scalar& value) {
      bool scalar = self.rank() == 0;
      int64_t at = wrap_dim(dim, self.rank()) + 1;
      Tensor all = scalar ? batch_all(self).unsqueeze(1) : batch_all(self);
      Tensor out = index.is_batched() ? all.masked_fill(filled_places(all, index, at), value)
                                      : all.index_fill(at, index.value, value);
      return Batched(scalar ? out.squeeze(1) : out, 0);
    });

UMBRA_OPERATOR("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
    .inplace("index_fill_.int_Tensor")
    .generated_out("index_fill.int_Tensor_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
      check(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
            value.dim(), " dimension(s).");
      check_fill(self, dim, index);
      check_real_value(self, value.is_complex());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
      warn_of_expanded(out);
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::index_fill(out, wrap_dim(dim, out.dim()), index, value.item());
    })
    .writes_straight()
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) {
                return grad.index_fill(dim, index, Scalar(0));
              })
    .gradient("value", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) {
                // Each slice once, however often it was named.
                return grad.sub(grad.index_fill(dim, index, Scalar(0))).sum();
              })
    .tags({Tag::WritesOverlapping})
    .batch([](const Batched& self, int64_t dim, const Batched& index, const Batched& value) {
      bool scalar = self.rank() == 0;
      int64_t at = wrap_dim(dim, self.rank()) + 1;
      Tensor all = scalar ? batch_all(self).unsqueeze(1) : batch_all(self);
      Tensor filling = batch_first(value, all.dim() - 1).to(all.dtype());
      Tensor out = where(filled_places(all, index, at), filling, all);
      return Batched(scalar ? out.squeeze(1) : out, 0);
    });

// ---- slices of a source ----

std::string slice_shape(const Tensor& t, int64_t dim) {
  std::string out;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim) out += (out.empty() ? "" : " ") + to_string(t.sym_sizes()[d]);
  return out;
}
void check_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check(!only_metadata_is_asked() || (index.device() == self.device() && source.device() == self.device()),
        "index_copy(): self, index and source expected to be in the same device, but got (self) ", self.device(),
        ", (index) ", index.device(), ", and (source) ", source.device());
  SymInt count = index.sym_numel();
  check<IndexError>(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  check<IndexError>(source.dim() > 0 || count == 1,
                    "index_copy_(): When source is scalar, index should have one element (got ", count, ")");
  check<IndexError>(
      source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
      "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
      "dimensionality (",
      source.dim(), "), destination dimensionality (", self.dim(), ")");
  check(only_metadata_is_asked() || index.dtype() == DType::Int64,
        "index_copy_(): Expected a long tensor for index, but got ", kernel_name(index.dtype()));
  check(self.dtype() == source.dtype(),
        "index_copy_(): self and source expected to have the same dtype, but got (self) ", kernel_name(self.dtype()),
        " and (source) ", kernel_name(source.dtype()));
  std::string want = slice_shape(self, dim), have = slice_shape(source, dim);
  bool fits = self.dim() == 0 ? source.dim() <= 1 : source.dim() == 0 ? self.dim() <= 1 : true;
  for (int64_t d = 0; fits && self.dim() > 0 && d < source.dim(); ++d)
    fits = d == dim || expect_equal(self.sym_sizes()[d], source.sym_sizes()[d]);
  check(fits, "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", want,
        " at dimension ", dim, " and source slice shape: ", have, " at dimension 0.");
  check<IndexError>(source.dim() == 0 || expect_equal(count, source.sym_size(dim)),
                    "index_copy_(): Number of indices (", count, ") should be equal to source.size(dim) (",
                    source.dim() == 0 ? SymInt(1) : source.sym_size(dim), ")");
}

UMBRA_OPERATOR("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
    .inplace("index_copy_")
    .out("index_copy.out")
    .use(out_asks("index_copy.out",
                  [](const Tensor& self, int64_t dim, const Tensor&, const Tensor&, const Tensor& out) {
                    wrap_dim(dim, self.dim());
                    check_out_dtype(self.dtype(), out.dtype());
                  }))
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
      check_copy(self, wrap_dim(dim, self.dim()), index, source);
      return TensorSpec(self.sym_sizes(), self.dtype(), common_device({&self, &index, &source}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
      if (!out.is_same(self)) kernels::copy(out, self);
      int64_t at = wrap_dim(dim, out.dim()), size = out.dim() == 0 ? 1 : out.size(at);
      Tensor places = kernels::contiguous(index);
      bool any = out.numel() == 0 && size > 0;  // where there is no element, no position names a wrong one
      for (int64_t place : ArrayRef<int64_t>(places.data<int64_t>(), static_cast<size_t>(places.numel())))
        check<IndexError>(any || (place >= 0 && place < size), "index_copy_(): index ", place,
                          " is out of bounds for dimension ", at, " with size ", size);
      kernels::index_copy(out, at, index, source);
    })
    .writes_straight()
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) {
                return grad.index_fill(dim, index, Scalar(0));
              })
    .gradient("source", {"grad", "dim", "index", "source.sym_sizes"},
              [](const Tensor& grad, int64_t dim, const Tensor& index, SymIntArrayRef sizes) {
                return sizes.empty() ? grad.index_select(dim, index.reshape({-1})).reshape({})
                                     : grad.index_select(dim, index).expand(sizes);
              })
    .linear()
    .batch([](const Batched& self, int64_t dim, const Batched& index, const Batched& source) {
      bool scalar = self.rank() == 0;
      int64_t at = wrap_dim(dim, self.rank()) + 1;
      Tensor all = scalar ? batch_all(self).unsqueeze(1) : batch_all(self);
      Tensor slices = source.rank() == 0 ? batch_all(source).unsqueeze(1) : batch_all(source);
      Tensor out;
      if (index.is_batched()) {
        Tensor places = batch_flat({batch_all(index), 0});
        SymShape sizes(slices.sym_sizes().size(), 1);
        sizes[0] = places.sym_size(0);
        sizes[at] = places.sym_size(1);
        out = all.scatter(at, places.view(sizes).expand(slices.sym_sizes()), slices);
      } else {
        out = all.index_copy(at, index.value, slices);
      }
      return Batched(scalar ? out.squeeze(1) : out, 0);
    });

UMBRA_OPERATOR("index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor")
    .composite([](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, const Tensor& index) {
      return grad.new_zeros(sizes).index_add(dim, index, grad);
    });

}  // namespace
}  // namespace umbra::ops
