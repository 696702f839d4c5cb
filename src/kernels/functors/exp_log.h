// Exponentials, logarithms, roots, error functions.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Exp, "exp_vml_cpu", FloatingComplex, exp(x));
UMBRA_FUNCTOR_UNARY(Exp2, "exp2", FloatingComplex, exp2(x));
UMBRA_FUNCTOR_UNARY(Expm1, "expm1_vml_cpu", FloatingComplex, expm1(x));
UMBRA_FUNCTOR_UNARY(Log, "log_vml_cpu", FloatingComplex, log(x));
UMBRA_FUNCTOR_UNARY(Log2, "log2_vml_cpu", FloatingComplex, log2(x));
UMBRA_FUNCTOR_UNARY(Log10, "log10_vml_cpu", FloatingComplex, log10(x));
UMBRA_FUNCTOR_UNARY(Log1p, "log1p_vml_cpu", FloatingComplex, log1p(x));
UMBRA_FUNCTOR_UNARY(Sqrt, "sqrt_vml_cpu", FloatingComplex, sqrt(x));
UMBRA_FUNCTOR_UNARY(Rsqrt, "rsqrt_cpu", FloatingComplex, rsqrt(x));
UMBRA_FUNCTOR_UNARY(Erf, "erf_vml_cpu", Floating, erf(x));
UMBRA_FUNCTOR_UNARY(Erfc, "erfc_vml_cpu", Floating, erfc(x));

}  // namespace umbra::functors
