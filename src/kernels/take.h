// Elements of a tensor by their place in it, seen as one row.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Elements of self, seen as one row, at the positions; and the reverse.
void take(const Tensor& out, const Tensor& self, const Tensor& index);
void put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate);

}  // namespace umbra::kernels
