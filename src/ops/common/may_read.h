// Whether a formula may look at what a tensor holds.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// Whether a formula may go by what a tensor holds: it is not captured, batched or without data.
bool may_read(const Tensor& t);
/// Whether a derivative of a call with this tensor may be asked for, as far as autograd knows: transforms have their
/// own.
bool autograd_may_need(const Tensor& t);
/// Whether a call with this tensor is no more than its values: nobody watches its parts, and none needs a derivative.
bool values_alone(const Tensor& t);

}  // namespace umbra::ops
