// Losses over classes and sequences, and their gradients.
#pragma once

#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// What becomes of the losses of single samples; the numbers are PyTorch's.
enum class Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

/// Scores are [classes], [batch, classes] or [batch, classes, spatial...]; targets the same without the classes.
/// `weight` (undefined: none) weighs classes, targets of `ignore_index` count for nothing. total_weight is a scalar:
/// what a mean is divided by.
void nll_loss(const Tensor& out, const Tensor& total_weight, const Tensor& self, const Tensor& target,
              const Tensor& weight, Reduction reduction, int64_t ignore_index);
void nll_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                       Reduction reduction, int64_t ignore_index, const Tensor& total_weight);

/// An error where an element is not between 0 and 1.
void check_probabilities(const Tensor& t, const char* name);

/// Scores are [classes] or [batch, classes]; what is farther than `margin` from the target's score counts for nothing.
/// `out` is a number a sample or one for all.
struct MarginOptions {
  int64_t power;
  double margin;
  Tensor weight;
  Reduction reduction;
};
void multi_margin_loss(const Tensor& out, const Tensor& self, const Tensor& target, const MarginOptions& options);
void multi_margin_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& self,
                                const Tensor& target, const MarginOptions& options);
/// Several targets a sample, up to the first -1; `is_target` is 1 where a class is one.
void multilabel_margin_loss(const Tensor& out, const Tensor& is_target, const Tensor& self, const Tensor& target,
                            Reduction reduction);
void multilabel_margin_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const Tensor& is_target, Reduction reduction);

/// Connectionist temporal classification: the likelihood of target sequences under all alignments. Log probabilities
/// are [time, batch, classes]; targets [batch, longest] or all in one row.
struct CtcOptions {
  std::vector<int64_t> input_lengths, target_lengths;
  int64_t blank;
  bool zero_infinity;
};
void ctc_loss(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const CtcOptions& options);
void ctc_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& log_probs,
                       const Tensor& targets, const Tensor& losses, const Tensor& log_alpha, const CtcOptions& options);

/// The sum, or the mean, of (self - target)^2 in one pass; both contiguous, of the same sizes and the same type, float
/// or double, which is the type of `out`.
void squared_distance(const Tensor& out, const Tensor& self, const Tensor& target, bool mean);
/// The same of `scale` times a parabola d^2 / 2 of the distance d that from `limit` on is a line.
void smooth_distance(const Tensor& out, const Tensor& self, const Tensor& target, double limit, double scale,
                     bool mean);

}  // namespace umbra::kernels
