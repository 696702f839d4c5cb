// Transforms as Python sees them: levels to enter and leave, and their wrappers.
#pragma once

#include "python.h"

namespace umbra::python {

void bind_transform(nb::module_& m);

}  // namespace umbra::python
