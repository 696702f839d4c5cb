// Switching differentiation on and off for a scope.
//
//     { NoGrad guard; weight.sub_(gradient.mul(0.1)); }     // not recorded
#pragma once

#include "umbra/core/grad_mode.h"
#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {

/// Sets the thread's grad mode, and puts the one before back when the scope ends.
class SetGradEnabled {
 public:
  explicit SetGradEnabled(bool enabled) : before_(detail::grad_mode_state.grad) {
    detail::grad_mode_state.grad = enabled;
  }
  ~SetGradEnabled() { detail::grad_mode_state.grad = before_; }
  SetGradEnabled(const SetGradEnabled&) = delete;

 private:
  bool before_;
};

struct NoGrad : SetGradEnabled {
  NoGrad() : SetGradEnabled(false) {}
};

struct EnableGrad : SetGradEnabled {
  EnableGrad() : SetGradEnabled(true) {}
};

/// For callers without scopes (Python). The guards above are the better way.
inline void set_grad_enabled(bool enabled) { detail::grad_mode_state.grad = enabled; }

/// Nothing is recorded and calls skip autograd altogether; tensors made inside can never be part of a recorded
/// computation.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true)
      : grad_before_(detail::grad_mode_state), dispatch_before_(dispatch_state()) {
    detail::grad_mode_state = {.grad = !enabled, .inference = enabled};
    DispatchState& state = dispatch_state();
    state.exclude = enabled ? state.exclude | DispatchKey::Autograd : state.exclude - DispatchKey::Autograd;
  }
  ~InferenceMode() {
    detail::grad_mode_state = grad_before_;
    dispatch_state() = dispatch_before_;
  }
  InferenceMode(const InferenceMode&) = delete;

 private:
  GradModeState grad_before_;
  DispatchState dispatch_before_;
};

}  // namespace umbra
