// Where numbers belong among sorted ones, and whether they are among others at all.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// For each element the position in the last dimension of `sorted` before which (or, with `right`, after equals of
/// which) it belongs. `sorted` is one row, or one for each row of `values`; `sorter` says which element is where in its
/// order, or is undefined. All are of one type.
void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right);

/// Whether each element is among `others` (or is not, with `invert`). Both are of one type.
void is_in(const Tensor& out, const Tensor& elements, const Tensor& others, bool invert);

}  // namespace umbra::kernels
