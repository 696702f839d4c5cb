// Losses with options: `CrossEntropyLoss(CrossEntropyLossOptions().label_smoothing(0.1).reduction(kSum))`.
#pragma once

#include "umbra/libtorch/layers.h"

namespace torch::nn {

struct ReductionOptions : native::ReductionOptions {
  using Native = native::ReductionOptions;
  ReductionOptions(native::Reduction reduction = native::Reduction::Mean) : Native(reduction) {}
  ReductionOptions(Word reduction) : Native(reduction) {}
  UMBRA_SETTINGS(ReductionOptions, reduction)
  template <class Layer> Layer make() const { return Layer(Native(*this)); }
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
using SoftMarginLossOptions = ReductionOptions;
using MultiLabelMarginLossOptions = ReductionOptions;

#define UMBRA_LOSS_OPTIONS(Name, ...) UMBRA_OPTIONS(Name, native::Name, __VA_ARGS__, reduction)
UMBRA_LOSS_OPTIONS(CrossEntropyLossOptions, weight, ignore_index, label_smoothing);
UMBRA_LOSS_OPTIONS(NLLLossOptions, weight, ignore_index);
UMBRA_LOSS_OPTIONS(BCELossOptions, weight);
UMBRA_LOSS_OPTIONS(BCEWithLogitsLossOptions, weight, pos_weight);
UMBRA_LOSS_OPTIONS(SmoothL1LossOptions, beta);
UMBRA_LOSS_OPTIONS(HuberLossOptions, delta);
UMBRA_LOSS_OPTIONS(PoissonNLLLossOptions, log_input, full, eps);
UMBRA_LOSS_OPTIONS(HingeEmbeddingLossOptions, margin);
UMBRA_LOSS_OPTIONS(MultiMarginLossOptions, p, margin, weight);
UMBRA_LOSS_OPTIONS(MultiLabelSoftMarginLossOptions, weight);
UMBRA_LOSS_OPTIONS(MarginRankingLossOptions, margin);
UMBRA_LOSS_OPTIONS(TripletMarginLossOptions, margin, p, eps, swap);
UMBRA_LOSS_OPTIONS(CTCLossOptions, blank, zero_infinity);
using CosineEmbeddingLossOptions = MarginRankingLossOptions;
#undef UMBRA_LOSS_OPTIONS
struct KLDivLossOptions : native::KLDivLossOptions {
  using Native = native::KLDivLossOptions;
  UMBRA_SETTINGS(KLDivLossOptions, log_target)
  KLDivLossOptions(Word word) { reduction(word); }
  KLDivLossOptions() = default;
  KLDivLossOptions& reduction(Word word) {
    Native::batchmean = std::string_view(word.text) == "batchmean";
    if (!Native::batchmean) Native::reduction = word;
    return *this;
  }
  template <class Layer> Layer make() const { return Layer(Native(*this)); }
};

UMBRA_LAYER(L1Loss);
UMBRA_LAYER(MSELoss);
UMBRA_LAYER(SoftMarginLoss);
UMBRA_LAYER(MultiLabelMarginLoss);
UMBRA_LAYER(CrossEntropyLoss);
UMBRA_LAYER(NLLLoss);
UMBRA_LAYER(BCELoss);
UMBRA_LAYER(BCEWithLogitsLoss);
UMBRA_LAYER(SmoothL1Loss);
UMBRA_LAYER(HuberLoss);
UMBRA_LAYER(KLDivLoss);
UMBRA_LAYER(PoissonNLLLoss);
UMBRA_LAYER(HingeEmbeddingLoss);
UMBRA_LAYER(MultiMarginLoss);
UMBRA_LAYER(MultiLabelSoftMarginLoss);
UMBRA_LAYER(MarginRankingLoss);
UMBRA_LAYER(CosineEmbeddingLoss);
UMBRA_LAYER(TripletMarginLoss);

struct CTCLossImpl : LayerImpl<native::CTCLoss, CTCLossOptions> {
  using LayerImpl::LayerImpl;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const {
    return (*this)(log_probs, targets, input_lengths, target_lengths);
  }
};
using CTCLoss = ModuleHolder<CTCLossImpl>;

}  // namespace torch::nn
