// One of several values by a condition: where, masked_fill, the larger, the smaller, clamp.

#include "core/cpp_name.h"
#include "kernels/fits.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/comparison.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/index/fill_mask.h"
#include "ops/pointwise/family.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/writes.h"

namespace umbra::ops {
namespace {

// ---- where ----

TensorSpec where_spec(const Tensor& condition, const Tensor& self, const Tensor& other) {
  check(condition.dtype() == DType::Bool || condition.dtype() == DType::UInt8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ",
        kernel_name(condition.dtype()));
  if (condition.dtype() == DType::UInt8)
    warn(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
        "of "
        "PyTorch. Use a boolean condition instead.");
  return pointwise_spec({&condition, &self, &other}, pointwise_types({&self, &other}, Promotion::Default).result);
}

UMBRA_OPERATOR("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
    .out("where.self_out")
    .use(out_asks("where.self_out",
                  [](const Tensor&, const Tensor& self, const Tensor& other, const Tensor& out) {
                    DType type = ResultType().add(self).add(other).get();
                    check(out.dtype() == type, "Expected out type to be ", kernel_name(type), " but got ",
                          kernel_name(out.dtype()));
                  }))
    .meta(where_spec)
    .cpu([](const Tensor& out, const Tensor& condition, const Tensor& self, const Tensor& other) {
      DType compute = pointwise_types({&self, &other}, Promotion::Default).compute;
      kernels::pointwise(functors::Where{}, out, {&condition, &self, &other}, compute);
    })
    .elementwise()
    .gradient("self", {"grad", "condition"},
              [](const Tensor& grad, const Tensor& condition) { return where(condition, grad, 0); })
    .gradient("other", {"grad", "condition"},
              [](const Tensor& grad, const Tensor& condition) { return where(condition, 0, grad); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

// A number as a tensor of the type that it gets beside `tensor`.
Tensor number_beside(const Tensor& tensor, const Scalar& number) {
  DType dtype = ResultType().add(tensor).add(number).get();
  return scalar_tensor(number, {.dtype = dtype, .layout = Layout::Strided, .device = tensor.device()});
}

UMBRA_OPERATOR("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
    .composite([](const Tensor& condition, const Tensor& self, const Scalar& other) {
      Tensor number = number_beside(self, other);
      return where(condition, self.to(number.dtype()), number);
    });

UMBRA_OPERATOR("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
    .composite([](const Tensor& condition, const Scalar& self, const Tensor& other) {
      Tensor number = number_beside(other, self);
      return where(condition, number, other.to(number.dtype()));
    });

UMBRA_OPERATOR("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
    .composite([](const Tensor& condition, const Scalar& self, const Scalar& other) {
      DType dtype = ResultType().add(self).add(other).get();
      TensorOptions options{.dtype = dtype, .layout = Layout::Strided, .device = condition.device()};
      Tensor second = scalar_tensor(other, options);
      return where(condition, scalar_tensor(self, options), second);
    });

// ---- masked_fill ----

}  // namespace
void check_fill_by_mask(const Tensor& self, const Tensor& mask) {
  check(mask.dtype() == DType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
        cpp_name(mask.dtype()));
  check_kernel_type(!is_wide_unsigned(self.dtype()) && !is_float8(self.dtype()), "masked_fill", self);
}
namespace {

// Row-major, whatever the layout of the inputs.
TensorSpec masked_fill_spec(const Tensor& self, const Tensor& mask) {
  check_fill_by_mask(self, mask);
  return TensorSpec(broadcast_shapes(self.sym_sizes(), mask.sym_sizes()), self.dtype(), common_device({&self, &mask}));
}

void warn_of_expanded(const Tensor& out) {
  if (overlaps_itself(out))
    warn("Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this ",
         "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
}

UMBRA_OPERATOR("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
    .inplace("masked_fill_.Scalar")
    .generated_out("masked_fill.Scalar_out")
    .meta([](const Tensor& self, const Tensor& mask, const Scalar& value) {
      TensorSpec spec = masked_fill_spec(self, mask);
      kernels::check_fits(value, self.dtype());
      return spec;
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& mask, const Scalar& value) {
      warn_of_expanded(out);
      kernels::pointwise(functors::MaskedFill{.value = value}, out, {&self, &mask});
    })
    .elementwise()
    .gradient("self", {"grad", "mask"},
              [](const Tensor& grad, const Tensor& mask) { return grad.masked_fill(mask, 0); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::WritesOverlapping, Tag::Pointwise});

UMBRA_OPERATOR("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
    .inplace("masked_fill_.Tensor")
    .generated_out("masked_fill.Tensor_out")
    .meta([](const Tensor& self, const Tensor& mask, const Tensor& value) {
      check(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
            value.dim(), " dimension(s).");
      common_device({&self, &mask, &value});
      TensorSpec spec = masked_fill_spec(self, mask);
      bool may_lose = value.is_complex() && !self.is_complex() && !has_elements(value);
      if (may_lose) kernels::check_fits(std::complex<double>(0, 1), self.dtype());
      return spec;
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value) {
      warn_of_expanded(out);
      kernels::check_fits(value.item(), self.dtype());
      kernels::pointwise(functors::Where{}, out, {&mask, &value, &self}, self.dtype());
    })
    .elementwise()
    .gradient("self", {"grad", "mask"},
              [](const Tensor& grad, const Tensor& mask) { return grad.masked_fill(mask, 0); })
    .gradient("value", {"grad", "mask"},
              [](const Tensor& grad, const Tensor& mask) { return where(mask, grad, 0).sum(); })
    .linear()
    .node("MaskedFillBackward1")
    .tags({Tag::WritesOverlapping})
    .batch([](const Batched& self, const Batched& mask, const Batched& value) {
      check(value.rank() == 0, "masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
            value.rank(), " dimension(s).");
      int64_t rank = std::max(self.rank(), mask.rank());
      Tensor filler = batch_first(value, rank).to(self.value.dtype());
      return Batched(where(batch_first(mask, rank), filler, batch_first(self, rank)), 0);
    });

// ---- the larger and the smaller ----

template <class Functor> void extremum(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::Default))
      .meta([](const Tensor& self, const Tensor& other) {
        bool larger = std::is_same_v<Functor, functors::Maximum>;
        check<TypeError>((!self.is_complex() && !other.is_complex()) || only_metadata_is_asked(),
                         larger ? "maximum" : "minimum", " not implemented for complex tensors.");
        return pointwise_spec({&self, &other}, Promotion::Default);
      })
      .tangent(TangentRule::Pointwise)
      .tags({Tag::Core, Tag::Pointwise});
}

// The gradient goes to the one chosen; equal ones share it.
Tensor to_the_larger(const Tensor& grad, const Tensor& self, const Tensor& other) {
  Tensor share = grad.div(2);
  return where(self.eq(other), share, grad).masked_fill(self.lt(other), 0);
}

UMBRA_OPERATOR("maximum(Tensor self, Tensor other) -> Tensor")
    .out("maximum.out")
    .use(extremum<functors::Maximum>)
    .gradient("self", {"grad", "self", "other"}, to_the_larger)
    .gradient("other", {"grad", "other", "self"}, to_the_larger);

Tensor to_the_smaller(const Tensor& grad, const Tensor& self, const Tensor& other) {
  Tensor share = grad.div(2);
  return where(self.eq(other), share, grad).masked_fill(self.gt(other), 0);
}

UMBRA_OPERATOR("minimum(Tensor self, Tensor other) -> Tensor")
    .out("minimum.out")
    .use(extremum<functors::Minimum>)
    .gradient("self", {"grad", "self", "other"}, to_the_smaller)
    .gradient("other", {"grad", "other", "self"}, to_the_smaller);

// ---- clamp ----

using Bound = std::optional<Scalar>;

/// A bound that leaves no number of the type; one on the other side is none.
void check_bounds(DType dtype, const Bound& low, const Bound& high) {
  auto refuse = [&](const char* side, const Scalar& bound) {
    fail("Clamp ", side, " value ", number_text(bound.to_double()), " is outside the representable range of ",
         only_metadata_is_asked() ? to_string(dtype) : kernel_name(dtype));
  };
  if (dtype == DType::Bool) return;
  auto beyond = [&](const Bound& bound, bool above) {
    if (!bound || bound->is_symbolic() || kernels::fits(*bound, dtype)) return false;
    return (bound->to_double() > 0) == above;
  };
  bool is_unsigned = dtype == DType::UInt8 || is_wide_unsigned(dtype);
  bool below_zero = high && !high->is_symbolic() && is_unsigned && high->to_double() < 0;
  if (is_integral(dtype, false)) {
    if (beyond(low, true)) refuse("min", *low);
    if (below_zero || beyond(high, false)) refuse("max", *high);
  } else if (is_reduced_floating(dtype) && !only_metadata_is_asked()) {
    for (const Bound* bound : {&low, &high})
      if (*bound) kernels::check_fits(**bound, dtype);
  }
}

TensorSpec clamp_spec(const Tensor& self, const Bound& low, const Bound& high) {
  if (self.is_meta()) check<ValueError>(low || high, "clamp called but both min and max are none!");
  check(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
  check<NotImplementedError>(!self.is_complex() || only_metadata_is_asked(),
                             "clamp is not supported for complex types");
  ResultType result;
  result.add(self);
  for (const Bound* bound : {&low, &high}) {
    if (!*bound) continue;
    check<NotImplementedError>(!(*bound)->is_complex(), "clamp is not supported for complex types");
    if (!is_floating(self.dtype())) result.add(**bound);  // real numbers leave floats as they are
  }
  check_bounds(result.get(), low, high);
  return pointwise_spec({&self}, result.get());
}
/// An output is cast to where bounds leave the type as it is, and has the new one where they do not.
void check_clamped(const Tensor& self, const TensorSpec& result, const Tensor& out) {
  check(result.dtype == self.dtype() || result.dtype == out.dtype() || !has_elements(out), "Found dtype ",
        kernel_name(out.dtype()), " but expected ", kernel_name(result.dtype));
}

void clamp_kernel(const Tensor& out, const Tensor& self, const Bound& low, const Bound& high) {
  DType compute = clamp_spec(self, low, high).dtype;
  if (low && high) kernels::pointwise(functors::Clamp{.low = *low, .high = *high}, out, {&self}, compute);
  else if (low) kernels::pointwise(functors::ClampMin{.low = *low}, out, {&self}, compute);
  else kernels::pointwise(functors::ClampMax{.high = *high}, out, {&self}, compute);
}

// Only inside: numbers as bounds take no part of the gradient.
Tensor inside(const Tensor& grad, const Tensor& self, const Bound& low, const Bound& high) {
  Tensor zero = scalar_tensor(0.0, {.dtype = grad.dtype(), .layout = Layout::Strided, .device = grad.device()});
  if (low && high) return where(self.gt(*low).logical_and(self.lt(*high)), grad, zero);
  return where(low ? self.gt(*low) : self.lt(*high), grad, zero);
}

UMBRA_OPERATOR("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
    .inplace("clamp_")
    .out("clamp.out")
    .use(out_asks("clamp.out", [](const Tensor& self, const Bound& low, const Bound& high,
                                  const Tensor& out) { check_clamped(self, clamp_spec(self, low, high), out); }))
    .meta(clamp_spec)
    .cpu(clamp_kernel)
    .elementwise()
    .gradient("self", {"grad", "self", "min", "max"}, inside)
    .tangent(TangentRule::Pointwise)
    .node("ClampBackward1")
    .tags({Tag::ExactOut, Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("clamp_min(Tensor self, Scalar min) -> Tensor")
    .inplace("clamp_min_")
    .out("clamp_min.out")
    .use(out_asks("clamp_min.out", [](const Tensor& self, const Scalar& low,
                                      const Tensor& out) { check_clamped(self, clamp_spec(self, low, {}), out); }))
    .meta([](const Tensor& self, const Scalar& low) { return clamp_spec(self, low, {}); })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& low) { clamp_kernel(out, self, low, {}); })
    .elementwise()
    .gradient("self", {"grad", "self", "min"},
              [](const Tensor& grad, const Tensor& self, const Scalar& low) { return where(self.gt(low), grad, 0); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise, Tag::ExactOut});

UMBRA_OPERATOR("clamp_max(Tensor self, Scalar max) -> Tensor")
    .inplace("clamp_max_")
    .out("clamp_max.out")
    .use(out_asks("clamp_max.out", [](const Tensor& self, const Scalar& high,
                                      const Tensor& out) { check_clamped(self, clamp_spec(self, {}, high), out); }))
    .meta([](const Tensor& self, const Scalar& high) { return clamp_spec(self, {}, high); })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& high) { clamp_kernel(out, self, {}, high); })
    .elementwise()
    .gradient("self", {"grad", "self", "max"},
              [](const Tensor& grad, const Tensor& self, const Scalar& high) { return where(self.lt(high), grad, 0); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise, Tag::ExactOut});

/// The tensor and those of the bounds that are there.
struct Clamped {
  const Tensor* inputs[3];
  size_t count = 1;
  Clamped(const Tensor& self, const Tensor& low, const Tensor& high) : inputs{&self, nullptr, nullptr} {
    bool any = low.defined() || high.defined();
    if (self.is_meta()) check<ValueError>(any, "clamp called but both min and max are none!");
    check(any, "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (low.defined()) inputs[count++] = &low;
    if (high.defined()) inputs[count++] = &high;
  }
  ArrayRef<const Tensor*> ref() const { return {inputs, count}; }
};

TensorSpec clamp_tensor_spec(const Tensor& self, const Tensor& low, const Tensor& high) {
  Clamped clamped(self, low, high);
  check<NotImplementedError>(!self.is_complex() || only_metadata_is_asked(),
                             "clamp is not supported for complex types");
  return pointwise_spec(clamped.ref(), Promotion::Default);
}

void clamp_tensor_kernel(const Tensor& out, const Tensor& self, const Tensor& low, const Tensor& high) {
  Clamped clamped(self, low, high);
  DType compute = pointwise_types(clamped.ref(), Promotion::Default).compute;
  if (clamped.count == 3) kernels::pointwise(functors::ClampTensor{}, out, clamped.ref(), compute);
  else if (low.defined()) kernels::pointwise(functors::Maximum{}, out, clamped.ref(), compute);
  else kernels::pointwise(functors::Minimum{}, out, clamped.ref(), compute);
}

// Where the tensor equals a bound they share the gradient; bounds in the wrong order give it all to the upper one.
Tensor clamp_self(const Tensor& grad, const Tensor& self, const Tensor& low, const Tensor& high) {
  if (!high.defined()) return to_the_larger(grad, self, low);
  if (!low.defined()) return to_the_smaller(grad, self, high);
  Tensor at_bound = self.eq(low).logical_or(self.eq(high)).logical_and(low.lt(high));
  return where(at_bound, grad.div(2), grad).masked_fill(self.lt(low).logical_or(self.gt(high)), 0);
}
Tensor clamp_low(const Tensor& grad, const Tensor& self, const Tensor& low, const Tensor& high) {
  if (!high.defined()) return to_the_larger(grad, low, self);
  Tensor below = self.lt(low).logical_and(low.le(high)), at_bound = self.eq(low).logical_and(low.lt(high));
  Tensor elsewhere = where(below, grad, 0);
  return where(at_bound, grad.div(2), elsewhere);
}
Tensor clamp_high(const Tensor& grad, const Tensor& self, const Tensor& low, const Tensor& high) {
  if (!low.defined()) return to_the_smaller(grad, high, self);
  Tensor above = self.gt(high).logical_and(low.le(high)), at_bound = self.eq(high).logical_and(low.lt(high));
  Tensor elsewhere = where(above.logical_or(high.lt(low)), grad, 0);
  return where(at_bound, grad.div(2), elsewhere);
}

UMBRA_OPERATOR("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
    .inplace("clamp_.Tensor")
    .out("clamp.Tensor_out")
    .meta(clamp_tensor_spec)
    .cpu(clamp_tensor_kernel)
    .elementwise()
    .gradient("self", {"grad", "self", "min", "max"}, clamp_self)
    .gradient("min", {"grad", "self", "min", "max"}, clamp_low)
    .gradient("max", {"grad", "self", "min", "max"}, clamp_high)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
    .inplace("clamp_min_.Tensor")
    .out("clamp_min.Tensor_out")
    .use(pointwise<functors::Maximum, 2>(Promotion::Default))
    .gradient("self", {"grad", "self", "min"}, to_the_larger)
    .gradient("min", {"grad", "min", "self"}, to_the_larger)
    .tangent(TangentRule::Pointwise)
    .node("ClampMinBackward1")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
    .inplace("clamp_max_.Tensor")
    .out("clamp_max.Tensor_out")
    .use(pointwise<functors::Minimum, 2>(Promotion::Default))
    .gradient("self", {"grad", "self", "max"}, to_the_smaller)
    .gradient("max", {"grad", "max", "self"}, to_the_smaller)
    .tangent(TangentRule::Pointwise)
    .node("ClampMaxBackward1")
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
