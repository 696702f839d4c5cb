#include "umbra/nn/vision.h"

#include "nn/text.h"
#include "umbra/generated/functions.h"

namespace umbra::nn {

#define UMBRA_SHUFFLE(Name, file, option, function)                                            \
  Name::Name(int64_t option) : Layer("torch.nn.modules." file "." #Name), option##_(option) {} \
  Tensor Name::forward(Tensor x) { return function(x, option##_); }                            \
  std::string Name::extra_repr() const { return concat(#option "=", option##_); }
UMBRA_SHUFFLE(PixelShuffle, "pixelshuffle", upscale_factor, pixel_shuffle)
UMBRA_SHUFFLE(PixelUnshuffle, "pixelshuffle", downscale_factor, pixel_unshuffle)
UMBRA_SHUFFLE(ChannelShuffle, "channelshuffle", groups, channel_shuffle)
#undef UMBRA_SHUFFLE

Unfold::Unfold(const char* type, Pair kernel_size, const UnfoldOptions& options)
    : Layer(type), kernel_size_(kernel_size), options_(options) {}
Unfold::Unfold(Pair kernel_size, const UnfoldOptions& options)
    : Unfold("torch.nn.modules.fold.Unfold", kernel_size, options) {}
Tensor Unfold::forward(Tensor x) {
  return im2col(x, kernel_size_, options_.dilation, options_.padding, options_.stride);
}
std::string Unfold::extra_repr() const {
  return concat("kernel_size=", number_or_tuple(kernel_size_), ", dilation=", number_or_tuple(options_.dilation),
                ", padding=", number_or_tuple(options_.padding), ", stride=", number_or_tuple(options_.stride));
}

Fold::Fold(Pair output_size, Pair kernel_size, const UnfoldOptions& options)
    : Unfold("torch.nn.modules.fold.Fold", kernel_size, options), output_size_(output_size) {}
Tensor Fold::forward(Tensor x) {
  return col2im(x, output_size_, kernel_size_, options_.dilation, options_.padding, options_.stride);
}
std::string Fold::extra_repr() const {
  return concat("output_size=", number_or_tuple(output_size_), ", ", Unfold::extra_repr());
}

}  // namespace umbra::nn
