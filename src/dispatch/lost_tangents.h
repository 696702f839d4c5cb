// Arguments that results are made of without a derivative: a tangent of one would be left out, so forward mode refuses
// it. Definitions say which those are.
#pragma once

#include <initializer_list>
#include <vector>

#include "umbra/dispatch/define.h"

namespace umbra {

struct LostTangents {
  std::vector<size_t> arguments;
  int unless = -1;  // a bool argument: where it is true, no result is made of them
  const char* error;
};

/// `unless` may be null.
void refuse_tangents(OperatorBuilder& builder, std::initializer_list<const char*> arguments, const char* unless,
                     const char* error);
/// Null: the operator has none.
const LostTangents* lost_tangents(const Operator& op);

}  // namespace umbra
