// C++ errors become Python exceptions of the same name; a Python exception that passed through C++ comes out as itself.
#include "errors.h"

#include "umbra/capture/needs_symbols.h"
#include "umbra/core/error.h"
#include "umbra/core/linalg_error.h"
#include "umbra/dispatch/device_mismatch.h"
#include "umbra/export/input_check.h"

namespace umbra::python {

namespace {

PyObject* g_data_dependent;
PyObject* g_dynamic_shape;
PyObject* g_unsupported;
PyObject* g_device_mismatch;
PyObject* g_guard_on_data;
PyObject* g_constraint_violation;
PyObject* g_user_error;
PyObject* g_linalg_error;
PyObject* g_input_mismatch;
PyObject* g_needs_symbols;

/// A message may quote a damaged file: bytes that are no UTF-8 are shown as \xNN.
void set_error(PyObject* type, const char* text) {
  PyObject* message = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace");
  if (!message) return;  // no memory: that is the error then
  PyErr_SetObject(type, message);
  Py_DECREF(message);
}

template <class E> bool raise_as(const Error& error, PyObject* type) {
  if (!dynamic_cast<const E*>(&error)) return false;
  set_error(type, error.what());
  return true;
}

void raise_error(const Error& e) {
  raise_as<IndexError>(e, PyExc_IndexError) || raise_as<ValueError>(e, PyExc_ValueError) ||
      raise_as<TypeError>(e, PyExc_TypeError) || raise_as<KeyError>(e, PyExc_KeyError) ||
      raise_as<AttributeError>(e, PyExc_AttributeError) || raise_as<InputMismatch>(e, g_input_mismatch) ||
      raise_as<AssertionError>(e, PyExc_AssertionError) || raise_as<FileNotFoundError>(e, PyExc_FileNotFoundError) ||
      raise_as<NeedsSymbols>(e, g_needs_symbols) || raise_as<NotImplementedError>(e, PyExc_NotImplementedError) ||
      raise_as<OverflowError>(e, PyExc_OverflowError) || raise_as<ZeroDivisionError>(e, PyExc_ZeroDivisionError) ||
      raise_as<DataDependentOutputException>(e, g_data_dependent) ||
      raise_as<DynamicOutputShapeException>(e, g_dynamic_shape) ||
      raise_as<UnsupportedOperatorException>(e, g_unsupported) ||
      raise_as<FakeTensorDeviceMismatchError>(e, g_device_mismatch) ||
      raise_as<GuardOnDataDependentSymNode>(e, g_guard_on_data) ||
      raise_as<ConstraintViolationError>(e, g_constraint_violation) || raise_as<UserError>(e, g_user_error) ||
      raise_as<LinAlgError>(e, g_linalg_error) || (set_error(PyExc_RuntimeError, e.what()), true);
}

PyObject* add_exception(PyObject* module, const char* qualified, PyObject* bases) {
  PyObject* type = checked(PyErr_NewException(qualified, bases, nullptr));
  const char* dot = std::strrchr(qualified, '.');
  checked(PyModule_AddObjectRef(module, dot + 1, type));
  return type;
}

}  // namespace

void raise_current() {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    raise_error(e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::index_error ? PyExc_IndexError : PyExc_TypeError, e.what());
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception");
  }
}

void bind_errors(nb::module_& m) {
  PyObject* module = m.ptr();
  nb::object memory_bases = owned(PyTuple_Pack(2, PyExc_RuntimeError, PyExc_MemoryError));
  // Of accelerators' memory; where the host has none left PyTorch raises a RuntimeError.
  add_exception(module, "umbra.OutOfMemoryError", memory_bases.ptr());
  g_linalg_error = add_exception(module, "umbra._C._LinAlgError", PyExc_RuntimeError);
  g_needs_symbols = add_exception(module, "umbra._C.NeedsSymbols", PyExc_NotImplementedError);
  // Programs that catch either, as PyTorch's versions raise it, find it.
  nb::object mismatch_bases = owned(PyTuple_Pack(2, PyExc_AssertionError, PyExc_RuntimeError));
  g_input_mismatch = checked(PyErr_NewException("umbra.export.AssertionError", mismatch_bases.ptr(), nullptr));
  g_data_dependent =
      add_exception(module, "umbra._subclasses.fake_tensor.DataDependentOutputException", PyExc_RuntimeError);
  g_dynamic_shape =
      add_exception(module, "umbra._subclasses.fake_tensor.DynamicOutputShapeException", PyExc_RuntimeError);
  g_unsupported =
      add_exception(module, "umbra._subclasses.fake_tensor.UnsupportedOperatorException", PyExc_RuntimeError);
  g_device_mismatch =
      add_exception(module, "umbra._subclasses.fake_tensor.FakeTensorDeviceMismatchError", PyExc_RuntimeError);
  g_guard_on_data =
      add_exception(module, "umbra.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode", PyExc_RuntimeError);
  g_constraint_violation =
      add_exception(module, "umbra.fx.experimental.symbolic_shapes.ConstraintViolationError", PyExc_RuntimeError);
  PyObject* dynamo = add_exception(module, "umbra._dynamo.exc.TorchDynamoException", PyExc_RuntimeError);
  g_user_error = add_exception(module, "umbra._dynamo.exc.UserError",
                               add_exception(module, "umbra._dynamo.exc.Unsupported", dynamo));
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& e) {
      raise_error(e);
    }
  });
}

// ---- the C API's small change ----

std::string_view text_of(PyObject* unicode) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(unicode, &size);
  if (!data) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

std::string str_of(PyObject* object) { return std::string(text_of(owned(PyObject_Str(object)).ptr())); }
std::string repr_of(PyObject* object) { return std::string(text_of(owned(PyObject_Repr(object)).ptr())); }

std::string short_type_name(PyTypeObject* type) {
  std::string_view name = type->tp_name;
  if (!name.starts_with("umbra.")) return std::string(name);  // numpy.float32
  return std::string(name.substr(name.rfind('.') + 1));
}

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base) {
  nb::object bases = base ? owned(PyTuple_Pack(1, base)) : nb::object();
  auto* type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.ptr())));
  // Messages name a class without its module, as they do for classes written in Python.
  if (const char* dot = std::strrchr(type->tp_name, '.')) type->tp_name = dot + 1;
  checked(PyModule_AddObjectRef(module, type->tp_name, reinterpret_cast<PyObject*>(type)));
  return type;
}

}  // namespace umbra::python
