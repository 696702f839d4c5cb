// Questions about tensors that are operators too: what a program asks without reading data.
#include <algorithm>

#include "core/layout_asked.h"
#include "dispatch/data_dependent.h"
#include "ops/common/needs_data.h"
#include "ops/common/promotion.h"
#include "ops/view/contiguity.h"
#include "sym/layout_watch.h"
#include "sym/rely.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

SymBool contiguity(const Tensor& t) {
  if (t.is_contiguous()) return SymBool(true);
  SymBool fits(true);
  SymInt expected = 1;
  for (int64_t d = t.dim(); d-- > 0; expected *= t.sym_size(d))
    fits = sym_and(fits, sym_or(sym_eq(t.sym_size(d), 1), sym_eq(t.sym_stride(d), expected)));
  return sym_or(sym_eq(t.sym_numel(), 0), fits);
}

bool decide_contiguity(const Tensor& t) {
  SymIntArrayRef sizes = t.sym_sizes();
  SymInt count = t.sym_numel();
  if (count.has_hint() && count.hint() == 0) return count == 0;
  bool unknown = std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.has_hint(); });
  return unknown ? contiguity(t).guard_bool() : t.is_contiguous();
}

void rely_on_layout(const Tensor& t) {
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  // Numbers that are plain may be so only for the sizes that inputs are taken to have.
  if (watch && (t.is_fake() || watch->has_copies())) return watch->rely_on(t);
  if (!t.is_symbolic()) return;
  for (SymIntArrayRef numbers : {t.sym_sizes(), t.sym_strides()})
    for (SymInt number : numbers)
      if (number.is_symbolic())
        return sym::rely_on_sizes_above_one(static_cast<const sym::Expression*>(number.node())->env());
}

Tensor asked_view_base(const Tensor& t) {
  rely_on_layout(t);
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  return Tensor((watch ? watch->original(t) : t).impl()->view_base());
}

void rely_on_contiguity(const Tensor& t, bool contiguous) {
  // What is contiguous stays so for sizes of 0 and 1, but for what was copied and then is a view, and what rests on a
  // condition.
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  if (!contiguous || (watch && watch->in_doubt())) rely_on_layout(t);
}

namespace {

const bool g_asked = (layout_asked = rely_on_contiguity, true);

bool asked_contiguity(const Tensor& t, MemoryFormat format) {
  bool answer = t.is_contiguous(format);
  rely_on_contiguity(t, answer && format == MemoryFormat::Contiguous);
  return answer;
}

// ---- geometry ----

UMBRA_OPERATOR("dim(Tensor self) -> int").composite([](const Tensor& self) { return self.dim(); });
UMBRA_OPERATOR("numel(Tensor self) -> int").composite([](const Tensor& self) { return self.numel(); });
UMBRA_OPERATOR("size.int(Tensor self, int dim) -> int").composite([](const Tensor& self, int64_t dim) {
  return self.size(dim);
});
UMBRA_OPERATOR("stride.int(Tensor self, int dim) -> int").composite([](const Tensor& self, int64_t dim) {
  rely_on_layout(self);
  return self.stride(dim);
});
UMBRA_OPERATOR("storage_offset(Tensor self) -> int").composite([](const Tensor& self) {
  rely_on_layout(self);
  return self.storage_offset();
});
UMBRA_OPERATOR("is_contiguous(Tensor self) -> bool").composite([](const Tensor& self) {
  return asked_contiguity(self, MemoryFormat::Contiguous);
});
UMBRA_OPERATOR("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool")
    .composite([](const Tensor& self, MemoryFormat format) { return asked_contiguity(self, format); });
UMBRA_OPERATOR("sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool")
    .composite([](const Tensor& self, MemoryFormat format) { return SymBool(asked_contiguity(self, format)); })
    .tags({Tag::Core});

// 0: no two elements share memory, 1: some do, 2: not known.
UMBRA_OPERATOR("_debug_has_internal_overlap(Tensor self) -> int").composite([](const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) return int64_t{0};
  return overlaps_itself(self) ? int64_t{1} : int64_t{2};
});

// ---- kinds of tensors ----

UMBRA_OPERATOR("is_complex(Tensor self) -> bool").composite([](const Tensor& self) { return self.is_complex(); });
UMBRA_OPERATOR("is_floating_point(Tensor self) -> bool").composite([](const Tensor& self) {
  return self.is_floating_point();
});
UMBRA_OPERATOR("is_signed(Tensor self) -> bool").composite([](const Tensor& self) {
  DType t = self.dtype();
  bool unsigned_type = t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64 ||
                       t == DType::Bool || t == DType::Float8E8M0FNU;
  return !unsigned_type;
});
UMBRA_OPERATOR("is_conj(Tensor self) -> bool").composite([](const Tensor& self) { return self.is_conj(); });
UMBRA_OPERATOR("is_neg(Tensor self) -> bool").composite([](const Tensor& self) { return self.is_neg(); });
UMBRA_OPERATOR("is_leaf(Tensor self) -> bool").composite([](const Tensor& self) { return self.is_leaf(); });
UMBRA_OPERATOR("is_inference(Tensor self) -> bool").composite([](const Tensor& self) {
  return self.impl()->is_inference();
});
UMBRA_OPERATOR("_is_zerotensor(Tensor self) -> bool").composite([](const Tensor& self) {
  return is_marked_zero(self);
});
// No tensor is spread over machines or locked in memory here.
UMBRA_OPERATOR("is_distributed(Tensor self) -> bool").composite([](const Tensor&) { return false; });
UMBRA_OPERATOR("is_pinned(Tensor self, Device? device=None) -> bool")
    .all_backends([](const Tensor&, std::optional<Device>) { return false; })
    .not_differentiable();
UMBRA_OPERATOR("get_device(Tensor self) -> int").composite([](const Tensor& self) {
  return static_cast<int64_t>(self.device().type == DeviceType::CPU ? -1 : self.device().index);
});
UMBRA_OPERATOR("is_nonzero(Tensor self) -> bool").composite([](const Tensor& self) {
  SymInt count = self.sym_numel();
  check(count != 0, "Boolean value of Tensor with no values is ambiguous");
  check(count == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return self.item().to_bool();
});

// ---- two tensors ----

UMBRA_OPERATOR("is_set_to(Tensor self, Tensor tensor) -> bool")
    .all_backends([](const Tensor& self, const Tensor& other) {
      rely_on_layout(self);
      return self.storage() == other.storage() && self.sym_storage_offset().same(other.sym_storage_offset()) &&
             self.sym_sizes() == other.sym_sizes() && self.sym_strides() == other.sym_strides();
    })
    .not_differentiable()
    .use(NeedsData{});
UMBRA_OPERATOR("_has_same_storage_numel(Tensor self, Tensor other) -> bool")
    .all_backends([](const Tensor& self, const Tensor& other) {
      return self.storage()->bytes() / self.item_size() == other.storage()->bytes() / other.item_size();
    })
    .not_differentiable();
UMBRA_OPERATOR("_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool")
    .composite([](const Tensor& self, const Tensor& from) {
      return self.is_meta() == from.is_meta() && self.layout() == from.layout();
    });

// ---- types ----

UMBRA_OPERATOR("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType")
    .composite([](const Tensor& a, const Tensor& b) { return ResultType().add(a).add(b).get(); });
UMBRA_OPERATOR("result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType")
    .composite([](const Tensor& a, const Scalar& b) { return ResultType().add(a).add(b).get(); });
UMBRA_OPERATOR("result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType")
    .composite([](const Scalar& a, const Tensor& b) { return ResultType().add(a).add(b).get(); });
UMBRA_OPERATOR("result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType")
    .all_backends([](const Scalar& a, const Scalar& b) { return ResultType().add(a).add(b).get(); })
    .not_differentiable();
UMBRA_OPERATOR("promote_types(ScalarType type1, ScalarType type2) -> ScalarType")
    .all_backends([](DType a, DType b) { return umbra::promote_types(a, b); })
    .not_differentiable();
UMBRA_OPERATOR("can_cast(ScalarType from_, ScalarType to) -> bool")
    .all_backends([](DType from, DType to) { return umbra::can_cast(from, to); })
    .not_differentiable();

}  // namespace
}  // namespace umbra::ops
