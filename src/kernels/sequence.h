// Numbers between two ends.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// As many numbers as `out` has elements, evenly from `start` to `end`.
void linspace(const Tensor& out, const Scalar& start, const Scalar& end);
/// `base` to the power of those.
void logspace(const Tensor& out, const Scalar& start, const Scalar& end, double base);

}  // namespace umbra::kernels
