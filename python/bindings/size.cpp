// umbra.Size: a tuple of ints and SymInts that knows its product.
#include "values.h"

namespace umbra::python {

PyTypeObject* g_size_type;

namespace {

PyObject* to_size(PyObject* tuple) {
  nb::object source = nb::steal(tuple);
  if (!PyTuple_CheckExact(tuple)) return source.release().ptr();
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = checked(g_size_type->tp_alloc(g_size_type, n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return size;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* self = checked(PyTuple_Type.tp_new(type, args, kwargs));
    nb::object keep = nb::steal(self);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      PyObject* item = PyTuple_GET_ITEM(self, i);
      if (PyLong_CheckExact(item) || is_sym_int(item)) continue;
      SymInt value;
      PyObject* number = read_int(item, value) ? wrap(value) : PyNumber_Index(item);  // a bool is the int that it is
      if (!number) {
        PyErr_Clear();
        fail<TypeError>("torch.Size() takes an iterable of 'int' (item ", i, " is '", short_type_name(Py_TYPE(item)),
                        "')");
      }
      PyTuple_SET_ITEM(self, i, number);
      Py_DECREF(item);
    }
    return keep.release().ptr();
  });
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    std::string out = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      if (i) out += ", ";
      out += repr_of(PyTuple_GET_ITEM(self, i));
    }
    return make_text(out + "])").release().ptr();
  });
}

PyObject* numel(PyObject* self, PyObject*) {
  return guarded([&] {
    SymInt product = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      SymInt value = 0;
      read_int(PyTuple_GET_ITEM(self, i), value);
      product *= value;
    }
    return wrap(product);
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    nb::object plain = owned(PySequence_List(self));
    nb::object tuple = owned(PyList_AsTuple(plain.ptr()));
    return checked(Py_BuildValue("(O(O))", g_size_type, tuple.ptr()));
  });
}

PyObject* concatenate(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return to_size(checked(PySequence_Concat(owned(PySequence_Tuple(a)).ptr(), b)));
  });
}
PyObject* concatenate_sequence(PyObject* a, PyObject* b) {
  return guarded([&] {
    check<TypeError>(PyTuple_Check(b), "can only concatenate tuple (not ", short_type_name(Py_TYPE(b)),
                     ") to torch.Size");
    return to_size(checked(PyTuple_Type.tp_as_sequence->sq_concat(a, b)));
  });
}
PyObject* repeat(PyObject* self, Py_ssize_t count) {
  return guarded([&] { return to_size(checked(PyTuple_Type.tp_as_sequence->sq_repeat(self, count))); });
}
PyObject* subscript(PyObject* self, PyObject* index) {
  return guarded([&] {
    PyObject* item = checked(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
    return PySlice_Check(index) ? to_size(item) : item;
  });
}

PyMethodDef g_methods[] = {
    {"numel", numel, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <class F> PyObject* make_tuple(PyTypeObject* type, SymIntArrayRef values, F&& convert) {
  PyObject* tuple = checked(type->tp_alloc(type, static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), convert(values[i]));
  return tuple;
}

}  // namespace

PyObject* wrap_size(SymIntArrayRef sizes) {
  return make_tuple(g_size_type, sizes, [](SymInt v) { return wrap(v); });
}
PyObject* wrap_tuple(SymIntArrayRef values) {
  return make_tuple(&PyTuple_Type, values, [](SymInt v) { return wrap(v); });
}

void bind_size(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_methods, g_methods},
                         {Py_nb_add, reinterpret_cast<void*>(concatenate)},
                         {Py_sq_concat, reinterpret_cast<void*>(concatenate_sequence)},
                         {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
                         {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  g_size_type = add_type(m.ptr(), spec, &PyTuple_Type);
}

}  // namespace umbra::python
