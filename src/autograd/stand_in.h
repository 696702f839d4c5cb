// Tensors from outside of a program that is being captured, as the program's calls see them.
#pragma once

#include "umbra/autograd/autograd.h"

namespace umbra::autograd {

/// Puts what stands for tensors in the program that is being captured into their places (function.h: set_stand_in).
UMBRA_API void see_as_captured(std::vector<Tensor>& tensors);

/// The same for tensors by which a derivative of `roots` is taken.
void see_wanted(std::vector<Tensor>& tensors, const std::vector<Edge>& roots);

/// The grad mode that calls are recorded with. Custom functions run their `forward` without, which is no part of the
/// program: it is differentiated through the calls that `forward` makes.
bool recorded_grad_mode();

}  // namespace umbra::autograd
