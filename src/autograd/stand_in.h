// Tensors from outside of a program that is being captured, as the program's calls see them.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::autograd {

/// Puts what stands for tensors in the program that is being captured into their places (function.h: set_stand_in).
void see_as_captured(std::vector<Tensor>& tensors);

}  // namespace umbra::autograd
