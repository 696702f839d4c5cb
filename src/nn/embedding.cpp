#include "umbra/nn/embedding.h"

#include "nn/text.h"
#include "umbra/generated/functions.h"
#include "umbra/nn/functional.h"
#include "umbra/nn/init.h"

namespace umbra::nn {

namespace {
/// The row of padding, counted from the first.
std::optional<int64_t> padding_row(std::optional<int64_t> row, int64_t rows, const char* message) {
  if (!row) return row;
  check<AssertionError>(-rows <= *row && *row < rows, message);
  return *row < 0 ? *row + rows : *row;
}

void fill_table(const Tensor& weight, std::optional<int64_t> padding) {
  init::normal_(weight);
  if (padding) init::zeros_(weight.detach().select(0, *padding));
}
}  // namespace

Embedding::Embedding(int64_t rows, int64_t size, const EmbeddingOptions& options)
    : Layer("torch.nn.modules.sparse.Embedding"),
      padding_idx_(padding_row(options.padding_idx, rows, "Padding_idx must be within num_embeddings")) {
  weight = parameter("weight", empty({rows, size}, options.tensor));
  fill_table(weight, padding_idx_);
}
Tensor Embedding::forward(Tensor indices) { return functional::embedding(indices, weight, padding_idx_); }
std::string Embedding::extra_repr() const {
  std::string text = concat(weight.size(0), ", ", weight.size(1));
  return padding_idx_ ? concat(text, ", padding_idx=", *padding_idx_) : text;
}

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t size, const EmbeddingBagOptions& options, TensorOptions tensor)
    : Layer("torch.nn.modules.sparse.EmbeddingBag"), options_(options) {
  options_.padding_idx = padding_row(options.padding_idx, rows, "padding_idx must be within num_embeddings");
  weight = parameter("weight", empty({rows, size}, tensor));
  fill_table(weight, options_.padding_idx);
}
Tensor EmbeddingBag::forward(Tensor input) { return functional::embedding_bag(input, weight, {}, {}, options_); }
Tensor EmbeddingBag::forward(Tensor input, Tensor offsets) {
  return functional::embedding_bag(input, weight, offsets, {}, options_);
}
Tensor EmbeddingBag::forward(Tensor input, Tensor offsets, Tensor per_sample_weights) {
  return functional::embedding_bag(input, weight, offsets, per_sample_weights, options_);
}
std::string EmbeddingBag::extra_repr() const {
  std::string text = concat(weight.size(0), ", ", weight.size(1));
  if (options_.max_norm) text += ", max_norm=" + float_text(*options_.max_norm);
  if (options_.norm_type != 2) text += ", norm_type=" + float_text(options_.norm_type);
  if (options_.scale_grad_by_freq) text += ", scale_grad_by_freq=True";
  text += ", mode='" + options_.mode + "'";
  return options_.padding_idx ? concat(text, ", padding_idx=", *options_.padding_idx) : text;
}

}  // namespace umbra::nn
