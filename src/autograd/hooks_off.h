// Saved tensor hooks of the user's: switched off for work that is not the user's, and as they were after a pass.
#pragma once

#include "umbra/autograd/saved_tensor.h"

namespace umbra::autograd {

/// Whether hooks of this thread's are in force.
UMBRA_API bool has_saved_tensor_hooks();

/// While a program is captured, what is saved is saved for the capture alone.
class WithoutSavedTensorHooks {
 public:
  WithoutSavedTensorHooks();
  ~WithoutSavedTensorHooks();
  WithoutSavedTensorHooks(const WithoutSavedTensorHooks&) = delete;

 private:
  std::vector<SavedTensorHooks> before_;
};

/// What a backward pass enters or leaves ends with it.
class KeepSavedTensorHooks {
 public:
  KeepSavedTensorHooks();
  ~KeepSavedTensorHooks();
  KeepSavedTensorHooks(const KeepSavedTensorHooks&) = delete;

 private:
  std::vector<SavedTensorHooks> before_;
};

}  // namespace umbra::autograd
