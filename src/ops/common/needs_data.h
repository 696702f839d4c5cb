// Operators that PyTorch has no meta kernel for. Fake runs have their metadata all the same.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Tensors of the meta device are refused, before anything is said about the arguments, by the operator and its out
/// variants, or by the variant of that name alone. Stands behind the variants: `.out("x.out").use(NeedsData{})`.
struct NeedsData {
  const char* variant = nullptr;
  void operator()(OperatorBuilder& builder) const;
};

/// The out variant of that name takes no meta tensors: PyTorch's kernel for them has no outputs.
struct NoOutputsOnMeta {
  const char* variant;
  void operator()(OperatorBuilder& builder) const;
};

/// On the meta device nothing is checked, and each result is like one of the arguments, on that one's device. A result
/// that has elements is refused there, since nobody would write them.
struct LikeOnMeta {
  std::vector<int> arguments;
  void operator()(OperatorBuilder& builder) const;
};

/// What the in-place variant asks of a meta tensor beside sizes that fit: the other operand may be anywhere.
enum class AsksInPlace { Nothing, NoFloatIntoInteger, CastOfQuotient };
/// The in-place variant of an operator of two operands on the meta device writes nothing, wherever they are.
struct InPlaceOnMeta {
  AsksInPlace asks;
  void operator()(OperatorBuilder& builder) const;
};

/// Where an argument is a meta tensor the operator, or its in-place variant, does nothing; a single tensor with data
/// that it would have written is refused.
struct NothingOnMeta {
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
