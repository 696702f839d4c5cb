// The gamma function's relatives: its logarithm, the derivatives of that, zeta, the incomplete gamma functions.
#include <cmath>

#include "dispatch/layers.h"
#include "kernels/functors/special.h"
#include "ops/common/alias.h"
#include "ops/common/no_derivative.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("lgamma(Tensor self) -> Tensor")
    .inplace("lgamma_")
    .out("lgamma.out")
    .use(pointwise<functors::Lgamma, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.mul(self.digamma()); })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) { variant.tags({Tag::Pointwise}); })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("digamma(Tensor self) -> Tensor")
    .inplace("digamma_")
    .out("digamma.out")
    .use(pointwise<functors::Digamma, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(polygamma(1, self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("polygamma(int n, Tensor self) -> Tensor")
    .out("polygamma.out")
    .meta([](int64_t n, const Tensor& self) {
      check(n >= 0, "polygamma(n, x) does not support negative n.");
      return pointwise_spec({&self}, Promotion::IntToFloat);
    })
    .cpu([](const Tensor& out, int64_t n, const Tensor& self) {
      kernels::pointwise(functors::Polygamma{.order = n}, out, {&self},
                         pointwise_types({&self}, Promotion::IntToFloat).compute);
    })
    .elementwise()
    .gradient("self", {"grad", "n", "self"},
              [](const Tensor& grad, int64_t n, const Tensor& self) { return grad.mul(polygamma(n + 1, self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)").composite([](const Tensor& self, int64_t n) {
  DType result = pointwise_types({&self}, Promotion::IntToFloat).result;
  check(can_cast(result, self.dtype()), "result type ", kernel_name(result),
        " can't be cast to the desired output type ", kernel_name(self.dtype()));
  // The gradient needs the input as it was.
  return self.copy_(polygamma(n, is_grad_enabled() && self.requires_grad() ? self.clone() : self));
});

/// self - (p - 1) / 2, ..., self - 1 / 2, self in a new last dimension.
Tensor half_steps_below(const Tensor& self, int64_t p) {
  check(self.dtype() != DType::Bool, "The input tensor may not be a boolean tensor.");
  check(p >= 1 || self.is_meta(), "p has to be greater than or equal to 1");
  DType dtype = is_integral(self.dtype(), true) ? default_dtype() : self.dtype();
  Tensor steps = arange(-static_cast<double>(p) / 2 + 0.5, 0.5, 0.5, {.dtype = dtype, .device = self.device()});
  return steps.add(self.unsqueeze(-1));
}

UMBRA_OPERATOR("mvlgamma(Tensor self, int p) -> Tensor")
    .inplace("mvlgamma_")
    .out("mvlgamma.out")
    .all_backends([](const Tensor& self, int64_t p) {
      double constant = static_cast<double>(p) * (static_cast<double>(p) - 1) * std::log(M_PI) / 4;
      return half_steps_below(self, p).lgamma_().sum({-1}).add_(constant);
    })
    .gradient("self", {"grad", "self", "p"},
              [](const Tensor& grad, const Tensor& self, int64_t p) {
                return grad.mul(half_steps_below(self, p).digamma_().sum({-1}));
              })
    .tangent(TangentRule::Pointwise);

// sum of (other + k)^-self over all k from 0.
UMBRA_OPERATOR("special_zeta(Tensor self, Tensor other) -> Tensor")
    .out("special_zeta.out")
    .use(pointwise<functors::Zeta, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad"}, [](const Tensor&) { return no_derivative("zeta"); })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.mul(self.neg()).mul(special_zeta(self.add(1), other));
              })
    .node("SpecialZetaBackward0")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor")
    .out("special_zeta.self_scalar_out")
    .use(pointwise<functors::Zeta, 2>(Promotion::IntToFloat))
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Scalar& self, const Tensor& other) {
                return grad.mul(-self.to_double()).mul(special_zeta(Scalar(self.to_double() + 1), other));
              })
    .node("SpecialZetaBackward1")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor")
    .out("special_zeta.other_scalar_out")
    .use(pointwise<functors::Zeta, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad"}, [](const Tensor&) { return no_derivative("zeta"); })
    .node("SpecialZetaBackward2")
    .tags({Tag::Pointwise});

// The slope in the upper bound: other^(self - 1) exp(-other) / gamma(self).
Tensor gamma_density(const Tensor& self, const Tensor& other) {
  return other.log().mul(self.sub(1)).sub(other).sub(self.lgamma()).exp();
}

/// Integers have no kernel; the meta device makes floats of them.
TensorSpec incomplete_spec(const Tensor& self, const Tensor& other) {
  return pointwise_spec({&self, &other}, only_metadata_is_asked() ? Promotion::IntToFloat : Promotion::Default);
}

UMBRA_OPERATOR("igamma(Tensor self, Tensor other) -> Tensor")
    .inplace("igamma_")
    .out("igamma.out")
    .use(pointwise<functors::Igamma, 2>(Promotion::Default))
    .meta(incomplete_spec)
    .gradient("self", {"grad"}, [](const Tensor&) { return no_derivative("igamma: input"); })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.mul(gamma_density(self, other));
              })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("igammac(Tensor self, Tensor other) -> Tensor")
    .inplace("igammac_")
    .out("igammac.out")
    .use(pointwise<functors::Igammac, 2>(Promotion::Default))
    .meta(incomplete_spec)
    .gradient("self", {"grad"}, [](const Tensor&) { return no_derivative("igammac: input"); })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.neg().mul(gamma_density(self, other));
              })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_gammaln(Tensor self) -> Tensor").out("special_gammaln.out").use(AliasOf{"lgamma"});
UMBRA_OPERATOR("special_digamma(Tensor self) -> Tensor").out("special_digamma.out").use(AliasOf{"digamma"});
UMBRA_OPERATOR("special_psi(Tensor self) -> Tensor").out("special_psi.out").use(AliasOf{"digamma"});
UMBRA_OPERATOR("special_polygamma(int n, Tensor self) -> Tensor")
    .out("special_polygamma.out")
    .use(AliasOf{"polygamma"});
UMBRA_OPERATOR("special_multigammaln(Tensor self, int p) -> Tensor")
    .out("special_multigammaln.out")
    .use(AliasOf{"mvlgamma"});
UMBRA_OPERATOR("special_gammainc(Tensor self, Tensor other) -> Tensor")
    .out("special_gammainc.out")
    .use(AliasOf{"igamma"});
UMBRA_OPERATOR("special_gammaincc(Tensor self, Tensor other) -> Tensor")
    .out("special_gammaincc.out")
    .use(AliasOf{"igammac"});

}  // namespace
}  // namespace umbra::ops
