// Circular and hyperbolic functions and their inverses.
#include "kernels/functors/trigonometry.h"

#include "ops/common/no_derivative.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

/// A function of floating numbers; integers become floats first.
template <class Functor> void floating_function(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 1>(Promotion::IntToFloat))
      .tangent(TangentRule::Pointwise)
      .tags({Tag::Core, Tag::Pointwise});
}

/// What PyTorch does not differentiate in place is not differentiated here either.
template <class Functor> void refuse_gradient(OperatorBuilder& builder) {
  builder.gradient("self", {"grad"}, [](const Tensor&) -> Tensor {
    std::string_view kernel = Functor::name;  // "acosh_cpu"
    return no_derivative(concat("inplace version of ", kernel.substr(0, kernel.find('_'))));
  });
}

/// 1 / sqrt(sign * x² + shift)
Tensor inverse_root(const Tensor& x, int sign, int shift) { return x.mul(x).mul(sign).add(shift).rsqrt(); }

UMBRA_OPERATOR("sin(Tensor self) -> Tensor")
    .inplace("sin_")
    .out("sin.out")
    .use(floating_function<functors::Sin>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(self.cos().conj()); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("cos(Tensor self) -> Tensor")
    .inplace("cos_")
    .out("cos.out")
    .use(floating_function<functors::Cos>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(self.sin().conj().neg()); });

UMBRA_OPERATOR("tan(Tensor self) -> Tensor")
    .inplace("tan_")
    .out("tan.out")
    .use(floating_function<functors::Tan>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(result.pow(2).add(1).conj()); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("asin(Tensor self) -> Tensor")
    .inplace("asin_")
    .out("asin.out")
    .use(floating_function<functors::Asin>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(inverse_root(self, -1, 1).conj()); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("acos(Tensor self) -> Tensor")
    .inplace("acos_")
    .out("acos.out")
    .use(floating_function<functors::Acos>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(inverse_root(self, -1, 1).conj().neg()); });

UMBRA_OPERATOR("atan(Tensor self) -> Tensor")
    .inplace("atan_")
    .out("atan.out")
    .use(floating_function<functors::Atan>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.div(self.mul(self).add(1).conj()); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("sinh(Tensor self) -> Tensor")
    .inplace("sinh_")
    .out("sinh.out")
    .use(floating_function<functors::Sinh>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(self.cosh().conj()); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("cosh(Tensor self) -> Tensor")
    .inplace("cosh_")
    .out("cosh.out")
    .use(floating_function<functors::Cosh>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(self.sinh().conj()); });

UMBRA_OPERATOR("tanh(Tensor self) -> Tensor")
    .inplace("tanh_")
    .out("tanh.out")
    .use(floating_function<functors::Tanh>)
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return tanh_backward(grad, result); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("tanh_backward(Tensor grad_output, Tensor output) -> Tensor")
    .out("tanh_backward.grad_input", {"grad_input"})
    .use(pointwise<functors::TanhBackward, 2>(Promotion::Default))
    .gradient("grad_output", {"grad", "output"},
              [](const Tensor& grad, const Tensor& output) { return tanh_backward(grad, output.conj()); })
    .gradient("output", {"grad", "grad_output", "output"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& output) {
                return grad.conj().mul(output.conj().mul(grad_output).mul(-2));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("asinh(Tensor self) -> Tensor")
    .inplace("asinh_")
    .out("asinh.out")
    .use(floating_function<functors::Asinh>)
    .on_inplace(refuse_gradient<functors::Asinh>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.mul(inverse_root(self, 1, 1).conj()); })
    .on_inplace([](OperatorBuilder& variant) { variant.node("AsinhBackward1"); })
    .use(sparse::OnValues{});

UMBRA_OPERATOR("acosh(Tensor self) -> Tensor")
    .inplace("acosh_")
    .out("acosh.out")
    .use(floating_function<functors::Acosh>)
    .on_inplace(refuse_gradient<functors::Acosh>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                // The root of a product is the product of the roots for positive numbers only.
                if (self.is_complex()) return grad.mul(self.add(1).rsqrt().mul(self.sub(1).rsqrt()).conj());
                return grad.mul(inverse_root(self, 1, -1));
              })
    .on_inplace([](OperatorBuilder& variant) { variant.node("AcoshBackward1"); });

UMBRA_OPERATOR("atanh(Tensor self) -> Tensor")
    .inplace("atanh_")
    .out("atanh.out")
    .use(floating_function<functors::Atanh>)
    .on_inplace(refuse_gradient<functors::Atanh>)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return grad.div(self.pow(2).rsub(1).conj()); })
    .on_inplace([](OperatorBuilder& variant) { variant.node("AtanhBackward1"); })
    .use(sparse::OnValues{});

// 1 / (self^2 + other^2), and 0 at the origin, where the angle has no slope.
Tensor inverse_square_length(const Tensor& self, const Tensor& other) {
  Tensor other_square = other.mul(other), square = self.mul(self).add(other_square);
  return square.reciprocal().masked_fill(square.eq(0), 0);
}

UMBRA_OPERATOR("atan2(Tensor self, Tensor other) -> Tensor")
    .inplace("atan2_")
    .out("atan2.out")
    .use(pointwise<functors::Atan2, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.mul(other).mul(inverse_square_length(self, other));
              })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.mul(self.neg()).mul(inverse_square_length(self, other));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
