// Losses: operators with a reduction by name, and those that are put together from operators.
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

int64_t number(Reduction reduction) { return static_cast<int64_t>(reduction); }

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

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  return cross_entropy_loss(input, target, options.weight, number(options.reduction), options.ignore_index,
                            options.label_smoothing);
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                Reduction reduction) {
  return nll_loss_nd(input, target, weight, number(reduction), ignore_index);
}
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return umbra::mse_loss(input, target, number(reduction));
}
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return umbra::l1_loss(input, target, number(reduction));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  return umbra::smooth_l1_loss(input, target, number(reduction), beta);
}
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  return umbra::huber_loss(input, target, number(reduction), delta);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction) {
  check<ValueError>(target.sym_sizes() == input.sym_sizes(), "Using a target size (torch.Size(",
                    to_string(target.sym_sizes()), ")) that is different to the input size (torch.Size(",
                    to_string(input.sym_sizes()), ")) is deprecated. Please ensure they have the same size.");
  return umbra::binary_cross_entropy(input, target, weight, number(reduction));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        Reduction reduction, const Tensor& pos_weight) {
  check<ValueError>(target.sym_sizes() == input.sym_sizes(), "Target size (torch.Size(", to_string(target.sym_sizes()),
                    ")) must be the same as input size (torch.Size(", to_string(input.sym_sizes()), "))");
  return umbra::binary_cross_entropy_with_logits(input, target, weight, pos_weight, number(reduction));
}

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

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
  return umbra::kl_div(input, target, number(reduction), log_target);
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return umbra::soft_margin_loss(input, target, number(reduction));
}
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return umbra::multilabel_margin_loss(input, target, number(reduction));
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin, const Tensor& weight,
                         Reduction reduction) {
  check<ValueError>(p == 1 || p == 2, "only p == 1 and p == 2 supported");
  return umbra::multi_margin_loss(input, target, p, margin, weight, number(reduction));
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        Reduction reduction) {
  return umbra::poisson_nll_loss(input, target, log_input, full, eps, number(reduction));
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  return umbra::hinge_embedding_loss(input, target, margin, number(reduction));
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           Reduction reduction) {
  return umbra::margin_ranking_loss(input1, input2, target, margin, number(reduction));
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             Reduction reduction) {
  return umbra::cosine_embedding_loss(input1, input2, target, margin, number(reduction));
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, Reduction reduction) {
  return umbra::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number(reduction));
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
