// Elements that a mask chooses, and where elements are not zero.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// How many elements are not zero, which is how many rows `nonzero` fills: their positions, in row-major order.
int64_t count_nonzero(const Tensor& self);
void nonzero(const Tensor& out, const Tensor& self);

/// The elements where the mask holds, in order. Mask and self are broadcast together; out has count_nonzero(mask)
/// elements.
void masked_select(const Tensor& out, const Tensor& self, const Tensor& mask);
/// Replaces the elements where the mask (broadcast to self) holds by the source's, in order.
void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);

}  // namespace umbra::kernels
