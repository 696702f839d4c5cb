// Elements of an image at places that a grid names, between elements too, and the gradients of image and grid. Images
// are [batch, channels, spatial...] with two or three spatial dimensions; the grid is [batch, spatial..., coordinates],
// the coordinate of the last dimension first, -1 to 1 from edge to edge.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The numbers are PyTorch's.
enum class GridInterpolation : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };
enum class GridPadding : int64_t { Zeros = 0, Border = 1, Reflection = 2 };

struct GridOptions {
  GridInterpolation interpolation;
  GridPadding padding;
  bool align_corners;
};

void grid_sample(const Tensor& out, const Tensor& image, const Tensor& grid, const GridOptions& options);
/// `grad_image` may be undefined: not wanted.
void grid_sample_backward(const Tensor& grad_image, const Tensor& grad_grid, const Tensor& grad_output,
                          const Tensor& image, const Tensor& grid, const GridOptions& options);

}  // namespace umbra::kernels
