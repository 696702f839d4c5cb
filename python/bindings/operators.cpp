#include "operators.h"

#include <unordered_map>

#include "signatures.h"
#include "torch_function.h"
#include "umbra/core/dtype_number.h"

namespace umbra::python {

namespace {

struct PyOperator {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Operator* op;
  PyObject* weak_references;
  PyObject* attributes;
};

PyTypeObject* g_type;

PyOperator* cast(PyObject* self) { return reinterpret_cast<PyOperator*>(self); }

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  return guarded([&] {
    const Operator& op = *cast(self)->op;
    CallArguments call{args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), keywords};
    Scratch scratch;
    Frame frame(op);
    Mismatch why;
    if (!Matcher::of(op).read(call, Reading::Operator, frame.data(), scratch, why)) {
      PyObject* result = nullptr;  // a Proxy, say
      if (call_torch_function(self, call, &result)) return result;
      fail_schema(op, call, why);
    }
    if (PyObject* result = nullptr;
        (scratch.saw_subclass || torch_function_modes_active()) && call_torch_function(self, call, &result))
      return result;
    call_operator(op, frame.data());
    if (op.return_count() == 1 && frame[0].tag() == Value::Tag::DType)
      return PyLong_FromLongLong(number_of(frame[0].to_dtype()));  // functions of the package give the type itself
    return wrap_results(op, frame.data());
  });
}

std::string overload_name(const Operator& op) {
  return op.schema().overload.empty() ? "default" : op.schema().overload;
}

/// What a composite does, once; NotImplemented for others.
PyObject* decompose(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    const Operator& op = *cast(self)->op;
    if (!op.is_composite()) return Py_NewRef(Py_NotImplemented);
    CallArguments call{args, static_cast<size_t>(count), keywords};
    Scratch scratch;
    Frame frame(op);
    Mismatch why;
    if (!Matcher::of(op).read(call, Reading::Operator, frame.data(), scratch, why)) fail_schema(op, call, why);
    op.definition().composite(frame.data());
    return wrap_results(op, frame.data());
  });
}
PyObject* can_decompose(PyObject* self, PyObject*) { return PyBool_FromLong(cast(self)->op->is_composite()); }

// ---- attributes ----

template <class F> PyObject* text_property(PyObject* self, F&& text) {
  return guarded([&] { return make_text(text(*cast(self)->op)).release().ptr(); });
}
PyObject* repr(PyObject* self) {
  return text_property(
      self, [](const Operator& op) { return op.schema().space + "." + op.schema().name + "." + overload_name(op); });
}
PyObject* detailed_repr(PyObject* self) {
  return text_property(self, [](const Operator& op) {
    return "<OpOverload(op='" + op.schema().space + "." + op.schema().name + "', overload='" + overload_name(op) +
           "')>";
  });
}
PyObject* get_overload_name(PyObject* self, void*) { return text_property(self, overload_name); }
PyObject* get_namespace(PyObject* self, void*) {
  return text_property(self, [](const Operator& op) { return op.schema().space; });
}
PyObject* get_packet_name(PyObject* self, void*) {
  return text_property(self, [](const Operator& op) { return op.schema().space + "::" + op.schema().name; });
}
PyObject* get_name(PyObject* self, void*) {
  return text_property(self, [](const Operator& op) { return op.schema().name + "." + overload_name(op); });
}
PyObject* get_qualname(PyObject* self, void*) {
  return text_property(
      self, [](const Operator& op) { return op.schema().space + "::" + op.schema().name + "." + overload_name(op); });
}
PyObject* get_module(PyObject* self, void*) {
  return text_property(self, [](const Operator& op) { return "torch._ops." + op.schema().space; });
}
PyObject* call_name(PyObject* self, PyObject*) {
  return text_property(self, [](const Operator& op) { return op.name(); });
}
PyObject* get_schema(PyObject* self, void*) {
  return guarded([&] { return nb::cast(cast(self)->op->schema(), nb::rv_policy::reference).release().ptr(); });
}
PyObject* get_tag_names(PyObject* self, void*) {
  return guarded([&] {
    nb::list names;
    TagSet tags = cast(self)->op->all_tags();
    for (size_t i = 0; i < kTorchTagCount; ++i)
      if (tags.has(static_cast<Tag>(i))) names.append(torch_name(static_cast<Tag>(i)));
    return names.release().ptr();
  });
}
PyObject* get_is_view(PyObject* self, void*) { return PyBool_FromLong(cast(self)->op->is_view()); }
// The operator itself is what calls it: torch's `_op` and `op` are that too.
PyObject* get_self(PyObject* self, void*) { return Py_NewRef(self); }

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    nb::object find = nb::module_::import_("umbra._ops").attr("_get_overload");
    nb::object name = make_text(cast(self)->op->name());
    return checked(Py_BuildValue("(O(O))", find.ptr(), name.ptr()));
  });
}
PyObject* copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->attributes);
  return 0;
}

PyGetSetDef g_properties[] = {
    {"_overloadname", get_overload_name, nullptr, nullptr, nullptr},
    {"namespace", get_namespace, nullptr, nullptr, nullptr},
    {"_qualified_op_name", get_packet_name, nullptr, nullptr, nullptr},
    {"_schema", get_schema, nullptr, nullptr, nullptr},
    {"_tag_names", get_tag_names, nullptr, nullptr, nullptr},
    {"_op", get_self, nullptr, nullptr, nullptr},
    {"op", get_self, nullptr, nullptr, nullptr},
    {"is_view", get_is_view, nullptr, nullptr, nullptr},
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"name", call_name, METH_NOARGS, nullptr},
    {"decompose", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(decompose)), METH_FASTCALL | METH_KEYWORDS,
     nullptr},
    {"_can_decompose", can_decompose, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__deepcopy__", copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperator, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyOperator, weak_references), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyOperator, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject* wrap(const Operator& op) {
  // Operators live as long as the process, and so do their objects.
  static std::unordered_map<const Operator*, PyObject*> objects;
  PyObject*& slot = objects[&op];
  if (!slot) {
    auto* self = PyObject_GC_New(PyOperator, g_type);
    if (!self) throw nb::python_error();
    self->vectorcall = vectorcall;
    self->op = &op;
    self->weak_references = self->attributes = nullptr;
    slot = reinterpret_cast<PyObject*>(self);
  }
  return Py_NewRef(slot);
}

const Operator* operator_of(PyObject* object) { return Py_TYPE(object) == g_type ? cast(object)->op : nullptr; }

void bind_operators(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_str, reinterpret_cast<void*>(repr)},
                         {Py_tp_repr, reinterpret_cast<void*>(detailed_repr)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {Py_tp_members, g_members},
                         {0, nullptr}};
  PyType_Spec spec = {
      "umbra._ops.OpOverload", sizeof(PyOperator), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  g_type = add_type(m.ptr(), spec);
  m.def("_get_overload", [](const std::string& name) { return nb::steal(wrap(get_operator(name))); });
  m.def("_find_overload", [](const std::string& name) {
    const Operator* op = find_operator(name);
    return op ? nb::steal(wrap(*op)) : nb::none();
  });
  m.def("_overload_names", [](const std::string& packet) {
    std::vector<std::string> names;
    for (const Operator* op : operator_overloads(packet)) names.push_back(overload_name(*op));
    return names;
  });
  m.def("_operator_names", [] {
    std::vector<std::string> names;
    for (const Operator* op : all_operators()) names.push_back(op->name());
    return names;
  });
  m.def("_jit_get_all_schemas", [] {
    nb::list out;
    for (const Operator* op : all_operators()) out.append(nb::cast(op->schema(), nb::rv_policy::reference));
    return out;
  });
}

}  // namespace umbra::python
