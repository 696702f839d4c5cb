#include "umbra/nn/vision.h"

#include "nn/text.h"
#include "umbra/generated/functions.h"

namespace umbra::nn {

PixelShuffle::PixelShuffle(int64_t upscale_factor)
    : Layer("torch.nn.modules.pixelshuffle.PixelShuffle"), upscale_factor_(upscale_factor) {}
Tensor PixelShuffle::forward(Tensor x) { return pixel_shuffle(x, upscale_factor_); }
std::string PixelShuffle::extra_repr() const { return concat("upscale_factor=", upscale_factor_); }

PixelUnshuffle::PixelUnshuffle(int64_t downscale_factor)
    : Layer("torch.nn.modules.pixelshuffle.PixelUnshuffle"), downscale_factor_(downscale_factor) {}
Tensor PixelUnshuffle::forward(Tensor x) { return pixel_unshuffle(x, downscale_factor_); }
std::string PixelUnshuffle::extra_repr() const { return concat("downscale_factor=", downscale_factor_); }

ChannelShuffle::ChannelShuffle(int64_t groups)
    : Layer("torch.nn.modules.channelshuffle.ChannelShuffle"), groups_(groups) {}
Tensor ChannelShuffle::forward(Tensor x) { return channel_shuffle(x, groups_); }
std::string ChannelShuffle::extra_repr() const { return concat("groups=", groups_); }

namespace {
std::string patches(const Pair& kernel_size, const UnfoldOptions& o) {
  return concat("kernel_size=", number_or_tuple(kernel_size), ", dilation=", number_or_tuple(o.dilation),
                ", padding=", number_or_tuple(o.padding), ", stride=", number_or_tuple(o.stride));
}
}  // namespace

Unfold::Unfold(Pair kernel_size, const UnfoldOptions& options)
    : Layer("torch.nn.modules.fold.Unfold"), kernel_size_(kernel_size), options_(options) {}
Tensor Unfold::forward(Tensor x) {
  return im2col(x, kernel_size_, options_.dilation, options_.padding, options_.stride);
}
std::string Unfold::extra_repr() const { return patches(kernel_size_, options_); }

Fold::Fold(Pair output_size, Pair kernel_size, const UnfoldOptions& options)
    : Layer("torch.nn.modules.fold.Fold"), output_size_(output_size), kernel_size_(kernel_size), options_(options) {}
Tensor Fold::forward(Tensor x) {
  return col2im(x, output_size_, kernel_size_, options_.dilation, options_.padding, options_.stride);
}
std::string Fold::extra_repr() const {
  return concat("output_size=", number_or_tuple(output_size_), ", ", patches(kernel_size_, options_));
}

}  // namespace umbra::nn
