// The small value types that users name: dtype, layout, memory_format, device, Size, and symbolic numbers.
#pragma once

#include "python.h"
#include "umbra/core/device.h"
#include "umbra/core/dtype.h"
#include "umbra/core/integer.h"
#include "umbra/core/intrusive.h"
#include "umbra/core/scalar.h"
#include "umbra/core/sym_int.h"

namespace umbra::python {

// ---- dtype, layout, memory_format: one object for each value, kept for the life of the process ----
struct PyConstant {
  PyObject_HEAD int value;
};
extern PyTypeObject* g_dtype_type;
extern PyTypeObject* g_layout_type;
extern PyTypeObject* g_memory_format_type;
inline int constant_of(PyObject* object) { return reinterpret_cast<PyConstant*>(object)->value; }

PyObject* wrap(DType value);
PyObject* wrap(Layout value);
PyObject* wrap(MemoryFormat value);
/// A dtype, or one of Python's number types that stands for it (float, int, bool, complex); false where it is neither.
bool read_dtype(PyObject* object, DType& out);
bool read_layout(PyObject* object, Layout& out);

// ---- device ----
struct PyDevice {
  PyObject_HEAD Device value;
};
extern PyTypeObject* g_device_type;
PyObject* wrap(Device value);
/// A device, a string or a number; false where it is none of them.
bool read_device(PyObject* object, Device& out);

// ---- symbolic numbers ----
struct PySym {
  PyObject_HEAD const SymNode* node;
  RefCounted* owner;  // the ShapeEnv, kept alive
};
extern PyTypeObject* g_sym_int_type;
extern PyTypeObject* g_sym_float_type;
extern PyTypeObject* g_sym_bool_type;
inline bool is_sym_int(PyObject* object) { return Py_TYPE(object) == g_sym_int_type; }
inline bool is_sym_float(PyObject* object) { return Py_TYPE(object) == g_sym_float_type; }
inline bool is_sym_bool(PyObject* object) { return Py_TYPE(object) == g_sym_bool_type; }
inline const SymNode* node_of(PyObject* object) { return reinterpret_cast<PySym*>(object)->node; }
inline SymInt sym_int_of(PyObject* object) { return SymInt(node_of(object)); }
PyObject* wrap(const SymFloat& value);
PyObject* wrap(const SymBool& value);
PyObject* wrap_symbol(SymInt value);
/// An int, or a SymInt.
inline PyObject* wrap(SymInt value) {
  return value.is_symbolic() ? wrap_symbol(value) : PyLong_FromLongLong(value.value());
}
PyObject* wrap(const Scalar& value);
/// A Python int of any length.
nb::object integer_object(Integer value);
/// An integer of any kind (int, SymInt, numpy's, a tensor with one integer); false where it is none. No float, no bool
/// tensor.
bool read_int(PyObject* object, SymInt& out);
/// A number of any kind; false where it is none.
bool read_scalar(PyObject* object, Scalar& out);

// ---- Size ----
extern PyTypeObject* g_size_type;
PyObject* wrap_size(SymIntArrayRef sizes);
/// A plain tuple of ints.
PyObject* wrap_tuple(SymIntArrayRef values);

void bind_dtype(nb::module_& m);
void bind_device(nb::module_& m);
void bind_sym(nb::module_& m);
void bind_size(nb::module_& m);

}  // namespace umbra::python
