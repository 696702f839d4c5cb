#include "umbra/nn/activation.h"

#include "umbra/nn/init.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

#define UMBRA_TYPE(Name) "torch.nn.modules.activation." #Name

#define UMBRA_ACTIVATION(Name, ...)         \
  Name::Name() : Layer(UMBRA_TYPE(Name)) {} \
  Tensor Name::forward(Tensor x) { return __VA_ARGS__; }
UMBRA_ACTIVATION(ReLU, relu(x))
UMBRA_ACTIVATION(ReLU6, relu6(x))
UMBRA_ACTIVATION(SELU, selu(x))
UMBRA_ACTIVATION(SiLU, silu(x))
UMBRA_ACTIVATION(Mish, mish(x))
UMBRA_ACTIVATION(Hardswish, hardswish(x))
UMBRA_ACTIVATION(Hardsigmoid, hardsigmoid(x))
UMBRA_ACTIVATION(Tanh, tanh(x))
UMBRA_ACTIVATION(Tanhshrink, x - tanh(x))
UMBRA_ACTIVATION(Sigmoid, sigmoid(x))
UMBRA_ACTIVATION(LogSigmoid, log_sigmoid(x))
UMBRA_ACTIVATION(Softsign, x / (x.abs() + 1))
#undef UMBRA_ACTIVATION

Softmax2d::Softmax2d() : Layer(UMBRA_TYPE(Softmax2d)) {}
Tensor Softmax2d::forward(Tensor x) {
  check<ValueError>(x.dim() == 3 || x.dim() == 4, "Softmax2d: expected input to be 3D or 4D, got ", x.dim(),
                    "D instead");
  return softmax(x, -3);
}

#define UMBRA_ACTIVATION(Name, ...)                               \
  Name::Name(int64_t dim) : Layer(UMBRA_TYPE(Name)), dim_(dim) {} \
  Tensor Name::forward(Tensor x) { return __VA_ARGS__; }          \
  std::string Name::extra_repr() const { return concat("dim=", dim_); }
UMBRA_ACTIVATION(Softmax, softmax(x, dim_))
UMBRA_ACTIVATION(LogSoftmax, log_softmax(x, dim_))
UMBRA_ACTIVATION(Softmin, softmax(-x, dim_))
UMBRA_ACTIVATION(GLU, glu(x, dim_))
#undef UMBRA_ACTIVATION

#define UMBRA_ACTIVATION(Name, option, label, ...)                          \
  Name::Name(double option) : Layer(UMBRA_TYPE(Name)), option##_(option) {} \
  Tensor Name::forward(Tensor x) { return __VA_ARGS__; }                    \
  std::string Name::extra_repr() const { return concat(label, option##_); }
UMBRA_ACTIVATION(ELU, alpha, "alpha=", elu(x, alpha_))
UMBRA_ACTIVATION(CELU, alpha, "alpha=", celu(x, alpha_))
UMBRA_ACTIVATION(LeakyReLU, negative_slope, "negative_slope=", leaky_relu(x, negative_slope_))
UMBRA_ACTIVATION(Hardshrink, lambd, "", hardshrink(x, lambd_))
UMBRA_ACTIVATION(Softshrink, lambd, "", softshrink(x, lambd_))
#undef UMBRA_ACTIVATION

#define UMBRA_ACTIVATION(Name, first, second, ...)                                                         \
  Name::Name(double first, double second) : Layer(UMBRA_TYPE(Name)), first##_(first), second##_(second) {} \
  Tensor Name::forward(Tensor x) { return __VA_ARGS__; }                                                   \
  std::string Name::extra_repr() const { return concat(#first "=", first##_, ", " #second "=", second##_); }
UMBRA_ACTIVATION(Hardtanh, min_val, max_val, hardtanh(x, min_val_, max_val_))
UMBRA_ACTIVATION(Softplus, beta, threshold, softplus(x, beta_, threshold_))
UMBRA_ACTIVATION(Threshold, threshold, value, umbra::threshold(x, threshold_, value_))
UMBRA_ACTIVATION(RReLU, lower, upper, rrelu(x, lower_, upper_, is_training()))
#undef UMBRA_ACTIVATION

GELU::GELU(std::string approximate) : Layer(UMBRA_TYPE(GELU)), approximate_(std::move(approximate)) {}
Tensor GELU::forward(Tensor x) { return gelu(x, approximate_); }
std::string GELU::extra_repr() const { return "approximate='" + approximate_ + "'"; }

PReLU::PReLU(int64_t num_parameters, double init, const TensorOptions& tensor) : Layer(UMBRA_TYPE(PReLU)) {
  weight = parameter("weight", empty({num_parameters}, tensor));
  init::constant_(weight, init);
}
Tensor PReLU::forward(Tensor x) { return prelu(x, weight); }
std::string PReLU::extra_repr() const { return concat("num_parameters=", weight.size(0)); }

}  // namespace umbra::nn
