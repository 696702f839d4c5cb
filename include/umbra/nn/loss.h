// Losses as modules: `nn::CrossEntropyLoss criterion; criterion(output, target).backward();`.
#pragma once

#include <optional>

#include "umbra/nn/functional.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

using functional::Reduction;

/// What losses share: how those of elements become one.
class Loss : public Layer {
 public:
  std::vector<std::string> argument_names() const override { return {"input", "target"}; }

 protected:
  Loss(const char* type, Reduction reduction) : Layer(type), reduction_(reduction) {}
  int64_t reduction() const { return static_cast<int64_t>(reduction_); }

 private:
  Reduction reduction_;
};

// Those of an input and a target.
#define UMBRA_LOSS(Name)                                  \
  class Name : public Loss {                              \
   public:                                                \
    explicit Name(Reduction reduction = Reduction::Mean); \
    Tensor forward(Tensor input, Tensor target) override; \
  }
UMBRA_LOSS(L1Loss);
UMBRA_LOSS(MSELoss);
UMBRA_LOSS(SoftMarginLoss);
UMBRA_LOSS(MultiLabelMarginLoss);
#undef UMBRA_LOSS

// Those with options; what each one means, the operator of its name says.
#define UMBRA_LOSS(Name)                                  \
  class Name : public Loss {                              \
   public:                                                \
    explicit Name(const Name##Options& options = {});     \
    Tensor forward(Tensor input, Tensor target) override; \
                                                          \
   private:                                               \
    Name##Options options_;                               \
  }
using CrossEntropyLossOptions = functional::CrossEntropyOptions;
UMBRA_LOSS(CrossEntropyLoss);
struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(NLLLoss);
struct BCELossOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(BCELoss);
struct BCEWithLogitsLossOptions {
  Tensor weight = {}, pos_weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(BCEWithLogitsLoss);
struct HuberLossOptions {
  double delta = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(HuberLoss);
struct SmoothL1LossOptions {
  double beta = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(SmoothL1Loss);
struct KLDivLossOptions {
  bool log_target = false;
  bool batchmean = false;  // the sum over the size of the batch, which is the divergence, instead of `reduction`
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(KLDivLoss);
struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(PoissonNLLLoss);
struct HingeEmbeddingLossOptions {
  double margin = 1;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(HingeEmbeddingLoss);
struct MultiMarginLossOptions {
  int64_t p = 1;
  double margin = 1;
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(MultiMarginLoss);
#undef UMBRA_LOSS

// Those of three tensors.
#define UMBRA_LOSS(Name, first, second, third)                                                     \
  class Name : public Loss {                                                                       \
   public:                                                                                         \
    explicit Name(const Name##Options& options = {});                                              \
    Tensor forward(Tensor first, Tensor second, Tensor third) override;                            \
    std::vector<std::string> argument_names() const override { return {#first, #second, #third}; } \
                                                                                                   \
   private:                                                                                        \
    Name##Options options_;                                                                        \
  }
struct MarginRankingLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(MarginRankingLoss, input1, input2, target);
using CosineEmbeddingLossOptions = MarginRankingLossOptions;
UMBRA_LOSS(CosineEmbeddingLoss, input1, input2, target);
struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
UMBRA_LOSS(TripletMarginLoss, anchor, positive, negative);
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
