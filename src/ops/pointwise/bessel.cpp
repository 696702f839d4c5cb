// Bessel functions of order 0 and 1, plain and modified, and Airy's.
#include "kernels/functors/special.h"
#include "ops/common/alias.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

/// The slope of a function of order 1, which has 1/2 for its limit at 0 and a quotient by x elsewhere.
Tensor with_half_at_zero(const Tensor& self, const std::function<Tensor(const Tensor& x)>& slope) {
  double least = self.dtype() == DType::Float64 ? 0x1p-52 : 0x1p-23;
  Tensor near = self.abs().le(least), safe = where(near, full({}, least, self.options()), self);
  Tensor elsewhere = slope(safe);
  return where(near, full({}, 0.5, self.options()), elsewhere);
}

// ---- of the first and second kind ----

UMBRA_OPERATOR("special_bessel_j0(Tensor self) -> Tensor")
    .out("special_bessel_j0.out")
    .use(pointwise<functors::BesselJ0, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.neg().mul(special_bessel_j1(self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_bessel_j1(Tensor self) -> Tensor")
    .out("special_bessel_j1.out")
    .use(pointwise<functors::BesselJ1, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(
                    with_half_at_zero(self, [&](const Tensor& x) { return special_bessel_j0(x).sub(result.div(x)); }));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_bessel_y0(Tensor self) -> Tensor")
    .out("special_bessel_y0.out")
    .use(pointwise<functors::BesselY0, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.neg().mul(special_bessel_y1(self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_bessel_y1(Tensor self) -> Tensor")
    .out("special_bessel_y1.out")
    .use(pointwise<functors::BesselY1, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(special_bessel_y0(self).sub(result.div(self)));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_spherical_bessel_j0(Tensor x) -> Tensor")
    .out("special_spherical_bessel_j0.out")
    .use(pointwise<functors::SphericalBesselJ0, 1>(Promotion::IntToFloat))
    .not_differentiable()
    .tags({Tag::Pointwise});

// ---- modified, growing ----

UMBRA_OPERATOR("i0(Tensor self) -> Tensor")
    .inplace("i0_")
    .out("i0.out")
    .use(pointwise<functors::BesselI0, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(special_i1(self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_i0(Tensor self) -> Tensor").out("special_i0.out").use(AliasOf{"i0"});

UMBRA_OPERATOR("special_i0e(Tensor self) -> Tensor")
    .out("special_i0e.out")
    .use(pointwise<functors::BesselI0e, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(special_i1e(self).sub(self.sgn().mul(result)));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_i1(Tensor self) -> Tensor")
    .out("special_i1.out")
    .use(pointwise<functors::BesselI1, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(
                    with_half_at_zero(self, [&](const Tensor& x) { return x.i0().sub(result.mul(x.reciprocal())); }));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_i1e(Tensor self) -> Tensor")
    .out("special_i1e.out")
    .use(pointwise<functors::BesselI1e, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(with_half_at_zero(self, [&](const Tensor& x) {
                  return special_i0e(x).sub(result.mul(x.sgn().add(x.reciprocal())));
                }));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_modified_bessel_i0(Tensor self) -> Tensor")
    .out("special_modified_bessel_i0.out")
    .use(pointwise<functors::ModifiedBesselI0, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(special_modified_bessel_i1(self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_modified_bessel_i1(Tensor self) -> Tensor")
    .out("special_modified_bessel_i1.out")
    .use(pointwise<functors::ModifiedBesselI1, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.mul(with_half_at_zero(
                    self, [&](const Tensor& x) { return special_modified_bessel_i0(x).sub(result.div(x)); }));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- modified, falling ----

UMBRA_OPERATOR("special_modified_bessel_k0(Tensor self) -> Tensor")
    .out("special_modified_bessel_k0.out")
    .use(pointwise<functors::ModifiedBesselK0, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.neg().mul(special_modified_bessel_k1(self)); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_modified_bessel_k1(Tensor self) -> Tensor")
    .out("special_modified_bessel_k1.out")
    .use(pointwise<functors::ModifiedBesselK1, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                return grad.neg().mul(special_modified_bessel_k0(self).add(result.div(self)));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_scaled_modified_bessel_k0(Tensor x) -> Tensor")
    .out("special_scaled_modified_bessel_k0.out")
    .use(pointwise<functors::ScaledModifiedBesselK0, 1>(Promotion::IntToFloat))
    .not_differentiable()
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("special_scaled_modified_bessel_k1(Tensor x) -> Tensor")
    .out("special_scaled_modified_bessel_k1.out")
    .use(pointwise<functors::ScaledModifiedBesselK1, 1>(Promotion::IntToFloat))
    .not_differentiable()
    .tags({Tag::Pointwise});

// ---- Airy ----

UMBRA_OPERATOR("special_airy_ai(Tensor x) -> Tensor")
    .out("special_airy_ai.out")
    .use(pointwise<functors::AiryAi, 1>(Promotion::IntToFloat))
    .not_differentiable()
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
