#include "umbra/nn/loss.h"

#include "umbra/ops/operators.h"

namespace umbra::nn {

#define UMBRA_TYPE(Name) "torch.nn.modules.loss." #Name

// A weight is a buffer, as in PyTorch: it is saved with the module.
#define UMBRA_OPTIONS(Name, ...) \
  Name::Name(const Name##Options& options) : Loss(UMBRA_TYPE(Name) __VA_OPT__(, ) __VA_ARGS__), options_(options)

#define UMBRA_LOSS(Name, function) \
  UMBRA_OPTIONS(Name) {}           \
  Tensor Name::forward(Tensor input, Tensor target) { return function(input, target, options_.reduction); }
UMBRA_LOSS(L1Loss, functional::l1_loss)
UMBRA_LOSS(MSELoss, functional::mse_loss)
UMBRA_LOSS(SoftMarginLoss, functional::soft_margin_loss)
UMBRA_LOSS(MultiLabelMarginLoss, functional::multilabel_margin_loss)
#undef UMBRA_LOSS

UMBRA_OPTIONS(CrossEntropyLoss) {
  if (options.weight.defined()) buffer("weight", options.weight);
}
Tensor CrossEntropyLoss::forward(Tensor input, Tensor target) {
  return functional::cross_entropy(input, target, options_);
}

UMBRA_OPTIONS(NLLLoss) {
  if (options.weight.defined()) buffer("weight", options.weight);
}
Tensor NLLLoss::forward(Tensor input, Tensor target) {
  return functional::nll_loss(input, target, options_.weight, options_.ignore_index, options_.reduction);
}

UMBRA_OPTIONS(BCELoss) {
  if (options.weight.defined()) buffer("weight", options.weight);
}
Tensor BCELoss::forward(Tensor input, Tensor target) {
  return functional::binary_cross_entropy(input, target, options_.weight, options_.reduction);
}

UMBRA_OPTIONS(BCEWithLogitsLoss) {
  if (options.weight.defined()) buffer("weight", options.weight);
  if (options.pos_weight.defined()) buffer("pos_weight", options.pos_weight);
}
Tensor BCEWithLogitsLoss::forward(Tensor input, Tensor target) {
  return functional::binary_cross_entropy_with_logits(input, target, options_.weight, options_.reduction,
                                                      options_.pos_weight);
}

UMBRA_OPTIONS(HuberLoss) {}
Tensor HuberLoss::forward(Tensor input, Tensor target) {
  return functional::huber_loss(input, target, options_.reduction, options_.delta);
}

UMBRA_OPTIONS(SmoothL1Loss) {}
Tensor SmoothL1Loss::forward(Tensor input, Tensor target) {
  return functional::smooth_l1_loss(input, target, options_.reduction, options_.beta);
}

UMBRA_OPTIONS(KLDivLoss) {}
Tensor KLDivLoss::forward(Tensor input, Tensor target) {
  if (!options_.batchmean) return functional::kl_div(input, target, options_.reduction, options_.log_target);
  Tensor sum = functional::kl_div(input, target, Reduction::Sum, options_.log_target);
  return sum / Scalar(input.sym_size(0));
}

UMBRA_OPTIONS(PoissonNLLLoss) {}
Tensor PoissonNLLLoss::forward(Tensor input, Tensor target) {
  return functional::poisson_nll_loss(input, target, options_.log_input, options_.full, options_.eps,
                                      options_.reduction);
}

UMBRA_OPTIONS(HingeEmbeddingLoss) {}
Tensor HingeEmbeddingLoss::forward(Tensor input, Tensor target) {
  return functional::hinge_embedding_loss(input, target, options_.margin, options_.reduction);
}

UMBRA_OPTIONS(MultiMarginLoss) {
  check<ValueError>(options.p == 1 || options.p == 2, "only p == 1 and p == 2 supported");
  if (options.weight.defined()) buffer("weight", options.weight);
}
Tensor MultiMarginLoss::forward(Tensor input, Tensor target) {
  return functional::multi_margin_loss(input, target, options_.p, options_.margin, options_.weight, options_.reduction);
}

UMBRA_OPTIONS(MultiLabelSoftMarginLoss) {
  if (options.weight.defined()) buffer("weight", options.weight);
}
Tensor MultiLabelSoftMarginLoss::forward(Tensor input, Tensor target) {
  return functional::multilabel_soft_margin_loss(input, target, options_.weight, options_.reduction);
}

UMBRA_OPTIONS(GaussianNLLLoss, {"input", "target", "var"}) {}
Tensor GaussianNLLLoss::forward(Tensor input, Tensor target, Tensor var) {
  return functional::gaussian_nll_loss(input, target, var, options_.full, options_.eps, options_.reduction);
}

UMBRA_OPTIONS(MarginRankingLoss, {"input1", "input2", "target"}) {}
Tensor MarginRankingLoss::forward(Tensor input1, Tensor input2, Tensor target) {
  return functional::margin_ranking_loss(input1, input2, target, options_.margin, options_.reduction);
}

UMBRA_OPTIONS(CosineEmbeddingLoss, {"input1", "input2", "target"}) {}
Tensor CosineEmbeddingLoss::forward(Tensor input1, Tensor input2, Tensor target) {
  return functional::cosine_embedding_loss(input1, input2, target, options_.margin, options_.reduction);
}

UMBRA_OPTIONS(TripletMarginLoss, {"anchor", "positive", "negative"}) {
  check<ValueError>(options.margin > 0, "TripletMarginLoss: expected margin to be greater than 0, got ", options.margin,
                    " instead");
}
Tensor TripletMarginLoss::forward(Tensor anchor, Tensor positive, Tensor negative) {
  return functional::triplet_margin_loss(anchor, positive, negative, options_.margin, options_.p, options_.eps,
                                         options_.swap, options_.reduction);
}

UMBRA_OPTIONS(TripletMarginWithDistanceLoss, {"anchor", "positive", "negative"}) {
  check<ValueError>(options.margin > 0, "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got ",
                    options.margin, " instead");
}
Tensor TripletMarginWithDistanceLoss::forward(Tensor anchor, Tensor positive, Tensor negative) {
  return functional::triplet_margin_with_distance_loss(anchor, positive, negative, options_);
}

UMBRA_OPTIONS(CTCLoss) {}
Tensor CTCLoss::operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths) const {
  return run([&] {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options_.blank,
                    static_cast<int64_t>(options_.reduction), options_.zero_infinity);
  });
}

}  // namespace umbra::nn
