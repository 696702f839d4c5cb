#include "kernels/functors/rounding.h"
#include "kernels/vector/functor_loops.h"

namespace umbra::kernels::UMBRA_ISA {

UMBRA_INSTANTIATE_POINTWISE(Floor);
UMBRA_INSTANTIATE_POINTWISE(Ceil);
UMBRA_INSTANTIATE_POINTWISE(Round);
UMBRA_INSTANTIATE_POINTWISE(Trunc);
UMBRA_INSTANTIATE_POINTWISE(RoundDecimals);
UMBRA_INSTANTIATE_POINTWISE(Fraction);
UMBRA_INSTANTIATE_POINTWISE(NanToNum);

}  // namespace umbra::kernels::UMBRA_ISA
