// The view of one index along a dimension, which other views of parts are made of.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// `self` without dimension `dim`, at `index` of it. The index counts from the end where it is negative.
Tensor select_view(const Tensor& self, int64_t dim, SymInt index);

}  // namespace umbra::ops
