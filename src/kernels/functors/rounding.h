// To whole numbers.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Floor, "floor_vml_cpu", Floating, floor(x));
UMBRA_FUNCTOR_UNARY(Ceil, "ceil_vml_cpu", Floating, ceil(x));
UMBRA_FUNCTOR_UNARY(Round, "round_vml_cpu", Floating, round(x));  // halves to the even one
UMBRA_FUNCTOR_UNARY(Trunc, "trunc_vml_cpu", Floating, trunc(x));

}  // namespace umbra::functors
