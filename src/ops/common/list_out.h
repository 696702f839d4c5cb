// Out variants of operators that return lists.
#pragma once

#include <string>

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// Declares the out variant `name` of an operator that returns a list: the operator, and each result copied to the
/// tensor at its place, which gets its size. `.use(ListOut{"unbind_copy.int_out", "unbind_copy_int_out"})`.
struct ListOut {
  std::string name;
  std::string called;   // what refusals of a list of another length call it; empty: the name
  bool resizes = true;  // an output of another size gets the result's, or is refused
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
