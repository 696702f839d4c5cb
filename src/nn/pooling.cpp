#include "umbra/nn/pooling.h"

#include "nn/text.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

// ---- maxima ----

template <size_t N>
MaxPool<N>::MaxPool(Sizes<N> kernel_size, const MaxPoolOptions<N>& options)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "MaxPool")),
      kernel_size_(kernel_size),
      stride_(options.stride.value_or(kernel_size)),
      options_(options) {}

template <size_t N> Tensor MaxPool<N>::forward(Tensor x) {
  const auto& o = options_;
  if constexpr (N == 1) return max_pool1d(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
  else if constexpr (N == 2) return max_pool2d(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
  else return max_pool3d(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
}

template <size_t N> std::pair<Tensor, Tensor> MaxPool<N>::forward_with_indices(Tensor x) {
  return this->run([&]() -> std::pair<Tensor, Tensor> {
    const auto& o = options_;
    auto [maxima, indices] = [&] {
      if constexpr (N == 1)
        return max_pool1d_with_indices(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
      else if constexpr (N == 2)
        return max_pool2d_with_indices(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
      else return max_pool3d_with_indices(x, kernel_size_, stride_, o.padding, o.dilation, o.ceil_mode);
    }();
    return {maxima, indices};
  });
}

template <size_t N> std::string MaxPool<N>::extra_repr() const {
  return concat("kernel_size=", number_or_tuple(kernel_size_), ", stride=", number_or_tuple(stride_),
                ", padding=", number_or_tuple(options_.padding), ", dilation=", number_or_tuple(options_.dilation),
                ", ceil_mode=", options_.ceil_mode);
}

// ---- back to where they were ----

template <size_t N>
MaxUnpool<N>::MaxUnpool(Sizes<N> kernel_size, std::optional<Sizes<N>> stride, Sizes<N> padding)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "MaxUnpool")),
      kernel_size_(kernel_size),
      stride_(stride.value_or(kernel_size)),
      padding_(padding) {}

/// The least size that gives so many windows.
template <size_t N> Sizes<N> MaxUnpool<N>::plain_size(const Tensor& x) const {
  Sizes<N> size = 0;
  for (size_t d = 0; d < N; ++d) {
    int64_t windows = x.size(static_cast<int64_t>(d) - static_cast<int64_t>(N));
    size[d] = (windows - 1) * stride_[d] + kernel_size_[d] - 2 * padding_[d];
  }
  return size;
}

template <size_t N> Tensor MaxUnpool<N>::forward(Tensor x, Tensor indices) {
  return forward_to_size(x, indices, plain_size(x));
}

template <size_t N> Tensor MaxUnpool<N>::forward_to_size(Tensor x, Tensor indices, Sizes<N> output_size) {
  Sizes<N> plain = plain_size(x);
  for (size_t d = 0; d < N; ++d)
    check<ValueError>(output_size[d] > plain[d] - stride_[d] && output_size[d] < plain[d] + stride_[d],
                      "invalid output_size \"", tuple_text(output_size), "\" (dim ", d, " must be between ",
                      plain[d] - stride_[d], " and ", plain[d] + stride_[d], ")");
  return this->run([&] {
    if constexpr (N == 1) return max_unpool2d(x.unsqueeze(-1), indices.unsqueeze(-1), {output_size[0], 1}).squeeze(-1);
    else if constexpr (N == 2) return max_unpool2d(x, indices, output_size);
    else return max_unpool3d(x, indices, output_size, stride_, padding_);
  });
}

template <size_t N> std::string MaxUnpool<N>::extra_repr() const {
  return concat("kernel_size=", tuple_text(kernel_size_), ", stride=", tuple_text(stride_),
                ", padding=", tuple_text(padding_));
}

// ---- averages ----

template <size_t N>
AvgPool<N>::AvgPool(Sizes<N> kernel_size, const AvgPoolOptions<N>& options)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "AvgPool")),
      kernel_size_(kernel_size),
      stride_(options.stride.value_or(kernel_size)),
      options_(options) {
  check<ValueError>(N > 1 || !options.divisor_override, "AvgPool1d has no divisor_override");
}

template <size_t N> Tensor AvgPool<N>::forward(Tensor x) {
  const auto& o = options_;
  if constexpr (N == 1) return avg_pool1d(x, kernel_size_, stride_, o.padding, o.ceil_mode, o.count_include_pad);
  else if constexpr (N == 2)
    return avg_pool2d(x, kernel_size_, stride_, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override);
  else return avg_pool3d(x, kernel_size_, stride_, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override);
}

template <size_t N> std::string AvgPool<N>::extra_repr() const {
  auto text = [](const Sizes<N>& sizes) { return N == 1 ? tuple_text(sizes) : number_or_tuple(sizes); };
  return concat("kernel_size=", text(kernel_size_), ", stride=", text(stride_), ", padding=", text(options_.padding));
}

template <size_t N>
LPPool<N>::LPPool(double norm_type, Sizes<N> kernel_size, std::optional<Sizes<N>> stride, bool ceil_mode)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "LPPool")),
      norm_type_(norm_type),
      kernel_size_(kernel_size),
      stride_(stride),
      ceil_mode_(ceil_mode) {}

template <size_t N> Tensor LPPool<N>::forward(Tensor x) {
  Sizes<N> stride = stride_.value_or(kernel_size_);
  double count = 1;
  for (int64_t size : kernel_size_) count *= static_cast<double>(size);
  Tensor powers = x.pow(norm_type_), means;
  if constexpr (N == 1) means = avg_pool1d(powers, kernel_size_, stride, 0, ceil_mode_);
  else if constexpr (N == 2) means = avg_pool2d(powers, kernel_size_, stride, 0, ceil_mode_);
  else means = avg_pool3d(powers, kernel_size_, stride, 0, ceil_mode_);
  return (means.sign() * relu(means.abs())).mul(count).pow(1 / norm_type_);
}

template <size_t N> std::string LPPool<N>::extra_repr() const {
  return concat("norm_type=", norm_type_, ", kernel_size=", number_or_tuple(kernel_size_),
                ", stride=", stride_ ? number_or_tuple(*stride_) : std::string("None"), ", ceil_mode=", ceil_mode_);
}

// ---- windows at random ----

template <size_t N>
FractionalMaxPool<N>::FractionalMaxPool(Sizes<N> kernel_size, const FractionalMaxPoolOptions<N>& options)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "FractionalMaxPool")), kernel_size_(kernel_size), options_(options) {
  check<ValueError>(options.output_size || options.output_ratio, "FractionalMaxPool", N,
                    "d requires specifying either an output size, or a pooling ratio");
  check<ValueError>(!options.output_size || !options.output_ratio,
                    "only one of output_size and output_ratio may be specified");
  if (options.output_ratio)
    for (double ratio : *options.output_ratio)
      check<ValueError>(0 < ratio && ratio < 1, "output_ratio must be between 0 and 1 (got ", ratio, ")");
  if (options.random_samples.defined()) this->buffer("_random_samples", options.random_samples);
}

template <size_t N> std::tuple<Tensor, Tensor> FractionalMaxPool<N>::maxima(const Tensor& x) const {
  constexpr auto dims = static_cast<int64_t>(N);
  Sizes<N> size = options_.output_size.value_or(0);
  if (options_.output_ratio)
    for (size_t d = 0; d < N; ++d)
      size[d] = static_cast<int64_t>(static_cast<double>(x.size(static_cast<int64_t>(d) - dims)) *
                                     (*options_.output_ratio)[d]);
  Tensor samples = options_.random_samples;
  if (!samples.defined()) {
    SymInt batch = x.dim() == dims + 1 ? SymInt(1) : x.sym_size(0);
    samples = rand({batch, x.sym_size(-dims - 1), dims}, {.dtype = x.dtype(), .device = x.device()});
  }
  if constexpr (N == 2) return fractional_max_pool2d(x, kernel_size_, size, samples);
  else return fractional_max_pool3d(x, kernel_size_, size, samples);
}

template <size_t N> Tensor FractionalMaxPool<N>::forward(Tensor x) { return std::get<0>(maxima(x)); }

template <size_t N> std::pair<Tensor, Tensor> FractionalMaxPool<N>::forward_with_indices(Tensor x) {
  return this->run([&]() -> std::pair<Tensor, Tensor> {
    auto [values, indices] = maxima(x);
    return {values, indices};
  });
}

template class UMBRA_INSTANCE FractionalMaxPool<2>;
template class UMBRA_INSTANCE FractionalMaxPool<3>;

// ---- down to a size ----

template <size_t N>
AdaptiveAvgPool<N>::AdaptiveAvgPool(Sizes<N> output_size)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "AdaptiveAvgPool")), output_size_(output_size) {}

template <size_t N> Tensor AdaptiveAvgPool<N>::forward(Tensor x) {
  if constexpr (N == 1) return adaptive_avg_pool1d(x, output_size_);
  else if constexpr (N == 2) return adaptive_avg_pool2d(x, output_size_);
  else return adaptive_avg_pool3d(x, output_size_);
}

template <size_t N> std::string AdaptiveAvgPool<N>::extra_repr() const {
  return "output_size=" + number_or_tuple(output_size_);
}

template <size_t N>
AdaptiveMaxPool<N>::AdaptiveMaxPool(Sizes<N> output_size)
    : Layer(UMBRA_LAYER_NAME(N, "pooling", "AdaptiveMaxPool")), output_size_(output_size) {}

namespace {
template <size_t N> std::tuple<Tensor, Tensor> adaptive_maxima(const Tensor& x, const Sizes<N>& output_size) {
  if constexpr (N == 1) return adaptive_max_pool1d(x, output_size);
  else if constexpr (N == 2) return adaptive_max_pool2d(x, output_size);
  else return adaptive_max_pool3d(x, output_size);
}
}  // namespace

template <size_t N> Tensor AdaptiveMaxPool<N>::forward(Tensor x) {
  return std::get<0>(adaptive_maxima(x, output_size_));
}

template <size_t N> std::pair<Tensor, Tensor> AdaptiveMaxPool<N>::forward_with_indices(Tensor x) {
  return this->run([&]() -> std::pair<Tensor, Tensor> {
    auto [maxima, indices] = adaptive_maxima(x, output_size_);
    return {maxima, indices};
  });
}

template <size_t N> std::string AdaptiveMaxPool<N>::extra_repr() const {
  return "output_size=" + number_or_tuple(output_size_);
}

#define UMBRA_INSTANTIATE(Name)          \
  template class UMBRA_INSTANCE Name<1>; \
  template class UMBRA_INSTANCE Name<2>; \
  template class UMBRA_INSTANCE Name<3>;
UMBRA_INSTANTIATE(MaxPool)
UMBRA_INSTANTIATE(MaxUnpool)
UMBRA_INSTANTIATE(AvgPool)
UMBRA_INSTANTIATE(LPPool)
UMBRA_INSTANTIATE(AdaptiveAvgPool)
UMBRA_INSTANTIATE(AdaptiveMaxPool)
#undef UMBRA_INSTANTIATE

}  // namespace umbra::nn
