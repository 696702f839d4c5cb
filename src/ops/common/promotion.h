// Type promotion among tensors: dimensioned tensors outrank 0-d ones, and those outrank plain numbers, within a
// category.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// Gathers operands and tells the common type: `ResultType().add(x).add(y).get()`.
class ResultType {
 public:
  ResultType& add(const Tensor& t);
  ResultType& add(const Scalar& s);
  DType get() const;

 private:
  static DType combine(DType higher, DType lower);
  DType dimensioned_ = DType::Undefined, zero_dim_ = DType::Undefined, number_ = DType::Undefined;
};

}  // namespace umbra::ops
