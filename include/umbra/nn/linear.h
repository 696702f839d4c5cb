// Linear, Bilinear, and layers that only rearrange: Flatten, Unflatten, Identity.
//
//     nn::Linear fc(64, 10, {.bias = false});
//     Tensor y = fc(nn::Flatten()(randn({8, 4, 16})));               // [8, 10]
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

/// A product of two inputs and a weight: y[k] = x1 @ weight[k] @ x2 + bias[k].
class Bilinear : public Layer {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const LinearOptions& options = {});
  Tensor forward(Tensor x1, Tensor x2) override;
  std::vector<std::string> argument_names() const override { return {"input1", "input2"}; }
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

class Unflatten : public Layer {
 public:
  Unflatten(int64_t dim, std::vector<int64_t> unflattened_size);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t dim_;
  std::vector<int64_t> unflattened_size_;
};

class Identity : public Layer {
 public:
  Identity();
  Tensor forward(Tensor x) override { return x; }
};

}  // namespace nn
}  // namespace umbra
