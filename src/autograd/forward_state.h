// The thread's dual levels and the tangents of tensors at them. Levels count from 1 here; 0 means none.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::autograd {

/// Whether a tensor stands for a batch of them, whose memory is not that of one element: transform/ says so.
extern bool (*is_batch)(const Tensor& tensor);

/// The highest level whose tangents count now. Code that works at a level sees only those below it.
int visible_level();

/// Lets only levels up to `level` count, for a scope.
class ShowLevels {
 public:
  explicit ShowLevels(int level);
  ~ShowLevels();
  ShowLevels(const ShowLevels&) = delete;

 private:
  int before_;
};

/// The tensor's tangent at a level, or null.
const Tensor* tangent_at(const TensorImpl* tensor, int level);
void set_tangent(const Tensor& tensor, const Tensor& tangent, int level);
/// The highest visible level at which the tensor has a tangent; 0: none.
int highest_level(const TensorImpl* tensor);
int highest_level(TensorList tensors);

}  // namespace umbra::autograd
