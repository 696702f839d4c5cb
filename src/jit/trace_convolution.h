// Convolutions as PyTorch's traces have them: all are calls of `_convolution`, which has flags for libraries besides.
#pragma once

#include "umbra/jit/trace.h"

namespace umbra::jit {

/// Makes and records the call in that form; false where the operator is no convolution, or one that keeps its own form.
bool call_convolution(Trace& trace, const Operator& op, Value* frame);

}  // namespace umbra::jit
