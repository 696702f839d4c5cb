// Losses that are put together from operators.
#include <cmath>
#include <numbers>

#include "umbra/autograd/grad_mode.h"
#include "umbra/nn/functional.h"
#include "umbra/ops/operators.h"

namespace umbra::nn::functional {

namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean: return loss.mean();
    case Reduction::Sum: return loss.sum();
    case Reduction::None: break;
  }
  return loss;
}

/// The variances with the dimensions of the input, of which they may lack the last or have it once.
Tensor fitting_variances(const Tensor& input, const Tensor& var) {
  if (var.sym_sizes() == input.sym_sizes()) return var;
  if (var.dim() + 1 == input.dim() && var.sym_sizes() == input.sym_sizes().drop_back()) return var.unsqueeze(-1);
  bool fits = true;
  for (int64_t d = 0; d < std::min(input.dim(), var.dim()); ++d)
    fits = fits && (var.sym_size(d) == input.sym_size(d) || var.sym_size(d) == 1);
  check<ValueError>(fits, "var is of incorrect size");
  return var;
}

}  // namespace

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps,
                         Reduction reduction) {
  check<ValueError>(!var.lt(0).any().item().to_bool(), "var has negative entry/entries");
  Tensor variances = fitting_variances(input, var).clone();
  {
    NoGrad values_alone;
    variances.clamp_min_(eps);
  }
  Tensor distance = input - target;
  Tensor loss = (variances.log() + distance * distance / variances) * 0.5;
  if (full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(loss, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Reduction reduction) {
  Tensor loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input));
  if (weight.defined()) loss = loss * weight;
  return reduced(loss.sum(-1) / Scalar(input.sym_size(-1)), reduction);
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceOptions& options) {
  check<ValueError>(options.margin > 0, "margin must be greater than 0, got ", options.margin);
  check(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
        "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
        "anchor ",
        anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
  auto distance = [&](const Tensor& a, const Tensor& b) {
    return options.distance_function ? options.distance_function(a, b) : pairwise_distance(a, b);
  };
  Tensor near = distance(anchor, positive), far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return reduced((near + options.margin - far).clamp_min(0), options.reduction);
}

}  // namespace umbra::nn::functional
