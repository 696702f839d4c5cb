// umbra.device: a value, whether or not the machine has it.

#include "values.h"

namespace umbra::python {

PyTypeObject* g_device_type;

namespace {

Device device_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->value; }

std::string describe(Device device) {
  std::string type = to_string(Device(device.type));
  return device.index < 0 ? "device(type='" + type + "')"
                          : "device(type='" + type + "', index=" + std::to_string(device.index) + ")";
}

/// Refuses what no signature takes: nothing, or an object that is neither a device nor its name.
[[noreturn]] void refuse_kind(PyObject* kind) {
  std::string type = kind ? short_type_name(Py_TYPE(kind)) : "";
  fail<TypeError>("device() received an invalid combination of arguments - got (", type,
                  "), but expected one of:\n * (torch.device device)\n",
                  kind ? "      didn't match because some of the arguments have invalid types: (!" + type + "!)\n" : "",
                  " * (str type, int index = -1)\n");
}

PyObject* construct(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* kind = nullptr;
    PyObject* index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:device", const_cast<char**>(names), &kind, &index))
      throw nb::python_error();
    Device device;
    if (!kind || !read_device(kind, device)) refuse_kind(kind);
    if (index && index != Py_None) {
      check<TypeError>(PyLong_Check(index), "device(): argument 'index' (position 2) must be int, not ",
                       short_type_name(Py_TYPE(index)));
      check(device.index < 0,
            "type (string) must not include an index because index was passed explicitly: ", to_string(device));
      long number = PyLong_AsLong(index);
      if (number == -1 && PyErr_Occurred()) throw nb::python_error();
      check(number >= 0 && number < 128, "Device index must not be negative");
      device.index = static_cast<int8_t>(number);
    }
    return wrap(device);
  });
}

PyObject* repr(PyObject* self) {
  return guarded([&] { return make_text(describe(device_of(self))).release().ptr(); });
}
PyObject* str(PyObject* self) {
  return guarded([&] { return make_text(to_string(device_of(self))).release().ptr(); });
}
Py_hash_t hash(PyObject* self) {
  Device d = device_of(self);
  return (static_cast<int>(d.type) << 8 | static_cast<uint8_t>(d.index)) + 1;
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != g_device_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}
PyObject* get_type(PyObject* self, void*) {
  return guarded([&] { return make_text(to_string(Device(device_of(self).type))).release().ptr(); });
}
PyObject* get_index(PyObject* self, void*) {
  Device d = device_of(self);
  if (d.index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(d.index);
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    nb::object text = make_text(to_string(device_of(self)));
    return checked(Py_BuildValue("(O(O))", g_device_type, text.ptr()));
  });
}
// `with umbra.device("meta"):` makes it the default of factories; the mode behind it is written in Python.
PyObject* enter(PyObject* self, PyObject*) {
  return guarded([&] {
    nb::module_::import_("umbra.utils._device").attr("_enter")(nb::handle(self));
    return Py_NewRef(self);
  });
}
PyObject* leave(PyObject*, PyObject*) {
  return guarded([&] {
    nb::module_::import_("umbra.utils._device").attr("_leave")();
    return Py_NewRef(Py_None);
  });
}

PyGetSetDef g_properties[] = {
    {"type", get_type, nullptr, nullptr, nullptr},
    {"index", get_index, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap(Device value) {
  auto* self = PyObject_New(PyDevice, g_device_type);
  if (!self) throw nb::python_error();
  self->value = value;
  return reinterpret_cast<PyObject*>(self);
}

bool read_device(PyObject* object, Device& out) {
  if (Py_TYPE(object) == g_device_type) {
    out = device_of(object);
  } else if (PyUnicode_Check(object)) {
    out = Device(std::string(text_of(object)));
  } else if (PyLong_Check(object) && !PyBool_Check(object)) {
    long index = PyLong_AsLong(object);
    check(index >= 0 && index < 128, "Device index must not be negative");
    out = Device(DeviceType::CUDA, static_cast<int8_t>(index));
  } else {
    return false;
  }
  return true;
}

void bind_device(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_str, reinterpret_cast<void*>(str)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, slots};
  g_device_type = add_type(m.ptr(), spec);
}

}  // namespace umbra::python
