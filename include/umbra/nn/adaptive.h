// Softmax over many classes, by their frequency.
#pragma once

#include "umbra/nn/container.h"
#include "umbra/nn/linear.h"

namespace UMBRA_API umbra {
namespace nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4.0;  // each cluster's rank is the one's before it over this
  bool head_bias = false;
  TensorOptions tensor = {};
};

/// Classes in clusters that `cutoffs` separate, from the most frequent one on: the first by one matrix, the others by
/// their cluster and by one of less rank.
///
///     nn::AdaptiveLogSoftmaxWithLoss softmax(64, 10000, {100, 1000});
///     auto [log_probabilities, loss] = softmax.forward_with_loss(hidden, targets);
///     loss.backward();
class AdaptiveLogSoftmaxWithLoss : public Layer {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {});
  /// The log probability of each target.
  Tensor forward(Tensor input, Tensor target) override;
  /// The same, and minus its mean.
  std::pair<Tensor, Tensor> forward_with_loss(Tensor input, Tensor target);
  /// The log probabilities of all classes.
  Tensor log_prob(Tensor input);
  /// The most probable class of each row.
  Tensor predict(Tensor input);
  std::vector<std::string> argument_names() const override { return {"input_", "target_"}; }

  Linear head;
  ModuleList<Sequential> tail;

 private:
  Tensor of_targets(const Tensor& input, const Tensor& target);
  std::vector<int64_t> cutoffs_;  // the number of classes is the last
};

}  // namespace nn
}  // namespace umbra
