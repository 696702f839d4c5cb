// Questions of the user's C++ code about layouts, which the layers above the core want to know of.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra {

/// What is called when code outside of the library has asked for strides of a tensor with symbols, or whether it is
/// contiguous; `contiguous` where it is, row by row. Set once, when the library is loaded.
extern void (*layout_asked)(const Tensor& tensor, bool contiguous);

}  // namespace umbra
