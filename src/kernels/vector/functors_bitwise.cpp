#include "kernels/functors/bitwise.h"
#include "kernels/vector/functor_loops.h"

namespace umbra::kernels::UMBRA_ISA {

UMBRA_INSTANTIATE_POINTWISE(BitwiseAnd);
UMBRA_INSTANTIATE_POINTWISE(BitwiseOr);
UMBRA_INSTANTIATE_POINTWISE(BitwiseXor);
UMBRA_INSTANTIATE_POINTWISE(BitwiseNot);
UMBRA_INSTANTIATE_POINTWISE(LeftShift);
UMBRA_INSTANTIATE_POINTWISE(RightShift);

}  // namespace umbra::kernels::UMBRA_ISA
