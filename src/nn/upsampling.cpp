#include "umbra/nn/upsampling.h"

#include "nn/text.h"

namespace umbra::nn {

namespace {
/// "2.0" of one number, "(2.0, 1.5)" of several.
template <class T, class Text> std::string list_text(const std::vector<T>& list, const Text& text) {
  if (list.size() == 1) return text(list[0]);
  std::string out;
  for (const T& element : list) out += (out.empty() ? "(" : ", ") + text(element);
  return out + ")";
}

UpsampleOptions in_mode(UpsampleOptions options, const char* mode, std::optional<bool> align_corners) {
  options.mode = mode;
  options.align_corners = align_corners;
  return options;
}
}  // namespace

Upsample::Upsample(const char* type, const UpsampleOptions& options) : Layer(type), options_(options) {}
Upsample::Upsample(const UpsampleOptions& options) : Upsample("torch.nn.modules.upsampling.Upsample", options) {}
Tensor Upsample::forward(Tensor x) { return functional::interpolate(x, options_); }
std::string Upsample::extra_repr() const {
  std::string to = options_.scale_factor.empty()
                       ? "size=" + list_text(options_.size, [](int64_t n) { return concat(n); })
                       : "scale_factor=" + list_text(options_.scale_factor, float_text);
  return to + ", mode='" + options_.mode + "'";
}

UpsamplingNearest2d::UpsamplingNearest2d(UpsampleOptions options)
    : Upsample("torch.nn.modules.upsampling.UpsamplingNearest2d", in_mode(std::move(options), "nearest", {})) {}
UpsamplingBilinear2d::UpsamplingBilinear2d(UpsampleOptions options)
    : Upsample("torch.nn.modules.upsampling.UpsamplingBilinear2d", in_mode(std::move(options), "bilinear", true)) {}

}  // namespace umbra::nn
