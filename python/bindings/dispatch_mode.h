// __torch_dispatch__: modes and tensor classes of the user's that see every operator below autograd.
#pragma once

#include "arguments.h"

namespace umbra::python {

/// Whether a class has a __torch_dispatch__ of its own.
bool has_dispatch_method(PyTypeObject* type);

/// The arguments of a call as Python has them: positional ones up to the last that is not its default, keyword-only
/// ones by name.
std::pair<nb::object, nb::object> wrap_arguments(const Operator& op, const Value* frame);

/// What a Python function returned for an operator, put into its frame.
void store_results(const Operator& op, PyObject* result, Value* frame);

}  // namespace umbra::python
