// Layers as operators meet them that Python dispatches itself.
#pragma once

#include "python.h"

namespace umbra::python {

void bind_operator_layers(nb::module_& m);

}  // namespace umbra::python
