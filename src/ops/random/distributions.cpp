// Random tensors whose distribution is given by tensors, and the gradients of those that have one.
#include "kernels/functors/distributions.h"

#include <algorithm>

#include "kernels/sort.h"
#include "ops/common/batching.h"
#include "ops/common/needs_data.h"
#include "ops/common/no_derivative.h"
#include "ops/common/number_text.h"
#include "ops/common/out_variant.h"
#include "ops/common/unbacked.h"
#include "ops/pointwise/family.h"
#include "ops/random/random.h"
#include "umbra/dispatch/writes.h"

namespace umbra::ops {
namespace {

/// Drawn element by element into new memory, whatever the strides of the input.
TensorSpec drawn_spec(const Tensor& self) { return TensorSpec(self.sym_sizes(), self.dtype(), self.device()); }

// ---- normal ----

void check_deviation(double std) { check(std >= 0, "normal expects std >= 0.0, but found std ", number_text(std)); }
void check_deviation(const Tensor& std) {
  check(!std.is_complex(), "normal expects standard deviation to be non-complex");
  bool known = std.storage()->has_data() && std.device() == Device() && !std.is_symbolic();
  if (known && std.numel() > 0) check(std.min().ge(0).item().to<bool>(), "normal expects all elements of std >= 0.0");
}

Tensor contiguous_like(const Tensor& t, SymIntArrayRef sizes) {
  return empty(sizes, {.dtype = t.dtype(), .device = t.device()});
}

/// Where a tensor is on the meta device, numbers are drawn like the first of the parameters, and what follows from them
/// is put together by operators of their own.
Tensor described(const Tensor& first, SymIntArrayRef sizes, const GeneratorPointer& generator) {
  return contiguous_like(first, sizes).normal_(0, 1, generator);
}
bool any_on_meta(std::initializer_list<const Tensor*> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor* t) { return t->is_meta(); });
}
Tensor described_around(const Tensor& mean, double std, const GeneratorPointer& generator) {
  check_deviation(std);
  return described(mean, mean.sym_sizes(), generator).mul(Scalar(std)).add(mean);
}
Tensor described_around(double mean, const Tensor& std, const GeneratorPointer& generator) {
  return std.mul(described(std, std.sym_sizes(), generator)).add(Scalar(mean));
}
Tensor described_around(const Tensor& mean, const Tensor& std, const GeneratorPointer& generator) {
  SymShape sizes = broadcast_shapes(mean.sym_sizes(), std.sym_sizes());
  return std.to(mean.dtype()).mul(described(mean, sizes, generator)).add(mean);
}
Tensor described_out(const Tensor& out, const Tensor& result) {
  check(result.is_meta() == out.is_meta(), "Attempting to copy from device ", result.device(), " to device ",
        out.device(), ", but cross-device copies are not allowed!");
  check(can_cast(result.dtype(), out.dtype()), "Attempting to cast from ", result.dtype(), " to out tensor with dtype ",
        out.dtype(), ", but this can't be cast because it is not safe!");
  return copied_out(out, result);
}

/// Where numbers are written to integers, which have no such distribution, the mean is found not to be one first.
void check_mean(const Tensor& out, double mean) {
  if (is_integral(out.dtype(), true)) full({}, Scalar(mean), out.options());
}

Tensor resized_with_warning(const Tensor& out, SymIntArrayRef sizes) {
  warn_of_resize(out, sizes);
  return resized_out(out, sizes);
}

Tensor draw_around(const Tensor& out, const Tensor& mean, double std, const GeneratorPointer& generator) {
  check_deviation(std);
  return resized_with_warning(out, broadcast_shapes(mean.sym_sizes(), out.sym_sizes()))
      .normal_(0, std, generator)
      .add_(mean);
}
Tensor draw_around(const Tensor& out, double mean, const Tensor& std, const GeneratorPointer& generator) {
  check_deviation(std);
  check_mean(out, mean);
  return resized_with_warning(out, std.sym_sizes())
      .normal_(0, 1, generator)
      .mul_(std)
      .add_(full({}, mean, out.options()));
}
Tensor draw_around(const Tensor& out, const Tensor& mean, const Tensor& std, const GeneratorPointer& generator) {
  check_deviation(std);
  return resized_with_warning(out, broadcast_shapes(mean.sym_sizes(), std.sym_sizes()))
      .normal_(0, 1, generator)
      .mul_(std)
      .add_(mean);
}

Tensor zeros_of(SymIntArrayRef sizes, const Tensor& grad) { return zeros(sizes, grad.options()); }

// Overloads over tensors come before those over numbers: a number may be given as a tensor of one element.
UMBRA_OPERATOR("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
    .all_backends([](const Tensor& mean, const Tensor& std, const GeneratorPointer& generator) {
      if (any_on_meta({&mean, &std})) return described_around(mean, std, generator);
      check_deviation(std);
      SymShape shape = broadcast_shapes(mean.sym_sizes(), std.sym_sizes());
      return draw_around(contiguous_like(mean, shape), mean, std, generator);
    })
    .gradient("mean", {"grad", "mean.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return zeros_of(sizes, grad); })
    .gradient("std", {"grad", "std.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return zeros_of(sizes, grad); })
    .tangent(TangentRule::Pointwise)
    .random()
    .use(BatchRandom{})
    .node("NormalBackward3");
UMBRA_OPERATOR("normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor")
    .all_backends([](const Tensor& mean, double std, const GeneratorPointer& generator) {
      if (any_on_meta({&mean})) return described_around(mean, std, generator);
      check_deviation(std);
      return draw_around(contiguous_like(mean, mean.sym_sizes()), mean, std, generator);
    })
    .gradient("mean", {"grad", "mean.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return zeros_of(sizes, grad); })
    .tangent(TangentRule::Pointwise)
    .random()
    .use(BatchRandom{})
    .node("NormalBackward1");
UMBRA_OPERATOR("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
    .all_backends([](double mean, const Tensor& std, const GeneratorPointer& generator) {
      if (any_on_meta({&std})) return described_around(mean, std, generator);
      check_deviation(std);
      return draw_around(contiguous_like(std, std.sym_sizes()), mean, std, generator);
    })
    .gradient("std", {"grad", "std.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return zeros_of(sizes, grad); })
    .tangent(TangentRule::Pointwise)
    .random()
    .use(BatchRandom{})
    .node("NormalBackward2");

UMBRA_OPERATOR(
    "normal.Tensor_Tensor_out(Tensor mean, Tensor std, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& mean, const Tensor& std, const GeneratorPointer& generator, const Tensor& out) {
      if (any_on_meta({&mean, &std, &out})) return described_out(out, described_around(mean, std, generator));
      return draw_around(out, mean, std, generator);
    })
    .random();
UMBRA_OPERATOR(
    "normal.Tensor_float_out(Tensor mean, float std=1., *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& mean, double std, const GeneratorPointer& generator, const Tensor& out) {
      if (any_on_meta({&mean, &out})) return described_out(out, described_around(mean, std, generator));
      return draw_around(out, mean, std, generator);
    })
    .random();
UMBRA_OPERATOR(
    "normal.float_Tensor_out(float mean, Tensor std, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](double mean, const Tensor& std, const GeneratorPointer& generator, const Tensor& out) {
      if (any_on_meta({&std, &out})) return described_out(out, described_around(mean, std, generator));
      return draw_around(out, mean, std, generator);
    })
    .random();

// ---- counts ----

UMBRA_OPERATOR("poisson(Tensor self, Generator? generator=None) -> Tensor")
    .generated_out("poisson.out")
    .meta([](const Tensor& self, const GeneratorPointer&) { return drawn_spec(self); })
    .cpu([](const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
      kernels::poisson(out, self, generator_or_default(generator));
    })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .random()
    .use(BatchRandom{});

UMBRA_OPERATOR("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")
    .generated_out("binomial.out")
    .meta([](const Tensor& count, const Tensor& prob, const GeneratorPointer&) {
      for (const Tensor* t : {&count, &prob})
        check<ValueError>(is_floating(t->dtype()), "binomial only supports floating-point dtypes for ",
                          t == &count ? "count" : "prob", ", got: ", kernel_name(t->dtype()));
      check(prob.dtype() == count.dtype(), "Found dtype ", kernel_name(prob.dtype()), " but expected ",
            kernel_name(count.dtype()));
      return TensorSpec(broadcast_shapes(count.sym_sizes(), prob.sym_sizes()), count.dtype(), count.device());
    })
    .cpu([](const Tensor& out, const Tensor& count, const Tensor& prob, const GeneratorPointer& generator) {
      kernels::binomial(out, count, prob, generator_or_default(generator));
    })
    .random()
    .use(BatchRandom{})
    .use(NeedsData{});

// ---- gamma, Dirichlet ----

UMBRA_OPERATOR("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor")
    .generated_out("_standard_gamma.out")
    .meta([](const Tensor& self, const GeneratorPointer&) { return drawn_spec(self); })
    .cpu([](const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
      kernels::standard_gamma(out, self, generator_or_default(generator));
    })
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(_standard_gamma_grad(self, result));
              })
    .random()
    .use(BatchRandom{});

UMBRA_OPERATOR("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor")
    .generated_out("_standard_gamma_grad.out")
    .meta([](const Tensor& self, const Tensor& output) {
      check(output.dtype() == self.dtype(), "Found dtype ", kernel_name(output.dtype()), " but expected ",
            kernel_name(self.dtype()));
      return pointwise_spec({&self, &output}, self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& output) {
      kernels::pointwise(functors::StandardGammaGrad{}, out, {&self, &output}, self.dtype());
    })
    .elementwise()
    .use(NoDerivative<"_standard_gamma_grad">{})
    .use(NeedsData{});

UMBRA_OPERATOR("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor")
    .generated_out("_sample_dirichlet.out")
    .meta([](const Tensor& self, const GeneratorPointer&) { return drawn_spec(self); })
    .cpu([](const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
      kernels::dirichlet(out, self, generator_or_default(generator));
    })
    .random()
    .use(BatchRandom{})
    .use(NeedsData{});

UMBRA_OPERATOR("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor")
    .generated_out("_dirichlet_grad.out")
    .meta([](const Tensor& x, const Tensor& alpha, const Tensor& total) {
      for (const Tensor* t : {&alpha, &total})
        check(t->dtype() == x.dtype(), "Found dtype ", kernel_name(t->dtype()), " but expected ",
              kernel_name(x.dtype()));
      return pointwise_spec({&x, &alpha, &total}, x.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& x, const Tensor& alpha, const Tensor& total) {
      kernels::pointwise(functors::DirichletGrad{}, out, {&x, &alpha, &total}, x.dtype());
    })
    .elementwise()
    .use(NeedsData{});

// ---- choices ----

void check_choices(const Tensor& self, SymInt count, bool replacement) {
  check(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(self.dtype()),
        "multinomial only supports floating-point dtypes for input, got: ", kernel_name(self.dtype()));
  check(count > 0, "cannot sample n_sample <= 0 samples");
  check(replacement || expect_at_most(count, self.sym_sizes()[self.dim() - 1]),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  check(expect_at_most(self.sym_sizes()[self.dim() - 1], 1 << 24), "number of categories cannot exceed 2^24");
}

// A probability divided by exponential noise is the largest of its row with that probability.
void choose_by_noise(const Tensor& out, const Tensor& self, const GeneratorPointer& generator) {
  check(self.isfinite().logical_and(self.ge(0)).all().item().to<bool>(),
        "probability tensor contains either `inf`, `nan` or element < 0");
  check(self.sum({-1}).gt(0).all().item().to<bool>(), "invalid multinomial distribution (sum of probabilities <= 0)");
  Tensor noise = empty_like(self);
  kernels::exponential(noise, 1, generator_or_default(generator));
  Tensor score = self.div(noise);
  if (out.size(-1) == 1) out.copy_(score.argmax(-1, true));
  else kernels::topk(empty_like(out, {.dtype = score.dtype()}), out, score, score.dim() - 1, true, true);
}

UMBRA_OPERATOR(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
    .out("multinomial.out")
    .meta([](const Tensor& self, SymInt count, bool replacement, const GeneratorPointer&) {
      check_choices(self, count, replacement);
      SymShape shape(self.sym_sizes());
      shape[self.dim() - 1] = count;
      return TensorSpec(shape, DType::Int64, self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, SymInt count, bool replacement, const GeneratorPointer& generator) {
      if (out.numel() == 0) return;
      if (!replacement || count.guard_int() == 1) return choose_by_noise(out, self, generator);
      bool single = self.dim() == 1;
      kernels::multinomial(single ? out.unsqueeze(0) : out, single ? self.unsqueeze(0) : self,
                           generator_or_default(generator));
    })
    .not_differentiable()
    .random()
    .batch([](const Batched& self, SymInt count, bool replacement, const GeneratorPointer& generator) {
      check_all_differ();
      Batched all(batch_all(self), 0);
      if (self.rank() != 2) return Batched(multinomial(all.value, count, replacement, generator), 0);
      return unfold_batch(multinomial(fold_batch(all, 0), count, replacement, generator), 0);
    });

}  // namespace
}  // namespace umbra::ops
