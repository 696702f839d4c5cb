// Images at another size: each element of the result is a weighted sum of neighbours in the input, one spatial
// dimension after the other. Tensors are [batch, channels, spatial...], with one to three spatial dimensions.
#pragma once

#include <optional>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

enum class Interpolation { Nearest, NearestExact, Linear, Cubic, LinearSmooth, CubicSmooth, LanczosSmooth };

struct ResampleOptions {
  Interpolation mode;
  bool align_corners = false;
  /// For each spatial dimension by how much it grows, where that was given: positions follow from it, not from sizes.
  SmallVector<std::optional<double>> scales;
};

void resample(const Tensor& out, const Tensor& self, const ResampleOptions& options);
void resample_backward(const Tensor& grad_input, const Tensor& grad_output, const ResampleOptions& options);

}  // namespace umbra::kernels
