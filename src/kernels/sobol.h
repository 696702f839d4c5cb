// Sobol sequences: the direction numbers of Joe and Kuo (2008), for up to 21,201 dimensions.
#pragma once

#include <cstdint>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

inline constexpr int64_t kSobolBits = 30, kSobolDimensions = 21201;

/// Fills the first `kSobolBits` columns of each row with the direction numbers of that dimension; `state` is an int64
/// matrix with a row for each.
void sobol_directions(const Tensor& state);

}  // namespace umbra::kernels
