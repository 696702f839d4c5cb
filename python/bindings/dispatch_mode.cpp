#include "dispatch_mode.h"

#include "graph.h"
#include "lock.h"
#include "misc.h"
#include "operators.h"
#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/callable.h"
#include "umbra/core/wrapped_number.h"
#include "umbra/dispatch/dispatcher.h"
#include "values.h"

namespace umbra::python {

namespace {

PyObject* g_method_name;  // "__torch_dispatch__"
PyObject* g_disabled;     // _disabled_torch_dispatch_impl

/// The classes among the arguments that want the call, a subclass before its base, and one object of each.
struct Handlers {
  std::vector<PyObject*> objects;
  void add(TensorImpl* impl) {
    auto* object = static_cast<PyObject*>(impl->python_object());
    if (!object || !impl->keys().has(DispatchKey::Subclass)) return;
    PyTypeObject* type = Py_TYPE(object);
    for (PyObject* other : objects)
      if (Py_TYPE(other) == type) return;
    auto at =
        std::find_if(objects.begin(), objects.end(), [&](PyObject* o) { return PyType_IsSubtype(type, Py_TYPE(o)); });
    objects.insert(at, object);
  }
};

nb::object types_of(const Handlers& handlers) {
  nb::object types = owned(PyTuple_New(static_cast<Py_ssize_t>(handlers.objects.size())));
  for (size_t i = 0; i < handlers.objects.size(); ++i)
    PyTuple_SET_ITEM(types.ptr(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(handlers.objects[i]))));
  return types;
}

bool is_default(const SchemaArgument& argument, const Value& value) {
  return argument.default_value && argument.default_value->equals(value);
}

/// A number that was wrapped into a tensor for promotion is a number to Python.
PyObject* wrap_argument(const Value& value) {
  if (value.is_tensor() && value.tensor_ref().impl()->is_wrapped_number() && !value.tensor_ref().is_fake())
    return wrap(wrapped_scalar(value.tensor_ref()));
  return wrap(value);
}

/// The outputs that a call was given: it gives back those, whatever a handler made of them. None where it was given no
/// outputs.
std::vector<Value> given_outputs(const Operator& op, const Value* frame) {
  std::vector<Value> outputs;
  const auto& arguments = op.schema().arguments;
  for (size_t i = 0; op.has_out() && i < arguments.size(); ++i)
    if (arguments[i].is_out() && arguments[i].type.is_tensor()) outputs.push_back(Value(frame[i]));
  return outputs.size() == op.schema().returns.size() ? outputs : std::vector<Value>();
}

/// A call as Python's handlers get it.
struct PythonCall {
  Handlers handlers;
  nb::object types, function, args, kwargs;

  PythonCall(const Operator& op, Value* frame) {
    for (size_t i = 0; i < op.argument_count(); ++i) frame[i].each_tensor([&](TensorImpl* t) { handlers.add(t); });
    types = types_of(handlers);
    function = nb::steal(wrap(op));
    std::tie(args, kwargs) = wrap_arguments(op, frame);
  }
  /// False: the handler passes the call on.
  bool ask(nb::handle method, const Operator& op, Value* frame) const {
    nb::object result = method(function, types, args, kwargs);
    if (result.ptr() == Py_NotImplemented) return false;
    std::vector<Value> outputs = given_outputs(op, frame);
    store_results(op, result.ptr(), frame);
    std::move(outputs.begin(), outputs.end(), frame);
    return true;
  }
};

PyObject* g_rules;  // {operator's name: {class: function}}: what libraries registered instead of a class's own handler

/// The handler of a mode or tensor class for an operator: its own, as the object has it, or what a library registered
/// for both, with `first` for its first argument.
nb::object handler_of(const Operator& op, PyObject* object, PyObject* first) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyDict_GET_SIZE(g_rules) > 0)
    if (PyObject* rules = PyDict_GetItemString(g_rules, op.name().c_str()))
      if (PyObject* rule = PyDict_GetItem(rules, reinterpret_cast<PyObject*>(type)))
        return owned(PyMethod_New(rule, first));
  return owned(PyObject_GetAttr(object, g_method_name));
}

// Whether code that calls operators now would be differentiated: false inside handlers, which stand below autograd.
constinit thread_local bool g_above_autograd = true;

/// A handler runs below autograd; what `enable_reentrant_dispatch` goes back to is what was on when its operator was
/// called.
class InsideHandler {
 public:
  InsideHandler() : before_(std::exchange(g_above_autograd, false)), outer_(std::exchange(current_, this)) {}
  ~InsideHandler() {
    g_above_autograd = before_;
    current_ = outer_;
  }
  InsideHandler(const InsideHandler&) = delete;
  static bool called_above_autograd() { return current_ ? current_->before_ : false; }

 private:
  static constinit thread_local InsideHandler* current_;
  bool before_;
  InsideHandler* outer_;
};
constinit thread_local InsideHandler* InsideHandler::current_ = nullptr;

/// `with _C._RestorePythonTLSSnapshot():` inside a handler: calls are differentiated again, as where the handler's
/// operator was called.
struct ReentrantDispatch {
  DispatchState before;
  bool above_before = false;
  void enter() {
    before = dispatch_state();
    above_before = g_above_autograd;
    if (!InsideHandler::called_above_autograd()) return;
    dispatch_state().exclude = dispatch_state().exclude - DispatchKey::Autograd - DispatchKey::Autocast;
    g_above_autograd = true;
  }
  void leave(nb::args) {
    dispatch_state() = before;
    g_above_autograd = above_before;
  }
};

/// A mode written in Python, on the thread's stack of modes.
class PythonMode final : public DispatchMode {
 public:
  explicit PythonMode(PyObject* object) : object_(Py_NewRef(object)) {}
  ~PythonMode() override {
    if (!Py_IsInitialized()) return;
    WithLock lock;
    Py_DECREF(object_);
  }
  PyObject* object() const { return object_; }
  bool handle(const Operator& op, Value* frame) override {
    WithLock lock;
    InsideHandler inside;
    if (op.takes_functions()) return handle_functions(op, frame);
    nb::object handler = handler_of(op, object_, object_);
    // A method of the class would be the handler of a tensor class: it does not know which mode it is.
    check(!PyMethod_Check(handler.ptr()) ||
              PyMethod_GET_SELF(handler.ptr()) != reinterpret_cast<PyObject*>(Py_TYPE(object_)),
          "Defining a mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method");
    return PythonCall(op, frame).ask(handler, op, frame);
  }

 private:
  /// A mode says that it knows operators that take functions, or one of them has a rule for it; their functions are
  /// functions of lists to it.
  bool handle_functions(const Operator& op, Value* frame) const {
    nb::object space = nb::module_::import_("umbra._higher_order_ops").attr("namespace");
    nb::object function = space.attr(op.schema().name.c_str());
    nb::list args;
    for (size_t i = 0; i < op.argument_count(); ++i) args.append(wrap_function_argument(op, frame, i));
    nb::object rule = function.attr("python_key_table").attr("get")(nb::handle(object_).type());
    nb::object knows = nb::getattr(nb::handle(object_), "supports_higher_order_operators", nb::bool_(false));
    if (rule.is_none() && PyObject_IsTrue(knows.ptr()) != 1)
      fail<NotImplementedError>("There was no rule registered for HigherOrderOperator ", op.schema().name, " and mode ",
                                repr_of(object_), ".");
    nb::object result;
    if (!rule.is_none()) result = rule(nb::handle(object_), *nb::tuple(args));
    else result = owned(PyObject_GetAttr(object_, g_method_name))(function, nb::tuple(), nb::tuple(args), nb::dict());
    if (result.ptr() == Py_NotImplemented) return false;
    frame[0] = Value(read_values(
        PyTuple_Check(result.ptr()) || PyList_Check(result.ptr()) ? result : nb::object(nb::make_tuple(result))));
    return true;
  }
  static nb::object wrap_function_argument(const Operator& op, const Value* frame, size_t i) {
    const SchemaType& type = op.schema().arguments[i].type;
    if (type.base == SchemaType::Base::Callable)
      return nb::cpp_function([function = frame[i]](nb::args inputs) {
        return nb::tuple(wrap_values(call_function(function, read_values(inputs))));
      });
    return type.list ? nb::object(nb::tuple(wrap_values(elements(frame[i]))))
                     : nb::steal(checked(wrap_argument(frame[i])));
  }
  PyObject* object_;
};

/// The layer of tensor classes: the handlers of the arguments' classes in turn.
void subclass_layer(const Operator& op, DispatchKeySet, Value* frame) {
  WithLock lock;
  PythonCall call(op, frame);
  // What the handler calls starts afresh below autograd, for all the modes to see.
  SaveDispatchState saved;
  dispatch_state().exclude |= DispatchKey::Autograd;
  InsideHandler inside;
  for (PyObject* handler : call.handlers.objects) {
    if (call.ask(handler_of(op, handler, reinterpret_cast<PyObject*>(Py_TYPE(handler))), op, frame)) return;
  }
  const Schema& schema = op.schema();
  std::string text = concat("Multiple dispatch failed for 'torch._ops.", schema.space, ".", schema.name, ".",
                            schema.overload.empty() ? "default" : schema.overload.c_str(),
                            "'; all __torch_dispatch__ handlers returned NotImplemented:\n\n");
  for (nb::handle type : call.types) text += concat("  - tensor subclass ", repr_of(type.ptr()), "\n");
  fail<TypeError>(text, "\nFor more information, try re-running with TORCH_LOGS=not_implemented");
}
const RegisterLayer kSubclass(DispatchKey::Subclass, subclass_layer);

// A tensor class without a handler of its own: calls go on below.
PyObject* disabled(PyObject*, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *function, *types, *given = nullptr, *kwargs = nullptr;
    if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &given, &kwargs)) throw nb::python_error();
    nb::object call_args = given ? owned(PySequence_Tuple(given)) : owned(PyTuple_New(0));
    check<TypeError>(!kwargs || kwargs == Py_None || PyDict_Check(kwargs), "expected a dict of keyword arguments");
    ExcludeKeys below(DispatchKey::Subclass);
    return checked(PyObject_Call(function, call_args.ptr(), kwargs == Py_None ? nullptr : kwargs));
  });
}
PyMethodDef g_disabled_definition = {"_disabled_torch_dispatch_impl",
                                     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(disabled)),
                                     METH_VARARGS | METH_KEYWORDS, nullptr};

/// `_C._DisableTorchDispatch()`, and with True also below what records and makes functional.
struct DisableDispatch : ScopedExclusion {
  explicit DisableDispatch(bool below_captures = false) : ScopedExclusion(keys(below_captures)) {}
  static DispatchKeySet keys(bool below_captures) {
    DispatchKeySet handlers = DispatchKeySet(DispatchKey::UserMode) | DispatchKey::Subclass | DispatchKey::Fake;
    if (!below_captures) return handlers;
    return handlers | DispatchKey::Autograd | DispatchKey::Functionalize | DispatchKey::Proxy | DispatchKey::PreProxy |
           DispatchKey::Lift;
  }
};

/// `_C._DisableAutocast()`: for programs that were captured with their casts.
struct DisableAutocast : ScopedExclusion {
  DisableAutocast() : ScopedExclusion(DispatchKey::Autocast) {}
};

/// Takes every mode off the stack for a scope, or those that record.
struct NoModes {
  explicit NoModes(bool only_tracers = false) : only_tracers(only_tracers) {}
  bool only_tracers;
  std::vector<IntrusivePtr<Mode>> modes;
  void take_off() {
    while (!mode_stack().empty()) {
      modes.push_back(mode_stack().back());
      pop_mode(modes.back().get());
    }
  }
  void enter() {
    take_off();
    if (!only_tracers) return;
    for (size_t i = modes.size(); i-- > 0;)
      if (!dynamic_cast<Tracer*>(modes[i].get())) push_mode(modes[i]);
  }
  void leave(nb::args) {
    if (only_tracers)
      while (!mode_stack().empty()) pop_mode(mode_stack().back().get());
    while (!modes.empty()) {
      push_mode(modes.back());
      modes.pop_back();
    }
  }
};

}  // namespace

bool has_dispatch_method(PyTypeObject* type) {
  if (is_plain_tensor_type(type)) return false;
  PyObject* method = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), g_method_name);
  if (!method) {
    PyErr_Clear();
    return false;
  }
  bool own = method != g_disabled;
  Py_DECREF(method);
  return own;
}

std::pair<nb::object, nb::object> wrap_arguments(const Operator& op, const Value* frame) {
  const auto& arguments = op.schema().arguments;
  size_t positional = 0;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].keyword_only && !is_default(arguments[i], frame[i])) positional = i + 1;
  nb::object args = owned(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  for (size_t i = 0; i < positional; ++i)
    PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i), checked(wrap_argument(frame[i])));
  nb::object kwargs = owned(PyDict_New());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].keyword_only || is_default(arguments[i], frame[i])) continue;
    nb::object value = nb::steal(checked(wrap_argument(frame[i])));
    checked(PyDict_SetItemString(kwargs.ptr(), arguments[i].name.c_str(), value.ptr()));
  }
  return {args, kwargs};
}

void store_results(const Operator& op, PyObject* result, Value* frame) {
  const auto& returns = op.schema().returns;
  if (returns.empty()) {
    frame[0] = Value();
    return;
  }
  if (returns.size() == 1) {
    frame[0] = read_result(result, returns[0].type);
    return;
  }
  check(PyTuple_Check(result) || PyList_Check(result), op.name(),
        " has several results and needs a tuple of them, got ", short_type_name(Py_TYPE(result)));
  nb::object sequence = owned(PySequence_Fast(result, "several results"));
  check<TypeError>(PySequence_Fast_GET_SIZE(sequence.ptr()) == static_cast<Py_ssize_t>(returns.size()), op.name(),
                   " returns ", returns.size(), " values, got ", PySequence_Fast_GET_SIZE(sequence.ptr()));
  std::vector<Value> values;
  for (size_t i = 0; i < returns.size(); ++i)
    values.push_back(
        read_result(PySequence_Fast_GET_ITEM(sequence.ptr(), static_cast<Py_ssize_t>(i)), returns[i].type));
  for (size_t i = 0; i < values.size(); ++i) frame[i] = std::move(values[i]);
}

void bind_dispatch(nb::module_& m) {
  g_method_name = checked(PyUnicode_InternFromString("__torch_dispatch__"));
  g_rules = checked(PyDict_New());
  m.attr("_torch_dispatch_rules") = nb::handle(g_rules);
  g_disabled = checked(PyCFunction_New(&g_disabled_definition, nullptr));
  m.attr("_disabled_torch_dispatch_impl") = nb::handle(g_disabled);
  m.def("_push_dispatch_mode", [](nb::handle mode) { push_mode(make_counted<PythonMode>(mode.ptr())); });
  m.def("_pop_dispatch_mode", [](nb::handle object) {
    auto* mode = mode_stack().empty() ? nullptr : dynamic_cast<PythonMode*>(mode_stack().back().get());
    check(mode && mode->object() == object.ptr(), "modes must be left in the reverse order of entering them");
    pop_mode(mode);
  });
  // The mode that a call meets first; None where it is written in C++.
  m.def("_innermost_mode", []() -> nb::object {
    auto* mode = dynamic_cast<PythonMode*>(active_mode(DispatchKey::UserMode));
    return mode ? nb::borrow(mode->object()) : nb::none();
  });
  m.def("_dispatch_modes", [] {
    nb::list out;
    for (const auto& mode : mode_stack())
      if (auto* python = dynamic_cast<PythonMode*>(mode.get())) out.append(nb::handle(python->object()));
    return out;
  });
  // _lie_in_memory_of(wrapper, other): wrappers have no data; those of views say that they share what others stand for.
  m.def("_lie_in_memory_of", [](const Tensor& wrapper, const Tensor& other) {
    bool wrappers = wrapper.keys().has(DispatchKey::Subclass) && !wrapper.storage()->has_data();
    if (wrappers && !wrapper.is_same(other)) wrapper.impl()->set_storage(other.storage());
  });
  nb::class_<DisableDispatch>(m, "_DisableTorchDispatch")
      .def(nb::init<bool>(), nb::arg("below_captures") = false)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", &DisableDispatch::leave);
  nb::class_<DisableAutocast>(m, "_DisableAutocast")
      .def(nb::init<>())
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", &DisableAutocast::leave);
  nb::class_<ReentrantDispatch>(m, "_RestorePythonTLSSnapshot")
      .def(nb::init<>())
      .def("__enter__", &ReentrantDispatch::enter)
      .def("__exit__", &ReentrantDispatch::leave);
  nb::class_<NoModes>(m, "_NoModes")
      .def(nb::init<bool>(), nb::arg("only_tracers") = false)
      .def("__enter__", &NoModes::enter)
      .def("__exit__", &NoModes::leave);
}

}  // namespace umbra::python
