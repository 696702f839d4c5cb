#include "umbra/nn/linear.h"

#include "nn/affine.h"

namespace umbra::nn {

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options)
    : Layer("torch.nn.modules.linear.Linear") {
  weight = parameter("weight", empty({out_features, in_features}, options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_features}, options.tensor));
  reset_affine(weight, bias);
}
Tensor Linear::forward(Tensor x) { return linear(x, weight, bias); }
std::string Linear::extra_repr() const {
  return concat("in_features=", weight.size(1), ", out_features=", weight.size(0), ", bias=", bias.defined());
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const LinearOptions& options)
    : Layer("torch.nn.modules.linear.Bilinear") {
  check<ValueError>(in1_features > 0, "in1_features must be > 0, but got (in1_features=", in1_features, ")");
  weight = parameter("weight", empty({out_features, in1_features, in2_features}, options.tensor));
  bias = parameter("bias", optional_empty(options.bias, {out_features}, options.tensor));
  double bound = 1 / std::sqrt(static_cast<double>(in1_features));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
Tensor Bilinear::forward(Tensor x1, Tensor x2) { return bilinear(x1, x2, weight, bias); }
std::string Bilinear::extra_repr() const {
  return concat("in1_features=", weight.size(1), ", in2_features=", weight.size(2), ", out_features=", weight.size(0),
                ", bias=", bias.defined());
}

Flatten::Flatten(int64_t start_dim, int64_t end_dim)
    : Layer("torch.nn.modules.flatten.Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}
Tensor Flatten::forward(Tensor x) { return x.flatten(start_dim_, end_dim_); }
std::string Flatten::extra_repr() const { return concat("start_dim=", start_dim_, ", end_dim=", end_dim_); }

Unflatten::Unflatten(int64_t dim, std::vector<int64_t> unflattened_size)
    : Layer("torch.nn.modules.flatten.Unflatten"), dim_(dim), unflattened_size_(std::move(unflattened_size)) {}
Tensor Unflatten::forward(Tensor x) { return x.unflatten(dim_, unflattened_size_); }
std::string Unflatten::extra_repr() const {
  std::string sizes;
  for (int64_t size : unflattened_size_) sizes += concat(sizes.empty() ? "" : ", ", size);
  return concat("dim=", dim_, ", unflattened_size=(", sizes, unflattened_size_.size() == 1 ? ",)" : ")");
}

Identity::Identity() : Layer("torch.nn.modules.linear.Identity") {}

}  // namespace umbra::nn
