// umbra.Tensor as CPython sees it, and the way between a C++ Tensor and the Python object that stands for it.
#pragma once

#include <nanobind/stl/pair.h>

#include "python.h"
#include "umbra/core/named.h"
#include "umbra/core/tensor.h"

namespace umbra::python {

/// A Python tensor. It holds its TensorImpl; the impl knows the object, so that one tensor is one object while it
/// lives.
struct PyTensor {
  PyObject_HEAD TensorImpl* impl;
  PyObject* weak_references;
  PyObject* attributes;
};

extern PyTypeObject* g_tensor_type;
extern PyTypeObject* g_fake_tensor_type;

inline bool is_tensor(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == g_tensor_type || type == g_fake_tensor_type || PyType_IsSubtype(type, g_tensor_type);
}
/// Tensor, FakeTensor: classes whose objects are as good as new ones.
inline bool is_plain_tensor_type(PyTypeObject* type) { return type == g_tensor_type || type == g_fake_tensor_type; }

/// The tensor behind an object that is_tensor() holds for, without counting: a Tensor is exactly its pointer.
inline const Tensor& tensor_of(PyObject* object) {
  return *reinterpret_cast<const Tensor*>(&reinterpret_cast<PyTensor*>(object)->impl);
}
/// The same with a check.
const Tensor& expect_tensor(PyObject* object, const char* what);

/// The object of a tensor, a new reference; None for an undefined one.
PyObject* wrap(const Tensor& tensor);
PyObject* wrap(Tensor&& tensor);
/// An object of a given class for a tensor that has none yet.
PyObject* wrap_as(PyTypeObject* type, const Tensor& tensor);

/// What made or hooks a tensor may refer to it: from here on Python's collector looks at the tensor's object.
void track(const Tensor& tensor);

void bind_tensor_type(nb::module_& m);

}  // namespace umbra::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
/// Lets functions bound by nanobind take and return tensors. None is an undefined tensor.
template <> struct type_caster<umbra::Tensor> {
  NB_TYPE_CASTER(umbra::Tensor, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (source.is_none()) return true;
    if (!umbra::python::is_tensor(source.ptr())) return false;
    value = umbra::python::tensor_of(source.ptr());
    return true;
  }
  static handle from_cpp(const umbra::Tensor& source, rv_policy, cleanup_list*) noexcept {
    return umbra::python::guarded([&] { return umbra::python::wrap(source); });
  }
};
template <>
struct type_caster<umbra::NamedTensors> : list_caster<umbra::NamedTensors, std::pair<std::string, umbra::Tensor>> {};
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
