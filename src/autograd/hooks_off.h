// Saved tensor hooks of the user's, switched off for work that is not the user's.
#pragma once

#include "umbra/autograd/saved_tensor.h"

namespace umbra::autograd {

/// While a program is captured, what is saved is saved for the capture alone.
class WithoutSavedTensorHooks {
 public:
  WithoutSavedTensorHooks();
  ~WithoutSavedTensorHooks();
  WithoutSavedTensorHooks(const WithoutSavedTensorHooks&) = delete;

 private:
  std::vector<SavedTensorHooks> before_;
};

}  // namespace umbra::autograd
