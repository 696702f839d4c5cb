// The words that libtorch's options are given in: `kSum`, `kReflect`, `kBilinear`.
#pragma once

#include "umbra/libtorch/tensor.h"

namespace torch {

/// A word that becomes a text, or what it stands for where an enumeration is wanted.
struct Word {
  const char* text;
  operator std::string() const { return text; }
  operator umbra::nn::functional::Reduction() const {
    using enum umbra::nn::functional::Reduction;
    std::string_view word = text;
    if (word != "none" && word != "mean" && word != "sum")
      throw ValueError(umbra::detail::concat("'", text, "' is no way to reduce"));
    return word == "none" ? None : word == "sum" ? Sum : Mean;
  }
  operator umbra::nn::init::FanMode() const {
    std::string_view word = text;
    if (word != "fan_in" && word != "fan_out")
      throw ValueError(umbra::detail::concat("Mode ", text, " not supported, please use one of fan_in, fan_out"));
    return word == "fan_in" ? umbra::nn::init::FanMode::FanIn : umbra::nn::init::FanMode::FanOut;
  }
};

inline constexpr Word kNone{"none"}, kMean{"mean"}, kSum{"sum"}, kMax{"max"}, kBatchMean{"batchmean"};
inline constexpr Word kZeros{"zeros"}, kConstant{"constant"}, kReflect{"reflect"}, kReplicate{"replicate"},
    kCircular{"circular"}, kBorder{"border"}, kReflection{"reflection"}, kSame{"same"}, kValid{"valid"};
inline constexpr Word kNearest{"nearest"}, kNearestExact{"nearest-exact"}, kBilinear{"bilinear"}, kBicubic{"bicubic"},
    kTrilinear{"trilinear"}, kArea{"area"};
inline constexpr Word kLinear{"linear"}, kReLU{"relu"}, kGELU{"gelu"}, kTanh{"tanh"}, kSigmoid{"sigmoid"},
    kLeakyReLU{"leaky_relu"}, kFanIn{"fan_in"}, kFanOut{"fan_out"};

/// What operators take for a reduction: `nll_loss(x, y, {}, Reduction::Sum)`.
namespace Reduction {
enum Reduction : int64_t { None, Mean, Sum };
}

}  // namespace torch
