// Which Python code runs while a function is captured: functions that nobody foresaw, whose reads are not watched yet,
// and calls of functions written in C that a graph would not make again.
#pragma once

#include "python.h"
#include "umbra/core/tensor.h"

namespace umbra::python {

/// Ends the capture that is under way where it is the user's code, and not this package's, that asks for something that
/// graphs do not keep to: of the process, or of a stand-in.
void end_capture_of_question(const char* what);
/// Whether it is the captured function's own code that runs, or what it called of Python's library.
bool is_the_user_asking();
void end_capture_of_question(const Tensor& tensor, const char* what);

void bind_capture_frames(nb::module_& m);

}  // namespace umbra::python
