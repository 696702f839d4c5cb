// Small functions of the package that belong to no class.
#pragma once

#include "python.h"

namespace umbra::python {

void bind_misc(nb::module_& m);
void bind_subclass(nb::module_& m);
void bind_dispatch(nb::module_& m);
void bind_library(nb::module_& m);
void bind_autocast(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_nn_module(nb::module_& m);

}  // namespace umbra::python
