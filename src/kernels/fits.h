// Whether a number has its place in a type.
#pragma once

#include "umbra/core/scalar.h"

namespace UMBRA_API umbra {
namespace kernels {

/// The largest finite number of a floating type.
double largest_number(DType dtype);
/// Whether the number can be an element of that type. Fractions may be cut off, infinity and nan go into floats only,
/// and negative integers wrap around in unsigned types as far as their size fits.
bool fits(const Scalar& value, DType dtype);
/// An error, in PyTorch's words, unless it fits.
void check_fits(const Scalar& value, DType dtype);

}  // namespace kernels
}  // namespace umbra
