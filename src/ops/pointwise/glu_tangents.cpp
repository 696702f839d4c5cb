// Tangents of gated activations as operators of their own, and gelu's gradient by differentiable parts.
#include <cmath>

#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

struct Halves {
  Tensor first, second;
  Halves(const Tensor& t, int64_t dim) {
    SymInt half = t.sym_size(dim) / 2;
    first = t.narrow(dim, 0, half);
    second = t.narrow(dim, half, half);
  }
};

UMBRA_OPERATOR("glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor")
    .generated_out("glu_jvp.out")
    .all_backends([](const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
      Halves value(x, dim), tangent(dx, dim);
      Tensor gate = value.second.sigmoid();
      return tangent.first.mul(gate).add(tangent.second.mul(glu.sub(glu.mul(gate))));
    });

UMBRA_OPERATOR(
    "glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor")
    .generated_out("glu_backward_jvp.out")
    .all_backends([](const Tensor& grad_x, const Tensor& grad_glu, const Tensor& x, const Tensor& dgrad_glu,
                     const Tensor& dx, int64_t dim) {
      Halves value(x, dim), tangent(dx, dim), gradient(grad_x, dim);
      Tensor gate = value.second.sigmoid(), slope = gate.mul(gate.rsub(1)), dgate = tangent.second.mul(slope);
      Tensor first = dgrad_glu.mul(gate).add(grad_glu.mul(dgate));
      Tensor inner = dgrad_glu.mul(value.first).add(grad_glu.mul(tangent.first));
      Tensor second = inner.mul(slope).add(gradient.second.mul(gate.mul(-2).add(1)).mul(tangent.second));
      return cat({first, second}, dim);
    });

UMBRA_OPERATOR("infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& self) {
      constexpr double kRootHalf = 0.70710678118654752440, kDensity = 0.39894228040143267794;
      Tensor cdf = self.mul(kRootHalf).erf_().add(1).mul_(0.5);
      Tensor pdf = self.mul(-0.5).mul(self).exp_();
      return cdf.addcmul_(self, pdf, kDensity).mul_(grad);
    });

}  // namespace
}  // namespace umbra::ops
