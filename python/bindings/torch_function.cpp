#include "torch_function.h"

#include <algorithm>
#include <atomic>

#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

/// A thread's function modes (outermost first), and whether classes or everything is switched off.
struct State {
  std::vector<nb::object> modes;
  bool classes_off = false, all_off = false;
  bool skips_next = false;  // the next call that would be offered is made as it is
};
// Leaked with its thread: objects cannot be let go after the interpreter has ended. Every call asks: the general model
// of thread-local variables would cost a function call each time.
constinit thread_local State* t_state __attribute__((tls_model("initial-exec"))) = nullptr;
State& state() {
  if (!t_state) t_state = new State;
  return *t_state;
}

PyObject* g_disabled;  // _disabled_torch_function_impl
PyObject* g_name;      // "__torch_function__"

nb::object handler_of(PyTypeObject* type) {
  if (is_plain_tensor_type(type)) return {};
  // Most have none: found out without an error to make and to drop, where the class is of the usual kind.
  if (Py_IS_TYPE(type, &PyType_Type) && !_PyType_Lookup(type, g_name)) return {};
  PyObject* found = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), g_name);
  if (!found) {
    PyErr_Clear();
    return {};
  }
  if (found == g_disabled) {
    Py_DECREF(found);
    return {};
  }
  return nb::steal(found);
}

/// An argument whose class has a handler.
struct Overloaded {
  PyTypeObject* type;
  PyObject* object;
};

/// The handler, bound to its class; one that is written as a plain method is bound to the object.
nb::object bound_handler(const Overloaded& overloaded) {
  PyObject* found = _PyType_Lookup(overloaded.type, g_name);
  if (!found || !PyFunction_Check(found)) return handler_of(overloaded.type);
  static std::atomic<bool> warned{false};
  if (tells_once(warned))
    warn(
        "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
        "define it as a classmethod.");
  return owned(PyObject_GetAttr(overloaded.object, g_name));
}

/// What has no handler, as most arguments have none.
bool is_plain(PyObject* object) {
  return object == Py_None || is_plain_tensor_type(Py_TYPE(object)) || PyLong_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyBool_Check(object) || PyUnicode_Check(object);
}

/// Whether what is asked is inside the object: a list, or a tuple. Users' classes of them may have a handler
/// themselves.
bool is_asked_inside(PyObject* object) {
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) return true;
  return (PyTuple_Check(object) || PyList_Check(object)) && !handler_of(Py_TYPE(object));
}

/// Whether an argument, or something in a list, has a handler.
bool has_handler(PyObject* object) {
  if (is_plain(object)) return false;
  if (!is_asked_inside(object)) return handler_of(Py_TYPE(object)).is_valid();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (has_handler(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

/// One argument of each class that has a handler; a subclass stands before its base.
void collect(PyObject* object, std::vector<Overloaded>& found) {
  if (is_plain(object)) return;
  if (is_asked_inside(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      collect(PySequence_Fast_GET_ITEM(object, i), found);
    return;
  }
  PyTypeObject* type = Py_TYPE(object);
  if (std::ranges::find(found, type, &Overloaded::type) != found.end() || !handler_of(type)) return;
  auto at = std::ranges::find_if(found, [&](const Overloaded& other) { return PyType_IsSubtype(type, other.type); });
  found.insert(at, {type, object});
}

/// The classes that handlers are told of. Of an attribute of a plain tensor modes hear that it is one's.
nb::object types_of(PyObject* function, const CallArguments& call, const std::vector<Overloaded>& classes) {
  if (classes.empty() && PyObject_TypeCheck(function, &_PyMethodWrapper_Type))
    return owned(PyTuple_Pack(1, Py_TYPE(call.values[0])));
  nb::object types = owned(PyTuple_New(static_cast<Py_ssize_t>(classes.size())));
  for (size_t i = 0; i < classes.size(); ++i)
    PyTuple_SET_ITEM(types.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(reinterpret_cast<PyObject*>(classes[i].type)));
  return types;
}

nb::object positional_of(const CallArguments& call) {
  nb::object args = owned(PyTuple_New(static_cast<Py_ssize_t>(call.positional)));
  for (size_t i = 0; i < call.positional; ++i)
    PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(call.values[i]));
  return args;
}
nb::object keywords_of(const CallArguments& call) {
  nb::object kwargs = owned(PyDict_New());
  for (size_t k = 0; k < call.keyword_count(); ++k)
    checked(PyDict_SetItem(kwargs.ptr(), call.keyword(k), call.keyword_value(k)));
  return kwargs;
}

/// Runs a mode's handler with that mode, and those inside it, off the stack.
nb::object call_mode(State& s, nb::handle function, nb::handle types, nb::handle args, nb::handle kwargs) {
  nb::object mode = s.modes.back();
  s.modes.pop_back();
  struct Restore {
    State& s;
    nb::object& mode;
    ~Restore() { s.modes.push_back(mode); }
  } restore{s, mode};
  return mode.attr(nb::handle(g_name))(function, types, args, kwargs);
}

PyObject* g_noting_mode;  // umbra._export.functions.NotedFunctions
PyObject* g_noted_kinds;  // what PyTorch's functions and methods are, which are of classes of their own here

IntrusivePtr<CalledFunction> called_function(nb::handle function) {
  nb::handle type = function.type();
  auto called = make_counted<CalledFunction>();
  called->name = nb::cast<std::string>(function.attr("__name__"));
  PyObject* kind = PyDict_GetItemWithError(g_noted_kinds, type.ptr());
  called->kind = concat(nb::cast<std::string>(kind ? nb::handle(kind) : type.attr("__name__")), ".", called->name);
  called->identity = function.ptr();
  return called;
}

/// While it lasts, nodes are told of a function.
struct Noted {
  explicit Noted(nb::handle function) { set_called_function(called_function(function)); }
  ~Noted() { set_called_function({}); }
};

/// Makes a call as it is, with nodes told of the function that they are part of. Every call of a program that is
/// exported comes through here, so no Python is involved.
PyObject* call_noted(State& s, PyObject* function, const CallArguments& call) {
  struct Outside {
    State& s;
    nb::object mode;
    ~Outside() { s.modes.push_back(std::move(mode)); }
  } outside{s, std::move(s.modes.back())};
  s.modes.pop_back();
  Noted noted(function);
  return checked(PyObject_Vectorcall(function, call.values, call.positional, call.keywords));
}

}  // namespace

bool torch_function_modes_active() { return t_state && !t_state->modes.empty() && !t_state->all_off; }

bool class_has_torch_function(PyTypeObject* type) {
  return !state().classes_off && !state().all_off && handler_of(type).is_valid();
}

bool call_torch_function(PyObject* function, const CallArguments& call, PyObject** result) {
  State& s = state();
  if (s.all_off || std::exchange(s.skips_next, false)) return false;
  if (!s.modes.empty() && s.modes.back().type().ptr() == g_noting_mode) {
    *result = call_noted(s, function, call);
    return true;
  }
  std::vector<Overloaded> classes;
  if (!s.classes_off) {
    for (size_t i = 0; i < call.positional + call.keyword_count(); ++i) collect(call.values[i], classes);
  }
  if (classes.empty() && s.modes.empty()) return false;
  nb::object types = types_of(function, call, classes);
  nb::object args = positional_of(call), kwargs = keywords_of(call);
  if (!s.modes.empty()) {
    nb::object answer = call_mode(s, function, types, args, kwargs);
    if (answer.ptr() != Py_NotImplemented) {
      *result = answer.release().ptr();
      return true;
    }
  }
  for (const Overloaded& overloaded : classes) {
    nb::object answer = bound_handler(overloaded)(nb::handle(function), types, args, kwargs);
    if (answer.ptr() == Py_NotImplemented) continue;
    *result = answer.release().ptr();
    return true;
  }
  nb::object name = nb::module_::import_("umbra.overrides").attr("resolve_name")(nb::handle(function));
  std::string text = concat("Multiple dispatch failed for '", str_of(name.is_none() ? function : name.ptr()),
                            "'; all __torch_function__ handlers returned NotImplemented:\n\n");
  if (!s.modes.empty()) text += concat("  - mode object ", repr_of(s.modes.back().ptr()), "\n");
  for (nb::handle type : types) text += concat("  - tensor subclass ", repr_of(type.ptr()), "\n");
  fail<NobodyTakesCall>(text, "\nFor more information, try re-running with TORCH_LOGS=not_implemented");
}

namespace {

/// `with _C.DisableTorchFunctionSubclass():`
template <bool State::*kFlag> struct Disable {
  bool before = false;
  void enter() { before = std::exchange(state().*kFlag, true); }
  void leave(nb::args) { state().*kFlag = before; }
};

template <bool State::*kFlag> void bind_disable(nb::module_& m, const char* name) {
  using Class = Disable<kFlag>;
  nb::class_<Class>(m, name).def(nb::init<>()).def("__enter__", &Class::enter).def("__exit__", &Class::leave);
}

PyObject* disabled(PyObject*, PyObject* args, PyObject*) {
  // Called as a handler all the same (super().__torch_function__): the function itself, with classes off.
  return guarded([&] {
    PyObject *function, *types, *call_args = nullptr, *kwargs = nullptr;
    if (!PyArg_ParseTuple(args, "OO|O!O", &function, &types, &PyTuple_Type, &call_args, &kwargs))
      throw nb::python_error();
    check<TypeError>(!kwargs || kwargs == Py_None || PyDict_Check(kwargs), "expected a dict of keyword arguments");
    Disable<&State::classes_off> scope;
    scope.enter();
    nb::object empty = owned(PyTuple_New(0));
    PyObject* out = PyObject_Call(function, call_args ? call_args : empty.ptr(), kwargs == Py_None ? nullptr : kwargs);
    scope.leave({});
    return checked(out);
  });
}
/// Whether anybody wants to hear of a call with these arguments. Every function written in Python asks this.
PyObject* has_torch_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&] {
    State& s = state();
    if (std::exchange(s.skips_next, false)) return Py_NewRef(Py_False);
    if (torch_function_modes_active()) return Py_NewRef(Py_True);
    bool found = false;
    if (!s.classes_off && !s.all_off)
      for (Py_ssize_t i = 0; i < count && !found; ++i) found = has_handler(values[i]);
    return Py_NewRef(found ? Py_True : Py_False);
  });
}
/// Calls a function without offering the call itself; those that it makes are offered.
nb::object call_unoffered(nb::handle function, nb::handle args, nb::handle kwargs) {
  struct Skip {
    bool before = std::exchange(state().skips_next, true);
    ~Skip() { state().skips_next = before; }
  } skip;
  return nb::steal(checked(PyObject_Call(function.ptr(), args.ptr(), kwargs.is_none() ? nullptr : kwargs.ptr())));
}

/// A call of something written in Python, offered; NotImplemented where nobody takes it.
nb::object offer(nb::handle function, nb::tuple args, nb::dict kwargs) {
  std::vector<PyObject*> values;
  for (nb::handle value : args) values.push_back(value.ptr());
  for (auto [key, value] : kwargs) values.push_back(value.ptr());
  nb::object names = owned(PySequence_Tuple(kwargs.ptr()));
  PyObject* result = nullptr;
  CallArguments call{values.data(), nb::len(args), names.ptr()};
  return call_torch_function(function.ptr(), call, &result) ? nb::steal(result) : nb::borrow(Py_NotImplemented);
}
PyMethodDef g_has_definition = {"_has_torch_function",
                                reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(has_torch_function)),
                                METH_FASTCALL, nullptr};

PyMethodDef g_disabled_definition = {"_disabled_torch_function_impl",
                                     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(disabled)),
                                     METH_VARARGS | METH_KEYWORDS, nullptr};

}  // namespace

void bind_torch_function(nb::module_& m) {
  m.def("_note_functions_by", [](nb::object mode, nb::dict kinds) {
    g_noting_mode = mode.release().ptr();
    g_noted_kinds = kinds.release().ptr();
  });
  // For calls that come by way of Python, the mode off already.
  m.def(
      "_call_noted",
      [](nb::handle function, nb::handle args, nb::handle kwargs) {
        Noted noted(function);
        return nb::steal(checked(PyObject_Call(function.ptr(), args.ptr(), kwargs.is_none() ? nullptr : kwargs.ptr())));
      },
      nb::arg("function"), nb::arg("args"), nb::arg("kwargs").none());
  m.def("_forget_called_functions", &forget_called_functions);
  g_name = checked(PyUnicode_InternFromString("__torch_function__"));
  g_disabled = checked(PyCFunction_New(&g_disabled_definition, nullptr));
  m.attr("_disabled_torch_function_impl") = nb::handle(g_disabled);
  bind_disable<&State::classes_off>(m, "DisableTorchFunctionSubclass");
  bind_disable<&State::all_off>(m, "DisableTorchFunction");
  m.def("_push_torch_function_mode", [](nb::object mode) { state().modes.push_back(std::move(mode)); });
  m.def("_pop_torch_function_mode", [] {
    check(!state().modes.empty(), "no function mode is entered");
    nb::object mode = state().modes.back();
    state().modes.pop_back();
    return mode;
  });
  m.def("_torch_function_modes", [] {
    nb::list out;
    for (const nb::object& mode : state().modes) out.append(mode);
    return out;
  });
  m.attr("_has_torch_function") = nb::steal(checked(PyCFunction_New(&g_has_definition, nullptr)));
  m.def("_offer_torch_function", &offer);
  m.def("_skip_one_hop_torch_function", &call_unoffered, nb::arg("function"), nb::arg("args"),
        nb::arg("kwargs").none());
  m.def("_is_torch_function_enabled", [] { return !state().classes_off && !state().all_off; });
  m.def("_is_torch_function_all_disabled", [] { return state().all_off; });
  m.def("_is_torch_function_mode_enabled", [] { return !state().all_off && !state().modes.empty(); });
}

}  // namespace umbra::python
