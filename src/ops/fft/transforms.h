// What the Fourier transforms share: normalisation and the choice of dimensions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// What a transform is divided by; the numbers are PyTorch's.
enum class FftNorm : int64_t { None = 0, ByRoot = 1, ByCount = 2 };

/// "forward", "backward" or "ortho", as seen from a transform of that direction.
FftNorm fft_norm(const std::optional<std::string>& mode, bool forward);

/// Refuses a transform of no points.
inline void check_points(SymInt n) { check(n >= 1, "Invalid number of data points (", n, ") specified"); }

}  // namespace umbra::ops
