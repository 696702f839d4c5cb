// Copies and casts: clone, copy_, to, contiguous, fill_.
#include "kernels/copy.h"

#include <atomic>

#include "dispatch/data_dependent.h"
#include "dispatch/layers.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/run_functor.h"
#include "ops/common/batching.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "sym/layout_watch.h"
#include "umbra/core/sparse.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void negate_in_place(const Tensor& t) { kernels::pointwise(functors::Negative{}, t, {&t}); }

// A copy that carries out lazy conjugation and negation on both sides.
void copy_values(const Tensor& out, const Tensor& in) {
  check<NotImplementedError>(in.storage()->has_data(), "Cannot copy out of meta tensor; no data!");
  static std::atomic<bool> warned = false;
  if (is_complex(in.dtype()) && !is_complex(out.dtype()) && out.dtype() != DType::Bool && tells_once(warned))
    warn("Casting complex values to real discards the imaginary part");
  bool conjugate = in.is_conj() != out.is_conj(), negate = in.is_neg() != out.is_neg();
  if (conjugate && is_complex(out.dtype())) kernels::copy_conjugated(out, in);
  else kernels::copy(out, in);
  if (negate && out.dtype() != DType::Bool) negate_in_place(out);
}

UMBRA_OPERATOR("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("clone.out")
    .meta([](const Tensor& self, OptionalFormat format) {
      return spec_like(self, {}, {}, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalFormat) { copy_values(out, self); })
    .sparse([](const Tensor& self, OptionalFormat format) {
      check(format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve, "unsupported memory format option ",
            to_string(format.value_or(MemoryFormat::Preserve)));
      SparseParts parts = sparse_parts(self);
      parts.indices = parts.indices.clone();
      if (parts.compressed.defined()) parts.compressed = parts.compressed.clone();
      parts.values = parts.values.clone();
      return make_sparse(self.layout(), self.sym_sizes(), std::move(parts));
    })
    .reads_lazy_bits()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::Core, Tag::Pointwise, Tag::CheapToRepeat})
    .use(BatchInPlace{.in_rows = true});

/// The elements of another tensor of the same layout.
Tensor copy_sparse(const Tensor& self, const Tensor& src, bool) {
  auto type_name = [](const Tensor& t) {
    return concat(t.layout() == Layout::Strided ? "torch." : "torch.sparse.", kernel_name(t.dtype()), "Tensor");
  };
  check((self.layout() == Layout::Strided) == (src.layout() == Layout::Strided),
        "copy_() between dense and sparse Tensors is not implemented! Found self type = ", type_name(self),
        " and src type = ", type_name(src));
  check(self.layout() == src.layout(), "copy of sparse compressed tensors having different layouts is not supported.",
        " self layout is ", short_name(self.layout()), " and src layout is ", short_name(src.layout()));
  check(self.sizes() == src.sizes(), "torch.copy_: only same size tensors are supported.");
  check(!is_compressed(self.layout()) || sparse_parts(self).values.size(0) == sparse_parts(src).values.size(0),
        "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported.");
  return src.to(self.dtype(), false, true);
}

// The contents of `src` in the shape, layout and type of `self`.
UMBRA_OPERATOR("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
    .generated_out("copy.out")
    .inplace("copy_")
    .meta([](const Tensor& self, const Tensor& src, bool) {
      check<NotImplementedError>(!only_metadata_is_asked() || self.is_meta() || !src.is_meta(),
                                 "Cannot copy out of meta tensor; no data!");
      SymShape shape = broadcast_shapes(self.sym_sizes(), src.sym_sizes());
      if (!(SymIntArrayRef(shape) == self.sym_sizes()))
        fail("output with shape ", to_string(self.sym_sizes()), " doesn't match the broadcast shape ",
             to_string(SymIntArrayRef(shape)));
      return TensorSpec(self.sym_sizes(), strides_with_gaps(self), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor&, const Tensor& src, bool) { copy_values(out, src); })
    .sparse(copy_sparse)
    .elementwise()
    .reads_lazy_bits()
    // Only copy_ has a derivative, as in PyTorch: `copy` is what functionalisation records, below autograd.
    .on_inplace([](OperatorBuilder& variant) {
      variant.gradient("src", {"grad"}, [](const Tensor& grad) { return grad; })
          .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
          .linear()
          .node("CopyBackwards")
          .batch([](const Batched& self, const Batched& src, bool non_blocking) {
            batch_first(self).copy_(batch_first(src, self.rank()), non_blocking);
            return self;
          });
    })
    .tags({Tag::Core, Tag::TakesNumbers})
    .batch([](const Batched& self, const Batched& src, bool non_blocking) {
      return Batched(copy(batch_all(self), batch_first(src, self.rank()), non_blocking), 0);
    });

UMBRA_OPERATOR(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool, bool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool, bool,
            OptionalFormat) { copy_values(out, self); })
    .sparse([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               bool, OptionalFormat) {
      check(!layout || *layout == self.layout(),
            "to(options) doesn't support converting to a different layout, but got ", "self.layout being ",
            short_name(self.layout()), " and options.layout set as ", short_name(layout.value_or(self.layout())));
      if (device && device->type == DeviceType::Meta && !self.is_meta())  // how many elements there are is data
        return sparse::without_elements_like(self, dtype, device);
      SparseParts parts = sparse_parts(self);
      for (Tensor* part : {&parts.indices, &parts.compressed})
        if (part->defined()) *part = part->to({.device = device}, false, true);
      parts.values = parts.values.to({.dtype = dtype, .device = device}, false, true);
      return make_sparse(self.layout(), self.sym_sizes(), std::move(parts));
    })
    .reads_lazy_bits()
    .gradient("self", {"grad", "self.dtype", "self.device"},
              [](const Tensor& grad, DType dtype, Device device) {
                Tensor own = is_complex(grad.dtype()) && !is_complex(dtype) ? real(grad) : grad;
                return own.dtype() == dtype && own.device() == device
                           ? own
                           : _to_copy(own, {.dtype = dtype, .device = device});
              })
    .linear()
    .tags({Tag::Core, Tag::CheapToRepeat, Tag::TakesNumbers})
    .use(BatchInPlace{});

UMBRA_OPERATOR("fill.Scalar(Tensor self, Scalar value) -> Tensor")
    .generated_out("fill.Scalar_out")
    .inplace("fill_.Scalar")
    .meta([](const Tensor& self, const Scalar&) { return spec_like(self); })
    .cpu([](const Tensor& out, const Tensor&, const Scalar& value) { kernels::fill(out, value); })
    .sparse([](const Tensor& self, const Scalar& value) {  // the elements that are there
      check<NotImplementedError>(is_compressed(self.layout()),
                                 "Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend");
      return with_values(self, full_like(sparse_parts(self).values, value));
    })
    .elementwise()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .on_inplace([](OperatorBuilder& variant) { variant.node("FillBackward2"); })
    .tags({Tag::Core, Tag::WritesOverlapping, Tag::WritesOneValue});

UMBRA_OPERATOR("fill.Tensor(Tensor self, Tensor value) -> Tensor")
    .generated_out("fill.Tensor_out")
    .inplace("fill_.Tensor")
    .meta([](const Tensor& self, const Tensor& value) {
      check(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
            " dimensions.");
      common_device({&self, &value});
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, const Tensor& value) { kernels::copy(out, value); })
    .elementwise()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .gradient("value", {"grad"}, [](const Tensor& grad) { return grad.sum(); })
    .linear()
    .node("FillBackward1")
    .on_inplace([](OperatorBuilder& variant) { variant.node("FillBackward3"); })
    .batch([](const Batched& self, const Batched& value) {
      check(value.rank() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.rank(),
            " dimensions.");
      Tensor all = batch_all(self), filled = batch_first(value, self.rank()).expand(all.sym_sizes());
      return Batched(filled.dtype() == all.dtype() ? filled.clone() : filled.to(all.dtype()), 0);
    });

UMBRA_OPERATOR("zero(Tensor self) -> Tensor")
    .generated_out("zero.out")
    .inplace("zero_")
    .meta([](const Tensor& self) { return spec_like(self); })
    .cpu([](const Tensor& out, const Tensor&) { kernels::fill(out, 0); })
    .elementwise()
    .sparse([](const Tensor& self) { return sparse::without_elements_like(self); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .linear()
    .tags({Tag::Generated, Tag::WritesOverlapping, Tag::WritesOneValue});

// The type and device of the output take the place of those arguments.
UMBRA_OPERATOR(
    "_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
    "Tensor(a!)")
    .all_backends([](const Tensor& self, bool non_blocking, OptionalFormat, const Tensor& out) {
      check(self.is_fake() || out.is_fake() || self.is_meta() == out.is_meta(), "Attempting to copy from device ",
            self.device(), " to device ", out.device(), ", but cross-device copies are not allowed!");
      if (!(out.sym_sizes() == self.sym_sizes())) out.resize_(self.sym_sizes());
      return out.copy_(self, non_blocking);
    })
    .not_differentiable()
    .tags({Tag::Generated, Tag::Out});

// ---- to: a copy only where something changes ----

bool already(const Tensor& self, DType dtype, Device device, bool copy, OptionalFormat format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  bool fits = wanted == MemoryFormat::Preserve || self.suggested_format() == wanted;
  bool same_device = self.device().type == device.type && (device.index < 0 || device.index == self.device().index);
  return self.dtype() == dtype && same_device && !copy && fits;
}

Tensor convert(const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin,
               bool non_blocking, bool copy, OptionalFormat format) {
  if (already(self, dtype.value_or(self.dtype()), device.value_or(self.device()), copy, format)) return self;
  Tensor out =
      _to_copy(self, {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin}, non_blocking, format);
  return out.dtype() == self.dtype() && !copy ? sym::with_noted_copy(self, std::move(out), sym::CopyIs::Contiguous)
                                              : out;
}

UMBRA_OPERATOR(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
    .composite(convert)
    .tags({Tag::ConvertsType, Tag::TakesNumbers});

UMBRA_OPERATOR(
    "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)")
    .composite([](const Tensor& self, Device device, DType dtype, bool non_blocking, bool copy, OptionalFormat format) {
      return convert(self, dtype, {}, device, {}, non_blocking, copy, format);
    })
    .tags({Tag::ConvertsType, Tag::TakesNumbers});

UMBRA_OPERATOR(
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)")
    .composite([](const Tensor& self, DType dtype, bool non_blocking, bool copy, OptionalFormat format) {
      return convert(self, dtype, {}, {}, {}, non_blocking, copy, format);
    })
    .tags({Tag::ConvertsType, Tag::TakesNumbers});

UMBRA_OPERATOR(
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)")
    .composite([](const Tensor& self, const Tensor& other, bool non_blocking, bool copy, OptionalFormat format) {
      return convert(self, other.dtype(), {}, other.device(), {}, non_blocking, copy, format);
    })
    .tags({Tag::TakesNumbers});

UMBRA_OPERATOR("type_as(Tensor self, Tensor other) -> Tensor").composite([](const Tensor& self, const Tensor& other) {
  return convert(self, other.dtype(), {}, other.device(), {}, false, false, {});
});

bool contiguous_is_a_call(const Tensor& self) {
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  return watch && watch->records_contiguous(self);
}

/// What contiguous() gives of a contiguous tensor. Where it may have to copy in another run, there are two tensors.
Tensor as_it_is(const Tensor& self) {
  if (!contiguous_is_a_call(self)) return sym::with_noted_sharing(self, self);
  Tensor same = alias(self);
  sym::LayoutWatch::current()->note_same(same, self);
  return same;
}

UMBRA_OPERATOR("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
    .composite([](const Tensor& self, MemoryFormat format) {
      if (format == MemoryFormat::Preserve && self.is_contiguous()) return self;
      check(format != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
      if (!self.is_contiguous(format)) return sym::with_noted_copy(self, self.clone(format), sym::CopyIs::Contiguous);
      return as_it_is(self);
    })
    .unchanged([](const Tensor& self, MemoryFormat format) {
      return self.is_contiguous(format) && !contiguous_is_a_call(self);
    });

UMBRA_OPERATOR("resolve_conj(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  return self.is_conj() ? self.clone() : self;
});

UMBRA_OPERATOR("resolve_neg(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  return self.is_neg() ? self.clone() : self;
});

// ---- reading one number ----

Scalar read_element(const Tensor& self) {
  check(self.numel() > 0, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  DType wide = is_complex(self.dtype())                                       ? DType::Complex128
               : is_floating(self.dtype())                                    ? DType::Float64
               : self.dtype() == DType::Bool || self.dtype() == DType::UInt64 ? self.dtype()
                                                                              : DType::Int64;
  Tensor one = self;
  if (self.dtype() != wide || self.is_conj() || self.is_neg() || self.device() != Device()) {
    one = allocate_tensor({}, {}, wide, Device());
    copy_values(one, alias_tensor(self, {}, {}, self.sym_storage_offset()));
  }
  switch (wide) {
    case DType::Complex128: return *one.data<std::complex<double>>();
    case DType::Float64: return *one.data<double>();
    case DType::Bool: return *one.data<bool>();
    case DType::UInt64: return *one.data<uint64_t>();
    default: return *one.data<int64_t>();
  }
}

UMBRA_OPERATOR("_local_scalar_dense(Tensor self) -> Scalar")
    .real(read_element)
    .fake([](const Tensor& self) {
      check(!self.is_meta() || self.is_fake(), "Tensor.item() cannot be called on meta tensors");
      return unknown_element("aten::_local_scalar_dense", self);
    })
    .sparse([](const Tensor& self) { return sparse_parts(self).values.sum().item(); })
    .reads_lazy_bits()
    .not_differentiable()
    .tags({Tag::Core, Tag::DataDependentOutput});

UMBRA_OPERATOR("item(Tensor self) -> Scalar")
    .composite([](const Tensor& self) {
      check(expect_equal(self.sym_numel(), 1), "a Tensor with ", self.sym_numel(),
            " elements cannot be converted to Scalar");
      check(!self.is_meta() || self.is_fake(), "Tensor.item() cannot be called on meta tensors");
      return _local_scalar_dense(self);
    })
    .tags({Tag::DataDependentOutput});

}  // namespace
}  // namespace umbra::ops
