// Tensors as programs print them.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::jit {

/// The numbers in columns, and `[ CPUFloatType{2,3} ]` below them.
std::string tensor_text(const Tensor& tensor);

}  // namespace umbra::jit
