// Embedding: rows of a table by number.
#pragma once

#include <optional>

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

}  // namespace nn
}  // namespace umbra
