#include "umbra/nn/init.h"

#include <cmath>

#include "umbra/autograd/grad_mode.h"
#include "umbra/core/generator.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::nn::init {

Fans fans_of(const Tensor& weight) {
  check<ValueError>(weight.dim() >= 2,
                    "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < weight.dim(); ++d) field *= weight.size(d);
  return {weight.size(1) * field, weight.size(0) * field};
}

double gain(const std::string& nonlinearity, double parameter) {
  if (nonlinearity == "linear" || nonlinearity == "conv2d" || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + parameter * parameter));
  if (nonlinearity == "selu") return 3.0 / 4;
  fail<ValueError>("Unsupported nonlinearity ", nonlinearity);
}

Tensor uniform_(const Tensor& tensor, double from, double to) {
  NoGrad no_grad;
  return tensor.uniform_(from, to);
}

Tensor normal_(const Tensor& tensor, double mean, double std) {
  NoGrad no_grad;
  return tensor.normal_(mean, std);
}

Tensor constant_(const Tensor& tensor, double value) {
  NoGrad no_grad;
  return tensor.fill_(value);
}

Tensor zeros_(const Tensor& tensor) { return constant_(tensor, 0); }
Tensor ones_(const Tensor& tensor) { return constant_(tensor, 1); }

Tensor eye_(const Tensor& matrix) {
  check<ValueError>(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  NoGrad no_grad;
  return matrix.copy_(eye(matrix.size(0), matrix.size(1), matrix.options()));
}

Tensor orthogonal_(const Tensor& tensor, double gain) {
  check<ValueError>(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  NoGrad no_grad;
  if (tensor.numel() == 0) return tensor;
  Tensor drawn = empty({tensor.size(0), tensor.numel() / tensor.size(0)}, tensor.options()).normal_();
  bool wide = drawn.size(0) < drawn.size(1);
  auto [q, r] = linalg_qr(wide ? drawn.t() : drawn);
  q = q * r.diagonal().sign();  // of the decompositions the one that makes the distribution even
  return tensor.copy_((wide ? q.t() : q).reshape(tensor.sizes())).mul_(gain);
}

namespace {
double xavier_deviation(const Tensor& weight, double gain) {
  Fans fans = fans_of(weight);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

double kaiming_deviation(const Tensor& weight, double a, FanMode mode, const std::string& nonlinearity) {
  Fans fans = fans_of(weight);
  int64_t fan = mode == FanMode::FanIn ? fans.in : fans.out;
  return gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan));
}

// A uniform distribution of that standard deviation around zero.
Tensor uniform_of_deviation(const Tensor& tensor, double deviation) {
  double bound = std::sqrt(3.0) * deviation;
  return init::uniform_(tensor, -bound, bound);
}
}  // namespace

Tensor xavier_uniform_(const Tensor& weight, double gain) {
  return uniform_of_deviation(weight, xavier_deviation(weight, gain));
}

Tensor xavier_normal_(const Tensor& weight, double gain) {
  return init::normal_(weight, 0, xavier_deviation(weight, gain));
}

Tensor kaiming_uniform_(const Tensor& weight, double a, FanMode mode, const std::string& nonlinearity) {
  return uniform_of_deviation(weight, kaiming_deviation(weight, a, mode, nonlinearity));
}

Tensor kaiming_normal_(const Tensor& weight, double a, FanMode mode, const std::string& nonlinearity) {
  return init::normal_(weight, 0, kaiming_deviation(weight, a, mode, nonlinearity));
}

}  // namespace umbra::nn::init
