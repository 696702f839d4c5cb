// Tensors made from nothing: empty, zeros, ones, full, eye and the like.
#include "ops/factory/factory.h"

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/sparse/structure.h"
#include "umbra/core/deterministic.h"

namespace umbra::ops {

void fill_new_memory(const Tensor& out) {
  if (!fills_new_memory() || out.numel() == 0) return;
  if (is_floating(out.dtype()) || out.is_complex()) return kernels::fill(out, std::numeric_limits<double>::quiet_NaN());
  if (out.dtype() == DType::Bool) return kernels::fill(out, true);
  bool is_signed = !is_wide_unsigned(out.dtype()) && out.dtype() != DType::UInt8;
  int64_t largest = (int64_t{1} << (8 * out.item_size() - 1)) - 1;
  if (out.item_size() == 8) largest = std::numeric_limits<int64_t>::max();
  if (out.dtype() == DType::UInt64) return kernels::fill(out, std::numeric_limits<uint64_t>::max());
  kernels::fill(out, is_signed ? largest : 2 * largest + 1);
}

namespace {

DType fill_dtype(const Scalar& value, OptionalDType dtype) {
  if (dtype) return *dtype;
  if (value.is_bool()) return DType::Bool;
  if (value.is_integral(false)) return DType::Int64;
  if (!value.is_complex()) return default_dtype();
  return default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

// ---- sizes given ----

/// A sparse tensor without elements, as `zeros` and `empty` make it.
Tensor without_elements(const char* name, SymIntArrayRef size, OptionalDType dtype, Layout layout,
                        OptionalDevice device) {
  bool compressed = is_compressed(layout), blocks = layout == Layout::SparseBsr || layout == Layout::SparseBsc;
  check(!compressed || size.size() >= 2, "torch.", name,
        ": Only batched sparse compressed (non-block) tensors are supported, but got size ", to_string(size));
  check(!blocks, name, "_sparse_compressed expected sparse compressed (non-block) tensor layout but got ",
        short_name(layout));
  return sparse::without_elements(layout, size, dtype.value_or(default_dtype()), device.value_or(Device()),
                                  static_cast<int64_t>(size.size()));
}

UMBRA_OPERATOR(
    "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .out("empty.out")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return factory_spec(size, dtype, device, format);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { fill_new_memory(out); })
    .sparse([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               OptionalFormat) { return without_elements("empty", size, dtype, layout.value(), device); })
    .not_differentiable()
    .tags({Tag::Core});

void check_factory_strides(SymIntArrayRef size, SymIntArrayRef stride) {
  check(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
        ") must match dimensionality of strides (", stride.size(), ")");
  int64_t last = 0, step = 0;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i].is_symbolic() || stride[i].is_symbolic()) continue;
    bool fits = stride[i].value() >= 0 && !__builtin_mul_overflow(size[i].value() - 1, stride[i].value(), &step) &&
                !__builtin_add_overflow(last, step, &last);
    check(fits, "Storage size calculation overflowed with sizes=", to_string(size), " and strides=", to_string(stride));
  }
}

UMBRA_OPERATOR(
    "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("empty_strided.out")
    .meta([](SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check_factory_sizes(size);
      check_factory_strides(size, stride);
      return TensorSpec(size, stride, dtype.value_or(default_dtype()), device.value_or(Device()));
    })
    .cpu([](const Tensor& out, SymIntArrayRef, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { fill_new_memory(out); })
    .not_differentiable()
    .tags({Tag::Core});

SymShape permuted_strides(SymIntArrayRef size, IntArrayRef layout) {
  auto rank = static_cast<int64_t>(size.size());
  check(size.size() == layout.size(),
        "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ", size.size(),
        " is not equal to len(physical_layout) = ", layout.size());
  std::vector<bool> seen(size.size());
  SymShape physical;
  for (size_t i = 0; i < layout.size(); ++i) {
    check(layout[i] >= 0 && layout[i] < rank, "Dimension out of range (expected to be between 0 and ", rank - 1,
          ", but got ", layout[i], " at index ", i,
          ").  NB: negative dims not currently supported; file an issue if you want it.");
    check(!seen[layout[i]], "Duplicate dim not allowed");
    seen[layout[i]] = true;
    physical.push_back(size[layout[i]]);
  }
  check_factory_sizes(physical);
  SymShape dense = contiguous_strides(physical), strides(size.size(), SymInt(0));
  for (size_t i = 0; i < layout.size(); ++i) strides[layout[i]] = dense[i];
  return strides;
}

// The dimensions in the order of `physical_layout`, outermost first, lie in memory without gaps.
UMBRA_OPERATOR(
    "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("empty_permuted.out")
    .meta([](SymIntArrayRef size, const std::vector<int64_t>& physical_layout, OptionalDType dtype,
             OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return TensorSpec(size, permuted_strides(size, physical_layout), dtype.value_or(default_dtype()),
                        device.value_or(Device()));
    })
    .cpu([](const Tensor& out, SymIntArrayRef, const std::vector<int64_t>&, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { fill_new_memory(out); })
    .not_differentiable();

UMBRA_OPERATOR(
    "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .out("full.out")
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
    .out("zeros.out")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      for (SymInt s : size)
        check(s.is_symbolic() || s.value() >= 0 || outputs_are_given(), "zeros: Dimension size must be non-negative.");
      return factory_spec(size, dtype, device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::fill(out, 0);
    })
    .sparse([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      return without_elements("zeros", size, dtype, layout.value(), device);
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .out("ones.out")
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
    .generated_out("scalar_tensor.out")
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

/// Like another tensor, one of which is sparse: without elements, of its layout unless another one is asked for.
Tensor like_sparse(const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
                   OptionalDevice device) {
  DType type = dtype.value_or(self.dtype());
  Device where = device.value_or(self.device());
  Layout wanted = layout.value_or(self.layout());
  if (wanted == Layout::Strided) return zeros(size, {.dtype = type, .device = where});
  return without_elements("zeros", size, type, wanted, where);
}

/// The same for the sizes of the other tensor: its dense dimensions and blocks stay what they are.
Tensor like_sparse(const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device) {
  bool same = is_sparse(self.layout()) && layout.value_or(self.layout()) == self.layout();
  if (same) return sparse::without_elements_like(self, dtype, device);
  return like_sparse(self, self.sym_sizes(), dtype, layout, device);
}

/// The layout of a tensor like a compressed one is the same.
void check_same_layout(const Tensor& self, OptionalLayout layout) {
  Layout wanted = layout.value_or(self.layout());
  check(!is_compressed(self.layout()) || wanted == self.layout(),
        "empty_like with different sparse layout is not supported (self is ", short_name(self.layout()),
        " but you requested ", short_name(wanted), ")");
  check<NotImplementedError>(self.layout() != Layout::Strided || wanted == Layout::Strided,
                             "Could not run 'aten::empty_strided' with arguments from the 'SparseCPU' backend: a "
                             "tensor of a sparse layout has no strides");
}

void check_format_of_strided(Layout layout, OptionalFormat format) {
  check(!format || layout == Layout::Strided, "memory format option is only supported by strided tensors");
}

void check_same_device(const Tensor& self, OptionalDevice device) {
  check<NotImplementedError>(!device || *device == self.device(), "a tensor on ", to_string(device.value_or(Device())),
                             " at the places of a sparse one on another device is not in Umbra yet");
}

/// Other values at the places of a compressed tensor.
template <class F>
Tensor at_same_places(const Tensor& self, const char* name, OptionalLayout layout, OptionalDevice device, F values) {
  check_same_layout(self, layout);
  check_same_device(self, device);
  check<NotImplementedError>(is_compressed(self.layout()), "Could not run 'aten::", name,
                             "' with arguments from the 'SparseCPU' backend");
  return with_values(self, values(sparse_parts(self).values));
}

UMBRA_OPERATOR(
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("empty_like.out")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { fill_new_memory(out); })
    .sparse([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               OptionalFormat format) {
      check_format_of_strided(layout.value_or(self.layout()), format);
      check_same_layout(self, layout);
      if (!is_compressed(self.layout())) return like_sparse(self, dtype, layout, device);
      check_same_device(self, device);
      return with_values(self, empty_like(sparse_parts(self).values, {.dtype = dtype}));
    })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("full_like.out")
    .meta([](const Tensor& self, const Scalar&, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool, OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, const Scalar& value, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool, OptionalFormat) { kernels::fill(out, value); })
    .sparse([](const Tensor& self, const Scalar& value, OptionalDType dtype, OptionalLayout layout,
               OptionalDevice device, OptionalBool, OptionalFormat) {
      if (layout == Layout::Strided && self.layout() == Layout::SparseCoo)
        return full(self.sym_sizes(), value,
                    {.dtype = dtype.value_or(self.dtype()), .device = device.value_or(self.device())});
      return at_same_places(self, "fill_.Scalar", layout, device,
                            [&](const Tensor& values) { return full_like(values, value, {.dtype = dtype}); });
    })
    .not_differentiable()
    .tags({Tag::Core, Tag::MakesBlank})
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("zeros_like.out")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::fill(out, 0); })
    .sparse([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               OptionalFormat format) {
      check_format_of_strided(layout.value_or(self.layout()), format);
      if (layout == Layout::Strided) check_same_layout(self, layout);
      return like_sparse(self, dtype, layout, device);
    })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("ones_like.out")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::fill(out, 1); })
    .sparse([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               OptionalFormat) {
      if (layout == Layout::Strided && self.layout() == Layout::SparseCoo)
        return ones(self.sym_sizes(),
                    {.dtype = dtype.value_or(self.dtype()), .device = device.value_or(self.device())});
      return at_same_places(self, "fill_.Scalar", layout, device,
                            [&](const Tensor& values) { return ones_like(values, {.dtype = dtype}); });
    })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{});

UMBRA_OPERATOR(
    "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("new_empty.out")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { fill_new_memory(out); })
    .sparse([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
               OptionalDevice device, OptionalBool) { return like_sparse(self, size, dtype, layout, device); })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("new_empty_strided.out")
    .meta([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check_factory_sizes(size);
      check_factory_strides(size, stride);
      return TensorSpec(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, SymIntArrayRef, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { fill_new_memory(out); })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .batch([](const Batched& self, SymIntArrayRef size, SymIntArrayRef stride, OptionalDType dtype,
              OptionalLayout layout, OptionalDevice device, OptionalBool pin_memory) {
      SymInt extent = 1;
      bool nothing = false;
      for (size_t d = 0; d < size.size(); ++d) {
        extent = extent + (size[d] - 1) * stride[d];
        nothing |= size[d].same(0);
      }
      SymShape strides{nothing ? SymInt(0) : extent};
      for (SymInt s : stride) strides.push_back(s);
      return Batched(
          self.value.new_empty_strided(batch_sizes(size), strides,
                                       {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin_memory}),
          0);
    });

UMBRA_OPERATOR(
    "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("new_zeros.out")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::fill(out, 0); })
    .sparse([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
               OptionalDevice device, OptionalBool) { return like_sparse(self, size, dtype, layout, device); })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("new_ones.out")
    .meta([](const Tensor& self, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::fill(out, 1); })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{.sizes = "size"});

UMBRA_OPERATOR(
    "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("new_full.out")
    .meta([](const Tensor& self, SymIntArrayRef size, const Scalar&, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return factory_spec(size, dtype.value_or(self.dtype()), device.value_or(self.device()));
    })
    .cpu([](const Tensor& out, const Tensor&, SymIntArrayRef, const Scalar& value, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { kernels::fill(out, value); })
    .not_differentiable()
    .tags({Tag::MakesBlank})
    .use(BatchInPlace{.sizes = "size"});

// ---- the identity matrix ----

Tensor identity(SymInt rows, SymInt columns, const TensorOptions& options) {
  check(sym_ge(rows, 0).expect_true(), "n must be greater or equal to 0, got ", rows);
  check(sym_ge(columns, 0).expect_true(), "m must be greater or equal to 0, got ", columns);
  Tensor out = zeros(SymShape{rows, columns}, options);
  check_kernel_type(out.dtype() != DType::Complex32 && !is_wide_unsigned(out.dtype()), "eye", out);
  out.diagonal().fill_(1);
  return out;
}

UMBRA_OPERATOR(
    "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor")
    .out("eye.out")
    .all_backends([](SymInt n, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
      return identity(n, n, options_of(dtype, layout, device, pin));
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .out("eye.m_out")
    .all_backends([](SymInt n, SymInt m, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                     OptionalBool pin) { return identity(n, m, options_of(dtype, layout, device, pin)); })
    .not_differentiable();

}  // namespace
}  // namespace umbra::ops
