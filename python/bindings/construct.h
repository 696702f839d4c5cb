// Tensors from Python data and back: numbers, nested lists, NumPy arrays, buffers, DLPack capsules.
#pragma once

#include <optional>

#include "python.h"
#include "umbra/core/scalar.h"
#include "umbra/core/tensor.h"

namespace umbra::python {

/// A new tensor with the data of numbers, nested sequences or an array; the dtype follows from it where none is given.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype = {});
/// Makes a new tensor require a gradient, as a factory's requires_grad=True does.
void require_gradient(Tensor made);
/// The elements as nested lists, or one number.
PyObject* to_list(const Tensor& tensor);

/// One element in memory.
Scalar load_scalar(const void* from, DType dtype);
void store_scalar(void* to, DType dtype, const Scalar& value);

// ---- sharing memory ----
/// A tensor over the memory of an object with Python's buffer protocol, such as a NumPy array. Nothing is copied.
Tensor tensor_from_buffer(PyObject* object);
/// A NumPy array over the tensor's memory.
PyObject* to_numpy(const Tensor& tensor);
/// The bytes of a storage as an object with the buffer protocol.
PyObject* storage_buffer(const Storage& storage);

void bind_construct(nb::module_& m);
void bind_interop(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_storage(nb::module_& m);

}  // namespace umbra::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
template <> struct type_caster<umbra::DType> {
  NB_TYPE_CASTER(umbra::DType, const_name("dtype"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept;
  static handle from_cpp(umbra::DType source, rv_policy, cleanup_list*) noexcept;
};
template <> struct type_caster<umbra::Device> {
  NB_TYPE_CASTER(umbra::Device, const_name("device"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept;
  static handle from_cpp(umbra::Device source, rv_policy, cleanup_list*) noexcept;
};
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
