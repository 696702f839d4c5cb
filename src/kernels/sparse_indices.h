// Indices of compressed sparse layouts.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Where the elements of each row begin among all of them, and where the last ones end: out has one element more than
/// there are rows. `rows` is a contiguous vector of the elements' row numbers (Int64), in ascending order.
void row_starts(const Tensor& out, const Tensor& rows);

}  // namespace umbra::kernels
