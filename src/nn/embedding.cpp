#include "umbra/nn/embedding.h"

#include "umbra/generated/functions.h"
#include "umbra/nn/functional.h"
#include "umbra/nn/init.h"

namespace umbra::nn {

Embedding::Embedding(int64_t rows, int64_t size, const EmbeddingOptions& options)
    : Layer("torch.nn.modules.sparse.Embedding"), padding_idx_(options.padding_idx) {
  if (padding_idx_) {
    check<AssertionError>(-rows <= *padding_idx_ && *padding_idx_ < rows, "Padding_idx must be within num_embeddings");
    if (*padding_idx_ < 0) *padding_idx_ += rows;
  }
  weight = parameter("weight", empty({rows, size}, options.tensor));
  init::normal_(weight);
  if (padding_idx_) init::zeros_(weight.detach().select(0, *padding_idx_));
}
Tensor Embedding::forward(Tensor indices) { return functional::embedding(indices, weight, padding_idx_); }
std::string Embedding::extra_repr() const {
  std::string text = concat(weight.size(0), ", ", weight.size(1));
  return padding_idx_ ? concat(text, ", padding_idx=", *padding_idx_) : text;
}

}  // namespace umbra::nn
