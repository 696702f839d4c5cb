// The thread's switches of differentiation. They stand in core because making a tensor or a view reads them; the guards
// that set them are in autograd/grad_mode.h.
#pragma once

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

struct GradModeState {
  bool grad = true;        // results of tracked tensors are tracked
  bool inference = false;  // new tensors are inference tensors: never tracked, no version
};

namespace detail {
// initial-exec: read whenever a tensor is made, and the general model would cost a function call each time.
extern constinit thread_local GradModeState grad_mode_state __attribute__((tls_model("initial-exec")));
}  // namespace detail

inline bool is_grad_enabled() { return detail::grad_mode_state.grad; }
inline bool is_inference_mode_enabled() { return detail::grad_mode_state.inference; }

}  // namespace umbra
