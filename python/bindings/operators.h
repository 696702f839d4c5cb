// ops.aten.add.Tensor: operator overloads as Python objects.
#pragma once

#include "arguments.h"

namespace umbra::python {

/// The OpOverload object of an operator; one for each, made on first use. A new reference.
PyObject* wrap(const Operator& op);
/// The operator behind an OpOverload, or null.
const Operator* operator_of(PyObject* object);

void bind_operators(nb::module_& m);
void bind_schemas(nb::module_& m);
void bind_return_types(nb::module_& m);

}  // namespace umbra::python
