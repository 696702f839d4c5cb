// What functions return: tensors as they are, lists as tuples, several named results as an object of
// torch.return_types.
#include <unordered_map>

#include "signatures.h"
#include "tensor_type.h"

namespace umbra::python {

namespace {

PyObject* g_module;  // umbra.return_types' contents, by name

PyObject* repr(PyObject* self) {
  return guarded([&] {
    auto* type = Py_TYPE(self);
    nb::object fields = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__match_args__"));
    std::string out = "torch.return_types." + short_type_name(type) + "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      out += (i ? ",\n" : "\n") + std::string(text_of(PyTuple_GET_ITEM(fields.ptr(), i))) + "=" +
             repr_of(PyTuple_GET_ITEM(self, i));
    return make_text(out + ")").release().ptr();
  });
}

/// The result class of an operator with several named results, or null.
PyTypeObject* result_class(const Operator& op) {
  static std::unordered_map<const Operator*, PyTypeObject*> classes;
  auto found = classes.find(&op);
  if (found != classes.end()) return found->second;
  const auto& returns = op.schema().returns;
  std::vector<PyStructSequence_Field> fields;
  for (const SchemaReturn& r : returns)
    if (!r.name.empty()) fields.push_back({r.name.c_str(), nullptr});
  PyTypeObject* type = nullptr;
  std::string shown = op.schema().name + (op.has_out() ? "_out" : "");
  if (PyObject* made = PyDict_GetItemString(g_module, shown.c_str())) {  // overloads of a name share a class
    type = reinterpret_cast<PyTypeObject*>(made);
  } else if (fields.size() == returns.size()) {
    fields.push_back({nullptr, nullptr});
    auto* name = new std::string("umbra.return_types." + shown);  // the type refers to it
    PyStructSequence_Desc description = {name->c_str(), nullptr, fields.data(), static_cast<int>(returns.size())};
    type = PyStructSequence_NewType(&description);
    if (!type) throw nb::python_error();
    type->tp_repr = repr;
    PyType_Modified(type);
    checked(PyDict_SetItemString(g_module, shown.c_str(), reinterpret_cast<PyObject*>(type)));
  }
  classes.emplace(&op, type);
  return type;
}

PyObject* take(Value& v) {
  if (v.is_tensor()) return wrap(v.take_tensor());
  if (!v.is_tensor_list()) return wrap(v);
  TensorList tensors = v.tensor_list();
  nb::object out = owned(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(wrap(tensors[i])));
  return out.release().ptr();
}

}  // namespace

PyObject* wrap_function_results(const Operator& op, Value* frame) {
  size_t count = op.return_count();
  if (count == 1) return take(frame[0]);
  if (count == 0) return Py_NewRef(Py_None);
  PyTypeObject* type = result_class(op);
  PyObject* out = checked(type ? PyStructSequence_New(type) : PyTuple_New(static_cast<Py_ssize_t>(count)));
  nb::object keep = nb::steal(out);
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), checked(take(frame[i])));
  return keep.release().ptr();
}

void bind_return_types(nb::module_& m) {
  nb::dict classes;
  m.attr("_return_types") = classes;
  g_module = Py_NewRef(classes.ptr());
  m.def("_make_return_type", [](const std::string& function) {
    for (const Operator* op : operator_overloads("aten::" + function))
      if (op->return_count() > 1) result_class(*op);
  });
}

}  // namespace umbra::python
