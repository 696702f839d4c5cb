// Views by strides: as_strided and diagonal, and what undoes them in a backward pass.
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// Whether two elements of the geometry may lie at the same place.
bool may_overlap(SymIntArrayRef sizes, SymIntArrayRef strides) {
  SmallVector<int, 6> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.push_back(static_cast<int>(d));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  SymInt reach = 0;
  for (int d : order) {
    if (strides[d] <= reach) return true;
    reach += strides[d] * (sizes[d] - 1);
  }
  return false;
}

/// The steps of a view that lead from one element to another.
struct Steps {
  SymShape sizes, strides;

  bool overlap() const { return may_overlap(sizes, strides); }
  Tensor positions(const Tensor& all, SymInt offset) const {
    return as_strided(all, sizes, strides, offset).reshape({-1});
  }
};

// The input's memory, laid out flat; what the view reads takes the gradient. Elements that are read twice add up, and
// elements that stand at several places of the input share what they get.
Tensor as_strided_backward(Tensor grad, std::vector<SymInt> input_size, std::vector<SymInt> input_stride, SymInt base,
                           std::vector<SymInt> size, std::vector<SymInt> stride, std::optional<SymInt> offset) {
  Steps view{SymShape(size), SymShape(stride)}, input;
  for (size_t d = size.size(); d-- > 0;) {
    if (size[d] == 0) return grad.new_zeros(input_size);
    if (size[d] != 1 && stride[d] != 0) continue;
    grad = size[d] == 1 ? grad.squeeze(static_cast<int64_t>(d)) : grad.sum({static_cast<int64_t>(d)});
    view.sizes.erase(d), view.strides.erase(d);
  }
  for (size_t d = 0; d < input_size.size(); ++d) {
    if (input_size[d] == 0) return grad.new_zeros(input_size);
    if (input_size[d] != 1) input.sizes.push_back(input_size[d]), input.strides.push_back(input_stride[d]);
  }
  SymInt at = offset.value_or(base), from = sym_min(base, at);
  SymInt input_span = storage_bytes(input.sizes, input.strides, base - from, 1);
  SymInt view_span = storage_bytes(view.sizes, view.strides, at - from, 1);
  Tensor flat = grad.new_zeros({sym_max(input_span, view_span)});
  bool added = view.overlap(), shared = input.overlap();
  Tensor places;
  if (added || shared) places = arange(0, Scalar(flat.sym_numel()), {.dtype = DType::Int64, .device = grad.device()});
  if (added) {
    Tensor values = grad.reshape({-1});
    flat.index_add_(0, view.positions(places, at - from), values);
  } else {
    as_strided(flat, view.sizes, view.strides, at - from).copy_(grad);
  }
  if (shared) {
    Tensor held = input.positions(places, base - from);
    Tensor count = zeros_like(flat, {}, MemoryFormat::Contiguous);
    Tensor one = ones({1}, {.dtype = grad.dtype(), .device = grad.device()});
    flat.div_(count.index_add_(0, held, one.expand_as(held)));
  }
  return as_strided(flat, input_size, input_stride, base - from);
}

UMBRA_OPERATOR("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
    .inplace("as_strided_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("AsStridedBackward1"); })
    .view([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride, std::optional<SymInt> offset) {
      check(size.size() == stride.size(), "mismatch in length of strides and shape");
      for (SymInt s : size)
        if (!s.is_symbolic() && s.value() < 0)
          fail("Trying to create tensor with negative dimension ", s, ": ", to_string(size));
      for (SymInt s : stride)
        if (!s.is_symbolic() && s.value() < 0)
          fail("as_strided: Negative strides are not supported at the moment, got strides: ", to_string(stride));
      SymInt at = offset.value_or(self.sym_storage_offset());
      check(!at.has_hint() || at.hint() >= 0, "Tensor: invalid storage offset ", at);
      SymInt need = storage_bytes(size, stride, at, self.item_size()), have = self.storage()->bytes();
      // On the meta device there is no memory that could end.
      bool ends = !self.is_meta() || self.is_fake();
      if (ends && !need.is_symbolic() && !have.is_symbolic() && need.value() > have.value())
        fail("setStorage: sizes ", to_string(size), ", strides ", to_string(stride), ", storage offset ", at,
             ", and itemsize ", self.item_size(), " requiring a storage size of ", need,
             " are out of bounds for storage of size ", have);
      return alias_tensor(self, size, stride, at);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, SymIntArrayRef size, SymIntArrayRef stride,
                     std::optional<SymInt> offset) { return as_strided_scatter(base, written, size, stride, offset); })
    .gradient("self",
              {"grad", "self.sym_sizes", "self.sym_strides", "self.sym_storage_offset", "size", "stride",
               "storage_offset"},
              as_strided_backward)
    .linear()
    .tags({Tag::Core, Tag::AddressesMemory})
    .batch([](const Batched& self, SymIntArrayRef size, SymIntArrayRef stride, std::optional<SymInt> offset) {
      // A batched tensor shows the strides that its value has, so the same steps apply to each element of the batch.
      SymShape strides{self.value.sym_strides()[self.dim]};
      for (SymInt s : stride) strides.push_back(s);
      return Batched(as_strided(self.value, batch_sizes(size), strides, offset), 0);
    });

UMBRA_OPERATOR("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
    .view([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
      int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
      check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
      SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
      SymInt rows = sizes[a], columns = sizes[b];
      SymInt length =
          offset >= 0 ? sym_max(sym_min(rows, columns - offset), 0) : sym_max(sym_min(rows + offset, columns), 0);
      SymInt at = self.sym_storage_offset();
      if (!equal_or(length, 0, false)) at += offset >= 0 ? strides[b] * offset : strides[a] * -offset;
      SymInt stride = strides[a] + strides[b];
      for (int64_t d : {std::max(a, b), std::min(a, b)}) {
        sizes.erase(d);
        strides.erase(d);
      }
      sizes.push_back(length);
      strides.push_back(stride);
      return alias_tensor(self, sizes, strides, at);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t offset, int64_t dim1, int64_t dim2) {
      return diagonal_scatter(base, written, offset, dim1, dim2);
    })
    .gradient("self", {"grad", "self.sym_sizes", "offset", "dim1", "dim2"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
                return diagonal_backward(grad, sizes, offset, dim1, dim2);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim1", "dim2"}});

UMBRA_OPERATOR("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
    .generated_out("diagonal_backward.out")
    .all_backends([](const Tensor& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
      Tensor out = grad.new_zeros(sizes);
      if (out.is_meta()) return out;
      out.diagonal(offset, dim1, dim2).copy_(grad);
      return out;
    })
    .gradient("grad_output", {"grad", "offset", "dim1", "dim2"},
              [](const Tensor& grad, int64_t offset, int64_t dim1, int64_t dim2) {
                return grad.diagonal(offset, dim1, dim2);
              })
    .linear()
    .batch([](const Batched& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
      auto at = [&](int64_t dim) { return wrap_dim(dim, static_cast<int64_t>(sizes.size())) + 1; };
      return Batched(diagonal_backward(batch_first(grad), batch_sizes(sizes), offset, at(dim1), at(dim2)), 0);
    });

}  // namespace
}  // namespace umbra::ops
