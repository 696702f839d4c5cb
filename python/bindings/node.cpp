// grad_fn objects: nodes of the backward graph, each of a class with the node's name.
#include <unordered_map>

#include "autograd.h"
#include "autograd/accumulate.h"
#include "tensor_type.h"

namespace umbra::python {

namespace {

using autograd::Gradients;
using autograd::Node;

struct PyNode {
  PyObject_HEAD Node* node;
  PyObject* weak_references;
  PyObject* attributes;
};

PyTypeObject* g_base_type;

PyNode* cast(PyObject* self) { return reinterpret_cast<PyNode*>(self); }
Node& node(PyObject* self) { return *cast(self)->node; }

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(cast(self)->attributes);
  cast(self)->node->release();
  PyObject_GC_Del(self);
  Py_DECREF(type);
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->attributes);
  return 0;
}

// Objects come and go; the node is what counts.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!PyType_IsSubtype(Py_TYPE(b), g_base_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((cast(a)->node == cast(b)->node) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(cast(self)->node) >> 4); }
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", node(self).name().c_str(), cast(self)->node);
}

PyObject* name(PyObject* self, PyObject*) {
  return guarded([&] {
    std::string text = node(self).name();
    // What torch has in C++ and not by operator keeps its namespace.
    if (text == "CopySlices" || text == "AccumulateGrad") text = "torch::autograd::" + text;
    return make_text(text).release().ptr();
  });
}

// The node of a custom function is its context too: what forward saved and set.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject* context = context_of(node(self));
  if (!context) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(context, name);
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
PyObject* variable(PyObject* self, void*) {
  return guarded([&] {
    auto* accumulate = dynamic_cast<autograd::AccumulateGrad*>(&node(self));
    if (!accumulate) fail<AttributeError>("'", node(self).name(), "' object has no attribute 'variable'");
    return wrap(accumulate->leaf());
  });
}
PyObject* metadata(PyObject* self, void*) {
  return guarded([&] {
    nb::object attributes = owned(PyObject_GenericGetDict(self, nullptr));
    nb::object name = make_text("_metadata");
    if (PyDict_Contains(attributes.ptr(), name.ptr()) != 1)
      checked(PyDict_SetItem(attributes.ptr(), name.ptr(), owned(PyDict_New()).ptr()));
    return Py_NewRef(PyDict_GetItem(attributes.ptr(), name.ptr()));
  });
}

// ---- hooks ----

nb::object tuple_of(const Gradients& gradients) {
  nb::object out = owned(PyTuple_New(static_cast<Py_ssize_t>(gradients.size())));
  for (size_t i = 0; i < gradients.size(); ++i)
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(wrap(gradients[i])));
  return out;
}
Gradients gradients_of(nb::handle result) {
  Gradients out;
  if (result.is_none()) return out;
  if (is_tensor(result.ptr())) return {tensor_of(result.ptr())};
  for (nb::handle item : nb::borrow<nb::sequence>(result))
    out.push_back(item.is_none() ? Tensor() : expect_tensor(item.ptr(), "hook"));
  return out;
}

/// Takes a hook off again.
struct NodeHook {
  WeakPtr<Node> node;
  autograd::HookId id;
  void remove() {
    if (auto alive = node.lock()) alive->remove_hook(id);
  }
};

PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    autograd::HookId id =
        node(self).add_post_hook([f = Callable(function)](const Gradients& given, const Gradients& incoming) {
          nb::gil_scoped_acquire lock;
          return gradients_of(nb::handle(f.get())(tuple_of(given), tuple_of(incoming)));
        });
    return nb::cast(NodeHook{WeakPtr<Node>(IntrusivePtr<Node>(&node(self))), id}).release().ptr();
  });
}
PyObject* register_prehook(PyObject* self, PyObject* function) {
  return guarded([&] {
    autograd::HookId id = node(self).add_pre_hook([f = Callable(function)](const Gradients& incoming) {
      nb::gil_scoped_acquire lock;
      return gradients_of(nb::handle(f.get())(tuple_of(incoming)));
    });
    return nb::cast(NodeHook{WeakPtr<Node>(IntrusivePtr<Node>(&node(self))), id}).release().ptr();
  });
}

PyGetSetDef g_properties[] = {
    {"next_functions", next_functions, nullptr, nullptr, nullptr},
    {"variable", variable, nullptr, nullptr, nullptr},
    {"metadata", metadata, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"name", name, METH_NOARGS, nullptr},
    {"_sequence_nr", sequence_number, METH_NOARGS, nullptr},
    {"register_hook", register_hook, METH_O, nullptr},
    {"register_prehook", register_prehook, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak_references), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, attributes), READONLY, nullptr},
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
                         {0, nullptr}};
  PyType_Spec spec = {kept->c_str(), sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  nb::object bases = owned(PyTuple_Pack(1, g_base_type));
  type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.ptr())));
  return type;
}

}  // namespace

PyObject* wrap_node(const IntrusivePtr<Node>& node) {
  if (!node) return Py_NewRef(Py_None);
  auto* self = PyObject_GC_New(PyNode, class_of(node->name()));
  if (!self) throw nb::python_error();
  self->weak_references = self->attributes = nullptr;
  self->node = node.get();
  self->node->retain();
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
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {Py_tp_members, g_members},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra.autograd.graph.Node", sizeof(PyNode), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  g_base_type = add_type(m.ptr(), spec);
  nb::class_<NodeHook>(m, "_NodeHook").def("remove", &NodeHook::remove);
}

}  // namespace umbra::python
