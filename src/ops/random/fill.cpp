// Filling a tensor with random numbers of one distribution, in place. The functional forms are what functionalisation
// records; they take the place of the tensor, whose contents do not matter.
#include <limits>

#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "kernels/fits.h"
#include "ops/common/expand_rank.h"
#include "ops/common/kernel_type.h"
#include "ops/common/number_text.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"
#include "ops/random/random.h"

namespace umbra::ops {
namespace {

/// What all of these have in common.
void filling(OperatorBuilder& builder) {
  builder.elementwise()
      .gradient("self", {"grad"}, zero_gradient)
      .random()
      .tags({Tag::Generated})
      .use(BatchRandomLike{});
}

/// Without data no kernel refuses a type.
void check_meta_type(const char* name, const Tensor& self, bool fits) {
  check(fits || !self.is_meta(), name, " not implemented for ", self.dtype());
}
void check_normal(const Tensor& self) {
  check(is_differentiable(self.dtype()) || !self.is_meta(),
        "expected a floating-point or complex dtype, but got dtype=", self.dtype());
}
/// The output of a variant that is a draw and a copy.
Tensor copied_to(const Tensor& out, const Tensor& drawn) {
  check_out_dtype(drawn.dtype(), out.dtype());
  return copied_out(out, drawn);
}

// ---- uniform, normal ----

/// Both ends and the distance between them have to be numbers of the type.
void check_uniform_bounds(DType dtype, double from, double to) {
  double most = is_floating(dtype) ? kernels::largest_number(dtype) : std::numeric_limits<double>::max();
  auto is_number = [&](double end) { return end >= -most && end <= most; };
  check(is_number(from), "from is out of bounds for ", cpp_name(dtype));
  check(is_number(to), "to is out of bounds for ", cpp_name(dtype));
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", number_text(from),
        " > to=", number_text(to));
  check(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", kernel_name(dtype),
        ">::max(), but found to=", number_text(to), " and from=", number_text(from),
        " which result in to-from to exceed the limit");
}

UMBRA_OPERATOR("uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor")
    .inplace("uniform_")
    .generated_out("uniform.out")
    .meta([](const Tensor& self, double from, double to, const GeneratorPointer&) {
      check_kernel_type(is_differentiable(self.dtype()), "check_uniform_bounds", self);
      // Of complex numbers the parts are drawn, where there are any.
      bool nothing = self.is_complex() && self.sym_numel().same(0);
      if (!only_metadata_is_asked() && !nothing) check_uniform_bounds(real_type(self.dtype()), from, to);
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double from, double to, const GeneratorPointer& generator) {
      kernels::uniform(out, from, to, generator_or_default(generator));
    })
    .use(filling);

UMBRA_OPERATOR("normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
    .meta([](const Tensor& self, double, double std, const GeneratorPointer&) {
      check(std >= 0, "normal expects std >= 0.0, but found std ", number_text(std));
      check_normal(self);
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double mean, double std, const GeneratorPointer& generator) {
      kernels::normal(out, mean, std, generator_or_default(generator));
    })
    .elementwise()
    .random()
    .not_differentiable()
    .use(BatchRandom{});

UMBRA_OPERATOR("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)")
    .meta([](const Tensor& self, double, double std, const GeneratorPointer&) {
      check(std >= 0, "normal expects std >= 0.0, but found std ", number_text(std));
      check_normal(self);
      return spec_like(self);
    })
    .mutate([](const Tensor& self, double mean, double std, const GeneratorPointer& generator) {
      kernels::normal(self, mean, std, generator_or_default(generator));
    })
    .functional_form("aten::normal_functional")
    .gradient("self", {"grad"}, zero_gradient)
    .random();

UMBRA_OPERATOR(
    "normal.out(Tensor self, float mean=0., float std=1., *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, double mean, double std, const GeneratorPointer& generator,
                     const Tensor& out) { return copied_to(out, normal_functional(self, mean, std, generator)); })
    .random()
    .tags({Tag::Generated});

UMBRA_OPERATOR("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor")
    .inplace("log_normal_")
    .generated_out("log_normal.out")
    .meta([](const Tensor& self, double, double std, const GeneratorPointer&) {
      check(std > 0, "log_normal_ expects std > 0.0, but found std=", number_text(std));
      check_meta_type("log_normal", self, is_floating(self.dtype()));
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double mean, double std, const GeneratorPointer& generator) {
      if (out.numel() > 0) kernels::log_normal(out, mean, std, generator_or_default(generator));
    })
    .use(filling);

// ---- other continuous distributions ----

UMBRA_OPERATOR("exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor")
    .inplace("exponential_")
    .generated_out("exponential.out")
    .meta([](const Tensor& self, double lambda, const GeneratorPointer&) {
      check(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", number_text(lambda));
      check_meta_type("exponential", self, is_floating(self.dtype()));
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double lambda, const GeneratorPointer& generator) {
      if (out.numel() == 0) return;
      check(is_floating(out.dtype()),
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            "specified ",
            kernel_name(out.dtype()));
      kernels::exponential(out, lambda, generator_or_default(generator));
    })
    .use(filling);

UMBRA_OPERATOR("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor")
    .inplace("cauchy_")
    .generated_out("cauchy.out")
    .meta([](const Tensor& self, double, double sigma, const GeneratorPointer&) {
      check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", number_text(sigma));
      check(is_floating(self.dtype()),
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            "specified ",
            cpp_name(self.dtype()));
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double median, double sigma, const GeneratorPointer& generator) {
      kernels::cauchy(out, median, sigma, generator_or_default(generator));
    })
    .use(filling);

// ---- whole numbers ----

UMBRA_OPERATOR("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor")
    .inplace("geometric_")
    .generated_out("geometric.out")
    .meta([](const Tensor& self, double p, const GeneratorPointer&) {
      check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", number_text(p));
      check_meta_type("geometric", self, self.dtype() != DType::Bool && !self.is_complex());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, double p, const GeneratorPointer& generator) {
      if (out.numel() > 0) kernels::geometric(out, p, generator_or_default(generator));
    })
    .use(filling);

UMBRA_OPERATOR("random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor")
    .inplace("random_.from")
    .generated_out("random.from_out")
    .meta([](const Tensor& self, int64_t from, std::optional<int64_t> to, const GeneratorPointer&) {
      if (!only_metadata_is_asked()) integer_range(from, to, self.dtype());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t from, std::optional<int64_t> to,
            const GeneratorPointer& generator) {
      draw_integers(out, integer_range(from, to, self.dtype()), generator_or_default(generator));
    })
    .use(filling);

UMBRA_OPERATOR("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor")
    .inplace("random_.to")
    .generated_out("random.to_out")
    .meta([](const Tensor& self, int64_t to, const GeneratorPointer&) {
      if (!only_metadata_is_asked()) integer_range(0, to, self.dtype());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t to, const GeneratorPointer& generator) {
      draw_integers(out, integer_range(0, to, self.dtype()), generator_or_default(generator));
    })
    .use(filling);

UMBRA_OPERATOR("random(Tensor self, *, Generator? generator=None) -> Tensor")
    .inplace("random_")
    .generated_out("random.out")
    .meta([](const Tensor& self, const GeneratorPointer&) { return spec_like(self); })
    .cpu([](const Tensor& out, const Tensor&, const GeneratorPointer& generator) {
      if (out.numel() > 0) kernels::random(out, generator_or_default(generator));
    })
    .use(filling);

// ---- yes or no; by tensors first: a number may be given as a tensor of one element ----

UMBRA_OPERATOR("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor")
    .inplace("bernoulli_.Tensor")
    .generated_out("bernoulli.Tensor_out")
    .meta([](const Tensor& self, const Tensor& p, const GeneratorPointer&) {
      if (only_metadata_is_asked()) {
        check<NotImplementedError>(self.is_meta(), "Cannot inplace into non-meta tensor with meta tensor argument");
      } else if (self.sym_numel() != 0) {
        check_kernel_type(!self.is_complex(), "bernoulli_tensor_cpu_self_", self);
        check_expands(p, self.sym_sizes());
      }
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor&, const Tensor& p, const GeneratorPointer& generator) {
      kernels::bernoulli(out, p, generator_or_default(generator));
    })
    .elementwise()
    .gradient("self", {"grad"}, zero_gradient)
    .gradient("p", {"p"}, [](const Tensor& p) { return zeros_like(p); })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) { variant.node("BernoulliBackward1"); })
    .random()
    .tags({Tag::Generated});

UMBRA_OPERATOR("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
    .meta([](const Tensor& self, double p, const GeneratorPointer&) {
      check((p >= 0 && p <= 1) || only_metadata_is_asked(),
            "bernoulli_ expects p to be in [0, 1], but got p=", number_text(p));
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor&, double p, const GeneratorPointer& generator) {
      kernels::bernoulli(out, p, generator_or_default(generator));
    })
    .elementwise()
    .random()
    .not_differentiable()
    .use(BatchRandom{});

UMBRA_OPERATOR("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)")
    .meta([](const Tensor& self, double p, const GeneratorPointer&) {
      check((p >= 0 && p <= 1) || only_metadata_is_asked(),
            "bernoulli_ expects p to be in [0, 1], but got p=", number_text(p));
      return spec_like(self);
    })
    .mutate([](const Tensor& self, double p, const GeneratorPointer& generator) {
      kernels::bernoulli(self, p, generator_or_default(generator));
    })
    .functional_form("aten::bernoulli.p")
    .gradient("self", {"grad"}, zero_gradient)
    .random()
    .node("BernoulliBackward2");

UMBRA_OPERATOR(
    "bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, double p, const GeneratorPointer& generator, const Tensor& out) {
      return copied_to(out, bernoulli(self, p, generator));
    })
    .random()
    .tags({Tag::Generated});

UMBRA_OPERATOR("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
    .out("bernoulli.out")
    .use(out_parts([](const Tensor& self, const GeneratorPointer& generator, const Tensor& out) {
      check(out.device() == self.device(), "Attempting to copy from device ", self.device(), " to device ",
            out.device(), ", but cross-device copies are not allowed!");
      return bernoulli_(resized_out(out, self.sym_sizes()), self, generator);
    }))
    .meta([](const Tensor& self, const GeneratorPointer&) {
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
      kernels::bernoulli(out, self, generator_or_default(generator));
    })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .random()
    .tags({Tag::CastsToOut})
    .use(BatchRandom{});

}  // namespace
}  // namespace umbra::ops
