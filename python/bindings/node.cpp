// grad_fn objects: nodes of the backward graph, each of a class with the node's name.
#include <unordered_map>

#include "arguments.h"
#include "autograd.h"
#include "autograd/accumulate.h"
#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "hooks.h"
#include "tensor_type.h"
#include "umbra/autograd/function.h"
#include "umbra/autograd/running.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

using autograd::Gradients;
using autograd::Node;

struct PyNode {
  PyObject_HEAD Node* node;
  PyObject* weak_references;
};

PyTypeObject* g_base_type;

// The object of each node that Python holds now, so that a node is one object. Guarded by the interpreter's lock.
std::unordered_map<Node*, PyNode*>& objects() {
  static auto* map = new std::unordered_map<Node*, PyNode*>;
  return *map;
}

PyNode* cast(PyObject* self) { return reinterpret_cast<PyNode*>(self); }
Node& node(PyObject* self) { return *cast(self)->node; }

// An object that alone holds its node stands for what hooks it, and for the context of a custom function.
bool stands_for_node(PyObject* self) { return node(self).use_count() == 1; }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!stands_for_node(self)) return 0;
  int stop = visit_function(&node(self), visit, arg);
  return stop ? stop : visit_node(node(self), visit, arg);
}

int clear(PyObject* self) {
  if (!stands_for_node(self)) return 0;
  clear_function(&node(self));
  node(self).drop_hooks();
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  objects().erase(cast(self)->node);
  if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  cast(self)->node->release();
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
  const char* module = dynamic_cast<autograd::FunctionNode*>(&node(self)) ? "torch.autograd.function." : "";
  return PyUnicode_FromFormat("<%s%s object at %p>", module, node(self).name().c_str(), cast(self)->node);
}

PyObject* name(PyObject* self, PyObject*) {
  return guarded([&] { return make_text(autograd::full_name(node(self))).release().ptr(); });
}

// What an operator's node keeps for its gradient, as `_saved_self`.
PyObject* saved_value(PyObject* self, PyObject* name) {
  constexpr std::string_view prefix = "_saved_";
  auto* of_operator = dynamic_cast<autograd::OperatorNode*>(&node(self));
  std::string text = str_of(name);
  if (!of_operator || !text.starts_with(prefix)) return nullptr;
  std::optional<Value> value = of_operator->saved(std::string_view(text).substr(prefix.size()));
  if (!value) return nullptr;
  nb::object object = owned(wrap(*value));
  return PyList_Check(object.ptr()) ? PyList_AsTuple(object.ptr()) : object.release().ptr();
}

/// A tensor that a node keeps, as `_raw_saved_self`: hooks may still be set on it.
struct RawSaved {
  IntrusivePtr<autograd::OperatorNode> node;
  autograd::SavedTensor* saved;
};
PyObject* raw_saved(PyObject* self, PyObject* name) {
  constexpr std::string_view prefix = "_raw_saved_";
  auto* of_operator = dynamic_cast<autograd::OperatorNode*>(&node(self));
  std::string text = str_of(name);
  if (!of_operator || !text.starts_with(prefix)) return nullptr;
  autograd::SavedTensor* saved = of_operator->saved_tensor(std::string_view(text).substr(prefix.size()));
  return saved ? nb::cast(RawSaved{IntrusivePtr<autograd::OperatorNode>(of_operator), saved}).release().ptr() : nullptr;
}

PyObject* attribute_names(PyObject* self, PyObject*) {
  return guarded([&] {
    nb::list names(nb::module_::import_("builtins").attr("object").attr("__dir__")(nb::handle(self)));
    auto* of_operator = dynamic_cast<autograd::OperatorNode*>(&node(self));
    for (const std::string& saved : of_operator ? of_operator->saved_names() : std::vector<std::string>()) {
      names.append("_saved_" + saved);
      if (of_operator->saved_tensor(saved)) names.append("_raw_saved_" + saved);
    }
    return names.release().ptr();
  });
}

// The node of a custom function is its context too: what forward saved and set.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return guarded([&] {
    if (PyObject* saved = saved_value(self, name)) return saved;
    if (PyObject* saved = raw_saved(self, name)) return saved;
    if (PyObject* context = context_of(node(self))) return checked(PyObject_GetAttr(context, name));
    fail<AttributeError>("'", node(self).name(), "' object has no attribute '", str_of(name), "'");
  });
}
int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  PyObject* context = context_of(node(self));
  return context ? PyObject_SetAttr(context, name, value) : PyObject_GenericSetAttr(self, name, value);
}
PyObject* sequence_number(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node(self).sequence_number());
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    const auto& edges = node(self).next_edges();
    nb::object out = owned(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      nb::object next = nb::steal(wrap_node(edges[i].node));
      PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i),
                       checked(Py_BuildValue("(OI)", next.ptr(), edges[i].input)));
    }
    return out.release().ptr();
  });
}
// A node runs by itself when it is called with the gradients that flow into it.
PyObject* call_node(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    check<TypeError>(!kwargs || PyDict_Size(kwargs) == 0, "keyword arguments are not supported");
    size_t expected = node(self).inputs().size(), count = static_cast<size_t>(PyTuple_GET_SIZE(args));
    check<TypeError>(count == expected, "expected ", expected, " arguments, got ", count, " instead");
    Gradients incoming;
    for (nb::handle item : nb::borrow<nb::tuple>(args))
      incoming.push_back(item.is_none() ? Tensor() : expect_tensor(item.ptr(), "grad_fn"));
    Gradients given;
    {
      WithoutLock unlocked;
      given = node(self).apply(std::move(incoming));
    }
    return given.size() == 1 ? wrap(given[0]) : tuple_of(given).release().ptr();
  });
}
PyObject* input_metadata(PyObject* self, void*) {
  return guarded([&] {
    nb::list out;
    for (const autograd::InputMetadata& m : node(self).inputs()) out.append(nb::cast(m));
    return checked(PyList_AsTuple(out.ptr()));
  });
}
PyObject* variable(PyObject* self, void*) {
  return guarded([&] {
    auto* accumulate = dynamic_cast<autograd::AccumulateGrad*>(&node(self));
    if (!accumulate) fail<AttributeError>("'", node(self).name(), "' object has no attribute 'variable'");
    return wrap(accumulate->leaf());
  });
}
nb::object metadata_of(Node& node) {
  IntrusivePtr<RefCounted> kept = node.user_data();
  if (!kept) {
    kept = make_counted<PythonObject>(owned(PyDict_New()).ptr());
    node.set_user_data(kept);
  }
  return nb::borrow(static_cast<PythonObject&>(*kept).get());
}
PyObject* metadata(PyObject* self, void*) {
  return guarded([&] { return metadata_of(node(self)).release().ptr(); });
}

// ---- anomaly detection: where the code was that recorded a node ----

void keep_traceback(Node& node) {
  WithLock lock;
  nb::object kept = metadata_of(node);
  kept["traceback_"] = nb::module_::import_("traceback").attr("format_stack")();
  // A node that is made while another one runs belongs to a gradient of a gradient.
  if (const Node* running = autograd::running_node())
    kept["parent_"] = nb::steal(wrap_node(IntrusivePtr<Node>(const_cast<Node*>(running))));
}

// The error that is under way is the one to raise: a warning that is an error itself is printed.
void warn_or_print(const std::string& text) {
  try {
    warn(text);
  } catch (const std::exception&) {
    PyErr_Clear();
    PySys_FormatStderr("%s\n", text.c_str());
  }
}

void show_traceback(Node& node) {
  WithLock lock;
  nb::object data = metadata_of(node), lines = data.attr("get")("traceback_");
  if (lines.is_none())
    return warn_or_print(concat(
        "Error detected in ", node.name(),
        ". No forward pass information available. Enable detect anomaly during forward pass for more information."));
  auto text = [](const nb::object& lines) { return str_of(nb::object(nb::str("").attr("join")(lines)).ptr()); };
  warn_or_print(
      concat("Error detected in ", node.name(), ". Traceback of forward call that caused the error:\n", text(lines)));
  for (nb::object parent = data.attr("get")("parent_"); !parent.is_none(); parent = data.attr("get")("parent_")) {
    data = parent.attr("metadata"), lines = data.attr("get")("traceback_");
    std::string begun =
        concat("\nThat calculation is part of the gradient of ", str_of(nb::object(parent.attr("name")()).ptr()));
    if (lines.is_none()) return warn_or_print(begun + ", whose forward call was not seen by anomaly detection.");
    warn_or_print(concat(begun, ". Traceback of its forward call:\n", text(lines)));
  }
}

// ---- hooks ----

/// Takes a hook off again.
struct NodeHook {
  WeakPtr<Node> node;
  autograd::HookId id;
  void remove() {
    if (auto alive = node.lock()) alive->remove_hook(id);
  }
};

/// The handle that every hook has.
PyObject* handle_of(PyObject* self, autograd::HookId id) {
  nb::object hook = nb::cast(NodeHook{WeakPtr<Node>(IntrusivePtr<Node>(&node(self))), id});
  return nb::module_::import_("umbra.utils.hooks").attr("handle_of")(hook).release().ptr();
}
PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] { return handle_of(self, node(self).add_post_hook(node_post_hook(function))); });
}
PyObject* register_prehook(PyObject* self, PyObject* function) {
  return guarded([&] { return handle_of(self, node(self).add_pre_hook(node_pre_hook(function))); });
}

PyGetSetDef g_properties[] = {
    {"next_functions", next_functions, nullptr, nullptr, nullptr},
    {"variable", variable, nullptr, nullptr, nullptr},
    {"metadata", metadata, nullptr, nullptr, nullptr},
    {"_input_metadata", input_metadata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"name", name, METH_NOARGS, nullptr},
    {"__dir__", attribute_names, METH_NOARGS, nullptr},
    {"_sequence_nr", sequence_number, METH_NOARGS, nullptr},
    {"register_hook", register_hook, METH_O, nullptr},
    {"register_prehook", register_prehook, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

/// The class of nodes of a name; made when the first one is seen.
PyTypeObject* class_of(const std::string& name) {
  static std::unordered_map<std::string, PyTypeObject*> classes;
  PyTypeObject*& type = classes[name];
  if (type) return type;
  auto* kept = new std::string("builtins." + name);  // the type refers to it
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {0, nullptr}};
  PyType_Spec spec = {kept->c_str(), sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  nb::object bases = owned(PyTuple_Pack(1, g_base_type));
  type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.ptr())));
  type->tp_name = kept->c_str() + std::string_view("builtins.").size();  // shown as <class 'AddBackward0'>
  return type;
}

}  // namespace

PyObject* wrap_node(const IntrusivePtr<Node>& node) {
  if (!node) return Py_NewRef(Py_None);
  PyNode*& known = objects()[node.get()];
  if (known) return Py_NewRef(reinterpret_cast<PyObject*>(known));
  auto* self = PyObject_GC_New(PyNode, class_of(node->name()));
  if (!self) throw nb::python_error();
  self->weak_references = nullptr;
  self->node = node.get();
  self->node->retain();
  known = self;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

IntrusivePtr<Node> node_of_object(PyObject* object) {
  if (!PyType_IsSubtype(Py_TYPE(object), g_base_type)) return nullptr;
  return IntrusivePtr<Node>(cast(object)->node);
}

void bind_nodes(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_call, reinterpret_cast<void*>(call_node)},
                         {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {Py_tp_members, g_members},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra.autograd.graph.Node", sizeof(PyNode), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  g_base_type = add_type(m.ptr(), spec);
  m.attr("_AutogradNode") = nb::handle(reinterpret_cast<PyObject*>(g_base_type));  // `Node` is the one of graphs
  autograd::set_node_watch({keep_traceback, show_traceback});
  m.def("_increment_version", [](const Tensor& t) {
    if (!t.impl()->is_inference()) t.impl()->bump_version();
  });
  m.def("_is_custom_view",
        [](const Tensor& t) { return t.is_view() && t.impl()->view_kind() == ViewKind::CustomFunction; });
  m.def("_backward_pass", [] { return autograd::backward_pass(); });
  m.def("_backward_to_inputs", [] { return autograd::backward_to_inputs(); });
  m.def("_after_backward", [](nb::handle function) {
    autograd::after_backward([f = Callable(function)] {
      WithLock lock;
      nb::handle(f.get())();
    });
  });
  m.def("_will_engine_execute_node",
        [](nb::handle node) { return autograd::will_run(node_of_object(node.ptr()).get()); });
  nb::class_<NodeHook>(m, "_NodeHook").def("remove", &NodeHook::remove).def_ro("id", &NodeHook::id);
  nb::class_<RawSaved>(m, "SavedTensor").def("register_hooks", [](RawSaved& raw, nb::handle pack, nb::handle unpack) {
    for (nb::handle hook : {pack, unpack})
      check<TypeError>(PyCallable_Check(hook.ptr()),
                       "register_hooks(): incompatible function arguments: two functions, not ",
                       short_type_name(Py_TYPE(hook.ptr())));
    raw.saved->register_hooks(saved_tensor_hooks(pack, unpack));
  });
  nb::class_<autograd::InputMetadata>(m, "_InputMetadata")
      .def_prop_ro("shape", [](const autograd::InputMetadata& d) { return nb::steal(wrap(Value(d.sizes.vec()))); })
      .def_prop_ro("dtype", [](const autograd::InputMetadata& d) { return nb::steal(wrap(Value(d.dtype))); })
      .def_prop_ro("device", [](const autograd::InputMetadata& d) { return nb::steal(wrap(Value(d.device))); })
      .def_prop_ro("is_nested_tensor", [](const autograd::InputMetadata&) { return false; })
      .def_prop_ro("is_cpp_nested_tensor", [](const autograd::InputMetadata&) { return false; });
}

}  // namespace umbra::python
