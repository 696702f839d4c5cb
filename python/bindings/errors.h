// The exception classes that Umbra adds to Python's.
#pragma once

#include "python.h"

namespace umbra::python {

void bind_errors(nb::module_& m);

}  // namespace umbra::python
