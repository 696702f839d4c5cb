// The error of a call whose tensors lie on two devices.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

/// Fake tensors on two devices met in one call.
class FakeTensorDeviceMismatchError : public Error {
 public:
  using Error::Error;
};

/// Throws PyTorch's error: one of its own type where a tensor is fake.
[[noreturn]] void fail_two_devices(Device one, Device other, bool fake);

}  // namespace umbra
