// How near two tensors are, row by row.
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

class CosineSimilarity : public Layer {
 public:
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8);
  Tensor forward(Tensor x1, Tensor x2) override;
  std::vector<std::string> argument_names() const override { return {"x1", "x2"}; }

 private:
  int64_t dim_;
  double eps_;
};

class PairwiseDistance : public Layer {
 public:
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false);
  Tensor forward(Tensor x1, Tensor x2) override;
  std::vector<std::string> argument_names() const override { return {"x1", "x2"}; }

 private:
  double p_, eps_;
  bool keepdim_;
};

}  // namespace nn
}  // namespace umbra
