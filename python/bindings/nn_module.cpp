// nn.Module's call and its look for members, which every layer of every model goes through.
#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "jit.h"
#include "misc.h"

namespace umbra::python {

namespace {

/// What `_set_module_class` gave; kept for the life of the process.
struct Class {
  PyTypeObject* type = nullptr;
  PyObject* hooks = nullptr;            // dicts of hooks around the calls of all modules
  PyObject* call_with_hooks = nullptr;  // (module, args, kwargs, forward or None)
  PyObject* captured_call = nullptr;    // the same, while a program is exported
  PyObject* missing = nullptr;          // (module, name) raises
  PyObject* by_name = nullptr;          // (module, name, member): what stands for a module while a program is exported
  PyObject* find_member = nullptr;      // the class's own __getattr__
  PyObject* call_impl = nullptr;        // and its _call_impl
};
Class g_class;
std::atomic<int> g_captures = 0;

struct Names {
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* getattr = PyUnicode_InternFromString("__getattr__");
  PyObject* getattribute = PyUnicode_InternFromString("__getattribute__");
  PyObject* members[3] = {PyUnicode_InternFromString("_parameters"), PyUnicode_InternFromString("_buffers"),
                          PyUnicode_InternFromString("_modules")};
  PyObject* hooks[4] = {PyUnicode_InternFromString("_backward_hooks"),
                        PyUnicode_InternFromString("_backward_pre_hooks"), PyUnicode_InternFromString("_forward_hooks"),
                        PyUnicode_InternFromString("_forward_pre_hooks")};
  PyObject* call_impl = PyUnicode_InternFromString("_call_impl");
  PyObject* compiled = PyUnicode_InternFromString("_compiled_call_impl");
};
const Names& names() {
  static const Names names;
  return names;
}

// ---- members ----

/// What one thread sees in place of a module's parameters and buffers.
struct StandIns {
  unsigned long thread;
  nb::object parameters, buffers;
};
/// By the modules' dicts, which other objects may share; those entered last come last. Kept for the life of the
/// process.
auto& g_stand_ins = *new std::unordered_map<PyObject*, std::vector<StandIns>>;
bool g_any_stand_ins = false;  // what every look for a member asks

/// What this thread sees in place of a dict of a module's members; null where it is its own.
[[gnu::noinline]] PyObject* stand_in(PyObject* own, PyObject* kind) {
  auto found = g_stand_ins.find(own);
  if (found == g_stand_ins.end() || kind == names().members[2]) return nullptr;
  for (auto s = found->second.rbegin(); s != found->second.rend(); ++s)
    if (s->thread == PyThread_get_thread_ident())
      return (kind == names().members[0] ? s->parameters : s->buffers).ptr();
  return nullptr;
}

/// A dict of a module's members as this thread sees it, borrowed; null, and no error, where there is none. `own` is the
/// module's dict.
inline PyObject* members_of(PyObject* own, PyObject* kind) {
  if (g_any_stand_ins)
    if (PyObject* other = stand_in(own, kind)) return other;
  return PyDict_GetItemWithError(own, kind);
}

/// A parameter, buffer or module of this name; null, and no error, where there is none.
nb::object member(PyObject* self, PyObject* name) {
  nb::object own = owned(PyObject_GenericGetDict(self, nullptr));
  for (PyObject* kind : names().members) {
    PyObject* values = members_of(own.ptr(), kind);
    PyObject* found = values && PyDict_Check(values) ? PyDict_GetItemWithError(values, name) : nullptr;
    if (found) return nb::borrow(found);
    if (PyErr_Occurred()) throw nb::python_error();
  }
  return {};
}

PyObject* member_or_error(PyObject* self, PyObject* name) {
  return guarded([&] {
    if (nb::object found = member(self, name)) {
      bool captured = g_captures.load(std::memory_order_relaxed) > 0 && PyObject_TypeCheck(found.ptr(), g_class.type);
      if (!captured) return found.release().ptr();
      PyObject* values[] = {self, name, found.ptr()};
      return PyObject_Vectorcall(g_class.by_name, values, 3, nullptr);
    }
    PyObject* both[] = {self, name};
    return PyObject_Vectorcall(g_class.missing, both, 2, nullptr);
  });
}

/// The attribute slot of modules: what Python does for a class with __getattr__, without an error on the way.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (g_any_stand_ins && (name == names().members[0] || name == names().members[1]))
    return guarded([&] {
      nb::object own = owned(PyObject_GenericGetDict(self, nullptr));
      PyObject* values = members_of(own.ptr(), name);
      return values ? Py_NewRef(values) : member_or_error(self, name);
    });
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  return found || PyErr_Occurred() ? found : member_or_error(self, name);
}

/// Gives a class the slot above where it looks attributes up as Module does. Python takes it back from a class whose
/// methods for attributes are changed later, its own or an ancestor's.
void look_up_in_c(PyTypeObject* type) {
  static PyObject* const plain =
      PyObject_GetAttr(reinterpret_cast<PyObject*>(&PyBaseObject_Type), names().getattribute);
  if (_PyType_Lookup(type, names().getattr) != g_class.find_member) return;
  if (_PyType_Lookup(type, names().getattribute) != plain || type->tp_getattro == get_attribute) return;
  type->tp_getattro = get_attribute;
  PyType_Modified(type);
}

void look_up_all_in_c(PyTypeObject* type) {
  look_up_in_c(type);
  for (nb::handle inner : nb::object(nb::handle(reinterpret_cast<PyObject*>(type)).attr("__subclasses__")()))
    look_up_all_in_c(reinterpret_cast<PyTypeObject*>(inner.ptr()));
}

// ---- calls ----

bool has_hooks(PyObject* self) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(g_class.hooks); ++i)
    if (PyDict_GET_SIZE(PyTuple_GET_ITEM(g_class.hooks, i)) > 0) return true;
  nb::object own = owned(PyObject_GenericGetDict(self, nullptr));
  for (PyObject* kind : names().hooks) {
    PyObject* hooks = PyDict_GetItemWithError(own.ptr(), kind);
    nb::object other;
    if (!hooks) hooks = (other = owned(PyObject_GetAttr(self, kind))).ptr();  // the error of a module without state
    if (PyDict_Check(hooks) ? PyDict_GET_SIZE(hooks) > 0 : PyObject_IsTrue(hooks) == 1) return true;
  }
  return false;
}

PyObject* run_forward(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    nb::object forward = owned(PyObject_GetAttr(self, names().forward));
    TracedModuleCall traced(self);
    return PyObject_Vectorcall(forward.ptr(), args, static_cast<size_t>(count), keywords);
  });
}

template <class F> PyCFunction as_c_function(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef g_run_forward = {"forward", as_c_function(run_forward), METH_FASTCALL | METH_KEYWORDS, nullptr};

/// Calls a function with the module, its arguments as a tuple and a dict, and what its forward is in a trace or None.
PyObject* call_packed(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  nb::object positional = owned(PyTuple_New(count)), named = owned(PyDict_New());
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.ptr(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    checked(PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(keywords, i), args[count + i]));
  nb::object forward =
      TracedModuleCall::possible() ? owned(PyCFunction_New(&g_run_forward, self)) : nb::object(nb::none());
  PyObject* values[] = {self, positional.ptr(), named.ptr(), forward.ptr()};
  return PyObject_Vectorcall(function, values, 4, nullptr);
}

PyObject* call_impl(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    bool captured = g_captures.load(std::memory_order_relaxed) > 0;
    if (!captured && !has_hooks(self)) return run_forward(self, args, count, keywords);
    return call_packed(captured ? g_class.captured_call : g_class.call_with_hooks, self, args, count, keywords);
  });
}

/// What users have put in the place of `_call_impl` on the way from a call to forward; null: nothing.
nb::object replaced_call(PyObject* self) {
  nb::object own = owned(PyObject_GenericGetDict(self, nullptr));
  if (PyObject* compiled = PyDict_GetItemWithError(own.ptr(), names().compiled); compiled && compiled != Py_None)
    return nb::borrow(compiled);
  if (_PyType_Lookup(Py_TYPE(self), names().call_impl) == g_class.call_impl &&
      !PyDict_GetItemWithError(own.ptr(), names().call_impl))
    return {};
  return owned(PyObject_GetAttr(self, names().call_impl));
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    if (nb::object replaced = replaced_call(self))
      return PyObject_Vectorcall(replaced.ptr(), args, static_cast<size_t>(count), keywords);
    return call_impl(self, args, count, keywords);
  });
}

PyMethodDef g_call = {"__call__", as_c_function(call), METH_FASTCALL | METH_KEYWORDS,
                      "__call__($self, /, *args, **kwargs)\n--\n\nCalls forward, with the hooks around it."};
PyMethodDef g_call_impl = {"_call_impl", as_c_function(call_impl), METH_FASTCALL | METH_KEYWORDS,
                           "_call_impl($self, /, *args, **kwargs)\n--\n\nWhat a call does unless it is replaced."};
PyMethodDef g_find_member = {"__getattr__", member_or_error, METH_O,
                             "__getattr__($self, name, /)\n--\n\nThe parameter, buffer or module of this name."};

void set_module_class(nb::handle type, nb::tuple hooks, nb::handle call_with_hooks, nb::handle captured_call,
                      nb::handle missing, nb::handle by_name) {
  g_class.type = reinterpret_cast<PyTypeObject*>(type.ptr());
  g_class.hooks = hooks.release().ptr();
  g_class.call_with_hooks = call_with_hooks.inc_ref().ptr();
  g_class.captured_call = captured_call.inc_ref().ptr();
  g_class.missing = missing.inc_ref().ptr();
  g_class.by_name = by_name.inc_ref().ptr();
  checked(PyObject_SetAttrString(type.ptr(), "__call__", owned(PyDescr_NewMethod(g_class.type, &g_call)).ptr()));
  g_class.call_impl = PyDescr_NewMethod(g_class.type, &g_call_impl);
  checked(PyObject_SetAttr(type.ptr(), names().call_impl, g_class.call_impl));
  g_class.find_member = PyDescr_NewMethod(g_class.type, &g_find_member);
  checked(PyObject_SetAttr(type.ptr(), names().getattr, g_class.find_member));
  look_up_in_c(g_class.type);
}

// ---- stand-ins ----

/// This thread sees other dicts in place of a module's parameters and buffers. False, and nothing is done, where a
/// class of the user's says how attributes are found.
bool enter_stand_ins(nb::handle module, nb::object parameters, nb::object buffers) {
  if (Py_TYPE(module.ptr())->tp_getattro != get_attribute) return false;
  nb::object own = owned(PyObject_GenericGetDict(module.ptr(), nullptr));
  for (PyObject* kind : {names().members[0], names().members[1]})
    if (PyObject* values = PyDict_GetItemWithError(own.ptr(), kind); !values || !PyDict_CheckExact(values))
      return false;
  g_stand_ins[own.ptr()].push_back({PyThread_get_thread_ident(), std::move(parameters), std::move(buffers)});
  g_any_stand_ins = true;
  return true;
}

void leave_stand_ins(nb::handle module) {
  nb::object own = owned(PyObject_GenericGetDict(module.ptr(), nullptr));
  auto found = g_stand_ins.find(own.ptr());
  if (found == g_stand_ins.end()) return;
  std::vector<StandIns>& all = found->second;
  auto last =
      std::find_if(all.rbegin(), all.rend(), [](const StandIns& s) { return s.thread == PyThread_get_thread_ident(); });
  if (last == all.rend()) return;
  StandIns gone = std::move(*last);  // goes after the lists are in order: what it lets go may run any code
  all.erase(std::next(last).base());
  if (all.empty()) g_stand_ins.erase(found);
  g_any_stand_ins = !g_stand_ins.empty();
}

}  // namespace

void bind_nn_module(nb::module_& m) {
  m.def("_set_module_class", set_module_class);
  m.def("_look_up_members_in_c", [](nb::handle type) { look_up_in_c(reinterpret_cast<PyTypeObject*>(type.ptr())); });
  m.def("_look_up_all_members_in_c", [] { look_up_all_in_c(g_class.type); });
  m.def("_module_members", [](nb::handle module, const std::string& kind) -> nb::object {
    nb::object own = owned(PyObject_GenericGetDict(module.ptr(), nullptr));
    PyObject* found = members_of(own.ptr(), names().members[kind == "_parameters" ? 0 : kind == "_buffers" ? 1 : 2]);
    return found ? nb::borrow(found) : nb::none();
  });
  m.def("_enter_stand_ins", enter_stand_ins);
  m.def("_leave_stand_ins", leave_stand_ins);
  m.def("_count_module_captures", [](int more) { g_captures += more; });
}

}  // namespace umbra::python
