// Layers that rearrange images: between channels and places, and into their patches.
#pragma once

#include "umbra/nn/module.h"
#include "umbra/nn/sizes.h"

namespace UMBRA_API umbra {
namespace nn {

/// Channels become places: [N, C * r * r, H, W] to [N, C, H * r, W * r].
class PixelShuffle : public Layer {
 public:
  explicit PixelShuffle(int64_t upscale_factor);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t upscale_factor_;
};

/// The reverse.
class PixelUnshuffle : public Layer {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t downscale_factor_;
};

class ChannelShuffle : public Layer {
 public:
  explicit ChannelShuffle(int64_t groups);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t groups_;
};

struct UnfoldOptions {
  Pair dilation = 1, padding = 0, stride = 1;
};

/// The patches of images as columns.
class Unfold : public Layer {
 public:
  explicit Unfold(Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair kernel_size_;
  UnfoldOptions options_;
};

/// Images of such columns; where patches overlap, they are added.
class Fold : public Layer {
 public:
  Fold(Pair output_size, Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair output_size_, kernel_size_;
  UnfoldOptions options_;
};

}  // namespace nn
}  // namespace umbra
