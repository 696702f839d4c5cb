// Convolutions over signals, images and volumes, and their transposes.
//
//     nn::Conv2d conv(3, 16, 3, {.stride = 2, .padding = 1});
//     Tensor y = conv(randn({8, 3, 32, 32}));                      // [8, 16, 16, 16]
//     nn::Conv2d wide(3, 16, {1, 5}, {.padding = {0, 2}});           // a size for each dimension
#pragma once

#include "umbra/nn/module.h"
#include "umbra/nn/sizes.h"

namespace UMBRA_API umbra {
namespace nn {

template <size_t N> struct ConvOptions {
  Sizes<N> stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
  TensorOptions tensor = {};
};

template <size_t N> class Conv : public Layer {
 public:
  Conv(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size, const ConvOptions<N>& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;

 private:
  Sizes<N> kernel_size_;
  ConvOptions<N> options_;
};

template <size_t N> struct ConvTransposeOptions {
  Sizes<N> stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  TensorOptions tensor = {};
};

/// The gradient of a convolution as a layer: it makes images larger.
template <size_t N> class ConvTranspose : public Layer {
 public:
  ConvTranspose(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
                const ConvTransposeOptions<N>& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;

 private:
  Sizes<N> kernel_size_;
  ConvTransposeOptions<N> options_;
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

}  // namespace nn
}  // namespace umbra
