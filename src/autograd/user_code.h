// Whether code of the user's takes part in a backward pass: functions with gradients of their own, hooks.
#pragma once

#include <cstdint>

namespace umbra::autograd {

/// How often this thread has recorded such code. What a capture knows of the operators it saw says nothing of it.
uint64_t user_code_calls();
void note_user_code();

}  // namespace umbra::autograd
