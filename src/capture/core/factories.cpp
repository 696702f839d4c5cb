// Factories and copies: all are full, full_like, arange or empty.
#include <algorithm>
#include <cmath>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

using Type = std::optional<DType>;
using Place = std::optional<Device>;
using Arrangement = std::optional<Layout>;
using Flag = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

TensorOptions options_of(Type dtype, Arrangement layout, Place device, Flag pin) {
  return {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin};
}
TensorOptions all_options(DType dtype, Device device) {
  return {.dtype = dtype, .layout = Layout::Strided, .device = device, .pin_memory = false};
}
TensorOptions new_options(const Tensor& like, Type dtype, Place device) {
  return all_options(dtype.value_or(like.dtype()), device.value_or(like.device()));
}
TensorOptions default_options(Type dtype, Place device) {
  return all_options(dtype.value_or(default_dtype()), device.value_or(Device(DeviceType::CPU)));
}

/// 0 or 1, as PyTorch writes it for a type of elements.
Scalar zero_or_one(int64_t number, DType dtype) { return dtype == DType::Bool ? Scalar(number != 0) : Scalar(number); }

Tensor filled(SymIntArrayRef size, int64_t number, const TensorOptions& options) {
  return full(size, zero_or_one(number, *options.dtype), options);
}

/// `like` filled with a number, in its layout.
auto filled_like(int64_t number) {
  return [number](const Tensor& self, Type dtype, Arrangement layout, Place device, Flag pin, Format format) {
    return full_like(self, zero_or_one(number, dtype.value_or(self.dtype())),
                     options_of(dtype, layout, device, pin.value_or(false)), format.value_or(MemoryFormat::Preserve));
  };
}

/// The order of dimensions from the largest stride to the smallest, and the sizes in between.
Tensor empty_as(const Tensor& self, Type dtype, Arrangement, Place device, Flag, Format format) {
  TensorOptions options = new_options(self, dtype, device);
  if (format.value_or(MemoryFormat::Preserve) != MemoryFormat::Preserve)
    return empty(self.sym_sizes(), options, format);
  std::vector<int64_t> order(static_cast<size_t>(self.dim()));
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return self.sym_strides()[a] > self.sym_strides()[b]; });
  return empty_permuted(self.sym_sizes(), order, options);
}

/// A small type that counts to both numbers; of symbolic sizes, the largest. PyTorch's is UInt16 in between, for which
/// `arange` has no kernel.
DType counting_type(SymInt n, SymInt m) {
  if (n.is_symbolic() || m.is_symbolic()) return DType::Int64;
  int64_t most = std::max(n.value(), m.value());
  if (most <= UINT8_MAX) return DType::UInt8;
  return most <= INT32_MAX ? DType::Int32 : DType::Int64;
}

Tensor identity(SymInt n, SymInt m, Type dtype, Place device) {
  TensorOptions options = default_options(dtype, device), whole = all_options(counting_type(n, m), *options.device);
  Tensor rows = arange(0, Scalar(n), 1, whole), columns = arange(0, Scalar(m), 1, whole);
  return rows.unsqueeze(-1).eq(columns)._to_copy({.dtype = options.dtype});
}

}  // namespace

Tensor number_like(const Tensor& like, const Scalar& number) {
  return scalar_tensor(number, {.dtype = like.dtype(), .layout = Layout::Strided, .device = like.device()});
}

Tensor number_where(const Tensor& condition, const Scalar& number, const Tensor& other) {
  return where(condition, number_like(other, number), other);
}

Tensor steps_between(const Scalar& from, const Scalar& to, SymInt count, DType dtype, Device device) {
  int64_t n = count.guard_int();
  if (n < 2) return full(SymIntArrayRef({count}), n == 1 ? from : Scalar(0), all_options(dtype, device));
  Tensor place = arange(0, n, 1, {.layout = Layout::Strided, .device = device, .pin_memory = false});
  bool whole = is_integral(dtype, true);
  auto number = [&](const Tensor& x) { return whole ? x : x._to_copy({.dtype = dtype}); };
  double step = (to.to_double() - from.to_double()) / static_cast<double>(n - 1);
  Tensor near = place.lt(static_cast<double>(n) / 2);
  Tensor up = number(place) * step + from;
  Tensor down = to - number(Scalar(n - 1) - place) * step;
  Tensor steps = where(near, up, down);
  return whole ? steps._to_copy({.dtype = dtype}) : steps;
}

namespace {

Tensor powers_between(const Scalar& from, const Scalar& to, SymInt count, double base, Type dtype, Place device) {
  DType type = dtype.value_or(default_dtype());
  Tensor powers = pow(Scalar(base), steps_between(from, to, count, DType::Float64, device.value_or(DeviceType::CPU)));
  return type == DType::Float64 ? powers : powers._to_copy({.dtype = type});
}

/// (1 - cos) / 2 over one period, without its last point where the window repeats.
Tensor hann(int64_t length, bool periodic, Type dtype, Place device) {
  TensorOptions options = default_options(dtype, device);
  if (length < 2) return full(SymIntArrayRef({SymInt(length)}), 1, options);
  int64_t steps = length + (periodic ? 1 : 0);
  Tensor window = (arange(0, steps, 1, options) * (2 * M_PI / static_cast<double>(steps - 1))).cos() * -0.5 + 0.5;
  return periodic ? window.slice(0, 0, length) : window;
}

void add_ranges(DecompositionTable& table) {
  table.add("aten::linspace",
            [](const Scalar& from, const Scalar& to, SymInt count, Type dtype, Arrangement, Place device, Flag) {
              return steps_between(from, to, count, dtype.value_or(default_dtype()), device.value_or(DeviceType::CPU));
            });
  table.add("aten::logspace",
            [](const Scalar& from, const Scalar& to, SymInt count, double base, Type dtype, Arrangement, Place device,
               Flag) { return powers_between(from, to, count, base, dtype, device); });
  table.add("aten::hann_window", [](int64_t length, Type dtype, Arrangement, Place device, Flag) {
    return hann(length, true, dtype, device);
  });
  table.add("aten::hann_window.periodic", [](int64_t length, bool periodic, Type dtype, Arrangement, Place device,
                                             Flag) { return hann(length, periodic, dtype, device); });
}

}  // namespace

void add_factories(DecompositionTable& table) {
  add_ranges(table);
  table.add("aten::new_ones", [](const Tensor& self, SymIntArrayRef size, Type dtype, Arrangement, Place device, Flag) {
    return filled(size, 1, new_options(self, dtype, device));
  });
  table.add("aten::new_zeros", [](const Tensor& self, SymIntArrayRef size, Type dtype, Arrangement, Place device,
                                  Flag) { return filled(size, 0, new_options(self, dtype, device)); });
  table.add("aten::new_full", [](const Tensor& self, SymIntArrayRef size, const Scalar& value, Type dtype, Arrangement,
                                 Place device, Flag) { return full(size, value, new_options(self, dtype, device)); });
  table.add("aten::new_empty", [](const Tensor& self, SymIntArrayRef size, Type dtype, Arrangement, Place device,
                                  Flag) { return empty(size, new_options(self, dtype, device)); });
  table.add("aten::ones", [](SymIntArrayRef size, Type dtype, Arrangement, Place device, Flag) {
    return filled(size, 1, default_options(dtype, device));
  });
  table.add("aten::zeros", [](SymIntArrayRef size, Type dtype, Arrangement, Place device, Flag) {
    return filled(size, 0, default_options(dtype, device));
  });
  table.add("aten::ones_like", filled_like(1));
  table.add("aten::zeros_like", filled_like(0));
  table.add("aten::empty_like", empty_as);
  table.add("aten::arange", [](const Scalar& end, Type dtype, Arrangement layout, Place device, Flag pin) {
    return arange(0, end, 1, options_of(dtype, layout.value_or(Layout::Strided), device, pin.value_or(false)));
  });
  table.add("aten::arange.start", [](const Scalar& start, const Scalar& end, Type dtype, Arrangement layout,
                                     Place device, Flag pin) {
    return arange(start, end, 1, options_of(dtype, layout.value_or(Layout::Strided), device, pin.value_or(false)));
  });
  table.add("aten::eye",
            [](SymInt n, Type dtype, Arrangement, Place device, Flag) { return identity(n, n, dtype, device); });
  table.add("aten::eye.m", [](SymInt n, SymInt m, Type dtype, Arrangement, Place device, Flag) {
    return identity(n, m, dtype, device);
  });
  table.add("aten::fill.Scalar",
            [](const Tensor& self, const Scalar& value) { return full_like(self, value, {.pin_memory = false}); });
  table.add("aten::fill.Tensor", [](const Tensor& self, const Tensor& value) { return copy(self, value); });
  table.add("aten::zero",
            [](const Tensor& self) { return full_like(self, 0, {.pin_memory = false}, MemoryFormat::Preserve); });
  table.add("aten::detach", [](const Tensor& self) { return alias(self); });
  table.add("aten::bernoulli", [](const Tensor& self, const IntrusivePtr<Generator>& generator) {
    TensorOptions options{.dtype = DType::Float32, .device = self.device(), .pin_memory = false};
    Tensor draws = generator ? rand(self.sym_sizes(), generator, options) : rand(self.sym_sizes(), options);
    return draws.lt(self)._to_copy({.dtype = self.dtype()});
  });
}

}  // namespace umbra::core_table
