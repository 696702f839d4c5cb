// The end of a backward pass: gradients arriving at a leaf are added to its `grad`.
#pragma once

#include <mutex>

#include "autograd/meta.h"

namespace UMBRA_API umbra {
namespace autograd {

/// Adds to the tensor's `grad`. Under grad mode the sum is recorded; else it is done in place. A gradient that nobody
/// but these `holders` has becomes `grad` itself.
void accumulate_grad(const Tensor& tensor, Tensor gradient, size_t holders = 1);

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  std::string name() const override { return "AccumulateGrad"; }
  Gradients apply(Gradients incoming) override;
  void run_tensor_hooks(Gradients& incoming) override;
  const Tensor& leaf() const { return leaf_; }

 protected:
  void release_resources() override;

 private:
  Tensor leaf_;
  std::mutex mutex_;
};

}  // namespace autograd
}  // namespace umbra
