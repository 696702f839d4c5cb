// Random integers: randint and randint_like. `high` is excluded.
#include "ops/common/out_variant.h"
#include "ops/common/unbacked.h"
#include "ops/random/random.h"
#include "sym/low_numbers.h"

namespace umbra::ops {
namespace {

void check_bounds(SymInt low, SymInt high) {
  check(expect_less(low, high), "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
}

/// A bound may be any 64-bit number: a SymInt holds fewer.
SymInt bound(const Value& given) { return given.is_int() ? sym::plain_number(given.to_int()) : given.to_sym_int(); }

// ---- of given sizes ----

TensorSpec integers_spec(SymInt low, SymInt high, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
                         OptionalDevice device, bool bounded = true) {
  check_strided(layout);
  if (bounded) check_bounds(low, high);
  return TensorSpec(size, dtype.value_or(default_dtype()), device.value_or(Device()));
}

/// With a generator, nothing is drawn on the meta device and nothing is asked of the bounds.
bool is_drawn(OptionalDevice device) { return device.value_or(Device()).type != DeviceType::Meta; }

void draw_between(const Tensor& out, SymInt low, SymInt high, const GeneratorPointer& generator) {
  draw_integers(out, integer_range(low.guard_int(), high.guard_int(), out.dtype()), generator_or_default(generator));
}

UMBRA_OPERATOR(
    "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](SymInt high, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) { return integers_spec(0, high, size, dtype, layout, device); })
    .cpu([](const Tensor& out, SymInt high, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { draw_between(out, 0, high, nullptr); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .meta([](SymInt high, SymIntArrayRef size, const GeneratorPointer&, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device,
             OptionalBool) { return integers_spec(0, high, size, dtype, layout, device, is_drawn(device)); })
    .cpu([](const Tensor& out, SymInt high, SymIntArrayRef, const GeneratorPointer& generator, OptionalDType,
            OptionalLayout, OptionalDevice, OptionalBool) { draw_between(out, 0, high, generator); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .meta([](const Value& low, SymInt high, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device,
             OptionalBool) { return integers_spec(bound(low), high, size, dtype, layout, device); })
    .cpu([](const Tensor& out, const Value& low, SymInt high, SymIntArrayRef, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool) { draw_between(out, bound(low), high, nullptr); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .meta([](const Value& low, SymInt high, SymIntArrayRef size, const GeneratorPointer&, OptionalDType dtype,
             OptionalLayout layout, OptionalDevice device,
             OptionalBool) { return integers_spec(bound(low), high, size, dtype, layout, device, is_drawn(device)); })
    .cpu([](const Tensor& out, const Value& low, SymInt high, SymIntArrayRef, const GeneratorPointer& generator,
            OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { draw_between(out, bound(low), high, generator); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

Tensor fill_between(const Tensor& out, SymInt low, SymInt high, const GeneratorPointer& generator) {
  return generator ? out.random_(low.guard_int(), high.guard_int(), generator)
                   : out.random_(low.guard_int(), high.guard_int());
}
Tensor fill_sized(const Tensor& out, SymIntArrayRef size, SymInt low, SymInt high, const GeneratorPointer& generator) {
  check_bounds(low, high);
  return any_negative(out, size) ? out.resize_(size) : fill_between(resized_out(out, size), low, high, generator);
}

UMBRA_OPERATOR("randint.out(SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymInt high, SymIntArrayRef size, const Tensor& out) {
      check_bounds(0, high);
      return fill_sized(out, size, 0, high, nullptr);
    })
    .random();
UMBRA_OPERATOR(
    "randint.generator_out(SymInt high, SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymInt high, SymIntArrayRef size, const GeneratorPointer& generator, const Tensor& out) {
      return fill_sized(out, size, 0, high, generator);
    })
    .random();
UMBRA_OPERATOR("randint.low_out(SymInt low, SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Value& low, SymInt high, SymIntArrayRef size, const Tensor& out) {
      check_bounds(bound(low), high);
      return fill_sized(out, size, bound(low), high, nullptr);
    })
    .random();
UMBRA_OPERATOR(
    "randint.low_generator_out(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, Tensor(a!) out) -> "
    "Tensor(a!)")
    .all_backends([](const Value& low, SymInt high, SymIntArrayRef size, const GeneratorPointer& generator,
                     const Tensor& out) { return fill_sized(out, size, bound(low), high, generator); })
    .random();

// ---- like another tensor ----

bool on_meta(const Tensor& self, OptionalDevice device) {
  return device.value_or(self.device()).type == DeviceType::Meta;
}

TensorSpec integers_spec(const Tensor& self, SymInt low, SymInt high, OptionalDType dtype, OptionalLayout layout,
                         OptionalDevice device, OptionalFormat format) {
  check_strided(layout);
  // Nothing is drawn on the meta device.
  if (!on_meta(self, device)) check_bounds(low, high);
  return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
}

UMBRA_OPERATOR(
    "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, SymInt high, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool,
             OptionalFormat format) { return integers_spec(self, 0, high, dtype, layout, device, format); })
    .cpu([](const Tensor& out, const Tensor&, SymInt high, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { draw_between(out, 0, high, nullptr); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR(
    "randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, SymInt high, const GeneratorPointer&, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool,
             OptionalFormat format) { return integers_spec(self, 0, high, dtype, layout, device, format); })
    .cpu([](const Tensor& out, const Tensor&, SymInt high, const GeneratorPointer& generator, OptionalDType,
            OptionalLayout, OptionalDevice, OptionalBool, OptionalFormat) { draw_between(out, 0, high, generator); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR(
    "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, const Value& low, SymInt high, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool,
             OptionalFormat format) { return integers_spec(self, bound(low), high, dtype, layout, device, format); })
    .cpu([](const Tensor& out, const Tensor&, const Value& low, SymInt high, OptionalDType, OptionalLayout,
            OptionalDevice, OptionalBool, OptionalFormat) { draw_between(out, bound(low), high, nullptr); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR(
    "randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? "
    "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> "
    "Tensor")
    .meta([](const Tensor& self, const Value& low, SymInt high, const GeneratorPointer&, OptionalDType dtype,
             OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) { return integers_spec(self, bound(low), high, dtype, layout, device, format); })
    .cpu([](const Tensor& out, const Tensor&, const Value& low, SymInt high, const GeneratorPointer& generator,
            OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { draw_between(out, bound(low), high, generator); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

void check_bound(const Tensor& high) {
  check(high.dim() == 0 && high.device() == Device(), "high must be a scalar tensor and on CPU");
}
int64_t bound_of(const Tensor& high) { return high.item().to<int64_t>(); }

UMBRA_OPERATOR(
    "randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, const Tensor& high, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool, OptionalFormat format) {
      if (!self.is_meta()) check_bound(high);
      return integers_spec(self, 0, 1, dtype, layout, device, format);
    })
    .cpu([](const Tensor& out, const Tensor&, const Tensor& high, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool, OptionalFormat) { draw_between(out, 0, bound_of(high), nullptr); })
    .random()
    .not_differentiable();

UMBRA_OPERATOR(
    "randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, const Tensor& high, const GeneratorPointer&, OptionalDType dtype,
             OptionalLayout layout, OptionalDevice device, OptionalBool, OptionalFormat format) {
      check_bound(high);
      return integers_spec(self, 0, 1, dtype, layout, device, format);
    })
    .cpu([](const Tensor& out, const Tensor&, const Tensor& high, const GeneratorPointer& generator, OptionalDType,
            OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { draw_between(out, 0, bound_of(high), generator); })
    .random()
    .not_differentiable();

/// Drawn in the memory order of `self`, in the output's type.
Tensor fill_like(const Tensor& out, const Tensor& self, SymInt low, SymInt high, const GeneratorPointer& generator,
                 OptionalFormat format) {
  Tensor drawn =
      fill_between(empty_like(self, {.dtype = out.dtype(), .device = out.device()}, format), low, high, generator);
  return resized_out(out, drawn.sym_sizes()).copy_(drawn);
}

UMBRA_OPERATOR(
    "randint_like.out(Tensor self, SymInt high, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, SymInt high, OptionalFormat format, const Tensor& out) {
      return fill_like(out, self, 0, high, nullptr, format);
    })
    .random()
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "randint_like.generator_out(Tensor self, SymInt high, *, Generator? generator, MemoryFormat? memory_format=None, "
    "Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, SymInt high, const GeneratorPointer& generator, OptionalFormat format,
                     const Tensor& out) { return fill_like(out, self, 0, high, generator, format); })
    .random()
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "randint_like.low_dtype_out(Tensor self, SymInt low, SymInt high, *, MemoryFormat? memory_format=None, Tensor(a!) "
    "out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Value& low, SymInt high, OptionalFormat format, const Tensor& out) {
      return fill_like(out, self, bound(low), high, nullptr, format);
    })
    .random()
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "randint_like.low_generator_dtype_out(Tensor self, SymInt low, SymInt high, *, Generator? generator, MemoryFormat? "
    "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Value& low, SymInt high, const GeneratorPointer& generator,
                     OptionalFormat format,
                     const Tensor& out) { return fill_like(out, self, bound(low), high, generator, format); })
    .random()
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "randint_like.Tensor_out(Tensor self, Tensor high, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
    "Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& high, OptionalFormat format, const Tensor& out) {
      Tensor drawn = randint_like(self, high, {.dtype = out.dtype(), .device = out.device()}, format);
      return resized_out(out, drawn.sym_sizes()).copy_(drawn);
    })
    .random()
    .tags({Tag::Generated});
UMBRA_OPERATOR(
    "randint_like.Tensor_generator_out(Tensor self, Tensor high, *, Generator? generator, MemoryFormat? "
    "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& high, const GeneratorPointer& generator, OptionalFormat format,
                     const Tensor& out) {
      Tensor drawn = randint_like(self, high, generator, {.dtype = out.dtype(), .device = out.device()}, format);
      return resized_out(out, drawn.sym_sizes()).copy_(drawn);
    })
    .random()
    .tags({Tag::Generated});

}  // namespace
}  // namespace umbra::ops
