// A base with the contents of one of its views replaced: what writes through views become when mutation is taken out of
// a program.
#include "ops/common/batching.h"
#include "ops/common/same_shape.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_part(const Tensor& view, const Tensor& source) {
  if (!expect_same_shape(view.sym_sizes(), source.sym_sizes()))
    fail("expected src to have a size equal to the slice of self. src size = ", source.sym_sizes(),
         ", slice size = ", view.sym_sizes());
}

// A copy with the strides of `self`, so that the part lies in it as it lies in `self`.
Tensor copy_with_gaps(const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) return self.clone();
  return empty_strided(self.sym_sizes(), strides_with_gaps(self), {.dtype = self.dtype(), .device = self.device()})
      .copy_(self);
}

/// A copy at the same place in a copy of all the memory that `self` is part of.
Tensor copy_of_memory(const Tensor& self) {
  SymInt length = self.storage()->bytes() / self.item_size();
  Tensor memory = as_strided(self, {length}, {SymInt(1)}, SymInt(0)).clone();
  return as_strided(memory, self.sym_sizes(), self.sym_strides(), self.sym_storage_offset());
}

UMBRA_OPERATOR("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
    .generated_out("select_scatter.out")
    .all_backends([](const Tensor& self, const Tensor& src, int64_t dim, SymInt index) {
      Tensor out = copy_with_gaps(self);
      if (self.is_meta()) return out;  // nothing is asked about the part there
      Tensor part = out.select(dim, index);
      check_part(part, src);
      part.copy_(src);
      return out;
    })
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, SymInt index) {
                return select_scatter(grad, zeros_like(grad.select(dim, index)), dim, index);
              })
    .gradient("src", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, SymInt index) { return grad.select(dim, index); })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
    .generated_out("slice_scatter.out")
    .all_backends([](const Tensor& self, const Tensor& src, int64_t dim, std::optional<SymInt> start,
                     std::optional<SymInt> end, SymInt step) {
      Tensor out = copy_with_gaps(self);
      if (self.is_meta()) return out;  // nothing is asked about the part there
      Tensor part = slice(out, dim, start, end, step);
      check_part(part, src);
      part.copy_(src);
      return out;
    })
    .gradient("self", {"grad", "dim", "start", "end", "step"},
              [](const Tensor& grad, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
                return slice_scatter(grad, zeros_like(slice(grad, dim, start, end, step)), dim, start, end, step);
              })
    .gradient("src", {"grad", "dim", "start", "end", "step"},
              [](const Tensor& grad, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
                return slice(grad, dim, start, end, step);
              })
    .linear()
    .tags({Tag::ViewCopy, Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
    .generated_out("diagonal_scatter.out")
    .all_backends([](const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
      Tensor out = copy_with_gaps(self);
      if (self.is_meta()) return out;  // nothing is asked about the part there
      Tensor part = out.diagonal(offset, dim1, dim2);
      check_part(part, src);
      part.copy_(src);
      return out;
    })
    .gradient("self", {"grad", "offset", "dim1", "dim2"},
              [](const Tensor& grad, int64_t offset, int64_t dim1, int64_t dim2) {
                return diagonal_scatter(grad, zeros_like(grad.diagonal(offset, dim1, dim2)), offset, dim1, dim2);
              })
    .gradient("src", {"grad", "offset", "dim1", "dim2"},
              [](const Tensor& grad, int64_t offset, int64_t dim1, int64_t dim2) {
                return grad.diagonal(offset, dim1, dim2);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim1", "dim2"}});

UMBRA_OPERATOR(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor")
    .generated_out("as_strided_scatter.out")
    .all_backends([](const Tensor& self, const Tensor& src, SymIntArrayRef size, SymIntArrayRef stride,
                     std::optional<SymInt> offset) {
      Tensor out = copy_of_memory(self);
      Tensor part = as_strided(out, size, stride, offset);
      check_part(part, src);
      part.copy_(src);
      return out;
    })
    .gradient(
        "self", {"grad", "self", "size", "stride", "storage_offset"},
        [](const Tensor& grad, const Tensor& self, std::vector<SymInt> size, std::vector<SymInt> stride,
           std::optional<SymInt> offset) {
          // PyTorch's gradient, number for number: it is that of the part that was replaced, and nothing for the rest.
          // Forward mode has it the other way round, which is the derivative.
          check(self.is_contiguous(), "as_strided_scatter is differentiable with respect to a contiguous self only");
          Tensor out = zeros_like(self);
          as_strided(out, size, stride, offset).copy_(as_strided(empty_like(self).copy_(grad), size, stride, offset));
          return out;
        })
    .gradient("src", {"grad", "self", "size", "stride", "storage_offset"},
              [](const Tensor& grad, const Tensor& self, std::vector<SymInt> size, std::vector<SymInt> stride,
                 std::optional<SymInt> offset) {
                return as_strided(empty_like(self).copy_(grad), size, stride, offset).contiguous();
              })
    .linear()
    .batch([](const Batched&, const Batched&, SymIntArrayRef, SymIntArrayRef, std::optional<SymInt>) -> Batched {
      // Places in memory mean another thing in each element of a batch.
      fail("as_strided_scatter cannot be batched: vmap does not know the memory of one element");
    });

}  // namespace
}  // namespace umbra::ops
