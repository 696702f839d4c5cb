// Hooks on gradients that are written in Python: what they may return.
#pragma once

#include "autograd.h"

namespace umbra::python {

/// A hook on the gradient of a tensor.
autograd::TensorHook tensor_hook(nb::handle function);
/// A hook on a leaf whose `grad` has been added to.
std::function<void(const Tensor&)> post_accumulate_hook(nb::handle function);
/// Hooks on a node, before and after it runs.
autograd::NodePreHook node_pre_hook(nb::handle function);
autograd::NodePostHook node_post_hook(nb::handle function);
/// What keeps a saved tensor elsewhere, and brings it back.
autograd::SavedTensorHooks saved_tensor_hooks(nb::handle pack, nb::handle unpack);

/// What Python's collector sees of a tensor's history: the functions that hook it, and the context of a custom function
/// that made it. Only where nobody but its object holds the tensor does the object stand for them.
int visit_history(const TensorImpl* tensor, visitproc visit, void* arg);
void clear_history(TensorImpl* tensor);
/// The functions that hook a node.
int visit_node(const autograd::Node& node, visitproc visit, void* arg);

/// Gradients as a tuple, with None for those that are undefined.
nb::object tuple_of(const autograd::Gradients& gradients);

}  // namespace umbra::python
