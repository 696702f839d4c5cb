// Losses as modules.
//
//     nn::CrossEntropyLoss criterion({.label_smoothing = 0.1});
//     criterion(logits, classes).backward();
#pragma once

#include <optional>

#include "umbra/nn/functional.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

using functional::Reduction;

/// What losses share: what they are of.
class Loss : public Layer {
 public:
  std::vector<std::string> argument_names() const override { return names_; }

 protected:
  explicit Loss(const char* type, std::vector<std::string> names = {"input", "target"})
      : Layer(type), names_(std::move(names)) {}

 private:
  std::vector<std::string> names_;
};

/// The options of losses that have no others: `nn::L1Loss(nn::Reduction::Sum)`.
struct ReductionOptions {
  ReductionOptions(Reduction reduction = Reduction::Mean) : reduction(reduction) {}
  Reduction reduction;
};

// A loss of the tensors that are named; what its options mean, the function of its name says.
#define UMBRA_LOSS(Name, ...)                         \
  class Name : public Loss {                          \
   public:                                            \
    explicit Name(const Name##Options& options = {}); \
    Tensor forward(__VA_ARGS__) override;             \
                                                      \
   private:                                           \
    Name##Options options_;                           \
  }
using L1LossOptions = ReductionOptions;
UMBRA_LOSS(L1Loss, Tensor input, Tensor target);
using MSELossOptions = ReductionOptions;
UMBRA_LOSS(MSELoss, Tensor input, Tensor target);
using SoftMarginLossOptions = ReductionOptions;
UMBRA_LOSS(SoftMarginLoss, Tensor input, Tensor target);
using MultiLabelMarginLossOptions = ReductionOptions;
UMBRA_LOSS(MultiLabelMarginLoss, Tensor input, Tensor target);
using CrossEntropyLossOptions = functional::CrossEntropyOptions;
UMBRA_LOSS(CrossEntropyLoss, Tensor input, Tensor target);
struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(NLLLoss, Tensor input, Tensor target);
struct BCELossOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(BCELoss, Tensor input, Tensor target);
struct BCEWithLogitsLossOptions {
  Tensor weight = {}, pos_weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(BCEWithLogitsLoss, Tensor input, Tensor target);
struct HuberLossOptions {
  double delta = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(HuberLoss, Tensor input, Tensor target);
struct SmoothL1LossOptions {
  double beta = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(SmoothL1Loss, Tensor input, Tensor target);
struct KLDivLossOptions {
  bool log_target = false;
  bool batchmean = false;  // the sum over the size of the batch, which is the divergence, instead of `reduction`
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(KLDivLoss, Tensor input, Tensor target);
struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(PoissonNLLLoss, Tensor input, Tensor target);
struct HingeEmbeddingLossOptions {
  double margin = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(HingeEmbeddingLoss, Tensor input, Tensor target);
struct MultiMarginLossOptions {
  int64_t p = 1;
  double margin = 1;
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(MultiMarginLoss, Tensor input, Tensor target);
struct MultiLabelSoftMarginLossOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(MultiLabelSoftMarginLoss, Tensor input, Tensor target);
struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(GaussianNLLLoss, Tensor input, Tensor target, Tensor var);
struct MarginRankingLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(MarginRankingLoss, Tensor input1, Tensor input2, Tensor target);
using CosineEmbeddingLossOptions = MarginRankingLossOptions;
UMBRA_LOSS(CosineEmbeddingLoss, Tensor input1, Tensor input2, Tensor target);
struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(TripletMarginLoss, Tensor anchor, Tensor positive, Tensor negative);
using TripletMarginWithDistanceLossOptions = functional::TripletMarginWithDistanceOptions;
UMBRA_LOSS(TripletMarginWithDistanceLoss, Tensor anchor, Tensor positive, Tensor negative);
#undef UMBRA_LOSS

struct CTCLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::Mean;
  bool zero_infinity = false;
};
/// Of log probabilities [time, batch, classes], targets, and the lengths of both.
class CTCLoss : public Loss {
 public:
  explicit CTCLoss(const CTCLossOptions& options = {});
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths) const;

 private:
  CTCLossOptions options_;
};

}  // namespace nn
}  // namespace umbra
