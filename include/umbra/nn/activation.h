// Activations: layers of one operator each.
//
//     nn::GELU gelu("tanh");
//     Tensor y = gelu(nn::LeakyReLU(0.2)(x));
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

// Those without options.
#define UMBRA_ACTIVATION(Name)         \
  class Name : public Layer {          \
   public:                             \
    Name();                            \
    Tensor forward(Tensor x) override; \
  }
UMBRA_ACTIVATION(ReLU);
UMBRA_ACTIVATION(ReLU6);
UMBRA_ACTIVATION(SELU);
UMBRA_ACTIVATION(SiLU);
UMBRA_ACTIVATION(Mish);
UMBRA_ACTIVATION(Hardswish);
UMBRA_ACTIVATION(Hardsigmoid);
UMBRA_ACTIVATION(Tanh);
UMBRA_ACTIVATION(Tanhshrink);
UMBRA_ACTIVATION(Sigmoid);
UMBRA_ACTIVATION(LogSigmoid);
UMBRA_ACTIVATION(Softsign);
/// Softmax over the channels of images.
UMBRA_ACTIVATION(Softmax2d);
#undef UMBRA_ACTIVATION

// Those along a dimension.
#define UMBRA_ACTIVATION(Name, ...)          \
  class Name : public Layer {                \
   public:                                   \
    explicit Name(int64_t dim __VA_ARGS__);  \
    Tensor forward(Tensor x) override;       \
    std::string extra_repr() const override; \
                                             \
   private:                                  \
    int64_t dim_;                            \
  }
UMBRA_ACTIVATION(Softmax);
UMBRA_ACTIVATION(LogSoftmax);
UMBRA_ACTIVATION(Softmin);
/// One half of the input, let through by the other.
UMBRA_ACTIVATION(GLU, = -1);
#undef UMBRA_ACTIVATION

// Those of one number.
#define UMBRA_ACTIVATION(Name, option, value) \
  class Name : public Layer {                 \
   public:                                    \
    explicit Name(double option = value);     \
    Tensor forward(Tensor x) override;        \
    std::string extra_repr() const override;  \
                                              \
   private:                                   \
    double option##_;                         \
  }
UMBRA_ACTIVATION(ELU, alpha, 1);
UMBRA_ACTIVATION(CELU, alpha, 1);
UMBRA_ACTIVATION(LeakyReLU, negative_slope, 0.01);
UMBRA_ACTIVATION(Hardshrink, lambd, 0.5);
UMBRA_ACTIVATION(Softshrink, lambd, 0.5);
#undef UMBRA_ACTIVATION

// Those of two.
#define UMBRA_ACTIVATION(Name, first, first_value, second, second_value) \
  class Name : public Layer {                                            \
   public:                                                               \
    explicit Name(double first first_value, double second second_value); \
    Tensor forward(Tensor x) override;                                   \
    std::string extra_repr() const override;                             \
                                                                         \
   private:                                                              \
    double first##_, second##_;                                          \
  }
UMBRA_ACTIVATION(Hardtanh, min_val, = -1, max_val, = 1);
UMBRA_ACTIVATION(Softplus, beta, = 1, threshold, = 20);
UMBRA_ACTIVATION(Threshold, threshold, , value, );
/// Leaky relu; while training its slopes are drawn anew for each element.
UMBRA_ACTIVATION(RReLU, lower, = 1.0 / 8, upper, = 1.0 / 3);
#undef UMBRA_ACTIVATION

class GELU : public Layer {
 public:
  /// "none" for the error function, "tanh" for its approximation.
  explicit GELU(std::string approximate = "none");
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 private:
  std::string approximate_;
};

/// Leaky relu whose slope is learnt: one for all channels, or one for each.
class PReLU : public Layer {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, const TensorOptions& tensor = {});
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

  Tensor weight;
};

}  // namespace nn
}  // namespace umbra
