// Of torch.special what has no plain name, and the error functions' relatives: entr, ndtr, erfcx, erfinv, xlog1py.
#include "kernels/functors/special.h"

#include <cmath>

#include "kernels/functors/exp_log.h"
#include "ops/common/alias.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

using functors::Xlog1py;

UMBRA_OPERATOR("special_entr(Tensor self) -> Tensor")
    .out("special_entr.out")
    .use(pointwise<functors::Entropy, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(self.log().neg().sub(1)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// The normal distribution.
UMBRA_OPERATOR("special_ndtr(Tensor self) -> Tensor")
    .out("special_ndtr.out")
    .composite([](const Tensor& self) { return self.mul(M_SQRT1_2).erf().add(1).mul(0.5); })
    .use(OutCopied{});

UMBRA_OPERATOR("special_ndtri(Tensor self) -> Tensor")
    .out("special_ndtri.out")
    .use(pointwise<functors::Ndtri, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) {
                return grad.mul(result.square().div(2).exp().mul(std::sqrt(2 * M_PI)));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_log_ndtr(Tensor self) -> Tensor")
    .out("special_log_ndtr.out")
    .use(pointwise<functors::LogNdtr, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                // The density over the distribution.
                return grad.mul(self.square().div(2).add(result).neg().exp()).div(std::sqrt(2 * M_PI));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_erfcx(Tensor self) -> Tensor")
    .out("special_erfcx.out")
    .use(pointwise<functors::Erfcx, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(self.mul(2).mul(result).sub(M_2_SQRTPI));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("erfinv(Tensor self) -> Tensor")
    .inplace("erfinv_")
    .out("erfinv.out")
    .use(pointwise<functors::Erfinv, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                return grad.mul(self.erfinv().square().exp().mul(1 / M_2_SQRTPI));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("special_erfinv(Tensor self) -> Tensor").out("special_erfinv.out").use(AliasOf{"erfinv"});

UMBRA_OPERATOR("special_xlog1py(Tensor self, Tensor other) -> Tensor")
    .out("special_xlog1py.out")
    .use(pointwise<Xlog1py, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return special_xlog1py(grad, other).masked_fill(self.eq(0).logical_and(other.le(-1)), 0);
              })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.mul(self).div(other.add(1));
              })
    .tangent(TangentRule::Pointwise)
    .node("SpecialXlog1PyBackward0")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor")
    .out("special_xlog1py.self_scalar_out")
    .use(pointwise<Xlog1py, 2>(Promotion::IntToFloat))
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Scalar& self, const Tensor& other) {
                return grad.mul(self).div(other.add(1));
              })
    .tangent(TangentRule::Pointwise)
    .node("SpecialXlog1PyBackward1")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor")
    .out("special_xlog1py.other_scalar_out")
    .use(pointwise<Xlog1py, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Scalar& other) {
                Tensor slope = special_xlog1py(grad, other);
                return other.to_double() > -1 ? slope : slope.masked_fill(self.eq(0), 0);
              })
    .tangent(TangentRule::Pointwise)
    .node("SpecialXlog1PyBackward2")
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
