// Rows of a table by number, one by one and in bags.
//
//     nn::Embedding words(10000, 64);
//     Tensor y = words(tensor({3, 1, 4}));                           // [3, 64]
#pragma once

#include <optional>

#include "umbra/nn/functional.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // a row that stays zero
  TensorOptions tensor = {};
};

class Embedding : public Layer {
 public:
  Embedding(int64_t rows, int64_t size, const EmbeddingOptions& options = {});
  Tensor forward(Tensor indices) override;
  std::string extra_repr() const override;

  Tensor weight;

 private:
  std::optional<int64_t> padding_idx_;
};

using EmbeddingBagOptions = functional::EmbeddingBagOptions;

/// Sums, means or maxima of the rows of each bag: of a row of a matrix of numbers, or of those of a vector from one
/// offset to the next. A third input is a weight for each number.
class EmbeddingBag : public Layer {
 public:
  EmbeddingBag(int64_t rows, int64_t size, const EmbeddingBagOptions& options = {}, TensorOptions tensor = {});
  Tensor forward(Tensor input) override;
  Tensor forward(Tensor input, Tensor offsets) override;
  Tensor forward(Tensor input, Tensor offsets, Tensor per_sample_weights) override;
  std::vector<std::string> argument_names() const override { return {"input", "offsets", "per_sample_weights"}; }
  std::string extra_repr() const override;

  Tensor weight;

 private:
  EmbeddingBagOptions options_;
};

}  // namespace nn
}  // namespace umbra
