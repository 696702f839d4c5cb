// Tensors made from nothing: empty, zeros, ones, full, arange and the like.
#include <cmath>

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_sizes(SymIntArrayRef sizes) {
  for (SymInt s : sizes) {
    bool holds = !s.is_symbolic() ? s.value() >= 0 : s.node()->has_hint() || sym_ge(s, 0).expect_true();
    if (!holds) fail("Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
  }
}

TensorSpec factory_spec(SymIntArrayRef sizes, OptionalDType dtype, OptionalDevice device,
                        OptionalFormat format = MemoryFormat::Contiguous) {
  check_sizes(sizes);
  MemoryFormat chosen = format.value_or(MemoryFormat::Contiguous);
  check(chosen != MemoryFormat::Preserve, "Unsupported memory format Preserve");
  return TensorSpec(sizes, strides_for(sizes, chosen), dtype.value_or(default_dtype()), device.value_or(Device()));
}

TensorOptions options_of(OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
  return {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin};
}

DType fill_dtype(const Scalar& value, OptionalDType dtype) {
  if (dtype) return *dtype;
  if (value.is_bool()) return DType::Bool;
  if (value.is_integral(false)) return DType::Int64;
  return value.is_complex() ? complex_type(default_dtype()) : default_dtype();
}

// ---- sizes given ----

UMBRA_OPERATOR(
    "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return factory_spec(size, dtype, device, format);
    })
    .cpu([](const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) {})
    .not_differentiable()
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .meta([](SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check_sizes(size);
      check(size.size() == stride.size(), "mismatch in length of strides and shape");
      for (SymInt s : stride)
        if (!s.is_symbolic() && s.value() < 0)
          fail("as_strided: Negative strides are not supported at the moment, got strides: ", to_string(stride));
      return TensorSpec(size, stride, dtype.value_or(default_dtype()), device.value_or(Device()));
    })
    .cpu([](const Tensor&, SymIntArrayRef, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) {})
    .not_differentiable()
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](SymIntArrayRef size, const Scalar& value, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec(size, fill_dtype(value, dtype), device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, const Scalar& value, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::fill(out, value); })
    .not_differentiable()
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype, device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::fill(out, 0);
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype, device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::fill(out, 1);
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](const Scalar&, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec({}, dtype, device);
    })
    .cpu([](const Tensor& out, const Scalar& s, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::fill(out, s);
    })
    .not_differentiable()
    .tags({Tag::Core});

// ---- like another tensor ----

UMBRA_OPERATOR(
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor&, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool, OptionalFormat) {
    })
    .not_differentiable()
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, const Scalar&, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool, OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, const Scalar& value, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool, OptionalFormat) { kernels::fill(out, value); })
    .not_differentiable()
    .tags({Tag::Core})
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::fill(out, 0); })
    .not_differentiable()
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::fill(out, 1); })
    .not_differentiable()
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor&, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
    })
    .not_differentiable()
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check_sizes(size);
      return TensorSpec(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor&, const Tensor&, SymIntArrayRef, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) {})
    .not_differentiable()
    .batch([](const Batched& self, SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype,
              OptionalLayout layout, OptionalDevice device, OptionalBool pin_memory) {
      SymInt extent = 1;
      for (size_t d = 0; d < size.size(); ++d) extent = extent + (size[d] - 1) * stride[d];
      SymShape strides{extent};
      for (SymInt s : stride) strides.push_back(s);
      return Batched(
          self.value.new_empty_strided(batch_sizes(size), strides,
                                       {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin_memory}),
          0);
    });

UMBRA_OPERATOR(
    "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::fill(out, 0); })
    .not_differentiable()
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::fill(out, 1); })
    .not_differentiable()
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size, const Scalar&, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, const Scalar& value, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { kernels::fill(out, value); })
    .not_differentiable()
    .use(BatchInPlace{.sizes = "size"});

// ---- sequences ----

DType range_dtype(OptionalDType dtype, std::initializer_list<Scalar> bounds) {
  if (dtype) return *dtype;
  for (const Scalar& s : bounds)
    if (!s.is_integral(true)) return default_dtype();
  return DType::Int64;
}

void check_span(double length) { check(std::abs(length) < 0x1p63, "invalid size, possible overflow?"); }

// ceil((end - start) / step), in integers where all three are.
SymInt range_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  if (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)) {
    SymInt s = start.to_sym_int(), e = end.to_sym_int(), by = step.to_sym_int();
    check(by != 0, "step must be nonzero");
    if (!s.is_symbolic() && !e.is_symbolic())
      check_span(static_cast<double>(e.value()) - static_cast<double>(s.value()));
    bool up = by > 0;
    check(up ? expect_at_most(s, e) : expect_at_most(e, s), "upper bound and lower bound inconsistent with step sign");
    if (by.same(1)) return e - s;
    return up ? (e - s + by - 1) / by : (s - e - by - 1) / -by;
  }
  double s = start.to_double(), e = end.to_double(), by = step.to_double();
  check(by != 0, "step must be nonzero");
  check(std::isfinite(s) && std::isfinite(e), "unsupported range: ", s, " -> ", e);
  check((by > 0 && e >= s) || (by < 0 && e <= s), "upper bound and lower bound inconsistent with step sign");
  double length = std::ceil((e - s) / by);
  check_span(length);
  return static_cast<int64_t>(length);
}

UMBRA_OPERATOR(
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .meta([](const Scalar& start, const Scalar& end, const Scalar& step, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec({range_length(start, end, step)}, range_dtype(dtype, {start, end, step}), device);
    })
    .cpu([](const Tensor& out, const Scalar& start, const Scalar&, const Scalar& step, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { kernels::arange(out, start, step); })
    .not_differentiable()
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .all_backends([](const Scalar& start, const Scalar& end, OptionalDType dtype, OptionalLayout layout,
                     OptionalDevice device, OptionalBool pin) {
      return arange(start, end, Scalar(1), options_of(dtype, layout, device, pin));
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor")
    .all_backends([](const Scalar& end, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                     OptionalBool pin) {
      return arange(Scalar(0), end, Scalar(1), options_of(dtype, layout, device, pin));
    })
    .not_differentiable();

Tensor identity(SymInt rows, SymInt columns, const TensorOptions& options) {
  check(rows >= 0, "n must be greater or equal to 0, got ", rows);
  check(columns >= 0, "m must be greater or equal to 0, got ", columns);
  Tensor out = zeros(SymShape{rows, columns}, options);
  out.diagonal().fill_(1);
  return out;
}

UMBRA_OPERATOR(
    "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor")
    .all_backends([](SymInt n, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
      return identity(n, n, options_of(dtype, layout, device, pin));
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .all_backends([](SymInt n, SymInt m, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                     OptionalBool pin) { return identity(n, m, options_of(dtype, layout, device, pin)); })
    .not_differentiable();

}  // namespace
}  // namespace umbra::ops
