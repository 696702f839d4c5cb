// Hooks on gradients that are written in Python: what they may return.
#pragma once

#include "autograd.h"

namespace umbra::python {

/// A hook on the gradient of a tensor.
autograd::TensorHook tensor_hook(nb::handle function);
/// Hooks on a node, before and after it runs.
autograd::NodePreHook node_pre_hook(nb::handle function);
autograd::NodePostHook node_post_hook(nb::handle function);
/// What keeps a saved tensor elsewhere, and brings it back.
autograd::SavedTensorHooks saved_tensor_hooks(nb::handle pack, nb::handle unpack);

/// Gradients as a tuple, with None for those that are undefined.
nb::object tuple_of(const autograd::Gradients& gradients);

}  // namespace umbra::python
