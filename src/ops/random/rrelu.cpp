// Randomised leaky relu: the slope of negative elements is drawn anew for each while training.
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_variant.h"
#include "ops/random/random.h"

namespace umbra::ops {
namespace {

double middle(const Scalar& lower, const Scalar& upper) { return (lower.to_double() + upper.to_double()) / 2; }

/// What slopes are drawn between has to be a range, where any is drawn.
void check_drawn_between(const Tensor& self, double lower, double upper) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (self.dtype() != DType::Float64)
    for (double bound : {lower, upper})
      check(!(std::abs(bound) > kMost) || std::isinf(bound),
            "value cannot be converted to type float without overflow");
  double most = self.dtype() == DType::Float64 ? std::numeric_limits<double>::max() : kMost;
  if (lower <= upper && upper - lower <= most) return;
  if (!self.le(Scalar(0)).any().item().to_bool()) return;
  check(lower <= upper, "Expected from <= to to be true, but got false.");
  fail("Expected to - from <= std::numeric_limits<T>::max() to be true, but got false.");
}

void check_finite(const Scalar& lower, const Scalar& upper) {
  for (auto [name, bound] : {std::pair("lower", &lower), {"upper", &upper}})
    check(std::isfinite(bound->to_double()), "rrelu: ", name, " bound must be finite, got ", bound->to_double());
}
void check_order(const Scalar& lower, const Scalar& upper) {
  check(lower.to_double() <= upper.to_double(), "Lower bound should be less than or equal to the upper bound");
}

void check_noise(const Tensor& self, const Tensor& noise) {
  check(self.sym_sizes() == noise.sym_sizes(),
        "noise tensor shape must match self tensor shape. Got self.shape = ", self.sym_sizes(),
        " noise.shape = ", noise.sym_sizes());
}

// The result, and the slopes; without training they stay as they were.
UMBRA_OPERATOR(
    "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
    "training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)")
    .meta([](const Tensor& self, const Tensor& noise, const Scalar&, const Scalar&, bool training,
             const GeneratorPointer&) {
      check_noise(self, noise);
      if (training) check_kernel_type(is_floating(self.dtype()), "rrelu_with_noise_out_cpu", self);
      check(!training || noise.dtype() == self.dtype(), "expected scalar type ", kernel_name(self.dtype()),
            " but found ", kernel_name(noise.dtype()));
      return std::tuple(spec_like(self), spec_like(noise));
    })
    .cpu<2>([](const Tensor& out, const Tensor& noise_out, const Tensor& self, const Tensor& noise, const Scalar& lower,
               const Scalar& upper, bool training, const GeneratorPointer& generator) {
      if (!training) {
        leaky_relu_out(out, self, middle(lower, upper));
        noise_out.copy_(noise);
        return;
      }
      check_drawn_between(self, lower.to_double(), upper.to_double());
      kernels::randomized_relu(out, noise_out, self, lower.to_double(), upper.to_double(),
                               generator_or_default(generator));
    })
    .gradient("self", {"grad", "self", "result1", "lower", "upper", "training"},
              [](const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                 bool training) { return rrelu_with_noise_backward(grad, self, noise, lower, upper, training, false); })
    .differentiable_outputs({true, false})
    .random()
    .tags({Tag::Generated})
    .use(LikeOnMeta{{0, 1}});

UMBRA_OPERATOR(
    "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
    "training=False, Generator? generator=None) -> Tensor")
    .all_backends([](const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                     const GeneratorPointer& generator) {
      auto [out, slopes] = rrelu_with_noise_functional(self, noise, lower, upper, training, generator);
      // As in PyTorch the write is not counted: the gradient, which reads the slopes, would take it for a mistake.
      bool data = noise.storage()->has_data();
      if (training && data) kernels::copy(noise, slopes);
      bool in_rows = out.sym_strides() == SymIntArrayRef(contiguous_strides(out.sym_sizes()));
      return data && !in_rows ? empty(out.sym_sizes(), out.options()).copy_(out) : out;
    })
    .functional_form("aten::rrelu_with_noise_functional")
    .gradient("self", {"grad", "self", "noise", "lower", "upper", "training"},
              [](const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                 bool training) { return rrelu_with_noise_backward(grad, self, noise, lower, upper, training, false); })
    .random()
    .use(LikeOnMeta{{0}});

UMBRA_OPERATOR(
    "rrelu_with_noise.out(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
    "training=False, Generator? generator=None, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                     const GeneratorPointer& generator, const Tensor& out) {
      check(self.is_meta() || out.is_meta() || self.is_fake() || self.dtype() == out.dtype(), "Found dtype ",
            kernel_name(out.dtype()), " but expected ", kernel_name(self.dtype()));
      return copied_out(out, rrelu_with_noise(self, noise, lower, upper, training, generator));
    })
    .random();

UMBRA_OPERATOR(
    "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
    "training=False, Generator? generator=None) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                     const GeneratorPointer& generator) {
      return self.copy_(rrelu_with_noise(self, noise, lower, upper, training, generator));
    })
    .gradient("self", {"grad", "result", "noise", "lower", "upper", "training"},
              [](const Tensor& grad, const Tensor& result, const Tensor& noise, const Scalar& lower,
                 const Scalar& upper, bool training) {
                return rrelu_with_noise_backward(grad, result, noise, lower, upper, training, true);
              })
    .functional_form("aten::rrelu_with_noise_functional")
    .random()
    .use(NothingOnMeta{});

UMBRA_OPERATOR(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
    "training, bool self_is_result) -> Tensor")
    .generated_out("rrelu_with_noise_backward.out")
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                     const Scalar& upper, bool training, bool self_is_result) {
      // Slopes that lie this close together count as one.
      if (training && !(std::abs(upper.to_double() - lower.to_double()) <= 1e-6)) return noise.mul(grad);
      return leaky_relu_backward(grad, self, middle(lower, upper), self_is_result);
    })
    .gradient("grad_output", {"grad", "self", "noise", "lower", "upper", "training"},
              [](const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                 bool training) { return rrelu_with_noise_backward(grad, self, noise, lower, upper, training, false); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return zeros_like(grad); })
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
    "generator=None) -> Tensor")
    .composite([](const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                  const GeneratorPointer& generator) {
      check_finite(lower, upper);
      check_order(lower, upper);
      return rrelu_with_noise(self, empty_like(self), lower, upper, training, generator);
    })
    .tags({Tag::NondeterministicSeeded, Tag::Pointwise})
    .use(NotBatched{});

UMBRA_OPERATOR(
    "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
    "generator=None) -> Tensor(a!)")
    .composite([](const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                  const GeneratorPointer& generator) {
      check_order(lower, upper);
      return rrelu_with_noise_(self, empty_like(self), lower, upper, training, generator);
    })
    .tags({Tag::NondeterministicSeeded})
    .use(NotBatched{});

}  // namespace
}  // namespace umbra::ops
