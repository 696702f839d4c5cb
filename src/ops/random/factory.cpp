// Random tensors made from nothing, of given sizes or like another tensor.
#include "ops/common/number_text.h"
#include "ops/common/out_variant.h"
#include "ops/common/unbacked.h"
#include "ops/random/random.h"
#include "umbra/core/sparse.h"

namespace umbra::ops {
namespace {

using kernels::normal, kernels::uniform;

void draw_uniform(const Tensor& out, const GeneratorPointer& g) { uniform(out, 0, 1, generator_or_default(g)); }
void draw_normal(const Tensor& out, const GeneratorPointer& g) { normal(out, 0, 1, generator_or_default(g)); }
using Draw = void (*)(const Tensor& out, const GeneratorPointer& generator);

/// Without data only numbers that have a normal distribution are described.
void check_drawn_type(Draw draw, DType type, Device device) {
  bool fits = is_floating(type) || is_complex(type) || draw != draw_normal;
  check(fits || device.type != DeviceType::Meta, "expected a floating-point or complex dtype, but got dtype=", type);
}
TensorSpec random_spec(Draw draw, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
                       OptionalDevice device) {
  check_strided(layout);
  check_drawn_type(draw, dtype.value_or(default_dtype()), device.value_or(Device()));
  for (SymInt s : size)
    if (s.is_symbolic()) check(expect_size(s), "Trying to create tensor with negative dimension ", s);
  return TensorSpec(size, dtype.value_or(default_dtype()), device.value_or(Device()));
}
TensorSpec random_spec(const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                       OptionalFormat format) {
  check_strided(layout);
  return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
}

// ---- rand, randn: one distribution, of given sizes ----

struct OfSize {
  Draw draw;
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([draw = draw](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                            OptionalBool) { return random_spec(draw, size, dtype, layout, device); })
        .cpu([draw = draw](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
                           OptionalBool) { draw(out, nullptr); })
        .random()
        .not_differentiable()
        .use(BatchInFront{.sizes = {"size"}});
  }
};
struct OfSizeByGenerator {
  Draw draw;
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([draw = draw](SymIntArrayRef size, const GeneratorPointer&, OptionalDType dtype, OptionalLayout layout,
                            OptionalDevice device,
                            OptionalBool) { return random_spec(draw, size, dtype, layout, device); })
        .cpu([draw = draw](const Tensor& out, SymIntArrayRef, const GeneratorPointer& generator, OptionalDType,
                           OptionalLayout, OptionalDevice, OptionalBool) { draw(out, generator); })
        .random()
        .not_differentiable()
        .use(BatchInFront{.sizes = {"size"}});
  }
};

UMBRA_OPERATOR(
    "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .use(OfSize{draw_uniform})
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .use(OfSizeByGenerator{draw_uniform});
/// Before anything is said about sizes, unless there is no number of elements.
void check_can_be_uniform(const Tensor& out, SymIntArrayRef sizes) {
  if (!can_be_counted(sizes)) return;
  check<NotImplementedError>(!is_integral(out.dtype(), true) || out.is_meta(),
                             "\"check_uniform_bounds\" not implemented for '", kernel_name(out.dtype()), "'");
}

UMBRA_OPERATOR("rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymIntArrayRef size, const Tensor& out) {
      check_can_be_uniform(out, size);
      return any_negative(out, size) ? out.resize_(size) : resized_out(out, size).uniform_(0, 1);
    })
    .random();
UMBRA_OPERATOR("rand.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .composite([](SymIntArrayRef size, const GeneratorPointer& generator, const Tensor& out) {
      check_can_be_uniform(out, size);
      return any_negative(out, size) ? out.resize_(size) : out.resize_(size).uniform_(0, 1, generator);
    })
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .use(OfSize{draw_normal})
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .use(OfSizeByGenerator{draw_normal});
UMBRA_OPERATOR("randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .composite([](SymIntArrayRef size, const Tensor& out) {
      return any_negative(out, size) ? out.resize_(size) : out.resize_(size).normal_(0, 1);
    })
    .tags({Tag::NondeterministicSeeded});
UMBRA_OPERATOR("randn.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .composite([](SymIntArrayRef size, const GeneratorPointer& generator, const Tensor& out) {
      return any_negative(out, size) ? out.resize_(size) : out.resize_(size).normal_(0, 1, generator);
    })
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .meta([](double, double std, SymIntArrayRef size, const GeneratorPointer&, OptionalDType dtype,
             OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check(std >= 0, "normal expects std >= 0.0, but found std ", number_text(std));
      return random_spec(draw_normal, size, dtype, layout, device);
    })
    .cpu([](const Tensor& out, double mean, double std, SymIntArrayRef, const GeneratorPointer& generator,
            OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { normal(out, mean, std, generator_or_default(generator)); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});
UMBRA_OPERATOR(
    "normal.float_float_out(float mean, float std, SymInt[] size, *, Generator? generator=None, Tensor(a!) out) -> "
    "Tensor(a!)")
    .all_backends([](double mean, double std, SymIntArrayRef size, const GeneratorPointer& generator,
                     const Tensor& out) {
      return any_negative(out, size) ? out.resize_(size) : resized_out(out, size).normal_(mean, std, generator);
    })
    .random();

// ---- like another tensor ----

TensorSpec like_spec(Draw draw, const TensorSpec& spec) {
  check_drawn_type(draw, spec.dtype, spec.device);
  return spec;
}

struct Like {
  Draw draw;
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([draw = draw](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                            OptionalBool, OptionalFormat format) {
          return like_spec(draw, random_spec(self, dtype, layout, device, format));
        })
        .cpu([draw = draw](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice,
                           OptionalBool, OptionalFormat) { draw(out, nullptr); })
        .random()
        .not_differentiable()
        .use(BatchRandomLike{});
  }
};
struct LikeByGenerator {
  Draw draw;
  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([draw = draw](const Tensor& self, const GeneratorPointer&, OptionalDType dtype, OptionalLayout layout,
                            OptionalDevice device, OptionalBool, OptionalFormat format) {
          return like_spec(draw, random_spec(self, dtype, layout, device, format));
        })
        .cpu([draw = draw](const Tensor& out, const Tensor&, const GeneratorPointer& generator, OptionalDType,
                           OptionalLayout, OptionalDevice, OptionalBool, OptionalFormat) { draw(out, generator); })
        .random()
        .not_differentiable()
        .use(BatchRandomLike{});
  }
};

UMBRA_OPERATOR(
    "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .use(Like{draw_uniform});
UMBRA_OPERATOR(
    "rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .use(LikeByGenerator{draw_uniform});
UMBRA_OPERATOR(
    "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .use(Like{draw_normal})
    .sparse([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
               OptionalFormat) {
      bool same = is_compressed(self.layout()) && (!layout || *layout == self.layout()) &&
                  (!device || *device == self.device());
      check<NotImplementedError>(same, "Could not run 'aten::normal_' with arguments from the 'SparseCPU' backend");
      return with_values(self, randn_like(sparse_parts(self).values, {.dtype = dtype}));
    });
UMBRA_OPERATOR(
    "randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .use(LikeByGenerator{draw_normal});

/// The out variants of what is made like a tensor: drawn in the memory order of `self`, in the output's type.
Tensor like_for(const Tensor& out, const Tensor& self, OptionalFormat format) {
  return empty_like(self, {.dtype = out.dtype(), .device = out.device()}, format);
}
Tensor fill_from(const Tensor& out, const Tensor& drawn) { return resized_out(out, drawn.sym_sizes()).copy_(drawn); }

UMBRA_OPERATOR("rand_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, OptionalFormat format, const Tensor& out) {
      return fill_from(out, like_for(out, self, format).uniform_(0, 1));
    })
    .random()
    .tags({Tag::Generated, Tag::MakesBlank});
UMBRA_OPERATOR(
    "rand_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? memory_format=None, Tensor(a!) out) "
    "-> Tensor(a!)")
    .all_backends([](const Tensor& self, const GeneratorPointer& generator, OptionalFormat format, const Tensor& out) {
      return fill_from(out, like_for(out, self, format).uniform_(0, 1, generator));
    })
    .random()
    .tags({Tag::Generated, Tag::MakesBlank});
UMBRA_OPERATOR("randn_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, OptionalFormat format, const Tensor& out) {
      return fill_from(out, like_for(out, self, format).normal_(0, 1));
    })
    .random()
    .tags({Tag::Generated, Tag::MakesBlank});
UMBRA_OPERATOR(
    "randn_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? memory_format=None, Tensor(a!) out) "
    "-> Tensor(a!)")
    .all_backends([](const Tensor& self, const GeneratorPointer& generator, OptionalFormat format, const Tensor& out) {
      return fill_from(out, like_for(out, self, format).normal_(0, 1, generator));
    })
    .random()
    .tags({Tag::Generated, Tag::MakesBlank});

// ---- permutations ----

TensorSpec permutation_spec(SymInt n, OptionalDType dtype, OptionalLayout layout, OptionalDevice device) {
  check(expect_at_most(0, n), "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  return random_spec(draw_uniform, {n}, dtype.value_or(DType::Int64), layout, device);
}

void draw_permutation(const Tensor& out, const GeneratorPointer& generator) {
  int64_t n = out.numel();
  auto refuse_beyond = [&](DType dtype, int64_t most, const char* text) {
    check(out.dtype() != dtype || n <= most, "n cannot be greater than ", text, " type.");
  };
  refuse_beyond(DType::Float16, 2049, "2049 for Half");
  refuse_beyond(DType::Float32, (int64_t{1} << 24) + 1, "2^24+1 for Float");
  refuse_beyond(DType::Float64, (int64_t{1} << 53) + 1, "2^53+1 for Double");
  if (n > 0 && is_integral(out.dtype(), false)) {
    int bits = static_cast<int>(8 * out.item_size());
    bool is_signed = out.dtype() == DType::Int8 || out.dtype() == DType::Int16 || out.dtype() == DType::Int32;
    check(bits == 64 || n <= int64_t{1} << (is_signed ? bits - 1 : bits), "value cannot be converted to type ",
          is_signed ? "int" : "uint", bits, "_t without overflow");
  }
  kernels::randperm(out, generator_or_default(generator));
}

UMBRA_OPERATOR(
    "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor")
    .meta([](SymInt n, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      return permutation_spec(n, dtype, layout, device);
    })
    .cpu([](const Tensor& out, SymInt, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      draw_permutation(out, nullptr);
    })
    .random()
    .not_differentiable()
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .meta([](SymInt n, const GeneratorPointer&, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) { return permutation_spec(n, dtype, layout, device); })
    .cpu([](const Tensor& out, SymInt, const GeneratorPointer& generator, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { draw_permutation(out, generator); })
    .random()
    .not_differentiable();
UMBRA_OPERATOR("randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymInt n, const Tensor& out) {
      return fill_from(out, randperm(n, {.dtype = out.dtype(), .device = out.device()}));
    })
    .random();
UMBRA_OPERATOR("randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymInt n, const GeneratorPointer& generator, const Tensor& out) {
      return fill_from(out, randperm(n, generator, {.dtype = out.dtype(), .device = out.device()}));
    })
    .random();

}  // namespace
}  // namespace umbra::ops
