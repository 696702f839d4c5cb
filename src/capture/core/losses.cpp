// Losses by differences, powers and choices.
#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

enum : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == kMean ? loss.mean() : reduction == kSum ? loss.sum() : loss;
}

/// A floor of -100 keeps logarithms of 0 finite.
Tensor floored(const Tensor& logarithm) {
  TensorOptions options{
      .dtype = logarithm.dtype(), .layout = Layout::Strided, .device = logarithm.device(), .pin_memory = false};
  return logarithm.maximum(full(SymIntArrayRef(), -100, options));
}

Tensor weighted(const Tensor& loss, const Tensor& weight) { return weight.defined() ? loss.mul(weight) : loss; }

/// The losses of the targets' classes, and what they weigh together.
std::tuple<Tensor, Tensor> class_losses(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        int64_t reduction, SymInt ignored) {
  int64_t dim = self.dim() < 2 ? 0 : 1;
  Tensor scores = self;
  if (weight.defined()) {
    std::vector<SymInt> shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(dim)] = weight.sym_size(0);
    scores = self.mul(self.dim() > 1 ? weight.view(SymIntArrayRef(shape)) : weight);
  }
  auto counts = [&] { return target.ne(Scalar(ignored)); };
  auto masked = [&](const Tensor& x) {
    Tensor counted = counts();
    return where(counted, x, number_like(x, 0));
  };
  Tensor safe = masked(target).unsqueeze(dim);
  Tensor chosen = scores.gather(dim, safe).squeeze(std::vector<int64_t>{dim}).neg();
  Tensor loss = masked(chosen);
  if (reduction == kNone && self.dim() > 1) return {loss, full_like(self, 0.0).new_full(SymIntArrayRef(), 0.0)};
  Tensor total;
  if (weight.defined()) {
    std::vector<SymInt> shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(dim)] = weight.sym_size(0);
    Tensor wide = (self.dim() > 1 ? weight.view(SymIntArrayRef(shape)) : weight).expand(self.sym_sizes());
    Tensor own = wide.gather(dim, safe).squeeze(std::vector<int64_t>{dim});
    total = masked(own).sum();
  } else {
    total = counts().sum()._to_copy({.dtype = self.dtype(), .device = self.device()});
  }
  if (reduction == kSum) return {loss.sum(), total};
  if (reduction == kMean) return {loss.sum().div(total), total};
  return {loss, total};
}

/// How far every other class comes near the target's.
Tensor margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                   const Tensor& weight, int64_t reduction) {
  Tensor scores = self.dim() == 2 ? self : self.dim() == 1 ? self.unsqueeze(0) : self.view(IntArrayRef({1, 1}));
  Tensor classes = self.dim() == 2 ? target : target.view(IntArrayRef({1}));
  Tensor column = classes.unsqueeze(1), own = scores.gather(1, column);
  Tensor near = (margin - own).add(scores).clamp(0);
  if (!p.equals(1)) near = near.mul(near);
  if (weight.defined()) near = near.mul(index(weight, std::vector<Tensor>{classes}).unsqueeze(1));
  TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  Tensor other = arange(0, Scalar(scores.sym_size(1)), 1, options).ne(column);
  Tensor loss = where(other, near, number_like(near, 0));
  if (reduction == kMean) return loss.mean();
  if (reduction == kSum) return loss.sum().div(wrapped_number(Scalar(scores.sym_size(1))));
  Tensor each = loss.mean(IntArrayRef({1}));
  return target.dim() == 0 ? each.squeeze(IntArrayRef({0})) : each;
}

}  // namespace

void add_losses(DecompositionTable& table) {
  table.add("aten::multi_margin_loss", margin_loss);
  table.add("aten::mse_loss", [](const Tensor& self, const Tensor& target, int64_t reduction) {
    return reduced(self.sub(target).pow(2), reduction);
  });
  table.add("aten::smooth_l1_loss", [](const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
    Tensor distance = self.sub(target).abs();
    if (beta == 0) return reduced(distance, reduction);
    Tensor near = distance.lt(beta), square = distance.pow(2) * 0.5 / beta;
    return reduced(where(near, square, distance - 0.5 * beta), reduction);
  });
  table.add("aten::huber_loss", [](const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
    Tensor distance = self.sub(target).abs(), near = distance.lt(delta);
    Tensor square = distance * 0.5 * distance, line = (distance - 0.5 * delta) * delta;
    return reduced(where(near, square, line), reduction);
  });
  table.add("aten::binary_cross_entropy",
            [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
              Tensor other = target - 1;
              Tensor without = other.mul(floored(self.neg().log1p()));
              Tensor loss = without.sub(target.mul(floored(self.log())));
              return reduced(weighted(loss, weight), reduction);
            });
  table.add("aten::binary_cross_entropy_with_logits", [](const Tensor& self, const Tensor& target, const Tensor& weight,
                                                         const Tensor& positive, int64_t reduction) {
    Tensor loss;
    if (positive.defined()) {
      Tensor factor = (positive - 1).mul(target) + 1;
      loss = (1 - target).mul(self).sub(factor.mul(log_sigmoid(self)));
    } else {
      loss = (1 - target).mul(self).sub(log_sigmoid(self));
    }
    return reduced(weighted(loss, weight), reduction);
  });
  table.add("aten::soft_margin_loss", [](const Tensor& self, const Tensor& target, int64_t reduction) {
    return reduced(target.neg().mul(self).exp().log1p(), reduction);
  });
  table.add("aten::nll_loss_forward", class_losses);
  table.add("aten::nll_loss2d_forward", class_losses);
}

}  // namespace umbra::core_table
