// Largest and smallest elements, their positions, any and all.
#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "kernels/reductions.h"
#include "ops/common/alias.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/scatter_back.h"
#include "ops/common/share_evenly.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/sparse/reduce.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;
using OptionalInt = std::optional<int64_t>;

void check_not_empty(const char* name, const Tensor& self, uint64_t mask) {
  for (int64_t d = 0; d < self.dim(); ++d)
    if ((mask >> d & 1) && self.sym_sizes()[d].same(0))
      fail<IndexError>(name, "(): Expected reduction dim ", d, " to have non-zero size.");
}
/// The meta device says less.
void check_not_empty_on_meta(const Tensor& self, uint64_t mask) {
  for (int64_t d = 0; only_metadata_is_asked() && d < self.dim(); ++d)
    check(!(mask >> d & 1) || !self.sym_sizes()[d].same(0),
          "reducing over zero-size dimension for reduction operation without identity");
}
void check_ordered(const char* kernel, const Tensor& self) {
  DType type = self.dtype();
  check_kernel_type(!is_complex(type) && !is_float8(type) && !is_wide_unsigned(type), kernel, self);
}
bool is_empty(const Tensor& self) { return !self.sym_numel().is_symbolic() && self.sym_numel().value() == 0; }
void check_any_elements(const char* name, const Tensor& self) {
  if (is_empty(self))
    fail(name,
         "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
         "argument.");
}

// A gradient goes to all elements that attain the extreme, in equal parts.
Tensor share_among_equals(const Tensor& grad, const Tensor& self, const Tensor& result, const OptionalDims& dims,
                          bool keepdim) {
  Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim),
         r = restore_dims(result, self.sym_sizes(), dims, keepdim);
  Tensor equal = r.eq(self);
  Tensor count = dims && !dims->empty() ? equal.sum(IntArrayRef(*dims), true) : equal.sum();
  return g.mul(equal).div(count);
}

// What amax and amin share; the names differ in their messages.
TensorSpec extreme_spec(const char* name, const char* kernel, const Tensor& self, const Ints& dims, bool keepdim) {
  if (dims.empty()) check_any_elements(name, self);
  for (int64_t dim : dims) wrap_dim(dim, self.dim());  // all of them before one is found twice
  uint64_t mask = dim_mask(dims, self.dim());
  check_not_empty_on_meta(self, mask);
  check_not_empty(name, self, mask);
  if (!is_empty(self)) check_ordered(kernel, self);
  return reduced_spec(self, mask, keepdim, self.dtype());
}
Tensor extreme_gradient(const Tensor& grad, const Tensor& self, const Tensor& result, Ints dims, bool keepdim) {
  return share_among_equals(grad, self, result, dims, keepdim);
}

void check_extreme_out(const Tensor& self, const Tensor& out) {
  check(self.dtype() == out.dtype(), "Expected the dtype for input and out to match, but got ",
        kernel_name(self.dtype()), " for input's dtype and ", kernel_name(out.dtype()), " for out's dtype.");
}

UMBRA_OPERATOR("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
    .out("amax.out")
    .use(out_asks("amax.out", [](const Tensor& self, Ints, bool, const Tensor& out) { check_extreme_out(self, out); }))
    .meta([](const Tensor& self, Ints dims, bool keepdim) {
      return extreme_spec("amax", "max_values_cpu", self, dims, keepdim);
    })
    .cpu([](const Tensor& out, const Tensor& self, Ints dims, bool) {
      kernels::amax(out, self, masked_dims(dim_mask(dims, self.dim())));
    })
    .gradient("self", {"grad", "self", "result", "dim", "keepdim"}, extreme_gradient)
    .tags({Tag::Core, Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
    .out("amin.out")
    .use(out_asks("amin.out", [](const Tensor& self, Ints, bool, const Tensor& out) { check_extreme_out(self, out); }))
    .meta([](const Tensor& self, Ints dims, bool keepdim) {
      return extreme_spec("amin", "min_values_cpu", self, dims, keepdim);
    })
    .cpu([](const Tensor& out, const Tensor& self, Ints dims, bool) {
      kernels::amin(out, self, masked_dims(dim_mask(dims, self.dim())));
    })
    .gradient("self", {"grad", "self", "result", "dim", "keepdim"}, extreme_gradient)
    .tags({Tag::Core, Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .empty_is_all = true, .scalars = true});

void check_castable(const Tensor& self, const Tensor& out) {
  check(only_metadata_is_asked() || can_cast(self.dtype(), out.dtype()),
        "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but got ",
        "false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)");
}

/// Of all elements; the meta device does not ask whether there are any.
TensorSpec whole_extreme_spec(const char* name, const char* kernel, const Tensor& self) {
  if (!only_metadata_is_asked()) check_any_elements(name, self);
  check_ordered(kernel, self);
  return TensorSpec({}, self.dtype(), self.device());
}

UMBRA_OPERATOR("max(Tensor self) -> Tensor")
    .out("max.unary_out")
    .use(out_asks("max.unary_out", check_castable))
    .meta([](const Tensor& self) { return whole_extreme_spec("max", "max_all", self); })
    .cpu([](const Tensor& out, const Tensor& self) { kernels::amax(out, self, masked_dims(all_dims(self))); })
    .gradient("self", {"grad", "self", "result"}, share_evenly)
    .node("MaxBackward1")
    .tags({Tag::Reduction, Tag::CastsToOut})
    .batch([](const Batched& self) { return Batched(batch_flat(self).amax({1}), 0); });

UMBRA_OPERATOR("min(Tensor self) -> Tensor")
    .out("min.unary_out")
    .use(out_asks("min.unary_out", check_castable))
    .meta([](const Tensor& self) { return whole_extreme_spec("min", "min_all", self); })
    .cpu([](const Tensor& out, const Tensor& self) { kernels::amin(out, self, masked_dims(all_dims(self))); })
    .gradient("self", {"grad", "self", "result"}, share_evenly)
    .node("MinBackward1")
    .tags({Tag::Reduction, Tag::CastsToOut})
    .batch([](const Batched& self) { return Batched(batch_flat(self).amin({1}), 0); });

// ---- both at once ----

using Both = std::tuple<TensorSpec, TensorSpec>;

Both both_specs(const Tensor& self, OptionalInt dim, bool keepdim) {
  check<TypeError>(!self.is_complex(), "aminmax not implemented for ", kernel_name(self.dtype()));
  uint64_t mask = all_dims(self);
  if (dim) {
    int64_t at = wrap_dim(*dim, self.dim());
    mask = self.dim() == 0 ? 0 : uint64_t{1} << at;
    check_not_empty_on_meta(self, mask);
    if (self.dim() > 0 && self.sym_sizes()[at].same(0))
      fail<IndexError>("aminmax: Expected reduction dim ", at, " to have non-zero size.");
  } else {
    check(self.sym_numel().is_symbolic() || self.sym_numel().value() != 0,
          "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  }
  TensorSpec spec = reduced_spec(self, mask, keepdim, self.dtype());
  return {spec, spec};
}
void run_both(const Tensor& low, const Tensor& high, const Tensor& self, OptionalInt dim) {
  check_ordered("aminmax_cpu", self);
  uint64_t mask = !dim ? all_dims(self) : self.dim() == 0 ? 0 : uint64_t{1} << wrap_dim(*dim, self.dim());
  kernels::amin(low, self, masked_dims(mask));
  kernels::amax(high, self, masked_dims(mask));
}
std::tuple<Tensor, Tensor> both_by_parts(const Tensor& self, OptionalInt dim, bool keepdim) {
  if (dim) return {self.amin({*dim}, keepdim), self.amax({*dim}, keepdim)};
  return {self.amin({}, keepdim), self.amax({}, keepdim)};
}

/// Whether two dense tensors lie on common memory.
bool share_elements(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.storage() != b.storage()) return false;
  SymInt start = a.sym_storage_offset(), other = b.sym_storage_offset();
  if (start.is_symbolic() || other.is_symbolic()) return false;
  return start < other + b.sym_numel() && other < start + a.sym_numel();
}

UMBRA_OPERATOR("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
    .out("aminmax.out", {"min", "max"})
    .use(out_asks("aminmax.out",
                  [](const Tensor& self, OptionalInt, bool, const Tensor& low, const Tensor& high) {
                    for (const Tensor* out : {&low, &high})
                      if (!self.is_complex()) check_out_dtype(self.dtype(), out->dtype());
                    check<ValueError>(!share_elements(low, high),
                                      "aminmax(): the `min` and `max` out= tensors must not overlap.");
                  }))
    .meta(both_specs)
    .cpu<2>([](const Tensor& low, const Tensor& high, const Tensor& self, OptionalInt dim, bool) {
      run_both(low, high, self, dim);
    })
    .gradient("self", {"grad0", "grad1", "self", "result0", "result1", "dim", "keepdim"},
              [](const Tensor& grad_low, const Tensor& grad_high, const Tensor& self, const Tensor& low,
                 const Tensor& high, OptionalInt dim, bool keepdim) {
                OptionalDims dims = dim ? OptionalDims(Ints{*dim}) : std::nullopt;
                Tensor from_low, from_high;
                if (grad_low.defined()) from_low = share_among_equals(grad_low, self, low, dims, keepdim);
                if (grad_high.defined()) from_high = share_among_equals(grad_high, self, high, dims, keepdim);
                if (!from_low.defined()) return from_high;
                return from_high.defined() ? from_low.add(from_high) : from_low;
              })
    .tags({Tag::Reduction})
    .use(batch_through(both_by_parts));

UMBRA_OPERATOR("_aminmax(Tensor self) -> (Tensor, Tensor)")
    .generated_out("_aminmax.out", {"out0", "out1"})
    .meta([](const Tensor& self) { return both_specs(self, std::nullopt, false); })
    .cpu<2>([](const Tensor& low, const Tensor& high, const Tensor& self) { run_both(low, high, self, std::nullopt); })
    .use(batch_through([](const Tensor& self) { return both_by_parts(self, std::nullopt, false); }))
    .use(NeedsData{});
UMBRA_OPERATOR("_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)")
    .generated_out("_aminmax.dim_out", {"out0", "out1"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim) { return both_specs(self, dim, keepdim); })
    .cpu<2>([](const Tensor& low, const Tensor& high, const Tensor& self, int64_t dim, bool) {
      run_both(low, high, self, dim);
    })
    .use(batch_through([](const Tensor& self, int64_t dim, bool keepdim) { return both_by_parts(self, dim, keepdim); }))
    .use(NeedsData{});

// ---- with positions ----

uint64_t one_dim(const Tensor& self, int64_t dim) {
  return self.dim() == 0 ? (wrap_dim(dim, 0), 0) : uint64_t{1} << wrap_dim(dim, self.dim());
}

void check_real(const char* name, const Tensor& self) {
  check<TypeError>(!self.is_complex(), name, "(): does not support complex input");
}

std::tuple<TensorSpec, TensorSpec> indexed_specs(const char* name, const Tensor& self, int64_t dim, bool keepdim) {
  uint64_t mask = one_dim(self, dim);
  if (!only_metadata_is_asked()) {
    check_not_empty(name, self, mask);
    check_real(name, self);
  }
  return {reduced_spec(self, mask, keepdim, self.dtype()), reduced_spec(self, mask, keepdim, DType::Int64)};
}

UMBRA_OPERATOR("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("max.dim_max", {"max", "max_values"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim) { return indexed_specs("max", self, dim, keepdim); })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
      kernels::max_with_index(values, indices, self, wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .tags({Tag::Reduction, Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("min.dim_min", {"min", "min_indices"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim) { return indexed_specs("min", self, dim, keepdim); })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
      kernels::min_with_index(values, indices, self, wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .tags({Tag::Reduction, Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("max.other(Tensor self, Tensor other) -> Tensor")
    .out("max.out")
    .use(AliasOf{"maximum"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("min.other(Tensor self, Tensor other) -> Tensor")
    .out("min.out")
    .use(AliasOf{"minimum"})
    .tags({Tag::Pointwise});

TensorSpec position_spec(const char* name, const Tensor& self, OptionalInt dim, bool keepdim) {
  if (dim && only_metadata_is_asked()) one_dim(self, *dim);
  check_real(name, self);
  check<NotImplementedError>(self.dtype() != DType::Bool, name, "(): does not support bool input");
  if (!dim) {
    if (is_empty(self)) fail<IndexError>(name, "(): Expected reduction dim to be specified for input.numel() == 0.");
    return reduced_spec(self, all_dims(self), keepdim, DType::Int64);
  }
  uint64_t mask = one_dim(self, *dim);
  check_not_empty(name, self, mask);
  return reduced_spec(self, mask, keepdim, DType::Int64);
}
OptionalInt wrapped(const Tensor& self, OptionalInt dim) {
  return dim ? OptionalInt(wrap_dim(*dim, self.dim())) : std::nullopt;
}

template <class F> Batched batch_position(const Batched& self, OptionalInt dim, bool keepdim, F position) {
  if (dim && self.rank() > 0) return {position(batch_first(self), wrap_dim(*dim, self.rank()) + 1, keepdim), 0};
  if (dim) wrap_dim(*dim, 0);
  Tensor found = position(batch_flat(self), 1, false);
  if (!keepdim) return {found, 0};
  SymShape sizes{found.sym_sizes()[0]};
  for (int64_t d = 0; d < self.rank(); ++d) sizes.push_back(1);
  return {found.view(sizes), 0};
}

UMBRA_OPERATOR("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
    .out("argmax.out")
    .meta([](const Tensor& self, OptionalInt dim, bool keepdim) { return position_spec("argmax", self, dim, keepdim); })
    .cpu([](const Tensor& out, const Tensor& self, OptionalInt dim, bool) {
      kernels::argmax(out, self, wrapped(self, dim));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::Core})
    .batch([](const Batched& self, OptionalInt dim, bool keepdim) {
      return batch_position(self, dim, keepdim,
                            [](const Tensor& t, int64_t at, bool keep) { return t.argmax(at, keep); });
    });

UMBRA_OPERATOR("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
    .out("argmin.out")
    .meta([](const Tensor& self, OptionalInt dim, bool keepdim) { return position_spec("argmin", self, dim, keepdim); })
    .cpu([](const Tensor& out, const Tensor& self, OptionalInt dim, bool) {
      kernels::argmin(out, self, wrapped(self, dim));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::Core})
    .batch([](const Batched& self, OptionalInt dim, bool keepdim) {
      return batch_position(self, dim, keepdim,
                            [](const Tensor& t, int64_t at, bool keep) { return t.argmin(at, keep); });
    });

// ---- any and all; of bytes the result is bytes ----

/// An output that is given may be of either type, whatever the argument's is; on the meta device of the result's alone.
DType truth_dtype(const Tensor& self) {
  bool of_bytes = self.dtype() == DType::UInt8 && (!outputs_are_given() || only_metadata_is_asked());
  return of_bytes ? DType::UInt8 : DType::Bool;
}

/// Into bytes elements count as bytes, as in PyTorch: 0.5 and 256 are 0 there. One element alone counts as it is.
void ask_truth(const void* context, SpecList&, Value* frame) {
  const Operator& op = *static_cast<const Operator*>(context);
  const Tensor &self = frame[0].tensor_ref(), &out = frame[op.functional()->argument_count()].tensor_ref();
  check(out.dtype() == DType::Bool || out.dtype() == DType::UInt8, op.schema().name,
        " only supports bool tensor for result, got: ", kernel_name(out.dtype()));
  if (self.is_meta()) return check_out_dtype(truth_dtype(self), out.dtype());
  bool as_bytes = out.dtype() == DType::UInt8 && self.dtype() != DType::UInt8;
  if (as_bytes && self.sym_numel() != SymInt(1)) frame[0] = Value(self.to(DType::UInt8));
}

/// The out variant of that name. Stands behind the variant.
/// All dimensions are looked for before one is found twice.
uint64_t truth_dims(const Tensor& self, const OptionalDims& dims) {
  if (!dims) return all_dims(self);
  for (int64_t d : *dims) wrap_dim(d, self.dim());
  return dim_mask(*dims, self.dim(), false);
}

struct TruthOut {
  const char* variant;
  void operator()(OperatorBuilder& builder) const {
    Operator& out = out_variant(builder.op(), variant);
    out.mutable_definition().meta = {ask_truth, &out, nullptr};
  }
};

UMBRA_OPERATOR("any(Tensor self) -> Tensor")
    .out("any.all_out")
    .use(TruthOut{"any.all_out"})
    .meta([](const Tensor& self) { return TensorSpec({}, truth_dtype(self), self.device()); })
    .cpu([](const Tensor& out, const Tensor& self) { kernels::any(out, self, masked_dims(all_dims(self))); })
    .sparse(sparse::any)
    .not_differentiable()
    .tags({Tag::Reduction, Tag::Core, Tag::CastsToOut})
    .batch([](const Batched& self) { return Batched(batch_flat(self).any(1), 0); });
UMBRA_OPERATOR("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .out("any.out")
    .use(TruthOut{"any.out"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim) {
      return reduced_spec(self, one_dim(self, dim), keepdim, truth_dtype(self));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool) {
      kernels::any(out, self, masked_dims(one_dim(self, dim)));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::Core, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});
UMBRA_OPERATOR("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .out("any.dims_out")
    .use(TruthOut{"any.dims_out"})
    .meta([](const Tensor& self, OptionalDims dims, bool keepdim) {
      return reduced_spec(self, truth_dims(self, dims), keepdim, truth_dtype(self));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, bool) {
      kernels::any(out, self, masked_dims(truth_dims(self, dims)));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::Core, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .scalars = true});
UMBRA_OPERATOR("all(Tensor self) -> Tensor")
    .out("all.all_out")
    .use(TruthOut{"all.all_out"})
    .meta([](const Tensor& self) { return TensorSpec({}, truth_dtype(self), self.device()); })
    .cpu([](const Tensor& out, const Tensor& self) { kernels::all(out, self, masked_dims(all_dims(self))); })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::CastsToOut})
    .batch([](const Batched& self) { return Batched(batch_flat(self).all(1), 0); });
UMBRA_OPERATOR("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .out("all.out")
    .use(TruthOut{"all.out"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim) {
      return reduced_spec(self, one_dim(self, dim), keepdim, truth_dtype(self));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool) {
      kernels::all(out, self, masked_dims(one_dim(self, dim)));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});
UMBRA_OPERATOR("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .out("all.dims_out")
    .use(TruthOut{"all.dims_out"})
    .meta([](const Tensor& self, OptionalDims dims, bool keepdim) {
      return reduced_spec(self, truth_dims(self, dims), keepdim, truth_dtype(self));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, bool) {
      kernels::all(out, self, masked_dims(truth_dims(self, dims)));
    })
    .not_differentiable()
    .tags({Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .scalars = true});

UMBRA_OPERATOR("equal(Tensor self, Tensor other) -> bool")
    .real([](const Tensor& self, const Tensor& other) {
      if (!(self.sym_sizes() == other.sym_sizes())) return false;
      bool in_one_pass = self.dtype() == other.dtype() && !(is_floating(self.dtype()) && self.item_size() == 1);
      for (const Tensor* t : {&self, &other})
        in_one_pass = in_one_pass && values_alone(*t) && t->is_contiguous() && !t->is_conj() && !t->is_neg();
      return in_one_pass ? kernels::all_equal(self, other) : self.eq(other).all().item().to_bool();
    })
    .not_differentiable()
    .tags({Tag::Pointwise, Tag::DataDependentOutput})
    .use(NeedsData{});

UMBRA_OPERATOR("is_same_size(Tensor self, Tensor other) -> bool")
    .all_backends([](const Tensor& self, const Tensor& other) { return self.sym_sizes() == other.sym_sizes(); })
    .sparse([](const Tensor& self, const Tensor& other) { return self.sym_sizes() == other.sym_sizes(); })
    .not_differentiable();

/// Says what comparing says, then that there is nothing to read.
void compare_without_data(const Operator&, DispatchKeySet, Value* frame) {
  isclose(frame[0].tensor(), frame[1].tensor(), 0, 0, false);
  fail("Tensor.item() cannot be called on meta tensors");
}

UMBRA_OPERATOR("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
    .real([](const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
      return isclose(self, other, rtol, atol, equal_nan).all().item().to_bool();
    })
    .use([](OperatorBuilder& builder) { set_own_layer(builder.op(), DispatchKey::Meta, compare_without_data); })
    .not_differentiable()
    .tags({Tag::DataDependentOutput});

}  // namespace
}  // namespace umbra::ops
