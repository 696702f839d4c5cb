#include "umbra/nn/adaptive.h"

#include <algorithm>
#include <cmath>

#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

namespace {
std::vector<int64_t> checked(std::vector<int64_t> cutoffs, int64_t n_classes) {
  check<ValueError>(!cutoffs.empty(), "cutoffs should be a sequence of length larger than 0");
  bool rising = std::ranges::adjacent_find(cutoffs, std::ranges::greater_equal()) == cutoffs.end();
  check<ValueError>(rising && cutoffs.front() > 0 && cutoffs.back() <= n_classes - 1,
                    "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where "
                    "each value is between 1 and n_classes-1");
  cutoffs.push_back(n_classes);
  return cutoffs;
}
}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       const AdaptiveLogSoftmaxOptions& options)
    : Layer("torch.nn.modules.adaptive.AdaptiveLogSoftmaxWithLoss"),
      head(add("head", Linear(in_features, cutoffs.empty() ? 0 : cutoffs[0] + static_cast<int64_t>(cutoffs.size()),
                              {.bias = options.head_bias, .tensor = options.tensor}))),
      tail(add("tail", ModuleList<Sequential>())),
      cutoffs_(checked(std::move(cutoffs), n_classes)) {
  LinearOptions plain{.bias = false, .tensor = options.tensor};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    double share = std::pow(options.div_value, static_cast<double>(i + 1));
    auto rank = static_cast<int64_t>(std::floor(static_cast<double>(in_features) / share));
    Linear down(in_features, rank, plain), up(rank, cutoffs_[i + 1] - cutoffs_[i], plain);  // drawn in this order
    tail.push_back(Sequential(std::move(down), std::move(up)));
  }
}

Tensor AdaptiveLogSoftmaxWithLoss::of_targets(const Tensor& input, const Tensor& target) {
  Tensor output = input.new_zeros({target.size(0)}), column = target.new_empty({target.size(0)});
  int64_t low = 0, found = 0;
  for (size_t i = 0; i < cutoffs_.size(); low = cutoffs_[i++]) {
    Tensor rows = (target.ge(low) & target.lt(cutoffs_[i])).nonzero().squeeze(1);
    found += rows.numel();
    if (rows.numel() == 0) continue;
    Tensor classes = target.index_select(0, rows);
    if (i == 0) {
      column.index_copy_(0, rows, classes);
      continue;
    }
    Tensor scores = log_softmax(tail[i - 1](input.index_select(0, rows)), 1);
    column.index_fill_(0, rows, Scalar(cutoffs_[0] + static_cast<int64_t>(i) - 1));
    output.index_copy_(0, rows, scores.gather(1, (classes - low).unsqueeze(1)).squeeze(1));
  }
  check(found == target.size(0), "Target values should be in [0, ", cutoffs_.back() - 1, "], but values in range [",
        found == target.size(0) ? Scalar(0) : target.min().item(), ", ",
        found == target.size(0) ? Scalar(0) : target.max().item(), "] were found. ");
  return output + log_softmax(head(input), 1).gather(1, column.unsqueeze(1)).squeeze(1);
}

Tensor AdaptiveLogSoftmaxWithLoss::forward(Tensor input, Tensor target) {
  check(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  if (target.dim() == 0) {
    check(input.dim() == 1, "0D target tensor expects 1D input tensors, but found inputs with size", input.sizes());
    return of_targets(input.unsqueeze(0), target.unsqueeze(0)).squeeze(0);
  }
  check(input.size(0) == target.size(0), "Input and target should have the same size in the batch dimension.");
  check(input.dim() == 2, "1D target tensor expects 2D input tensors, but found inputs with size", input.sizes());
  return of_targets(input, target);
}

std::pair<Tensor, Tensor> AdaptiveLogSoftmaxWithLoss::forward_with_loss(Tensor input, Tensor target) {
  return run([&]() -> std::pair<Tensor, Tensor> {
    Tensor output = forward(input, target);
    return {output, (-output).mean()};
  });
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(Tensor input) {
  return run([&] {
    Tensor scores = log_softmax(head(input), 1);
    std::vector<Tensor> parts{scores.slice(1, 0, cutoffs_[0])};
    for (size_t i = 0; i < tail.size(); ++i) {
      Tensor cluster = scores.select(1, cutoffs_[0] + static_cast<int64_t>(i)).unsqueeze(1);
      parts.push_back(log_softmax(tail[i](input), 1) + cluster);
    }
    return cat(parts, 1);
  });
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(Tensor input) { return log_prob(input).argmax(1); }

}  // namespace umbra::nn
