#include "ops/common/may_read.h"

#include "umbra/core/tangent.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {

bool may_read(const Tensor& t) {
  DispatchKeySet watched = dispatch_state().include - DispatchKeySet(DispatchKey::Autograd);
  DispatchKeySet plain = DispatchKeySet(DispatchKey::Autograd) | DispatchKey::CPU;
  return (watched - plain).empty() && (t.keys() - plain).empty() && t.storage()->has_data();
}

bool autograd_may_need(const Tensor& t) { return (is_grad_enabled() && t.requires_grad()) || has_tangent(t); }

bool values_alone(const Tensor& t) { return may_read(t) && !autograd_may_need(t); }

}  // namespace umbra::ops
