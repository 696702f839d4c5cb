#include "umbra/nn/functional.h"

#include <cmath>
#include <limits>

#include "umbra/ops/operators.h"

namespace umbra::nn::functional {

Tensor logsigmoid(const Tensor& input) { return log_sigmoid(input); }
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
Tensor softmin(const Tensor& input, int64_t dim) { return (-input).softmax(dim); }

namespace {

void check_probability(double p) {
  check<ValueError>(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

/// `single` is the rank of an input without a batch dimension.
Tensor dropout_of_channels(const Tensor& input, double p, bool training, int64_t single) {
  if (input.dim() != single) return feature_dropout(input, p, training);
  return feature_dropout(input.unsqueeze(0), p, training).squeeze(0);
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool training) {
  check_probability(p);
  return umbra::dropout(input, p, training);
}

Tensor dropout1d(const Tensor& input, double p, bool training) {
  check_probability(p);
  check(input.dim() == 2 || input.dim() == 3, "dropout1d: Expected 2D or 3D input, but received a ", input.dim(),
        "D input. Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
        "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).");
  return dropout_of_channels(input, p, training, 2);
}

// Of three dimensions the first is taken for the batch, as PyTorch takes it.
Tensor dropout2d(const Tensor& input, double p, bool training) {
  check_probability(p);
  return feature_dropout(input, p, training);
}

Tensor dropout3d(const Tensor& input, double p, bool training) {
  check_probability(p);
  return dropout_of_channels(input, p, training, 4);
}

Tensor normalize(const Tensor& input, double p, int64_t dim, double eps) {
  return input / linalg_vector_norm(input, p, dim, true).clamp_min(eps).expand_as(input);
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  check<ValueError>(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(), " dimensions)");
  if (input.sym_numel().same(0)) return input;
  Tensor squares = input.mul(input), mean;
  int64_t before = size / 2, behind = (size - 1) / 2;
  if (input.dim() == 3) {
    mean = avg_pool2d(pad(squares.unsqueeze(1), {0, 0, before, behind}), {size, 1}, 1).squeeze(1);
  } else {
    SymIntArrayRef sizes = input.sym_sizes();
    Tensor planes = squares.view({sizes[0], 1, sizes[1], sizes[2], -1});
    mean = avg_pool3d(pad(planes, {0, 0, 0, 0, before, behind}), {size, 1, 1}, 1).squeeze(1).view(sizes);
  }
  return input / mean.mul(alpha).add(k).pow(beta);
}

Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx) {
  return umbra::embedding(weight, input, padding_idx.value_or(-1));
}

// The last flag of the two norms chooses between CUDA kernels; PyTorch's exporter writes it switched off.
Tensor layer_norm(const Tensor& input, SymIntArrayRef normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  return umbra::layer_norm(input, normalized_shape, weight, bias, eps, false);
}

Tensor batch_norm(const Tensor& input, const BatchNormArguments& a) {
  if (a.training) {
    SymInt values = input.sym_numel() / input.sym_size(1);
    if (!values.is_symbolic())
      check<ValueError>(values.value() != 1,
                        "Expected more than 1 value per channel when training, got input size torch.Size(",
                        to_string(input.sym_sizes()), ")");
  }
  return umbra::batch_norm(input, a.weight, a.bias, a.running_mean, a.running_var, a.training, a.momentum, a.eps,
                           false);
}

namespace {

struct Projected {
  Tensor query, key, value;
};

// One product for several projections of the same tensor: [L, N, parts * E] becomes parts of [L, N, E].
Tensor project_together(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t parts) {
  Tensor all = linear(x, weight, bias);
  SymInt size = weight.sym_size(1);
  return all.unflatten(-1, {parts, size}).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
}

Projected project_inputs(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& weight,
                         const Tensor& bias) {
  SymInt size = weight.sym_size(1);
  if (key.is_same(value) && query.is_same(key)) {
    Tensor all = project_together(query, weight, bias, 3);
    return {all.select(0, 0), all.select(0, 1), all.select(0, 2)};
  }
  if (key.is_same(value)) {
    std::vector<Tensor> weights = weight.split_with_sizes({size, size * 2});
    std::vector<Tensor> biases = bias.defined() ? bias.split_with_sizes({size, size * 2}) : std::vector<Tensor>(2);
    Tensor projected = linear(query, weights[0], biases[0]);
    Tensor rest = project_together(key, weights[1], biases[1], 2);
    return {projected, rest.select(0, 0), rest.select(0, 1)};
  }
  std::vector<Tensor> weights = weight.chunk(3);
  std::vector<Tensor> biases = bias.defined() ? bias.chunk(3) : std::vector<Tensor>(3);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
          linear(value, weights[2], biases[2])};
}

// A mask of truths becomes one to add: minus infinity where it is true.
Tensor additive_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::Bool) return mask;
  return zeros_like(mask, {.dtype = dtype}).masked_fill_(mask, -std::numeric_limits<double>::infinity());
}

// Attention mask [1 or N*heads, T, S] and key padding [N, S] as one.
Tensor merge_masks(const Tensor& mask, const Tensor& padding, SymInt batch, int64_t heads, SymInt source) {
  if (!padding.defined()) return mask;
  Tensor spread = padding.view({batch, 1, 1, source}).expand({-1, heads, -1, -1}).reshape({batch * heads, 1, source});
  return mask.defined() ? mask + spread : spread;
}

}  // namespace

std::pair<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const MultiheadArguments& a) {
  SymInt target = query.sym_size(0), batch = query.sym_size(1), size = query.sym_size(2), source = key.sym_size(0);
  check<AssertionError>(size == a.in_proj_weight.sym_size(1), "was expecting embedding dimension of ",
                        a.in_proj_weight.sym_size(1), ", but got ", size);
  SymInt head_size = size / a.heads;
  check<Error>(!(a.is_causal && !a.attn_mask.defined()), "Need attn_mask if specifying the is_causal hint.");
  // The hint is enough for a kernel that knows causality, as long as nobody asks for the weights and nothing else is
  // masked.
  bool by_hint = a.is_causal && !a.need_weights && !a.key_padding_mask.defined();
  Tensor mask = by_hint ? Tensor() : additive_mask(a.attn_mask, query.dtype());
  Tensor padding = additive_mask(a.key_padding_mask, query.dtype());

  auto [q, k, v] = project_inputs(query, key, value, a.in_proj_weight, a.in_proj_bias);
  if (mask.defined() && mask.dim() == 2) mask = mask.unsqueeze(0);
  SymInt sequences = batch * a.heads;
  q = q.view({target, sequences, head_size}).transpose(0, 1);
  k = k.view({k.sym_size(0), sequences, head_size}).transpose(0, 1);
  v = v.view({v.sym_size(0), sequences, head_size}).transpose(0, 1);
  mask = merge_masks(mask, padding, batch, a.heads, source);
  double dropout_p = a.training ? a.dropout : 0;

  if (!a.need_weights) {
    if (mask.defined())
      mask = mask.sym_size(0) == 1 && mask.dim() == 3 ? mask.unsqueeze(0) : mask.view({batch, a.heads, -1, source});
    q = q.view({batch, a.heads, target, head_size});
    k = k.view({batch, a.heads, source, head_size});
    v = v.view({batch, a.heads, source, head_size});
    Tensor attended = scaled_dot_product_attention(q, k, v, mask, dropout_p, by_hint);
    attended = attended.permute({2, 0, 1, 3}).reshape({batch * target, size});
    return {linear(attended, a.out_proj_weight, a.out_proj_bias).view({target, batch, size}), Tensor()};
  }
  Tensor scaled = q * std::sqrt(1.0 / static_cast<double>(head_size.guard_int()));
  Tensor scores = mask.defined() ? baddbmm(mask, scaled, k.transpose(-2, -1)) : bmm(scaled, k.transpose(-2, -1));
  Tensor weights = softmax(scores, -1);
  if (dropout_p > 0) weights = umbra::dropout(weights, dropout_p, true);
  Tensor attended = bmm(weights, v).transpose(0, 1).reshape({target * batch, size});
  attended = linear(attended, a.out_proj_weight, a.out_proj_bias).view({target, batch, size});
  weights = weights.view({batch, a.heads, target, source});
  return {attended, a.average_attn_weights ? weights.mean({{1}}) : weights};
}

}  // namespace umbra::nn::functional
