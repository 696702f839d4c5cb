// __torch_dispatch__: modes and tensor classes of the user's that see every operator below autograd.
#pragma once

#include "arguments.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::python {

/// Whether a class has a __torch_dispatch__ of its own.
bool has_dispatch_method(PyTypeObject* type);

/// The arguments of a call as Python has them: positional ones up to the last that is not its default, keyword-only
/// ones by name.
std::pair<nb::object, nb::object> wrap_arguments(const Operator& op, const Value* frame);

/// Layers that are off from when the object is made until a `with` around it ends, or else the object: PyTorch's guards
/// are used in both ways.
class ScopedExclusion {
 public:
  explicit ScopedExclusion(DispatchKeySet keys) : added_(keys - dispatch_state().exclude) {
    dispatch_state().exclude |= keys;
  }
  ~ScopedExclusion() { end(); }
  ScopedExclusion(const ScopedExclusion&) = delete;
  void leave(nb::args) { end(); }

 private:
  void end() {
    dispatch_state().exclude = dispatch_state().exclude - added_;
    added_ = {};
  }
  DispatchKeySet added_;
};

/// What a Python function returned for an operator, put into its frame.
void store_results(const Operator& op, PyObject* result, Value* frame);

}  // namespace umbra::python
