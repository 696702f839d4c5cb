// Methods that convert a tensor to another dtype or device.
#pragma once

#include <vector>

#include "python.h"

namespace umbra::python {

void add_conversion_methods(std::vector<PyMethodDef>& methods);
void bind_conversions(nb::module_& m);

}  // namespace umbra::python
