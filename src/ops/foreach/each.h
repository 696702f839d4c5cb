// Operators over lists, by an operator of single tensors.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Says that an operator applies another one to each element: lists are taken apart, other arguments are the same for
/// all. The in-place variant, where it is declared before, applies the in-place variant of that one, in the order of
/// the list. Where gradients are asked for the operator comes apart, so that each element has its own history; layers
/// below see it whole. There it may be another operator, of the same values, whose derivative it has.
struct each {
  const char *element, *differentiated;
  explicit each(const char* name) : each(name, name) {}
  each(const char* name, const char* with_history) : element(name), differentiated(with_history) {}
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
