// umbra.Generator.
#pragma once

#include "python.h"
#include "umbra/core/generator.h"

namespace umbra::python {

using GeneratorPointer = IntrusivePtr<Generator>;

bool read_generator(PyObject* object, GeneratorPointer& out);
PyObject* wrap_generator(GeneratorPointer generator);
void bind_generator(nb::module_& m);

}  // namespace umbra::python
