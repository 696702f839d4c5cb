// Bags of embeddings as a function.
#include <algorithm>

#include "umbra/autograd/grad_mode.h"
#include "umbra/nn/functional.h"
#include "umbra/ops/operators.h"

namespace umbra::nn::functional {

namespace {

int64_t mode_number(const EmbeddingBagOptions& options) {
  const char* const modes[] = {"sum", "mean", "max"};
  const auto* found = std::find(std::begin(modes), std::end(modes), options.mode);
  check<ValueError>(found != std::end(modes), "mode has to be one of sum, mean or max");
  bool is_max = options.mode == "max";
  check<ValueError>(!is_max || !options.scale_grad_by_freq,
                    "max mode does not support scaling the gradient by the frequency");
  return found - modes;
}

}  // namespace

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets, const Tensor& per_sample_weights,
                     const EmbeddingBagOptions& options) {
  check<ValueError>(!per_sample_weights.defined() || per_sample_weights.sym_sizes() == input.sym_sizes(),
                    "embedding_bag: per_sample_weights must have the same shape as the input");
  check<ValueError>(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  check<ValueError>(input.dim() == 1 || input.dim() == 2,
                    "input has to be 1D or 2D Tensor, but got Tensor of dimension ", input.dim());
  check<ValueError>(input.dim() == 1 || !offsets.defined(),
                    "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                    "sequences.");
  check<ValueError>(input.dim() == 2 || offsets.defined(), "offsets has to be a 1D Tensor but got None");
  check<ValueError>(!offsets.defined() || offsets.dim() == 1, "offsets has to be a 1D Tensor");
  int64_t mode = mode_number(options);
  Tensor rows = input.reshape({-1}), starts = offsets, shares = per_sample_weights;
  if (input.dim() == 2) {
    starts = arange(Scalar(0), Scalar(input.sym_numel()), Scalar(input.sym_size(1)),
                    {.dtype = input.dtype(), .device = input.device()});
    if (shares.defined()) shares = shares.reshape({-1});
  }
  if (options.max_norm) {
    NoGrad values_alone;
    embedding_renorm_(weight, rows, *options.max_norm, options.norm_type);
  }
  check<NotImplementedError>(!shares.defined() || options.mode == "sum",
                             "embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='",
                             options.mode, "')");
  return std::get<0>(umbra::embedding_bag(weight, rows, starts, options.scale_grad_by_freq, mode, false, shares,
                                          options.include_last_offset && input.dim() == 1, options.padding_idx));
}

}  // namespace umbra::nn::functional
