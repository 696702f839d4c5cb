// Dropout.
#include <cmath>

#include "kernels/functors/functor.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_probability(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

/// By what is kept, as a number of the input's type: half precision rounds it before the product, as `dropout` does.
Scalar kept_scale(double p, DType dtype) { return functors::rounded(Scalar(p == 1 ? 0 : 1 / (1 - p)), dtype); }

UMBRA_OPERATOR("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
    .generated_out("native_dropout.out", {"out0", "out1"})
    .all_backends([](const Tensor& input, double p, std::optional<bool> train) {
      if (input.sym_numel() == 0) return std::tuple(input.clone(), empty_like(input));
      if (train && !*train) return std::tuple(input.clone(), ones_like(input, {.dtype = DType::Bool}));
      check(!only_metadata_is_asked() || !train || p == 0 || p == 1 || is_floating(input.dtype()),
            "result type Float can't be cast to the desired output type Long");
      // The mask lies as the input does, and is drawn in that order, also where nothing is kept.
      Tensor mask = empty_like(input, {.dtype = DType::Bool}).bernoulli_(1 - p);
      return std::tuple(input.mul(mask).mul_(kept_scale(p, input.dtype())), mask);
    })
    .gradient("input", {"grad", "result1", "p", "train"},
              [](const Tensor& grad, const Tensor& mask, double p, std::optional<bool> train) {
                double scale = p == 1 ? 0 : train.value_or(true) ? 1 / (1 - p) : 1;
                return native_dropout_backward(grad, mask, scale);
              })
    .differentiable_outputs({true, false})
    .random()
    .tags({Tag::Core})
    .batch([](const Batched& input, double p, std::optional<bool> train) {
      if (batch_scope().randomness != Randomness::Same || !train.value_or(true)) {
        auto [out, mask] = native_dropout(batch_all(input), p, train);
        return std::tuple(Batched(out, 0), Batched(mask, 0));
      }
      // One mask for all elements of the batch.
      Tensor all = batch_first(input);
      TensorOptions options = all.options();
      options.dtype = DType::Bool;
      Tensor mask = empty(all.sym_sizes().drop_front(), options).bernoulli_(1 - p);
      return std::tuple(Batched(all.mul(mask).mul_(kept_scale(p, all.dtype())), 0),
                        Batched(mask.expand(all.sym_sizes()), 0));
    });

UMBRA_OPERATOR("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
    .generated_out("native_dropout_backward.out")
    .all_backends([](const Tensor& grad, const Tensor& mask, double scale) {
      if (has_elements(grad) && has_elements(mask)) return grad.mul(mask).mul(scale);
      return grad.mul(mask.type_as(grad).mul(scale));
    })
    .gradient("grad_output", {"grad", "mask", "scale"},
              [](const Tensor& grad, const Tensor& mask, double scale) {
                return native_dropout_backward(grad, mask, scale);
              })
    .linear()
    .tags({Tag::Pointwise});

/// Transforms (grad, vmap, ...) draw the noise apart from the input: how that lies, and whether it is batched, does not
/// matter to it.
bool draws_apart() { return dispatch_state().include.has(DispatchKey::Level); }

/// One number for each element, or for each channel of each example: whether it is kept.
Tensor kept_noise(const Tensor& input, double p, bool by_feature) {
  TensorOptions options = input.options();
  if (input.is_complex()) options.dtype = real_type(input.dtype());
  check(!by_feature || input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  SymShape sizes(input.sym_sizes());
  for (size_t d = 2; by_feature && d < sizes.size(); ++d) sizes[d] = 1;
  if (draws_apart()) return bernoulli(empty({}, options).expand(sizes), 1 - p);
  Tensor noise = by_feature ? input.new_empty(sizes, options) : empty_like(input, options);
  return noise.bernoulli_(1 - p);
}

/// What is kept, scaled up for what is not; complex numbers are kept or dropped whole.
Tensor scaled_noise(const Tensor& input, double p, bool by_feature) {
  return kept_noise(input, p, by_feature).div_(Scalar(1 - p));
}

/// Alpha dropout: what is dropped becomes the value that selu tends to, and all is scaled and moved so that mean and
/// variance stay.
struct AlphaNoise {
  Tensor factor, offset;
  AlphaNoise(const Tensor& input, double p, bool by_feature) {
    constexpr double kAlpha = 1.7580993408473766;
    double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
    Tensor kept = kept_noise(input, p, by_feature);
    offset = kept.add(-1).mul_(kAlpha * scale).add_(kAlpha * scale * p);
    factor = kept.mul_(scale);
  }
};

bool drops_nothing(const Tensor& input, double p, bool train) {
  check_probability(p);
  return p == 0 || !train || input.sym_numel() == 0;
}

Tensor drop(const Tensor& input, double p, bool train, bool by_feature) {
  if (drops_nothing(input, p, train)) return input;
  if (p == 1) return input.mul(zeros({}, input.options()));
  return input.mul(scaled_noise(input, p, by_feature));
}
Tensor drop_(const Tensor& self, double p, bool train, bool by_feature) {
  if (drops_nothing(self, p, train)) return self;
  if (p == 1) return self.mul_(zeros({}, self.options()));
  return self.mul_(scaled_noise(self, p, by_feature));
}
Tensor alpha_drop(const Tensor& input, double p, bool train, bool by_feature) {
  if (drops_nothing(input, p, train)) return input;
  if (p == 1) return input.mul(zeros({}, input.options()));
  AlphaNoise noise(input, p, by_feature);
  return input.mul(noise.factor).add_(noise.offset);
}
Tensor alpha_drop_(const Tensor& self, double p, bool train, bool by_feature) {
  if (drops_nothing(self, p, train)) return self;
  if (p == 1) return self.mul_(zeros({}, self.options()));
  AlphaNoise noise(self, p, by_feature);
  return self.mul_(noise.factor).add_(noise.offset);
}

/// May give its input back.
constexpr TagSet kFunctional{Tag::MaybeAliasingOrMutating, Tag::NondeterministicSeeded};

UMBRA_OPERATOR("dropout(Tensor input, float p, bool train) -> Tensor")
    .composite([](const Tensor& input, double p, bool train) {
      // An accelerator has one kernel for it, with a mask of bools; and so has a program without writes, where the mask
      // could not be drawn in the order in which the input lies.
      bool one_kernel = input.device().type == DeviceType::CUDA || active_mode(DispatchKey::Functionalize) ||
                        (active_mode(DispatchKey::Proxy) && input.is_symbolic());
      one_kernel = one_kernel && !draws_apart() && train && p > 0 && p < 1 && !input.sym_numel().same(0);
      return one_kernel ? std::get<0>(native_dropout(input, p, train)) : drop(input, p, train, false);
    })
    .tags(kFunctional);
UMBRA_OPERATOR("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .composite([](const Tensor& self, double p, bool train) { return drop_(self, p, train, false); })
    .tags({Tag::NondeterministicSeeded});
UMBRA_OPERATOR("feature_dropout(Tensor input, float p, bool train) -> Tensor")
    .composite([](const Tensor& input, double p, bool train) { return drop(input, p, train, true); })
    .tags(kFunctional);
UMBRA_OPERATOR("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .composite([](const Tensor& self, double p, bool train) { return drop_(self, p, train, true); })
    .tags({Tag::NondeterministicSeeded});
UMBRA_OPERATOR("alpha_dropout(Tensor input, float p, bool train) -> Tensor")
    .composite([](const Tensor& input, double p, bool train) { return alpha_drop(input, p, train, false); })
    .tags(kFunctional);
UMBRA_OPERATOR("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .composite([](const Tensor& self, double p, bool train) { return alpha_drop_(self, p, train, false); })
    .tags({Tag::NondeterministicSeeded});
UMBRA_OPERATOR("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
    .composite([](const Tensor& input, double p, bool train) { return alpha_drop(input, p, train, true); })
    .tags(kFunctional);
UMBRA_OPERATOR("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .composite([](const Tensor& self, double p, bool train) { return alpha_drop_(self, p, train, true); })
    .tags({Tag::NondeterministicSeeded});

}  // namespace
}  // namespace umbra::ops
