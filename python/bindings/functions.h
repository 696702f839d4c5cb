// Functions, methods and packets: a name that stands for several overloads, and the choice among them.
#pragma once

#include "arguments.h"

namespace umbra::python {

/// A callable over all overloads of an operator's name. `umbra.add`, `Tensor.add` and `ops.aten.add` are each one of
/// these.
struct PyFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  struct Overloads* overloads;
};

/// A new function or method object for "aten::add". To classes and modes it is the member of Tensor of this name, where
/// one is given.
PyObject* make_function(const std::string& operator_name, Reading reading, const char* member = "");

/// Calls a function object's overloads directly, for the slots of Tensor (x + y). Null with an error set on failure.
PyObject* call_function(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords);

/// As call_function, but NotImplemented where no overload takes these types.
PyObject* call_operand(PyObject* function, PyObject* a, PyObject* b);

void bind_functions(nb::module_& m);

}  // namespace umbra::python
