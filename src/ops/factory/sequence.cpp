// Numbers in a row: arange, range, linspace, logspace.
#include "kernels/sequence.h"

#include <cmath>

#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "ops/common/number_text.h"
#include "ops/factory/factory.h"
#include "ops/pointwise/family.h"
#include "sym/low_numbers.h"

namespace umbra::ops {
namespace {

// ---- arange ----

DType range_dtype(OptionalDType dtype, std::initializer_list<Scalar> bounds) {
  if (dtype) return *dtype;
  for (const Scalar& s : bounds)
    if (!s.is_integral(true)) return default_dtype();
  return DType::Int64;
}

/// What a kernel with data says of types before it looks at the range.
void check_sequence_type(const char* kernel, DType dtype, OptionalDevice device) {
  bool without_data = device && device->type == DeviceType::Meta;
  bool wide_unsigned = dtype >= DType::UInt16 && dtype <= DType::UInt64;
  bool refused = dtype == DType::Bool || is_complex(dtype) || wide_unsigned || is_float8(dtype);
  if (!without_data && refused) kernels::unsupported_dtype(kernel, dtype);
}

void check_step(double step) { check(std::isfinite(step), "step must be finite but got ", number_text(step)); }
void check_span(double length) { check(std::abs(length) < 0x1p63, "invalid size, possible overflow?"); }

// The same of symbols: ceil((end - start) / step), as it will be.
SymInt symbolic_length(const SymFloat& start, const SymFloat& end, const SymFloat& step) {
  bool up = sym_float_compare(SymOp::Gt, step, 0.0).guard_bool();
  check(up || sym_float_compare(SymOp::Lt, step, 0.0).guard_bool(), "step must be nonzero");
  check(sym_float_compare(up ? SymOp::Ge : SymOp::Le, end, start).expect_true(),
        "upper bound and lower bound inconsistent with step sign");
  return sym_round(SymOp::Ceil, sym_float_binary(SymOp::TrueDiv, sym_float_binary(SymOp::Sub, end, start), step));
}

/// A bound may be any 64-bit number: a SymInt holds fewer.
SymInt bound(const Scalar& given) {
  return given.is_symbolic() ? given.to_sym_int() : sym::plain_number(given.to_int());
}

// ceil((end - start) / step), in integers where all three are.
SymInt range_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  if (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)) {
    SymInt s = bound(start), e = bound(end), by = bound(step);
    bool unknown = by.is_symbolic() && !by.node()->has_hint();
    bool down = unknown && sym_lt(by, 0).known_true();
    if (unknown && !down) check(sym_gt(by, 0).expect_true(), "step must be nonzero");
    check(by != 0, "step must be nonzero");
    if (!s.is_symbolic() && !e.is_symbolic())
      check_span(static_cast<double>(e.value()) - static_cast<double>(s.value()));
    bool up = by > 0;
    check(up ? expect_at_most(s, e) : expect_at_most(e, s), "upper bound and lower bound inconsistent with step sign");
    if (by.same(1)) return e - s;
    return up ? (e - s + by - 1) / by : (s - e - by - 1) / -by;
  }
  if (start.is_symbolic() || end.is_symbolic() || step.is_symbolic())
    return symbolic_length(start.to_sym_float(), end.to_sym_float(), step.to_sym_float());
  double s = start.to_double(), e = end.to_double(), by = step.to_double();
  check_step(by);
  check(by != 0, "step must be nonzero");
  check(std::isfinite(s) && std::isfinite(e), "unsupported range: ", number_text(s), " -> ", number_text(e));
  check((by > 0 && e >= s) || (by < 0 && e <= s), "upper bound and lower bound inconsistent with step sign");
  double length = std::ceil((e - s) / by);
  check_span(length);
  return static_cast<int64_t>(length);
}

UMBRA_OPERATOR(
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("arange.start_out")
    .meta([](const Scalar& start, const Scalar& end, const Scalar& step, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      DType type = range_dtype(dtype, {start, end, step});
      check_sequence_type("arange_cpu", type, device);
      return factory_spec({range_length(start, end, step)}, type, device);
    })
    .cpu([](const Tensor& out, const Scalar& start, const Scalar&, const Scalar& step, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) {
      check_sequence_type("arange_cpu", out.dtype(), out.device());
      kernels::arange(out, start, step);
    })
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
    .out("arange.out")
    .all_backends([](const Scalar& end, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                     OptionalBool pin) {
      return arange(Scalar(0), end, Scalar(1), options_of(dtype, layout, device, pin));
    })
    .not_differentiable();

// ---- range, which has its end among its elements ----

int64_t inclusive_length(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  check(start.to_double() == start.to_double() && std::isfinite(start.to_double()) && std::isfinite(end.to_double()),
        "unsupported range: ", number_text(start.to_double()), " -> ", number_text(end.to_double()));
  double by = step.to_double();
  check_step(by);
  check(by > 0 || by < 0, "step must be nonzero");
  check((by > 0 && end.to_double() >= start.to_double()) || (by < 0 && end.to_double() <= start.to_double()),
        "upper bound and lower bound inconsistent with step sign");
  double length;
  if (is_integral(dtype, true)) {
    int64_t whole = step.to<int64_t>();
    check(whole != 0, "step must be nonzero");
    length = static_cast<double>((end.to<int64_t>() - start.to<int64_t>()) / whole + 1);
  } else if (dtype == DType::Float16 || dtype == DType::BFloat16) {
    length = (static_cast<float>(end.to_double()) - static_cast<float>(start.to_double())) / static_cast<float>(by) + 1;
  } else {
    length = (end.to_double() - start.to_double()) / by + 1;
  }
  check(length >= 0 && length <= 0x1p63, "invalid size, possible overflow?");
  return static_cast<int64_t>(length);
}

UMBRA_OPERATOR(
    "range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .out("range.out")
    .meta([](const Scalar& start, const Scalar& end, const Scalar& step, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      DType type = dtype.value_or(default_dtype());
      check_sequence_type("range_cpu", type, {});  // on the meta device, too
      return factory_spec({inclusive_length(start, end, step, type)}, type, device);
    })
    .cpu([](const Tensor& out, const Scalar& start, const Scalar&, const Scalar& step, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { kernels::arange(out, start, step); })
    .not_differentiable();

UMBRA_OPERATOR(
    "range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .out("range.out_")
    .all_backends([](const Scalar& start, const Scalar& end, OptionalDType dtype, OptionalLayout layout,
                     OptionalDevice device,
                     OptionalBool pin) { return range(start, end, Scalar(1), options_of(dtype, layout, device, pin)); })
    .not_differentiable();

// ---- linspace, logspace: a number of steps ----

/// The type of what lies between two numbers.
DType spaced_dtype(const char* name, bool complex, OptionalDType dtype) {
  if (!complex) return dtype.value_or(default_dtype());
  DType inferred = complex_type(default_dtype());
  check(!dtype || is_complex(*dtype), "torch.", name, "(): inferred dtype ", cpp_name(inferred),
        " can't be safely cast to passed dtype ", kernel_name(dtype.value_or(inferred)));
  return dtype.value_or(inferred);
}

bool on_meta(const Tensor& bound) { return bound.is_meta() && !bound.is_fake(); }
bool on_meta(const Scalar&) { return false; }

/// Bounds are numbers or tensors. With a meta tensor nobody reads them, nor asks what they are.
template <class Start, class End>
TensorSpec spaced_spec(const char* name, const Start& start, const End& end, int64_t steps, OptionalDType dtype,
                       OptionalLayout layout, OptionalDevice device) {
  check_strided(layout);
  check(steps >= 0, "number of steps must be non-negative");
  if (!device && (on_meta(start) || on_meta(end)))
    return factory_spec({steps}, dtype.value_or(default_dtype()), Device(DeviceType::Meta));
  return factory_spec({steps}, spaced_dtype(name, start.is_complex() || end.is_complex(), dtype), device);
}

/// Ends are numbers of the result's type, where there is more than one step.
void check_ends(const Tensor& out, const Scalar& start, const Scalar& end) {
  if (out.numel() == 0) return;
  kernels::check_fits(start, out.dtype());
  if (out.numel() > 1) kernels::check_fits(end, out.dtype());
}

/// A bound that is given as a tensor.
Scalar bound_of(const Tensor& bound) { return bound.item(); }
Scalar bound_of(const Scalar& bound) { return bound; }

void check_bounds(const char* name, const Tensor& start, const Scalar&) {
  check(start.dim() == 0, name, " only supports 0-dimensional start and end tensors, but got start with ", start.dim(),
        " dimension(s).");
}
void check_bounds(const char* name, const Scalar&, const Tensor& end) {
  check(end.dim() == 0, name, " only supports 0-dimensional start and end tensors, but got end with ", end.dim(),
        " dimension(s).");
}
void check_bounds(const char* name, const Tensor& start, const Tensor& end) {
  check(start.dim() == 0 && end.dim() == 0, name,
        " only supports 0-dimensional start and end tensors, but got start with ", start.dim(),
        " dimension(s) and end with ", end.dim(), " dimension(s).");
}

UMBRA_OPERATOR(
    "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .out("linspace.out")
    .meta([](const Scalar& start, const Scalar& end, int64_t steps, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device,
             OptionalBool) { return spaced_spec("linspace", start, end, steps, dtype, layout, device); })
    .cpu([](const Tensor& out, const Scalar& start, const Scalar& end, int64_t, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) {
      check_ends(out, start, end);
      kernels::linspace(out, start, end);
    })
    .not_differentiable();

/// The overloads with bounds in tensors, whose values are read.
template <class Start, class End> struct LinearlySpaced {
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([](const Start& start, const End& end, int64_t steps, OptionalDType dtype, OptionalLayout layout,
                 OptionalDevice device, OptionalBool) {
          check_bounds("linspace", start, end);
          return spaced_spec("linspace", start, end, steps, dtype, layout, device);
        })
        .cpu([](const Tensor& out, const Start& start, const End& end, int64_t, OptionalDType, OptionalLayout,
                OptionalDevice, OptionalBool) {
          check_ends(out, bound_of(start), bound_of(end));
          kernels::linspace(out, bound_of(start), bound_of(end));
        })
        .not_differentiable();
  }
};
UMBRA_OPERATOR(
    "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("linspace.Tensor_Tensor_out")
    .use(LinearlySpaced<Tensor, Tensor>{});
UMBRA_OPERATOR(
    "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("linspace.Tensor_Scalar_out")
    .use(LinearlySpaced<Tensor, Scalar>{});
UMBRA_OPERATOR(
    "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("linspace.Scalar_Tensor_out")
    .use(LinearlySpaced<Scalar, Tensor>{});

UMBRA_OPERATOR(
    "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("logspace.out")
    .meta([](const Scalar& start, const Scalar& end, int64_t steps, double, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device,
             OptionalBool) { return spaced_spec("logspace", start, end, steps, dtype, layout, device); })
    .cpu([](const Tensor& out, const Scalar& start, const Scalar& end, int64_t, double base, OptionalDType,
            OptionalLayout, OptionalDevice, OptionalBool) {
      if (out.numel() > 1) check_ends(out, start, end);
      kernels::logspace(out, start, end, base);
    })
    .not_differentiable();

template <class Start, class End> struct LogarithmicallySpaced {
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([](const Start& start, const End& end, int64_t steps, double, OptionalDType dtype, OptionalLayout layout,
                 OptionalDevice device, OptionalBool) {
          check_bounds("logspace", start, end);
          return spaced_spec("logspace", start, end, steps, dtype, layout, device);
        })
        .cpu([](const Tensor& out, const Start& start, const End& end, int64_t, double base, OptionalDType,
                OptionalLayout, OptionalDevice, OptionalBool) {
          Scalar first = bound_of(start), last = bound_of(end);
          if (out.numel() > 1) check_ends(out, first, last);
          kernels::logspace(out, first, last, base);
        })
        .not_differentiable();
  }
};
UMBRA_OPERATOR(
    "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("logspace.Tensor_Tensor_out")
    .use(LogarithmicallySpaced<Tensor, Tensor>{});
UMBRA_OPERATOR(
    "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("logspace.Tensor_Scalar_out")
    .use(LogarithmicallySpaced<Tensor, Scalar>{});
UMBRA_OPERATOR(
    "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .out("logspace.Scalar_Tensor_out")
    .use(LogarithmicallySpaced<Scalar, Tensor>{});

}  // namespace
}  // namespace umbra::ops
