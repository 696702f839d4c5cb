// What every binding file needs of CPython: owned references, the interpreter lock, and the way from C++ exceptions to
// Python's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
// After Python.h, which nanobind brings.
#include <structmember.h>

#include <string>
#include <string_view>
#include <utility>

#include "umbra/core/error.h"

namespace umbra::python {

namespace nb = nanobind;

/// Turns the exception being handled into Python's error indicator. Only inside a catch block.
void raise_current();

/// Runs the body of a C function for Python: what it throws becomes a Python exception.
template <class F> PyObject* guarded(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    raise_current();
    return nullptr;
  }
}
template <class F> int guarded_int(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    raise_current();
    return -1;
  }
}

/// A result of the C API that is null on error, as an owned object; throws the Python error.
inline nb::object owned(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}
inline PyObject* checked(PyObject* object) {
  if (!object) throw nb::python_error();
  return object;
}
inline void checked(int status) {
  if (status < 0) throw nb::python_error();
}

std::string_view text_of(PyObject* unicode);
inline nb::object make_text(std::string_view text) {
  return owned(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}
/// str() of an object, or repr().
std::string str_of(PyObject* object);
std::string repr_of(PyObject* object);
/// The name of an object's type, as messages give it.
inline const char* type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }
/// The same without the module where it is this package: "Tensor" for umbra.Tensor, but "numpy.float32".
std::string short_type_name(PyTypeObject* type);

/// A new heap type, kept for the life of the process and added to the module under its short name.
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base = nullptr);

}  // namespace umbra::python
