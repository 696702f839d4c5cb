// What the scatters check of their arguments.
#pragma once

#include "umbra/dispatch/operator.h"

namespace umbra::ops {

/// The metadata of a scatter of `src` into `self`, once everything fits.
TensorSpec scatter_spec(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
/// The same checks for a scatter of one value.
void check_scatter(const Tensor& self, int64_t dim, const Tensor& index);

}  // namespace umbra::ops
