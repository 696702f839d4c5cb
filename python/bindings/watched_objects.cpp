#include "watched_objects.h"

#include <cstring>

namespace umbra::python {

namespace {

PyObject* imported(const char* module, const char* name) {
  return Py_NewRef(nb::object(nb::module_::import_(module).attr(name)).ptr());
}

bool is_instance(PyObject* object, PyObject* type) {
  int found = PyObject_IsInstance(object, type);
  if (found < 0) PyErr_Clear();
  return found == 1;
}

/// A class of numpy's, once numpy is loaded; null before.
PyObject* numpy_class(PyObject*& known, const char* name) {
  if (known) return known;
  nb::object numpy = nb::steal(PyImport_GetModule(make_text("numpy").ptr()));
  if (numpy) known = PyObject_GetAttrString(numpy.ptr(), name);
  PyErr_Clear();
  return known;
}

bool is_array(PyObject* object) {
  static PyObject* known = nullptr;
  PyObject* type = numpy_class(known, "ndarray");
  return type && is_instance(object, type);
}

/// A number of numpy's, which is a buffer as well.
bool is_array_scalar(PyObject* object) {
  static PyObject* known = nullptr;
  PyObject* type = numpy_class(known, "generic");
  return type && is_instance(object, type);
}

bool is_file(PyObject* object) {
  static PyObject* type = imported("_io", "_IOBase");
  return is_instance(object, type);
}

}  // namespace

bool is_plain_object(PyObject* object) {
  if (object == Py_None || PyBool_Check(object) || PyComplex_CheckExact(object)) return true;
  return has_value(object) && !is_python_class(Py_TYPE(object));
}

bool has_value(PyObject* object) {
  return PyLong_Check(object) || PyFloat_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object);
}

bool is_equal_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {  // 0.0 and -0.0 are two numbers, NaN is one
    double left = PyFloat_AS_DOUBLE(a), right = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&left, &right, sizeof left) == 0;
  }
  if (PyComplex_CheckExact(a)) {
    Py_complex left = PyComplex_AsCComplex(a), right = PyComplex_AsCComplex(b);
    return std::memcmp(&left, &right, sizeof left) == 0;
  }
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

bool is_python_class(PyTypeObject* type) {
  static PyTypeObject* known = reinterpret_cast<PyTypeObject*>(imported("umbra.nn", "Module"));
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_traverse == known->tp_traverse;
}

bool is_opaque_object(PyObject* object) {
  if (object == PyEval_GetBuiltins()) return true;
  if (PyCFunction_Check(object)) {
    PyObject* self = PyCFunction_GET_SELF(object);
    return !self || PyModule_Check(self) || PyType_Check(self);
  }
  if (PyType_Check(object)) return !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE);
  PyTypeObject* type = Py_TYPE(object);
  return type == &PyProperty_Type || type == &PyClassMethod_Type || type == &PyStaticMethod_Type ||
         type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyMemberDescr_Type ||
         type == &PyGetSetDescr_Type || PyCode_Check(object) || is_file(object);
}

bool is_value_object(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (is_python_class(type) || PyObject_IS_GC(object) || PyObject_CheckBuffer(object)) return is_array_scalar(object);
  return type->tp_richcompare && type->tp_richcompare != PyBaseObject_Type.tp_richcompare &&
         type->tp_hash != PyObject_HashNotImplemented;
}

bool is_hidden_object(PyObject* object) {
  if (Py_TYPE(object) == &PyContextVar_Type) return true;
  std::string_view type = type_name(object);
  if (type == "numpy.random._generator.Generator" || type == "numpy.random.mtrand.RandomState") return true;
  return PyIter_Check(object) && !is_python_class(Py_TYPE(object)) && !is_file(object);
}

bool is_cache_of_function(PyObject* object) {
  static PyObject* type = imported("functools", "_lru_cache_wrapper");
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type));
}

bool is_neural_module(PyObject* object) {
  static PyObject* type = imported("umbra.nn", "Module");
  return is_instance(object, type);
}

bool is_deque(PyObject* object) {
  static PyObject* type = imported("collections", "deque");
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type));
}

bool is_own(PyObject* object) {
  PyObject* names = PyFunction_Check(object) ? PyFunction_GET_GLOBALS(object)
                    : PyModule_Check(object) ? PyModule_GetDict(object)
                                             : nullptr;
  PyObject* name = names ? PyDict_GetItemString(names, "__name__") : nullptr;
  if (PyType_Check(object))
    name = PyDict_GetItemString(class_dict(reinterpret_cast<PyTypeObject*>(object)), "__module__");
  if (!name || !PyUnicode_Check(name)) return false;
  std::string_view text = text_of(name);
  std::string_view package = text.substr(0, text.find('.'));
  return package == "umbra" || package == "torch";
}

PyObject* attribute_dict(PyObject* object) {
  if (PyObject** place = _PyObject_GetDictPtr(object)) return *place;
  if (std::string_view(Py_TYPE(object)->tp_name) != "_thread._local") return nullptr;
  nb::object dict = nb::steal(PyObject_GetAttrString(object, "__dict__"));  // of this thread, which holds it
  if (!dict) PyErr_Clear();
  return dict.ptr();
}

bool has_own_attributes(PyObject* tensor) {
  PyObject* dict = attribute_dict(tensor);
  if (!dict) return false;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) {
    std::string_view name = text_of(key);  // marks of sizes are part of guards
    if (!name.starts_with("_dynamo") && !name.starts_with("_has_dynamo")) return true;
  }
  return false;
}

std::vector<nb::object> referents_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  while (type && is_python_class(type)) type = type->tp_base;
  std::vector<nb::object> found;
  if (!type || !type->tp_traverse) return found;
  auto visit = [](PyObject* part, void* list) {
    static_cast<std::vector<nb::object>*>(list)->push_back(nb::borrow(part));
    return 0;
  };
  type->tp_traverse(object, visit, &found);
  PyObject* attributes = attribute_dict(object);
  std::erase_if(found, [&](const nb::object& part) {
    return part.ptr() == attributes || PyType_Check(part.ptr()) || PyModule_Check(part.ptr());
  });
  return found;
}

bool is_array_of_objects(PyObject* object) {
  return is_array(object) && nb::cast<bool>(nb::handle(object).attr("dtype").attr("hasobject"));
}

bool has_contents(PyObject* object) {
  return is_array(object) || (PyObject_CheckBuffer(object) && !PyBytes_Check(object));
}

/// The bytes of an array. A class of its own may give others (those of a masked array are filled), or refuse.
static nb::object bytes_of_array(nb::handle array) {
  try {
    return array.attr("tobytes")();
  } catch (const nb::python_error&) {
    return nb::module_::import_("numpy").attr("ndarray").attr("tobytes")(array);
  }
}

nb::object contents_of(PyObject* object) {
  nb::handle array(object);
  if (is_array(object)) return nb::make_tuple(bytes_of_array(array), array.attr("dtype"), array.attr("shape"));
  nb::object bytes = nb::steal(PyBytes_FromObject(object));
  if (!bytes) PyErr_Clear();
  return bytes ? bytes : nb::none();
}

void put_contents(PyObject* object, const nb::object& contents) {
  if (is_equal_object(contents_of(object).ptr(), contents.ptr())) return;
  nb::module_::import_("umbra._dynamo.reachable").attr("put_contents")(nb::handle(object), contents);
}

PyObject* class_dict(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  return type->tp_dict;
#else
  return nb::steal(PyType_GetDict(type)).ptr();  // the class keeps it
#endif
}

uint64_t class_version(const PyTypeObject* type) {
  return PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

std::string key_text(PyObject* key) { return PyUnicode_Check(key) ? std::string(text_of(key)) : repr_of(key); }

}  // namespace umbra::python
