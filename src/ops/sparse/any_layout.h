// One function for tensors of any layout: it looks by itself.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

template <class F> struct AnyLayout {
  F function;
  void operator()(OperatorBuilder& builder) const {
    builder.all_backends(function).sparse(function).not_differentiable();
  }
};
template <class F> AnyLayout(F) -> AnyLayout<F>;

}  // namespace umbra::ops
