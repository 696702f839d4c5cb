// __torch_function__: classes and modes of the user's that see calls of functions and methods before they are made.
#pragma once

#include "arguments.h"

namespace umbra::python {

/// Whether this thread has function modes entered (and not switched off).
bool torch_function_modes_active();

/// Whether a class has a handler that is on.
bool class_has_torch_function(PyTypeObject* type);

/// Every handler that was offered a call has declined it.
class NobodyTakesCall : public TypeError {
  using TypeError::TypeError;
};

/// Offers a call to the innermost mode and to the arguments' classes. False where nobody wants it. `result` is a new
/// reference.
bool call_torch_function(PyObject* function, const CallArguments& call, PyObject** result);

void bind_torch_function(nb::module_& m);

}  // namespace umbra::python
