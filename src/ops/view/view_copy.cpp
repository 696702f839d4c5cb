// Views that are copied at once: the same elements, in memory of their own. Their gradients are those of the views
// (autograd/plan.cpp).
#include "ops/common/batching.h"
#include "ops/common/list_out.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/sparse/structure.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

Tensor copied(const Tensor& view) { return view.clone(MemoryFormat::Contiguous); }

UMBRA_OPERATOR("alias_copy(Tensor self) -> Tensor")
    .generated_out("alias_copy.out")
    .all_backends([](const Tensor& self) { return copied(self.alias()); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("detach_copy(Tensor self) -> Tensor")
    .generated_out("detach_copy.out")
    .composite([](const Tensor& self) { return copied(self.detach()); })
    .tags({Tag::ViewCopy});
// Begins a program's use of a literal, and so stays whole in graphs.
UMBRA_OPERATOR("lift_fresh_copy(Tensor self) -> Tensor")
    .generated_out("lift_fresh_copy.out")
    .all_backends([](const Tensor& self) { return self.clone(MemoryFormat::Contiguous); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::ViewCopy})
    .use(BatchInPlace{});
UMBRA_OPERATOR("t_copy(Tensor self) -> Tensor")
    .generated_out("t_copy.out")
    .all_backends([](const Tensor& self) { return copied(self.t()); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
    .generated_out("transpose_copy.int_out")
    .all_backends([](const Tensor& self, int64_t a, int64_t b) { return copied(self.transpose(a, b)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("permute_copy(Tensor self, int[] dims) -> Tensor")
    .generated_out("permute_copy.out")
    .all_backends([](const Tensor& self, std::vector<int64_t> dims) { return copied(self.permute(dims)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("unsqueeze_copy(Tensor self, int dim) -> Tensor")
    .generated_out("unsqueeze_copy.out")
    .all_backends([](const Tensor& self, int64_t dim) { return copied(self.unsqueeze(dim)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("squeeze_copy(Tensor self) -> Tensor")
    .generated_out("squeeze_copy.out")
    .all_backends([](const Tensor& self) { return copied(self.squeeze()); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("squeeze_copy.dim(Tensor self, int dim) -> Tensor")
    .generated_out("squeeze_copy.dim_out")
    .all_backends([](const Tensor& self, int64_t dim) { return copied(self.squeeze(dim)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("view_copy(Tensor self, SymInt[] size) -> Tensor")
    .generated_out("view_copy.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size) { return copied(self.reshape(size)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor")
    .generated_out("expand_copy.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size, bool implicit) {
      return copied(self.expand(size, implicit));
    })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor")
    .generated_out("select_copy.int_out")
    .all_backends([](const Tensor& self, int64_t dim, SymInt index) { return copied(self.select(dim, index)); })
    .sparse([](const Tensor& self, int64_t dim, SymInt index) { return self.select(dim, index).clone(); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR(
    "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
    .generated_out("slice_copy.Tensor_out")
    .all_backends([](const Tensor& self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end,
                     SymInt step) { return copied(self.slice(dim, start, end, step)); })
    .linear()
    .tags({Tag::ViewCopy});

UMBRA_OPERATOR("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor")
    .generated_out("squeeze_copy.dims_out")
    .all_backends([](const Tensor& self, std::vector<int64_t> dims) {
      dim_mask(dims, self.dim(), false);
      return copied(self.squeeze(dims));
    })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor")
    .generated_out("view_copy.dtype_out")
    .composite([](const Tensor& self, DType dtype) { return copied(self.resolve_conj().resolve_neg().view(dtype)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor")
    .generated_out("_reshape_alias_copy.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride) {
      return copied(_reshape_alias(self, size, stride));
    })
    .linear()
    .tags({Tag::ViewCopy});
// Reshaped, and never a view: what functionalisation writes where a reshape was.
UMBRA_OPERATOR("_reshape_copy(Tensor self, SymInt[] size) -> Tensor")
    .all_backends([](const Tensor& self, SymIntArrayRef size) {
      SymShape shape = infer_size(size, self.sym_numel());
      if (view_strides(self.sym_sizes(), self.sym_strides(), shape))
        return self.view(shape).clone(MemoryFormat::Contiguous);
      return _unsafe_view(self.clone(MemoryFormat::Contiguous), shape);
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .use(BatchInFront{.sizes = {"size"}});
UMBRA_OPERATOR("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
    .out("narrow_copy.out")
    .use(out_asks("narrow_copy.out",
                  [](const Tensor& self, int64_t, SymInt, SymInt, const Tensor& out) {
                    check(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
                    check(self.dtype() == out.dtype(), "Expected self.dtype() == output.dtype() to be true, but got ",
                          "false.");
                  }))
    .composite([](const Tensor& self, int64_t dim, SymInt start, SymInt length) {
      check(self.dim() == 0 || dim < self.dim() || self.is_meta(),
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.");
      if (is_sparse(self.layout())) return sparse::narrow_copy(self, dim, start.guard_int(), length.guard_int());
      if (!self.is_meta() && self.dim() > 0 && !start.is_symbolic() && !self.sym_size(dim).is_symbolic()) {
        int64_t size = self.size(dim), from = start.value();  // which comes before the length
        check<IndexError>(-size <= from && from <= size, "start out of range (expected to be in range of [", -size,
                          ", ", size, "], but got ", from, ")");
      }
      return copied(self.narrow(dim, start, length));
    })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
    .generated_out("diagonal_copy.out")
    .all_backends([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
      return copied(self.diagonal(offset, dim1, dim2));
    })
    .gradient("self", {"grad", "self.sym_sizes", "offset", "dim1", "dim2"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
                return diagonal_backward(grad, sizes, offset, dim1, dim2);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim1", "dim2"}})
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
    .generated_out("unfold_copy.out")
    .all_backends([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
      int64_t at = wrap_dim(dimension, self.dim());
      SymInt length = self.dim() == 0 ? SymInt(1) : self.sym_size(at);
      check(size >= 0, "size is ", size, " but must be >= 0");
      check(size <= length, "maximum size for tensor at dimension ", at, " is ", length, " but size is ", size);
      check(step > 0, "step is ", step, " but must be > 0");
      SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
      sizes.push_back(size);
      strides.push_back(self.dim() == 0 ? SymInt(1) : strides[at]);
      if (self.dim() > 0) {
        sizes[at] = (length - size) / step + 1;
        strides[at] *= step;
      }
      return copied(as_strided(self, sizes, strides, self.sym_storage_offset()));
    })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
    .generated_out("as_strided_copy.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride, std::optional<SymInt> offset) {
      return copied(as_strided(self, size, stride, offset));
    })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("view_as_real_copy(Tensor self) -> Tensor")
    .generated_out("view_as_real_copy.out")
    .all_backends([](const Tensor& self) { return copied(view_as_real(self)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("view_as_complex_copy(Tensor self) -> Tensor")
    .generated_out("view_as_complex_copy.out")
    .all_backends([](const Tensor& self) { return copied(view_as_complex(self)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("_conj_copy(Tensor self) -> Tensor")
    .generated_out("_conj_copy.out")
    .all_backends([](const Tensor& self) { return copied(_conj(self)); })
    .linear()
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("_neg_view_copy(Tensor self) -> Tensor")
    .generated_out("_neg_view_copy.out")
    .all_backends([](const Tensor& self) { return copied(_neg_view(self)); })
    .linear()
    .tags({Tag::ViewCopy});

// ---- several parts ----

std::vector<Tensor> each_copied(const std::vector<Tensor>& views) {
  std::vector<Tensor> out;
  for (const Tensor& view : views) out.push_back(copied(view));
  return out;
}

UMBRA_OPERATOR("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, SymInt size, int64_t dim) {
      return each_copied(umbra::split(self, size, dim));
    })
    .linear()
    .tags({Tag::ViewCopy})
    .use(ListOut{.name = "split_copy.Tensor_out", .called = "split_copy_Tensor_out()", .resizes = false});
UMBRA_OPERATOR("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
      return each_copied(split_with_sizes(self, sizes, dim));
    })
    .linear()
    .tags({Tag::ViewCopy})
    .use(ListOut{.name = "split_with_sizes_copy.out", .called = "split_with_sizes_copy_out"});
UMBRA_OPERATOR("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, int64_t dim) { return each_copied(self.unbind(dim)); })
    .linear()
    .tags({Tag::ViewCopy})
    .use(ListOut{.name = "unbind_copy.int_out", .called = "unbind_copy_int_out"});

}  // namespace
}  // namespace umbra::ops
