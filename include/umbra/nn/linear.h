// Linear, and layers that only rearrange: Flatten, Identity.
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

struct LinearOptions {
  bool bias = true;
  TensorOptions tensor = {};
};

/// y = x @ weight.T + bias.
class Linear : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight, bias;
};

class Flatten : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t start_dim_, end_dim_;
};

class Identity : public Layer {
 public:
  Identity();
  Tensor forward(Tensor x) override { return x; }
};

}  // namespace nn
}  // namespace umbra
