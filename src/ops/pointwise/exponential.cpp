// Exponentials, logarithms, roots, error functions.
#include "kernels/functors/exp_log.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kLn10 = 2.302585092994045684018;
constexpr double kTwoOverRootPi = 1.128379167095512573896;

/// A function of floating numbers; integers become floats first.
template <class Functor> void floating_function(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 1>(Promotion::IntToFloat)).tangent(TangentRule::Pointwise);
}

UMBRA_OPERATOR("exp(Tensor self) -> Tensor")
    .inplace("exp_")
    .out("exp.out")
    .use(floating_function<functors::Exp>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(result.conj()); })
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("exp2(Tensor self) -> Tensor")
    .inplace("exp2_")
    .out("exp2.out")
    .use(floating_function<functors::Exp2>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(result.conj()).mul(kLn2); })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("expm1(Tensor self) -> Tensor")
    .inplace("expm1_")
    .out("expm1.out")
    .use(floating_function<functors::Expm1>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(result.conj().add(1)); })
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("log(Tensor self) -> Tensor")
    .inplace("log_")
    .out("log.out")
    .use(floating_function<functors::Log>)
    .gradient("self", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.div(self.conj()); })
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("log2(Tensor self) -> Tensor")
    .inplace("log2_")
    .out("log2.out")
    .use(floating_function<functors::Log2>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.div(self.conj().mul(kLn2)); })
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("log10(Tensor self) -> Tensor")
    .inplace("log10_")
    .out("log10.out")
    .use(floating_function<functors::Log10>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.div(self.conj().mul(kLn10)); })
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("log1p(Tensor self) -> Tensor")
    .inplace("log1p_")
    .out("log1p.out")
    .use(floating_function<functors::Log1p>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                // A number cannot be added to a sparse tensor, nor can one be divided by a strided one.
                Tensor denominator = (is_sparse(self.layout()) ? self.to_dense() : self).add(1).conj();
                return is_sparse(grad.layout()) ? grad.mul(denominator.reciprocal()) : grad.div(denominator);
              })
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("sqrt(Tensor self) -> Tensor")
    .inplace("sqrt_")
    .out("sqrt.out")
    .use(floating_function<functors::Sqrt>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.div(result.conj().mul(2)); })
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("rsqrt(Tensor self) -> Tensor")
    .inplace("rsqrt_")
    .out("rsqrt.out")
    .use(floating_function<functors::Rsqrt>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(-0.5).mul(result.pow(3).conj()); })
    .tags({Tag::Core, Tag::Pointwise});

Tensor erf_slope(const Tensor& self) { return self.pow(2).neg().exp(); }

UMBRA_OPERATOR("erf(Tensor self) -> Tensor")
    .inplace("erf_")
    .out("erf.out")
    .use(floating_function<functors::Erf>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return erf_slope(self).mul(kTwoOverRootPi).mul(grad); })
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("erfc(Tensor self) -> Tensor")
    .inplace("erfc_")
    .out("erfc.out")
    .use(floating_function<functors::Erfc>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return erf_slope(self).mul(-kTwoOverRootPi).mul(grad); })
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
