// Dropout.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_probability(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

UMBRA_OPERATOR("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
    .all_backends([](const Tensor& input, double p, std::optional<bool> train) {
      check_probability(p);
      if (input.sym_numel() == 0) return std::tuple(input.clone(), empty_like(input));
      if (train && !*train) return std::tuple(input.clone(), ones_like(input, {.dtype = DType::Bool}));
      check(!is_integral(input.dtype(), true), "result type Float can't be cast to the desired output type ",
            kernel_name(input.dtype()));
      if (p == 1) return std::tuple(zeros_like(input), zeros_like(input, {.dtype = DType::Bool}));
      Tensor mask = bernoulli(empty_like(input, {.dtype = input.dtype()}), 1 - p).to(DType::Bool);
      return std::tuple(input.mul(mask).mul(1 / (1 - p)), mask);
    })
    .gradient("input", {"grad", "result1", "p", "train"},
              [](const Tensor& grad, const Tensor& mask, double p, std::optional<bool> train) {
                double scale = p == 1 ? 0 : train.value_or(true) ? 1 / (1 - p) : 1;
                return native_dropout_backward(grad, mask, scale);
              })
    .differentiable_outputs({true, false})
    .random()
    .tags({Tag::Core});

UMBRA_OPERATOR("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
    .all_backends([](const Tensor& grad, const Tensor& mask, double scale) {
      return grad.mul(mask.to(grad.dtype()).mul(scale));
    })
    .gradient("grad_output", {"grad", "mask", "scale"},
              [](const Tensor& grad, const Tensor& mask, double scale) {
                return native_dropout_backward(grad, mask, scale);
              })
    .linear()
    .tags({Tag::Pointwise});

// What is kept, scaled up for what is not; complex numbers are kept or dropped whole.
Tensor scaled_noise(const Tensor& input, double p) {
  Tensor noise = input.is_complex() ? empty_like(input, {.dtype = real_type(input.dtype())}) : empty_like(input);
  return noise.bernoulli_(1 - p).div_(Scalar(1 - p));
}

UMBRA_OPERATOR("dropout(Tensor input, float p, bool train) -> Tensor")
    .composite([](const Tensor& input, double p, bool train) {
      check_probability(p);
      if (p == 0 || !train || input.sym_numel() == 0) return input;
      if (p == 1) return input.mul(zeros({}, input.options()));
      return input.mul(scaled_noise(input, p));
    })
    .tags({Tag::MaybeAliasingOrMutating, Tag::NondeterministicSeeded});

UMBRA_OPERATOR("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .composite([](const Tensor& self, double p, bool train) {
      check_probability(p);
      if (p == 0 || !train || self.sym_numel() == 0) return self;
      if (p == 1) return self.mul_(zeros({}, self.options()));
      return self.mul_(scaled_noise(self, p));
    })
    .tags({Tag::NondeterministicSeeded});

}  // namespace
}  // namespace umbra::ops
