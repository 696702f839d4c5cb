// Arrays of NumPy, told by the names of their classes: nothing here imports NumPy.
#pragma once

#include <string_view>

#include "python.h"

namespace umbra::python {

/// Whether an object is a numpy.ndarray, or of a class derived from it (np.matrix).
inline bool is_numpy_array(PyObject* object) {
  for (PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base)
    if (std::string_view(type->tp_name) == "numpy.ndarray") return true;
  return false;
}

}  // namespace umbra::python
