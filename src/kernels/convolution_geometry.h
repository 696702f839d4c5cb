// A convolution as a relation between two tensors: an image, which windows slide over, and a map with one element for
// each place of the window. An ordinary convolution makes the map of the image, a transposed one the image of the map,
// and each is the other's gradient. The weight is [map channels, image channels / groups, kernel...] for both.
#pragma once

#include <optional>

#include "kernels/convolution.h"

namespace umbra::kernels {

struct ConvolutionGeometry {
  int64_t batch, groups, image_channels, map_channels;
  // One number for each spatial dimension.
  SmallVector<int64_t> image, map, kernel, stride, padding, dilation;

  int64_t dims() const { return static_cast<int64_t>(kernel.size()); }
  int64_t kernel_size() const { return product(kernel); }
  int64_t image_size() const { return product(image); }
  int64_t map_size() const { return product(map); }

  static int64_t product(const SmallVector<int64_t>& values) {
    int64_t result = 1;
    for (int64_t value : values) result *= value;
    return result;
  }
};

inline ConvolutionGeometry convolution_geometry(const Tensor& image, const Tensor& map, const Tensor& weight,
                                                const ConvolutionOptions& options) {
  return {image.size(0),
          options.groups,
          image.size(1),
          map.size(1),
          SmallVector<int64_t>(image.sizes().drop_front(2)),
          SmallVector<int64_t>(map.sizes().drop_front(2)),
          SmallVector<int64_t>(weight.sizes().drop_front(2)),
          options.stride,
          options.padding,
          options.dilation};
}

/// What is computed of the other two.
enum class ConvolutionResult { Map, Image, Weight };

/// The three computations by oneDNN. Each is false where oneDNN has no fast way for the types or the geometry; then
/// nothing was done. The bias (of the map) may be undefined.
bool onednn_map_of_image(const Tensor& map, const Tensor& image, const Tensor& weight, const Tensor& bias,
                         const ConvolutionGeometry& geometry);
bool onednn_image_of_map(const Tensor& image, const Tensor& map, const Tensor& weight,
                         const ConvolutionGeometry& geometry);
bool onednn_weight_gradient(const Tensor& grad_weight, const Tensor& map, const Tensor& image,
                            const ConvolutionGeometry& geometry);
/// The bytes that one of them takes while it runs, to bring operands into oneDNN's layouts; none where oneDNN has no
/// way. Only metadata is looked at. Memory that threads keep from call to call is not counted.
std::optional<int64_t> onednn_workspace(ConvolutionResult result, const Tensor& image, const Tensor& map,
                                        const Tensor& weight, const Tensor& bias, const ConvolutionGeometry& geometry);

}  // namespace umbra::kernels
