// Signals, images and volumes made larger.
//
//     nn::Upsample up({.scale_factor = {2, 2}, .mode = "bilinear"});
//     Tensor y = up(randn({1, 3, 8, 8}));                            // [1, 3, 16, 16]
#pragma once

#include "umbra/nn/functional.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

using UpsampleOptions = functional::InterpolateOptions;

/// To a size, or by a factor: `nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})`.
class Upsample : public Layer {
 public:
  explicit Upsample(const UpsampleOptions& options);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 protected:
  Upsample(const char* type, const UpsampleOptions& options);

 private:
  UpsampleOptions options_;
};

/// Images, by their nearest elements or by lines through corners; `size` or `scale_factor` is given.
class UpsamplingNearest2d : public Upsample {
 public:
  explicit UpsamplingNearest2d(UpsampleOptions options);
};
class UpsamplingBilinear2d : public Upsample {
 public:
  explicit UpsamplingBilinear2d(UpsampleOptions options);
};

}  // namespace nn
}  // namespace umbra
