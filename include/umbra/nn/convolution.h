// Layers over images: convolution and pooling.
#pragma once

#include <array>
#include <optional>

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

/// Height and width; one number stands for both.
struct Pair : std::array<int64_t, 2> {
  Pair(int64_t both) : std::array<int64_t, 2>{both, both} {}
  Pair(int both) : Pair(int64_t{both}) {}
  Pair(int64_t height, int64_t width) : std::array<int64_t, 2>{height, width} {}
};

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  TensorOptions tensor = {};
};

class Conv2d : public Layer {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const Conv2dOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;

 private:
  Conv2dOptions options_;
};

struct PoolOptions {
  std::optional<Pair> stride = {};  // the kernel's size where it is left out
  Pair padding = 0;
  bool ceil_mode = false;
  Pair dilation = 1;              // max pooling only
  bool count_include_pad = true;  // average pooling only
};

class MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(Pair kernel_size, const PoolOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

class AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(Pair kernel_size, const PoolOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

/// Averages down to a given size.
class AdaptiveAvgPool2d : public Layer {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair output_size_;
};

}  // namespace nn
}  // namespace umbra
