// Signals of Python's that come while something is being set up or put back.
#pragma once

#include "python.h"

namespace umbra::python {

/// Whether the frame, which has just been entered, is the call of an installed handler by the interpreter: the number
/// of the signal, or 0.
int signal_handled_by(PyFrameObject* frame);

/// Raises what a handler raised where nothing can be raised: soon after.
void raise_later(const nb::python_error& error);

void bind_signals(nb::module_& m);

}  // namespace umbra::python
