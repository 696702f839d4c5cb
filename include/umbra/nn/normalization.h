// Normalisation: by batch, instance, group, layer, root mean square and neighbouring channels.
//
//     nn::BatchNorm2d norm(16, {.momentum = 0.01});
//     Tensor y = norm(randn({8, 16, 4, 4}));                         // and the running statistics follow
//     nn::LayerNorm last(64), both({32, 64});
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

struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
  TensorOptions tensor = {};
};

/// What batch and instance norms share: a scale and a shift for each channel, and statistics that follow the inputs.
class ChannelNorm : public Layer {
 public:
  std::string extra_repr() const override;

  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  ChannelNorm(const char* type, int64_t features, const BatchNormOptions& options);
  int64_t features_;
  BatchNormOptions options_;
};

/// Normalises each channel over batch and places; in training by the batch's statistics, which the running ones follow.
template <size_t N> class BatchNorm : public ChannelNorm {
 public:
  explicit BatchNorm(int64_t features, const BatchNormOptions& options = {});
  Tensor forward(Tensor x) override;
};
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

/// Normalises each channel of each example over its places.
template <size_t N> class InstanceNorm : public ChannelNorm {
 public:
  explicit InstanceNorm(int64_t features, const InstanceNormOptions& options = {});
  Tensor forward(Tensor x) override;
};
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

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

struct RMSNormOptions {
  std::optional<double> eps = {};  // that of the input's type where it is left out
  bool elementwise_affine = true;
  TensorOptions tensor = {};
};

/// Divides by the root of the mean square over the last dimensions.
class RMSNorm : public Layer {
 public:
  explicit RMSNorm(std::vector<int64_t> normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {}) : RMSNorm(std::vector<int64_t>{size}, options) {}
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight;

 private:
  std::vector<int64_t> normalized_shape_;
  std::optional<double> eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  TensorOptions tensor = {};
};

/// Normalises groups of channels of each example.
class GroupNorm : public Layer {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;

 private:
  int64_t num_groups_, num_channels_;
  double eps_;
};

/// Divides by a power of the mean square of neighbouring channels.
class LocalResponseNorm : public Layer {
 public:
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t size_;
  double alpha_, beta_, k_;
};

}  // namespace nn
}  // namespace umbra
