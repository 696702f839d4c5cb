// Pooling over signals, images and volumes.
//
//     Tensor y = nn::MaxPool2d(2)(randn({8, 16, 32, 32}));           // [8, 16, 16, 16]
//     Tensor z = nn::AvgPool2d(3, {.stride = 1, .padding = 1})(y);
//     Tensor one = nn::AdaptiveAvgPool2d(1)(z);                      // [8, 16, 1, 1]
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include "umbra/nn/module.h"
#include "umbra/nn/sizes.h"

namespace UMBRA_API umbra {
namespace nn {

template <size_t N> struct MaxPoolOptions {
  std::optional<Sizes<N>> stride = {};  // the kernel's size where it is left out
  Sizes<N> padding = 0, dilation = 1;
  bool ceil_mode = false;
};

template <size_t N> class MaxPool : public Layer {
 public:
  explicit MaxPool(Sizes<N> kernel_size, const MaxPoolOptions<N>& options = {});
  Tensor forward(Tensor x) override;
  /// The maxima, and where they were: what MaxUnpool takes.
  std::pair<Tensor, Tensor> forward_with_indices(Tensor x);
  std::string extra_repr() const override;

 private:
  Sizes<N> kernel_size_, stride_;
  MaxPoolOptions<N> options_;
};

/// Puts maxima back where MaxPool found them; all else is zero.
template <size_t N> class MaxUnpool : public Layer {
 public:
  explicit MaxUnpool(Sizes<N> kernel_size, std::optional<Sizes<N>> stride = {}, Sizes<N> padding = 0);
  Tensor forward(Tensor x, Tensor indices) override;
  /// To the size that was pooled, where rounding left several that it may have been.
  Tensor forward_to_size(Tensor x, Tensor indices, Sizes<N> output_size);
  std::vector<std::string> argument_names() const override { return {"input", "indices"}; }
  std::string extra_repr() const override;

 private:
  Sizes<N> plain_size(const Tensor& x) const;
  Sizes<N> kernel_size_, stride_, padding_;
};

template <size_t N> struct AvgPoolOptions {
  std::optional<Sizes<N>> stride = {};
  Sizes<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};  // refused in one dimension
};

template <size_t N> class AvgPool : public Layer {
 public:
  explicit AvgPool(Sizes<N> kernel_size, const AvgPoolOptions<N>& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Sizes<N> kernel_size_, stride_;
  AvgPoolOptions<N> options_;
};

/// The root of the sum of powers: of norm 1 the sum, of large norms nearly the maximum.
template <size_t N> class LPPool : public Layer {
 public:
  LPPool(double norm_type, Sizes<N> kernel_size, std::optional<Sizes<N>> stride = {}, bool ceil_mode = false);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  double norm_type_;
  Sizes<N> kernel_size_;
  std::optional<Sizes<N>> stride_;
  bool ceil_mode_;
};

/// Of both sizes one is given: the size of the output, or its share of the input's.
template <size_t N> struct FractionalMaxPoolOptions {
  std::optional<Sizes<N>> output_size = {};
  std::optional<std::array<double, N>> output_ratio = {};
  Tensor random_samples = {};  // where windows lie, (batch, channels, N) of [0, 1); left out: drawn in each call
};

/// Maxima of windows whose places are drawn at random, down to any size below the input's.
template <size_t N> class FractionalMaxPool : public Layer {
 public:
  FractionalMaxPool(Sizes<N> kernel_size, const FractionalMaxPoolOptions<N>& options);
  Tensor forward(Tensor x) override;
  std::pair<Tensor, Tensor> forward_with_indices(Tensor x);

 private:
  std::tuple<Tensor, Tensor> maxima(const Tensor& x) const;
  Sizes<N> kernel_size_;
  FractionalMaxPoolOptions<N> options_;
};

/// Averages, or maxima, down to a given size.
template <size_t N> class AdaptiveAvgPool : public Layer {
 public:
  explicit AdaptiveAvgPool(Sizes<N> output_size);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  Sizes<N> output_size_;
};

template <size_t N> class AdaptiveMaxPool : public Layer {
 public:
  explicit AdaptiveMaxPool(Sizes<N> output_size);
  Tensor forward(Tensor x) override;
  std::pair<Tensor, Tensor> forward_with_indices(Tensor x);
  std::string extra_repr() const override;

 private:
  Sizes<N> output_size_;
};

using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

}  // namespace nn
}  // namespace umbra
