// Layers that rearrange images: between channels and places, and into their patches.
//
//     Tensor y = nn::PixelShuffle(2)(randn({1, 12, 4, 4}));          // [1, 3, 8, 8]
//     Tensor patches = nn::Unfold(2, {.stride = 2})(y);              // [1, 12, 16]
#pragma once

#include "umbra/nn/module.h"
#include "umbra/nn/sizes.h"

namespace UMBRA_API umbra {
namespace nn {

// Those of one number.
#define UMBRA_SHUFFLE(Name, option)          \
  class Name : public Layer {                \
   public:                                   \
    explicit Name(int64_t option);           \
    Tensor forward(Tensor x) override;       \
    std::string extra_repr() const override; \
                                             \
   private:                                  \
    int64_t option##_;                       \
  }
/// Channels become places: [N, C * r * r, H, W] to [N, C, H * r, W * r].
UMBRA_SHUFFLE(PixelShuffle, upscale_factor);
/// The reverse.
UMBRA_SHUFFLE(PixelUnshuffle, downscale_factor);
UMBRA_SHUFFLE(ChannelShuffle, groups);
#undef UMBRA_SHUFFLE

struct UnfoldOptions {
  Pair dilation = 1, padding = 0, stride = 1;
};

/// The patches of images as columns.
class Unfold : public Layer {
 public:
  explicit Unfold(Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 protected:
  Unfold(const char* type, Pair kernel_size, const UnfoldOptions& options);
  Pair kernel_size_;
  UnfoldOptions options_;
};

/// Images of such columns; where patches overlap, they are added.
class Fold : public Unfold {
 public:
  Fold(Pair output_size, Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Pair output_size_;
};

}  // namespace nn
}  // namespace umbra
