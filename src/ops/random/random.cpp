// Random tensors: drawn from the thread-safe default generator unless one is given.
#include "kernels/random.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using GeneratorPointer = IntrusivePtr<Generator>;

Generator& generator_or_default(const GeneratorPointer& given) {
  static const GeneratorPointer fallback = default_generator();
  return given ? *given : *fallback;
}

TensorSpec random_spec(SymIntArrayRef size, OptionalDType dtype, OptionalDevice device) {
  return TensorSpec(size, dtype.value_or(default_dtype()), device.value_or(Device()));
}

// ---- filling in place; the functional forms are what functionalisation records ----

UMBRA_OPERATOR("normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
    .meta([](const Tensor& self, double, double std, const GeneratorPointer&) {
      check(std >= 0, "normal expects std >= 0.0, but found std ", std);
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double mean, double std, const GeneratorPointer& generator) {
      kernels::normal(out, mean, std, generator_or_default(generator));
    })
    .elementwise()
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)")
    .meta([](const Tensor& self, double, double std, const GeneratorPointer&) {
      check(std >= 0, "normal_ expects std >= 0.0, but found std ", std);
      return spec_like(self);
    })
    .mutate([](const Tensor& self, double mean, double std, const GeneratorPointer& generator) {
      kernels::normal(self, mean, std, generator_or_default(generator));
    })
    .functional_form("aten::normal_functional")
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .random();

UMBRA_OPERATOR("uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor")
    .inplace("uniform_")
    .meta([](const Tensor& self, double from, double to, const GeneratorPointer&) {
      check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double from, double to, const GeneratorPointer& generator) {
      kernels::uniform(out, from, to, generator_or_default(generator));
    })
    .elementwise()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .random()
    .tags({Tag::Generated})
    .use(BatchRandomLike{});

UMBRA_OPERATOR("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
    .meta([](const Tensor& self, double p, const GeneratorPointer&) {
      check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor&, double p, const GeneratorPointer& generator) {
      kernels::bernoulli(out, p, generator_or_default(generator));
    })
    .elementwise()
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)")
    .meta([](const Tensor& self, double p, const GeneratorPointer&) {
      check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
      return spec_like(self);
    })
    .mutate([](const Tensor& self, double p, const GeneratorPointer& generator) {
      kernels::bernoulli(self, p, generator_or_default(generator));
    })
    .functional_form("aten::bernoulli.p")
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .random()
    .node("BernoulliBackward2");

UMBRA_OPERATOR("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
    .out("bernoulli.out")
    .meta([](const Tensor& self, const GeneratorPointer&) {
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
      kernels::bernoulli(out, self, generator_or_default(generator));
    })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .random()
    .tags({Tag::CastsToOut})
    .batch([](const Batched& self, const GeneratorPointer& generator) {
      check(batch_scope().randomness != Randomness::Same || !self.is_batched(),
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
            "functorch");
      Tensor all = batch_all(self);
      return Batched(generator ? bernoulli(all, generator) : bernoulli(all), 0);
    });

// ---- factories ----

void check_bounds(SymInt low, SymInt high) {
  check(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
}

UMBRA_OPERATOR(
    "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return random_spec(size, dtype, device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::uniform(out, 0, 1, generator_or_default(nullptr));
    })
    .random()
    .not_differentiable()
    .tags({Tag::Core})
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
    "-> Tensor")
    .meta([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      return random_spec(size, dtype, device);
    })
    .cpu([](const Tensor& out, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::normal(out, 0, 1, generator_or_default(nullptr));
    })
    .random()
    .not_differentiable()
    .tags({Tag::Core})
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .meta([](SymInt high, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             OptionalBool) {
      check_strided(layout);
      check_bounds(0, high);
      return random_spec(size, dtype.value_or(DType::Int64), device);
    })
    .cpu([](const Tensor& out, SymInt high, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) { kernels::random_between(out, 0, high.guard_int(), generator_or_default(nullptr)); })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .meta([](SymInt low, SymInt high, SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout,
             OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check_bounds(low, high);
      return random_spec(size, dtype.value_or(DType::Int64), device);
    })
    .cpu([](const Tensor& out, SymInt low, SymInt high, SymIntArrayRef, OptionalDType, OptionalLayout, OptionalDevice,
            OptionalBool) {
      kernels::random_between(out, low.guard_int(), high.guard_int(), generator_or_default(nullptr));
    })
    .random()
    .not_differentiable()
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR(
    "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor")
    .meta([](SymInt n, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool) {
      check_strided(layout);
      check(n >= 0, "n must be non-negative, got", n);
      return random_spec({n}, dtype.value_or(DType::Int64), device);
    })
    .cpu([](const Tensor& out, SymInt, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool) {
      kernels::randperm(out, generator_or_default(nullptr));
    })
    .random()
    .not_differentiable()
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::uniform(out, 0, 1, generator_or_default(nullptr)); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

UMBRA_OPERATOR(
    "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .meta([](const Tensor& self, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool,
             OptionalFormat format) {
      check_strided(layout);
      return spec_like(self, dtype, device, format.value_or(MemoryFormat::Preserve));
    })
    .cpu([](const Tensor& out, const Tensor&, OptionalDType, OptionalLayout, OptionalDevice, OptionalBool,
            OptionalFormat) { kernels::normal(out, 0, 1, generator_or_default(nullptr)); })
    .random()
    .not_differentiable()
    .use(BatchRandomLike{});

}  // namespace
}  // namespace umbra::ops
