#include "umbra/nn/convolution.h"

#include "nn/affine.h"
#include "nn/text.h"

namespace umbra::nn {

namespace {

void check_groups(int64_t in_channels, int64_t out_channels, int64_t groups) {
  check<ValueError>(groups > 0, "groups must be a positive integer");
  check<ValueError>(in_channels % groups == 0, "in_channels must be divisible by groups");
  check<ValueError>(out_channels % groups == 0, "out_channels must be divisible by groups");
}

template <size_t N> SymShape weight_sizes(int64_t first, int64_t second, const Sizes<N>& kernel_size) {
  SymShape sizes{first, second};
  for (int64_t size : kernel_size) sizes.push_back(size);
  return sizes;
}

template <size_t N, class Options>
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const Options& o, const Sizes<N>& padding) {
  if constexpr (N == 1) return conv1d(x, weight, bias, o.stride, padding, o.dilation, o.groups);
  else if constexpr (N == 2) return conv2d(x, weight, bias, o.stride, padding, o.dilation, o.groups);
  else return conv3d(x, weight, bias, o.stride, padding, o.dilation, o.groups);
}

/// "2, 4, kernel_size=(3, 3), stride=(1, 1)", and what differs from the usual.
template <size_t N, class Options>
std::string repr(int64_t in_channels, int64_t out_channels, const Sizes<N>& kernel_size, const Options& o) {
  std::string text = concat(in_channels, ", ", out_channels, ", kernel_size=", tuple_text(kernel_size),
                            ", stride=", tuple_text(o.stride));
  if (o.padding != Sizes<N>(0)) text += ", padding=" + tuple_text(o.padding);
  if (o.dilation != Sizes<N>(1)) text += ", dilation=" + tuple_text(o.dilation);
  if constexpr (requires { o.output_padding; })
    if (o.output_padding != Sizes<N>(0)) text += ", output_padding=" + tuple_text(o.output_padding);
  if (o.groups != 1) text += concat(", groups=", o.groups);
  if (!o.bias) text += ", bias=False";
  if constexpr (requires { o.padding_mode; })
    if (o.padding_mode != "zeros") text += ", padding_mode=" + o.padding_mode;
  return text;
}

}  // namespace

template <size_t N>
Conv<N>::Conv(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size, const ConvOptions<N>& options)
    : Layer(UMBRA_LAYER_NAME(N, "conv", "Conv")), kernel_size_(kernel_size), options_(options) {
  check_groups(in_channels, out_channels, options.groups);
  const std::string& mode = options.padding_mode;
  check<ValueError>(mode == "zeros" || mode == "reflect" || mode == "replicate" || mode == "circular",
                    "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but got padding_mode='",
                    mode, "'");
  weight =
      parameter("weight", empty(weight_sizes(out_channels, in_channels / options.groups, kernel_size), options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_channels}, options.tensor));
  reset_affine(weight, bias);
}

template <size_t N> Tensor Conv<N>::forward(Tensor x) {
  if (options_.padding_mode == "zeros") return convolve<N>(x, weight, bias, options_, options_.padding);
  SymShape margins;  // front and back, the last dimension first
  for (size_t i = N; i-- > 0;) {
    margins.push_back(options_.padding[i]);
    margins.push_back(options_.padding[i]);
  }
  return convolve<N>(pad(x, margins, options_.padding_mode), weight, bias, options_, Sizes<N>(0));
}

template <size_t N> std::string Conv<N>::extra_repr() const {
  return repr(weight.size(1) * options_.groups, weight.size(0), kernel_size_, options_);
}

template <size_t N>
ConvTranspose<N>::ConvTranspose(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
                                const ConvTransposeOptions<N>& options)
    : Layer(UMBRA_LAYER_NAME(N, "conv", "ConvTranspose")), kernel_size_(kernel_size), options_(options) {
  check_groups(in_channels, out_channels, options.groups);
  weight =
      parameter("weight", empty(weight_sizes(in_channels, out_channels / options.groups, kernel_size), options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_channels}, options.tensor));
  reset_affine(weight, bias);
}

template <size_t N> Tensor ConvTranspose<N>::forward(Tensor x) {
  const auto& o = options_;
  if constexpr (N == 1)
    return conv_transpose1d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation);
  else if constexpr (N == 2)
    return conv_transpose2d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation);
  else return conv_transpose3d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation);
}

template <size_t N> std::string ConvTranspose<N>::extra_repr() const {
  return repr(weight.size(0), weight.size(1) * options_.groups, kernel_size_, options_);
}

template class UMBRA_INSTANCE Conv<1>;
template class UMBRA_INSTANCE Conv<2>;
template class UMBRA_INSTANCE Conv<3>;
template class UMBRA_INSTANCE ConvTranspose<1>;
template class UMBRA_INSTANCE ConvTranspose<2>;
template class UMBRA_INSTANCE ConvTranspose<3>;

}  // namespace umbra::nn
