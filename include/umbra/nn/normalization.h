// BatchNorm2d and LayerNorm.
#pragma once

#include <optional>

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: a cumulative average over all batches
  bool affine = true;
  bool track_running_stats = true;
  TensorOptions tensor = {};
};

/// Normalises each channel over batch, height and width; in training by the batch's statistics, which the running ones
/// follow.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(int64_t features, const BatchNormOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  int64_t features_;
  BatchNormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  TensorOptions tensor = {};
};

/// Normalises over the last dimensions, whose sizes are given.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(std::vector<int64_t> normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {})
      : LayerNorm(std::vector<int64_t>{size}, options) {}
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;

 private:
  std::vector<int64_t> normalized_shape_;
  double eps_;
};

}  // namespace nn
}  // namespace umbra
