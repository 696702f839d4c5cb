// Activations and dropout: layers without parameters.
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

class ReLU : public Layer {
 public:
  ReLU();
  Tensor forward(Tensor x) override;
};

class GELU : public Layer {
 public:
  /// "none" for the error function, "tanh" for its approximation.
  explicit GELU(std::string approximate = "none");
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  std::string approximate_;
};

class SiLU : public Layer {
 public:
  SiLU();
  Tensor forward(Tensor x) override;
};

class Tanh : public Layer {
 public:
  Tanh();
  Tensor forward(Tensor x) override;
};

class Sigmoid : public Layer {
 public:
  Sigmoid();
  Tensor forward(Tensor x) override;
};

class Softmax : public Layer {
 public:
  explicit Softmax(int64_t dim);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  int64_t dim_;
};

/// Zeroes elements with probability p while training, and scales the others up.
class Dropout : public Layer {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  double p_;
};

}  // namespace nn
}  // namespace umbra
