// Calls as errors show them.
#pragma once

#include <string>

#include "umbra/dispatch/operator.h"

namespace umbra {

/// `aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)))`: a call with its arguments, without data.
std::string call_text(const Operator& op, const Value* frame);

}  // namespace umbra
