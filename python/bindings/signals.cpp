#include "signals.h"

#include <pthread.h>

#include <csignal>
#include <ctime>

#include "capture_watch.h"
#include "lock.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/interrupt.h"

#define Py_BUILD_CORE  // for the arguments of a frame
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace umbra::python {

namespace {

constexpr int kSignals = 32;

/// Functions of Python's module for signals, which run no code of Python's but handlers.
struct SignalModule {
  nb::object get = nb::module_::import_("_signal").attr("getsignal");
  nb::object set = nb::module_::import_("_signal").attr("signal");
};
const SignalModule& signals() {
  static const auto* functions = new SignalModule;
  return *functions;
}

/// What Python calls for a signal; null where that is nothing.
nb::object handler_of(int number) {
  nb::object handler = signals().get(number);
  return handler.is_none() || PyLong_Check(handler.ptr()) ? nb::object() : handler;
}

// ---- handlers that wait ----

/// Python calls handlers on one thread alone, which is the one that may hold them back. Guarded by Python's lock.
struct Held {
  int depth = 0;
  unsigned long thread = 0;
  std::vector<std::pair<int, nb::object>> handlers;  // that stand back
  uint32_t arrived = 0;                              // a bit for each signal
  nb::object error;                                  // to be raised when they run; null: none
};
Held& g_held = *new Held;  // what it has of Python goes with the process

bool is_holding() { return g_held.depth > 0 && g_held.thread == PyThread_get_thread_ident(); }

PyObject* note_arrival(PyObject*, PyObject* args) {
  g_held.arrived |= 1U << PyLong_AsLong(PyTuple_GET_ITEM(args, 0));
  return Py_NewRef(Py_None);
}

nb::handle noting() {
  static PyMethodDef method = {"note_arrival", note_arrival, METH_VARARGS, nullptr};
  static PyObject* function = PyCFunction_New(&method, nullptr);
  return function;
}

using Raised = nb::object;  // the last error of a handler; null: there was none

void restore(const Raised& error) {
  PyErr_Restore(error.type().inc_ref().ptr(), nb::borrow(error).release().ptr(), PyException_GetTraceback(error.ptr()));
}
[[noreturn]] void raise(const Raised& error) {
  restore(error);
  throw nb::python_error();
}

/// Makes something else what Python calls for a signal; false where this thread has no say. Handlers of signals that
/// came before run first. What the process does when one comes stays: whether calls of the system go on, and handlers
/// in front of Python's.
bool set_handler(int number, nb::handle handler, Raised& raised) {
  struct sigaction action;
  sigaction(number, nullptr, &action);
  while (!nb::steal(PyObject_CallFunction(signals().set.ptr(), "iO", number, handler.ptr())).is_valid()) {
    nb::python_error error;
    if (!error.traceback().is_valid() && error.matches(PyExc_ValueError)) return false;
    raised = nb::borrow(error.value());
  }
  sigaction(number, &action, nullptr);
  return true;
}

/// From here to `let_go` handlers wait, where there are any, and this thread is theirs.
Raised hold_back() {
  Raised raised;
  if (is_holding()) {
    ++g_held.depth;
    return raised;
  }
  std::vector<std::pair<int, nb::object>> replaced;
  for (int number = 1; number < kSignals; ++number)
    if (nb::object handler = handler_of(number)) {
      if (!set_handler(number, noting(), raised)) return raised;
      replaced.emplace_back(number, std::move(handler));
    }
  if (replaced.empty()) return raised;
  g_held.depth = 1;
  g_held.thread = PyThread_get_thread_ident();
  g_held.handlers = std::move(replaced);
  return raised;
}

/// Calls the handlers of signals. Of those that raise the first ends it: the others' signals come again.
Raised run_handlers(uint32_t arrived) {
  Raised raised;
  for (int number = 1; number < kSignals; ++number) {
    nb::object handler = arrived >> number & 1 ? handler_of(number) : nb::object();
    if (!handler) continue;
    if (raised) {
      PyErr_SetInterruptEx(number);
      continue;
    }
    auto* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
    if (!nb::steal(PyObject_CallFunction(handler.ptr(), "iO", number, frame ? frame : Py_None)).is_valid())
      raised = nb::borrow(nb::python_error().value());
  }
  return raised;
}

/// Puts the handlers back. Those that waited run at once, or with `soon` as soon as Python's next step is made.
Raised let_go(bool soon = false) {
  Raised raised;
  if (!is_holding() || --g_held.depth > 0) return raised;
  for (const auto& [number, handler] : std::exchange(g_held.handlers, {}))
    if (handler_of(number).is(noting())) set_handler(number, handler, raised);
  uint32_t arrived = std::exchange(g_held.arrived, 0);
  for (int number = 1; number < kSignals; ++number)
    if ((soon || raised) && arrived >> number & 1) PyErr_SetInterruptEx(number);
  if (!soon && !raised) raised = run_handlers(arrived);
  nb::object error = std::move(g_held.error);
  return raised ? raised : error;
}

/// Runs between two steps of Python's, on the thread that handlers run on.
int raise_pending(void* object) {
  nb::object error = nb::steal(static_cast<PyObject*>(object));
  if (is_holding()) {
    g_held.error = std::move(error);
    return 0;
  }
  restore(error);
  return -1;
}

void raise_soon(Raised error) {
  if (Py_AddPendingCall(raise_pending, error.ptr()) == 0) error.release();
}

/// For a while no exception is being handled, as which one that is raised would show it.
class NoneHandled {
 public:
  NoneHandled() : before_(nb::steal(PyErr_GetHandledException())) { PyErr_SetHandledException(nullptr); }
  ~NoneHandled() { PyErr_SetHandledException(before_.ptr()); }
  NoneHandled(const NoneHandled&) = delete;

 private:
  nb::object before_;
};

// ---- handlers in the midst of what C++ runs ----

/// The thread that Python calls handlers on.
pthread_t g_main_thread;

int64_t coarse_milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// Between two steps of a graph, a script or a backward pass, which Python sees nothing of. Its lock is asked for
/// seldom: another thread may be at work under it, and lets go after five milliseconds. What is being captured is left
/// alone, as a handler's calls would be part of it.
void check_signals() {
  constexpr int64_t kInterval = 50;
  static int64_t last = 0;  // of the main thread
  if (!pthread_equal(pthread_self(), g_main_thread)) return;
  int64_t now = coarse_milliseconds();
  if (now - last < kInterval) return;
  last = now;
  WithLock lock;
  bool capturing = is_capturing() || active_tracer(DispatchKey::Proxy) || active_tracer(DispatchKey::PreProxy);
  if (capturing || PyErr_Occurred()) return;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// ---- contexts ----

/// Enters a context as a whole: handlers that wait run inside, as if their signals came there.
nb::object enter(const nb::object& function, nb::args args) {
  if (Raised raised = hold_back()) {
    let_go(true);
    raise(raised);
  }
  nb::object result = nb::steal(PyObject_CallObject(function.ptr(), args.ptr()));
  Raised error = result ? nb::object() : nb::borrow(nb::python_error().value());
  if (Raised raised = let_go(true)) raise_soon(std::move(raised));
  if (error) raise(error);
  return result;
}

/// Leaves one as a whole: handlers that wait run after it.
nb::object leave(const nb::object& function, nb::args args) {
  Raised before = hold_back();
  nb::object result = nb::steal(PyObject_CallObject(function.ptr(), args.ptr()));
  Raised error = result ? nb::object() : nb::borrow(nb::python_error().value());
  NoneHandled none;
  if (Raised raised = let_go()) raise(raised);
  if (before) raise(before);
  if (error) raise(error);
  return result;
}

/// A method, for a class that is made in Python.
template <class F> nb::object method_of(const F& call, nb::object function) {
  nb::object method = nb::cpp_function([&call, function](nb::args args) { return call(function, args); });
  return owned(PyInstanceMethod_New(method.ptr()));
}

/// Attributes of an object that are others for a while, set without a step of Python's: nothing comes between.
class Attributes {
 public:
  Attributes(nb::object object, nb::dict values) : object_(std::move(object)), values_(std::move(values)) {}

  void enter() {
    for (auto [name, value] : values_) before_.emplace_back(nb::borrow(name), nb::getattr(object_, name));
    for (auto [name, value] : values_) nb::setattr(object_, name, value);
  }
  void leave() {
    for (const auto& [name, value] : before_) nb::setattr(object_, name, value);
    before_.clear();
  }

 private:
  nb::object object_;
  nb::dict values_;
  std::vector<std::pair<nb::object, nb::object>> before_;
};

// ---- calls of handlers ----

/// The code that runs when a handler is called; null where it is not Python's.
PyObject* code_of_handler(nb::object handler) {
  for (int depth = 0; handler && depth < 8; ++depth) {
    if (PyFunction_Check(handler.ptr())) return PyFunction_GET_CODE(handler.ptr());
    if (PyMethod_Check(handler.ptr())) handler = nb::borrow(PyMethod_GET_FUNCTION(handler.ptr()));
    else if (PyCFunction_Check(handler.ptr())) return nullptr;
    else if (nb::hasattr(handler, "func")) handler = handler.attr("func");  // a partial
    else handler = nb::getattr(handler.type(), "__call__", nb::object());
  }
  return nullptr;
}

/// An argument without a name, the last one first; null where there are fewer.
PyObject* argument_from_end(PyFrameObject* frame, PyCodeObject* code, int place) {
  PyObject** locals = frame->f_frame->localsplus;
  auto value_of = [&](int i) {
    PyObject* local = locals[i];
    return local && PyCell_Check(local) ? PyCell_GET(local) : local;
  };
  if (code->co_flags & CO_VARARGS) {
    PyObject* rest = value_of(code->co_argcount + code->co_kwonlyargcount);
    auto count = static_cast<int>(rest && PyTuple_Check(rest) ? PyTuple_GET_SIZE(rest) : 0);
    if (place < count) return PyTuple_GET_ITEM(rest, count - 1 - place);
    place -= count;
  }
  return place < code->co_argcount ? value_of(code->co_argcount - 1 - place) : nullptr;
}

}  // namespace

void raise_later(const nb::python_error& error) { raise_soon(nb::borrow(error.value())); }

int signal_handled_by(PyFrameObject* frame) {
  nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  auto* object = reinterpret_cast<PyCodeObject*>(code.ptr());
  PyObject* interrupted = argument_from_end(frame, object, 0);
  PyObject* number = argument_from_end(frame, object, 1);
  if (!interrupted || !number || !PyFrame_Check(interrupted) || !PyLong_CheckExact(number)) return 0;
  long signal = PyLong_AsLong(number);
  if (signal < 1 || signal >= kSignals) {
    PyErr_Clear();
    return 0;
  }
  nb::object caller = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
  if (!caller.is(interrupted)) return 0;
  nb::object handler = handler_of(static_cast<int>(signal));
  return handler && code_of_handler(handler) == code.ptr() ? static_cast<int>(signal) : 0;
}

void bind_signals(nb::module_& m) {
  nb::object main_thread = nb::module_::import_("threading").attr("main_thread")();
  g_main_thread = nb::cast<unsigned long>(main_thread.attr("ident"));
  set_interrupt_check(check_signals);
  lend_lock();
  // _entering(function), _leaving(function): methods that enter and leave a context as the functions do, uninterrupted.
  m.def("_entering", [](nb::object function) { return method_of(enter, std::move(function)); });
  m.def("_leaving", [](nb::object function) { return method_of(leave, std::move(function)); });
  // _While(object, {attribute: value}): the attributes have these values inside.
  nb::class_<Attributes>(m, "_While")
      .def(nb::init<nb::object, nb::dict>())
      .def("__enter__", &Attributes::enter)
      .def("__exit__", [](Attributes& self, nb::args) { self.leave(); });
  // _run_handler_later(number): while handlers wait, has that of a signal run when they do.
  m.def("_run_handler_later", [](int number) {
    if (is_holding()) g_held.arrived |= 1U << number;
  });
  // _is_handler(code): whether code is that of a handler.
  m.def("_is_handler", [](nb::handle code) {
    for (int number = 1; number < kSignals; ++number)
      if (nb::object handler = handler_of(number))
        if (code_of_handler(std::move(handler)) == code.ptr()) return true;
    return false;
  });
}

}  // namespace umbra::python
