// Methods that convert a tensor to another dtype or device.
#pragma once

#include <vector>

#include "python.h"

namespace umbra::python {

void add_conversion_methods(std::vector<PyMethodDef>& methods);

}  // namespace umbra::python
