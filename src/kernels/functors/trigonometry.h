// Circular and hyperbolic functions.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Sin, "sin_vml_cpu", FloatingComplex, sin(x));
UMBRA_FUNCTOR_UNARY(Cos, "cos_vml_cpu", FloatingComplex, cos(x));
UMBRA_FUNCTOR_UNARY(Tan, "tan_vml_cpu", FloatingComplex, tan(x));
UMBRA_FUNCTOR_UNARY(Asin, "asin_vml_cpu", FloatingComplex, asin(x));
UMBRA_FUNCTOR_UNARY(Acos, "acos_vml_cpu", FloatingComplex, acos(x));
UMBRA_FUNCTOR_UNARY(Atan, "atan_vml_cpu", FloatingComplex, atan(x));
UMBRA_FUNCTOR_UNARY(Sinh, "sinh_vml_cpu", FloatingComplex, sinh(x));
UMBRA_FUNCTOR_UNARY(Cosh, "cosh_vml_cpu", FloatingComplex, cosh(x));
UMBRA_FUNCTOR_UNARY(Tanh, "tanh_vml_cpu", FloatingComplex, tanh(x));
UMBRA_FUNCTOR_UNARY(Asinh, "asinh_cpu", FloatingComplex, asinh(x));
UMBRA_FUNCTOR_UNARY(Acosh, "acosh_cpu", FloatingComplex, acosh(x));
UMBRA_FUNCTOR_UNARY(Atanh, "atanh_cpu", FloatingComplex, atanh(x));
UMBRA_FUNCTOR_BINARY(Atan2, "atan2_cpu", Floating, atan2(a, b));

UMBRA_FUNCTOR_BINARY(TanhBackward, "tanh_backward_cpu", FloatingComplex, multiply(a, conj(T(1) - multiply(b, b))));

struct Sinc : Unary {  // sin(pi x) / (pi x)
  static constexpr const char* name = "sinc_cpu";
  using types = FloatingComplex;
  template <class T> T operator()(T x) const {
    T angle = x * T(M_PI);
    return select(x == T(0), T(1), sin(angle) / angle);
  }
};

}  // namespace umbra::functors
