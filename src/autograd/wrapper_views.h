// Views and writes of tensors whose class handles operators itself. Such a class makes its results out of sight of the
// backend, so what the backend notes of them (which tensor a view was taken of, that a tensor was written) is noted
// here; and how a view was made is kept, because strides do not tell what a class makes of them.
#pragma once

#include "autograd/meta.h"
#include "umbra/dispatch/operator.h"

namespace umbra::autograd {

/// One count of writes for a tensor and another of the same contents, which do not share a storage here.
void count_writes_together(TensorImpl* tensor, TensorImpl* other);

/// How the view was made of its base; empty where strides say it all.
UMBRA_API const ViewReplay& replay_of(const Tensor& view);

/// What a call does to tensors of such classes: looked at before the call, noted after it.
class WrapperEffects {
 public:
  WrapperEffects(const Operator& op, const Value* frame);
  /// `frame` has the results.
  void note(const Value* frame) const;

 private:
  struct Written {
    IntrusivePtr<TensorImpl> tensor;
    uint32_t version;
  };

  const Operator& op_;
  std::vector<Value> arguments_;  // of a view
  IntrusivePtr<TensorImpl> self_;
  std::vector<Written> written_;
};

}  // namespace umbra::autograd
