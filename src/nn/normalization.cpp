#include "umbra/nn/normalization.h"

#include "nn/text.h"
#include "umbra/nn/functional.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

// ---- by channel ----

ChannelNorm::ChannelNorm(const char* type, int64_t features, const BatchNormOptions& options)
    : Layer(type), features_(features), options_(options) {
  weight = parameter("weight", options.affine ? ones({features}, options.tensor) : Tensor());
  bias = parameter("bias", options.affine ? zeros({features}, options.tensor) : Tensor());
  if (!options.track_running_stats) return;
  running_mean = buffer("running_mean", zeros({features}, options.tensor));
  running_var = buffer("running_var", ones({features}, options.tensor));
  num_batches_tracked =
      buffer("num_batches_tracked", zeros({}, {.dtype = DType::Int64, .device = options.tensor.device}));
}

std::string ChannelNorm::extra_repr() const {
  return concat(features_, ", eps=", options_.eps,
                ", momentum=", options_.momentum ? concat(*options_.momentum) : std::string("None"),
                ", affine=", options_.affine, ", bias=", options_.affine,
                ", track_running_stats=", options_.track_running_stats);
}

template <size_t N>
BatchNorm<N>::BatchNorm(int64_t features, const BatchNormOptions& options)
    : ChannelNorm(UMBRA_LAYER_NAME(N, "batchnorm", "BatchNorm"), features, options) {}

template <size_t N> Tensor BatchNorm<N>::forward(Tensor x) {
  if constexpr (N == 1)
    check<ValueError>(x.dim() == 2 || x.dim() == 3, "expected 2D or 3D input (got ", x.dim(), "D input)");
  else check<ValueError>(x.dim() == N + 2, "expected ", N + 2, "D input (got ", x.dim(), "D input)");
  bool follow = is_training() && options_.track_running_stats;
  if (follow) num_batches_tracked += 1;
  double momentum = options_.momentum.value_or(0);
  if (follow && !options_.momentum) momentum = 1 / num_batches_tracked.item().to_double();
  return functional::batch_norm(x, {.running_mean = running_mean,
                                    .running_var = running_var,
                                    .weight = weight,
                                    .bias = bias,
                                    .training = is_training() || !options_.track_running_stats,
                                    .momentum = momentum,
                                    .eps = options_.eps});
}

template <size_t N>
InstanceNorm<N>::InstanceNorm(int64_t features, const InstanceNormOptions& options)
    : ChannelNorm(UMBRA_LAYER_NAME(N, "instancenorm", "InstanceNorm"), features,
                  {.eps = options.eps,
                   .momentum = options.momentum,
                   .affine = options.affine,
                   .track_running_stats = options.track_running_stats,
                   .tensor = options.tensor}) {}

template <size_t N> Tensor InstanceNorm<N>::forward(Tensor x) {
  constexpr int64_t kBatched = N + 2;
  check<ValueError>(x.dim() == kBatched || x.dim() == kBatched - 1, "expected ", kBatched - 1, "D or ", kBatched,
                    "D input (got ", x.dim(), "D input)");
  bool single = x.dim() == kBatched - 1;
  if (single) x = x.unsqueeze(0);
  check<ValueError>(x.sym_size(1) == features_ || !options_.affine,
                    "expected input's size at dim=1 to match num_features (", features_, "), but got: ", x.sym_size(1),
                    ".");
  bool by_input = is_training() || !options_.track_running_stats;
  if (by_input) {
    SymInt places = product(x.sym_sizes().drop_front(2));
    check<ValueError>(places.is_symbolic() || places.value() != 1,
                      "Expected more than 1 spatial element when training, got input size torch.Size(",
                      to_string(x.sym_sizes()), ")");
  }
  Tensor out = instance_norm(x, weight, bias, running_mean, running_var, by_input, options_.momentum.value_or(0),
                             options_.eps, false);
  return single ? out.squeeze(0) : out;
}

template class UMBRA_INSTANCE BatchNorm<1>;
template class UMBRA_INSTANCE BatchNorm<2>;
template class UMBRA_INSTANCE BatchNorm<3>;
template class UMBRA_INSTANCE InstanceNorm<1>;
template class UMBRA_INSTANCE InstanceNorm<2>;
template class UMBRA_INSTANCE InstanceNorm<3>;

// ---- over the last dimensions ----

namespace {
std::string shape_text(const std::vector<int64_t>& shape) {
  std::string sizes;
  for (int64_t size : shape) sizes += concat(sizes.empty() ? "" : ", ", size);
  return concat("(", sizes, shape.size() == 1 ? ",)" : ")");
}
}  // namespace

LayerNorm::LayerNorm(std::vector<int64_t> normalized_shape, const LayerNormOptions& options)
    : Layer("torch.nn.modules.normalization.LayerNorm"),
      normalized_shape_(std::move(normalized_shape)),
      eps_(options.eps) {
  weight = parameter("weight", options.elementwise_affine ? ones(normalized_shape_, options.tensor) : Tensor());
  bias = parameter("bias",
                   options.elementwise_affine && options.bias ? zeros(normalized_shape_, options.tensor) : Tensor());
}
Tensor LayerNorm::forward(Tensor x) { return functional::layer_norm(x, as_sym(normalized_shape_), weight, bias, eps_); }
std::string LayerNorm::extra_repr() const {
  return concat(shape_text(normalized_shape_), ", eps=", eps_, ", elementwise_affine=", weight.defined(),
                ", bias=", bias.defined());
}

RMSNorm::RMSNorm(std::vector<int64_t> normalized_shape, const RMSNormOptions& options)
    : Layer("torch.nn.modules.normalization.RMSNorm"),
      normalized_shape_(std::move(normalized_shape)),
      eps_(options.eps) {
  weight = parameter("weight", options.elementwise_affine ? ones(normalized_shape_, options.tensor) : Tensor());
}
Tensor RMSNorm::forward(Tensor x) { return rms_norm(x, normalized_shape_, weight, eps_); }
std::string RMSNorm::extra_repr() const {
  return concat(shape_text(normalized_shape_), ", eps=", eps_ ? concat(*eps_) : std::string("None"),
                ", elementwise_affine=", weight.defined());
}

// ---- by groups of channels ----

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : Layer("torch.nn.modules.normalization.GroupNorm"),
      num_groups_(num_groups),
      num_channels_(num_channels),
      eps_(options.eps) {
  check<ValueError>(num_groups > 0 && num_channels % num_groups == 0, "num_channels (", num_channels,
                    ") must be divisible by num_groups (", num_groups, ")");
  weight = parameter("weight", options.affine ? ones({num_channels}, options.tensor) : Tensor());
  bias = parameter("bias", options.affine ? zeros({num_channels}, options.tensor) : Tensor());
}
Tensor GroupNorm::forward(Tensor x) { return group_norm(x, num_groups_, weight, bias, eps_, false); }
std::string GroupNorm::extra_repr() const {
  return concat(num_groups_, ", ", num_channels_, ", eps=", eps_, ", affine=", weight.defined(),
                ", bias=", bias.defined());
}

// ---- by neighbouring channels ----

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k)
    : Layer("torch.nn.modules.normalization.LocalResponseNorm"), size_(size), alpha_(alpha), beta_(beta), k_(k) {}
Tensor LocalResponseNorm::forward(Tensor x) { return functional::local_response_norm(x, size_, alpha_, beta_, k_); }
std::string LocalResponseNorm::extra_repr() const {
  return concat(size_, ", alpha=", float_text(alpha_), ", beta=", float_text(beta_), ", k=", float_text(k_));
}

}  // namespace umbra::nn
