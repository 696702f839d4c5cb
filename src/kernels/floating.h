// How floating point numbers are made up.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// mantissa times 2 to the power of exponent (int32), with the mantissa in [0.5, 1).
void frexp(const Tensor& mantissa, const Tensor& exponent, const Tensor& self);
/// The neighbours of `self` in the direction of `other`, in their own type.
void nextafter(const Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace umbra::kernels
