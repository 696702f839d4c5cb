// Views of the same elements: alias, detach, conjugation, complex numbers as pairs.
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

Tensor same_geometry(const Tensor& self) {
  return alias_tensor(self, self.sym_sizes(), self.sym_strides(), self.sym_storage_offset());
}

UMBRA_OPERATOR("alias(Tensor(a) self) -> Tensor(a)")
    .view(same_geometry)
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written; })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::Core})
    .use(BatchInPlace{});

// Shares memory but not history, so it is no tracked view.
UMBRA_OPERATOR("detach(Tensor(a) self) -> Tensor(a)")
    .inplace("detach_")
    .on_inplace([](OperatorBuilder& variant) {
      // Autograd cuts the history off; there is nothing else to do, or to record.
      variant.all_backends([](const Tensor& self) { return self; }).unchanged([](const Tensor&) { return true; });
    })
    .view([](const Tensor& self) {
      Tensor out = same_geometry(self);
      out.impl()->remove_key(DispatchKey::Autograd);
      return out;
    })
    .sparse([](const Tensor& self) {
      Tensor out = same_geometry(self);  // and the same parts
      out.impl()->remove_key(DispatchKey::Autograd);
      return out;
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written; })
    .not_differentiable()
    .use(BatchInPlace{});

UMBRA_OPERATOR("_conj(Tensor(a) self) -> Tensor(a)")
    .view([](const Tensor& self) {
      check(self.is_complex(), "_conj: expected a complex tensor, but got one of type ", kernel_name(self.dtype()));
      Tensor out = same_geometry(self);
      out.impl()->set_conj(!self.is_conj());
      return out;
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written.conj(); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.conj(); })
    .linear()
    .tags({Tag::TakesNumbers})
    .use(BatchInPlace{});

UMBRA_OPERATOR("conj(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  if (self.is_complex() && is_sparse(self.layout())) return conj_physical(self);  // which has no lazy bits
  return self.is_complex() ? _conj(self) : self;
});

UMBRA_OPERATOR("_neg_view(Tensor(a) self) -> Tensor(a)")
    .view([](const Tensor& self) {
      check<NotImplementedError>(self.dtype() != DType::Bool || self.is_meta(),
                                 "\"neg_cpu\" not implemented for 'Bool'");
      Tensor out = same_geometry(self);
      out.impl()->set_neg(!self.is_neg());
      return out;
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written.neg(); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.neg(); })
    .linear()
    .use(BatchInPlace{});

UMBRA_OPERATOR("view_as_real(Tensor(a) self) -> Tensor(a)")
    .view([](const Tensor& self) {
      check<TypeError>(self.is_complex(), "view_as_real is only supported for complex tensors");
      check(!self.is_conj(),
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view "
            "it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original.");
      SymShape sizes(self.sym_sizes()), strides;
      for (SymInt s : self.sym_strides()) strides.push_back(s * 2);
      sizes.push_back(2);
      strides.push_back(1);
      Tensor out = alias_tensor(self, sizes, strides, self.sym_storage_offset() * 2);
      out.impl()->set_dtype(real_type(self.dtype()));
      return out;
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return view_as_complex(written.contiguous()); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return view_as_complex(grad.contiguous()); })
    .linear()
    .use(BatchInPlace{});

UMBRA_OPERATOR("view_as_complex(Tensor(a) self) -> Tensor(a)")
    .view([](const Tensor& self) {
      check<TypeError>(!self.is_complex(), "view_as_complex is not supported for complex tensors");
      check<NotImplementedError>(
          self.dtype() == DType::Float32 || self.dtype() == DType::Float64 || self.dtype() == DType::Float16,
          "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
          kernel_name(self.dtype()));
      check(self.dim() > 0, "Input tensor must have one or more dimensions");
      check(self.sym_sizes().back() == 2, "Tensor must have a last dimension of size 2");
      check(self.sym_strides().back() == 1, "Tensor must have a last dimension with stride 1");
      SymShape sizes(self.sym_sizes().drop_back()), strides;
      for (SymInt s : self.sym_strides().drop_back()) {
        check(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
        strides.push_back(s / 2);
      }
      check(self.sym_storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
      Tensor out = alias_tensor(self, sizes, strides, self.sym_storage_offset() / 2);
      out.impl()->set_dtype(complex_type(self.dtype()));
      return out;
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return view_as_real(written.resolve_conj()); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return view_as_real(grad.resolve_conj()); })
    .linear()
    .use(BatchInFront{});

UMBRA_OPERATOR("real(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  if (!self.is_complex()) return self;
  if (is_sparse(self.layout())) {
    check<NotImplementedError>(!self.requires_grad(), "the gradient of real of a sparse tensor is not in Umbra yet");
    return with_values(self, sparse_parts(self).values.real());
  }
  return view_as_real(self.is_conj() ? _conj(self) : self).select(self.dim(), 0);
});

UMBRA_OPERATOR("imag(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  check<TypeError>(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  if (is_sparse(self.layout())) {
    check<NotImplementedError>(!self.requires_grad(), "the gradient of imag of a sparse tensor is not in Umbra yet");
    return with_values(self, sparse_parts(self).values.imag());
  }
  if (self.is_conj()) return _neg_view(view_as_real(_conj(self)).select(self.dim(), 1));
  return view_as_real(self).select(self.dim(), 1);
});

UMBRA_OPERATOR("lift_fresh(Tensor(a) self) -> Tensor(a)")
    .all_backends([](const Tensor& self) { return self; })
    .functional_form("aten::lift_fresh_copy")
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::LiftsData})
    .use(BatchInPlace{});

UMBRA_OPERATOR("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
    .view([](const Tensor& self, DType dtype) {
      // The bytes are not those of its elements.
      check(!self.is_conj(),
            "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.");
      check(!self.is_neg(),
            "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different "
            "dtype.");
      int64_t from = self.item_size(), to = item_size(dtype);
      SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
      SymInt offset = self.sym_storage_offset();
      if (from != to) {
        check(self.dim() > 0, "self.dim() cannot be 0 to view ", kernel_name(self.dtype()), " as ", kernel_name(dtype),
              " (different element sizes)");
        check(strides.back() == 1, "self.stride(-1) must be 1 to view ", kernel_name(self.dtype()), " as ",
              kernel_name(dtype), " (different element sizes), but got ", strides.back());
        int64_t ratio = from > to ? from / to : to / from;
        auto scale = [&](SymInt v, const char* what) {
          if (from > to) return v * ratio;
          check(v % ratio == 0, what, " must be divisible by ", ratio, " to view ", kernel_name(self.dtype()), " as ",
                kernel_name(dtype), " (different element sizes), but got ", v);
          return v / ratio;
        };
        sizes.back() = scale(sizes.back(), "self.size(-1)");
        offset = scale(offset, "self.storage_offset()");
        for (int64_t d = 0; d + 1 < self.dim(); ++d)
          strides[d] = scale(strides[d], concat("self.stride(", d, ")").c_str());
      }
      Tensor out = alias_tensor(self, sizes, strides, offset);
      out.impl()->set_dtype(dtype);
      return out;
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, DType) { return written.view(base.dtype()); })
    .not_differentiable()
    .use(BatchInFront{});

}  // namespace
}  // namespace umbra::ops
