#include "compiled_call.h"

#include <algorithm>
#include <atomic>

#include "autograd.h"
#include "graph.h"
#include "torch_function.h"
#include "tree.h"
#include "umbra/dispatch/dispatcher.h"
#include "watch.h"

namespace umbra::python {

namespace {

/// The calls of one structure that one capture function serves.
struct Kind {
  nb::object tree, function, reads, state;  // the objects that own what stands below
  const Tree* structure;
  const aot::CompiledFunction* compiled;
  Reads* read;           // null: it reads nothing
  ModuleState* module;   // null: a plain function; else its tensors come before the arguments
  nb::object state_key;  // of the module when this was captured
};

struct CallState {
  nb::object fallback;      // captures, and runs what C++ does not
  std::vector<Kind> kinds;  // the last used one first
};

struct PyCompiledCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  CallState* state;
  PyObject* weak_references;
  PyObject* attributes;
};

std::atomic<bool> g_asks_python = false;  // calls are Python's to decide, whatever graphs are there

CallState& state_of(PyObject* self) { return *reinterpret_cast<PyCompiledCall*>(self)->state; }

/// The last result says how the others belong together.
nb::object arrange(const std::vector<Value>& results) {
  auto* form = dynamic_cast<PythonObject*>(results.back().object());
  return nb::inst_ptr<Tree>(form->get())->fill_result(ArrayRef<Value>(results.data(), results.size() - 1));
}

bool is_equal(const nb::object& a, const nb::object& b) {
  if (a.ptr() == b.ptr()) return true;
  int same = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  checked(same);
  return same == 1;
}

/// Whether an argument is a tensor, or an object, that the function reads anyway.
bool has_any(const Reads& reads, const std::vector<Value>& leaves, size_t first,
             const std::vector<PyObject*>& objects) {
  for (PyObject* object : objects)
    if (reads.saw(object)) return true;
  for (size_t i = first; i < leaves.size(); ++i)
    if (leaves[i].is_tensor() && reads.have(leaves[i].tensor_ref())) return true;
  return false;
}

/// Runs the graphs of one kind, where they are for this call; null where they are not.
nb::object try_kind(const Kind& kind, PyObject* const* args, size_t count, PyObject* keywords) {
  std::vector<Value> leaves;
  if (kind.module) {
    kind.module->refresh();
    if (!is_equal(kind.module->key(), kind.state_key)) return {};
    leaves = kind.module->tensors();
  }
  std::vector<PyObject*> objects;
  if (!kind.structure->match_call(args, count, keywords, kind.module ? 1 : 0, leaves, objects)) return {};
  size_t first = kind.module ? kind.module->tensors().size() : 0;
  if (kind.read && (!kind.read->hold() || has_any(*kind.read, leaves, first, objects))) return {};
  std::optional<std::vector<Value>> results = kind.compiled->run_known(leaves);
  return results ? arrange(*results) : nb::object();
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  return guarded([&] {
    CallState& state = state_of(self);
    auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    // Function modes (a default device is one) and transforms change what a function does: Python knows which.
    constexpr DispatchKeySet kCaptures =
        DispatchKeySet(DispatchKey::Level) | DispatchKey::Proxy | DispatchKey::PreProxy;
    bool changed = g_asks_python || torch_function_modes_active() || !(dispatch_state().include & kCaptures).empty();
    for (size_t i = 0; i < state.kinds.size() && !changed; ++i) {
      Kind kind = state.kinds[i];  // the graphs may run any code, that which changes the list included
      nb::object result = try_kind(kind, args, count, keywords);
      if (!result) continue;
      if (i > 0 && i < state.kinds.size())
        std::rotate(state.kinds.begin(), state.kinds.begin() + static_cast<ptrdiff_t>(i),
                    state.kinds.begin() + static_cast<ptrdiff_t>(i) + 1);
      return result.release().ptr();
    }
    return PyObject_Vectorcall(state.fallback.ptr(), args, nargsf, keywords);
  });
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  auto* object = reinterpret_cast<PyCompiledCall*>(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  delete object->state;
  Py_CLEAR(object->attributes);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<PyCompiledCall*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object->attributes);
  if (!object->state) return 0;
  Py_VISIT(object->state->fallback.ptr());
  for (Kind& kind : object->state->kinds) {
    Py_VISIT(kind.tree.ptr());
    Py_VISIT(kind.function.ptr());
    Py_VISIT(kind.reads.ptr());
    Py_VISIT(kind.state.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  auto* object = reinterpret_cast<PyCompiledCall*>(self);
  Py_CLEAR(object->attributes);
  if (object->state) {
    std::vector<Kind> kinds = std::move(object->state->kinds);
    object->state->fallback = nb::object();
  }
  return 0;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* fallback = nullptr;
  if (!PyArg_ParseTuple(args, "O", &fallback)) return nullptr;
  auto* self = reinterpret_cast<PyCompiledCall*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = call;
  self->state = new CallState{nb::borrow(fallback), {}};
  return reinterpret_cast<PyObject*>(self);
}

/// add(tree, function, reads or None, state or None, state key): calls like this need no Python from now on.
PyObject* add_kind(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tree, *function, *reads, *state, *key;
    if (!PyArg_ParseTuple(args, "OOOOO", &tree, &function, &reads, &state, &key)) return nullptr;
    Kind kind{nb::borrow(tree), nb::borrow(function), nb::borrow(reads), nb::borrow(state), nullptr, nullptr, nullptr,
              nullptr,          nb::borrow(key)};
    kind.structure = &nb::cast<const Tree&>(kind.tree);
    kind.compiled = nb::cast<CompiledObject&>(kind.function).function.get();
    kind.read = kind.reads.is_none() ? nullptr : &nb::cast<Reads&>(kind.reads);
    kind.module = kind.state.is_none() ? nullptr : &nb::cast<ModuleState&>(kind.state);
    std::vector<Kind>& kinds = state_of(self).kinds;
    kinds.insert(kinds.begin(), std::move(kind));
    return Py_NewRef(Py_None);
  });
}

/// remove(function): calls that it serves go to Python again.
PyObject* remove_kind(PyObject* self, PyObject* function) {
  std::vector<Kind> dropped, &kinds = state_of(self).kinds;
  auto gone =
      std::stable_partition(kinds.begin(), kinds.end(), [&](const Kind& k) { return !k.function.is(function); });
  std::move(gone, kinds.end(), std::back_inserter(dropped));
  kinds.erase(gone, kinds.end());
  return Py_NewRef(Py_None);
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

/// A copy is the function itself, as it is of Python's functions.
PyObject* copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef g_methods[] = {
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__deepcopy__", copy, METH_O, nullptr},
    {"_add", add_kind, METH_VARARGS, nullptr},
    {"_remove", remove_kind, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyCompiledCall, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyCompiledCall, weak_references), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyCompiledCall, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
/// What `inspect` says of a call that names no function it was made of.
PyObject* text_signature(PyObject*, void*) { return PyUnicode_FromString("(*args, **kwargs)"); }

PyGetSetDef g_properties[] = {
    {"__text_signature__", text_signature, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- graphs that run ----

/// A graph module that a compiler gave back: run in C++ until one of its dicts, or of the hooks around all modules,
/// changes.
class PlainModule {
 public:
  PlainModule(nb::object module, nb::object hooks) : module_(std::move(module)), hooks_(std::move(hooks)) {}

  /// The C++ module, or null where the call takes Python.
  IntrusivePtr<fx::GraphModule> handle() {
    for (nb::handle hooks : hooks_)
      if (PyDict_GET_SIZE(hooks.ptr()) > 0) return nullptr;
    for (const auto& [dict, version] : dicts_)
      if (version == 0 || dict_version(dict.ptr()) != version) return look();
    return dicts_.empty() ? look() : known_;
  }

 private:
  const IntrusivePtr<fx::GraphModule>& look() {
    dicts_.clear();
    nb::object found = module_.attr("_plain_handle")();
    known_ = found.is_none() ? nullptr : nb::cast<GraphModuleObject&>(found).module;
    nb::object attributes = module_.attr("__dict__");
    dicts_.emplace_back(attributes, dict_version(attributes.ptr()));
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(attributes.ptr(), &position, &key, &value))
      if (PyDict_Check(value)) dicts_.emplace_back(nb::borrow(value), dict_version(value));
    return known_;
  }

  nb::object module_;
  nb::tuple hooks_;
  IntrusivePtr<fx::GraphModule> known_;
  std::vector<std::pair<nb::object, uint64_t>> dicts_;
};

std::vector<Value> read_outputs(nb::object results) {
  if (!PyTuple_Check(results.ptr()) && !PyList_Check(results.ptr())) return {read_any(results.ptr())};
  std::vector<Value> out;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(results.ptr());
  out.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) out.push_back(read_any(PySequence_Fast_GET_ITEM(results.ptr(), i)));
  return out;
}

std::vector<Value> call_python(PyObject* function, bool boxed, const std::vector<Value>& inputs) {
  if (boxed) return read_outputs(owned(PyObject_CallOneArg(function, wrap_values(inputs).ptr())));
  std::vector<nb::object> arguments;
  std::vector<PyObject*> pointers;
  arguments.reserve(inputs.size());
  pointers.reserve(inputs.size());
  for (const Value& v : inputs) pointers.push_back(arguments.emplace_back(owned(wrap(v))).ptr());
  return read_outputs(owned(PyObject_Vectorcall(function, pointers.data(), pointers.size(), nullptr)));
}

}  // namespace

ValueFunction run_compiled(nb::handle compiled) {
  bool boxed = nb::cast<bool>(compiled[1]);
  nb::object module = compiled[2];
  nb::object callable = compiled[0];
  Callable function(callable);
  if (module.is_none())
    return [function, boxed](const std::vector<Value>& inputs) {
      WithLock lock;
      return call_python(function.get(), boxed, inputs);
    };
  nb::object hooks = nb::module_::import_("umbra.nn.modules._hooks").attr("AROUND_CALLS");
  // Python objects go with the lock held, whoever drops the last copy.
  std::shared_ptr<PlainModule> plain(new PlainModule(module, hooks), [](PlainModule* p) {
    if (!Py_IsInitialized()) return;
    WithLock lock;
    delete p;
  });
  return [function, boxed, plain](const std::vector<Value>& inputs) {
    WithLock lock;
    if (IntrusivePtr<fx::GraphModule> handle = plain->handle()) return handle->run(inputs);
    return call_python(function.get(), boxed, inputs);
  };
}

void bind_compiled_call(nb::module_& m) {
  m.def("_calls_ask_python", [](bool on) { g_asks_python = on; });
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {Py_tp_members, g_members},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra._C._CompiledCall", sizeof(PyCompiledCall), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC, slots};
  add_type(m.ptr(), spec);
}

}  // namespace umbra::python
