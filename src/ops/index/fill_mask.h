// What a fill by a mask asks for, as masked_fill (pointwise/choice.cpp) and as a write by one mask.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

void check_fill_by_mask(const Tensor& self, const Tensor& mask);

}  // namespace umbra::ops
