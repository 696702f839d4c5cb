#include "capture_frames.h"

#include <unordered_map>

#include "capture_watch.h"
#include "signals.h"
#include "umbra/capture/functionalize.h"
#include "watched_objects.h"

#define Py_BUILD_CORE  // for the function of a frame
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace umbra::python {

namespace {

constexpr const char* kSettings = "a graph would keep what the answer was when it was captured";

/// The function that a frame runs, borrowed.
PyObject* function_of(PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyObject*>(frame->f_frame->f_func);
#else
  return frame->f_frame->f_funcobj;
#endif
}

PyObject* imported(const char* module, const char* name) {
  return Py_NewRef(nb::object(nb::module_::import_(module).attr(name)).ptr());
}

bool is_instance(PyObject* object, PyObject* type) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type));
}

/// A named tuple's constructor reads nothing but what it is given.
bool makes_named_tuple(PyObject* function) {
  PyObject* name = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
  return name && PyUnicode_Check(name) && text_of(name).starts_with("namedtuple_");
}

/// Why a function of one of C's modules is not to be captured; null where it may be.
const char* why_not_module(PyObject* module, std::string_view function) {
  const char* found = PyModule_GetName(module);
  if (!found) {
    PyErr_Clear();
    return nullptr;
  }
  std::string_view name(found);
  if (name == "posix" && function != "fspath") return "a graph would keep what the system said when it was captured";
  if (name == "_signal" && function != "getsignal") return "a graph sends no signals and sets no alarms";
  if (name == "builtins" && function == "globals") return "nobody can tell which of them it looks at";
  if (name == "_warnings" && function == "warn") return "a graph would warn when it is captured, and never again";
  return nullptr;
}

/// What a weak container does when one of its members goes, which may be at any time.
bool is_callback_of_weak_set(std::string_view file, std::string_view name) {
  bool removes = name == "_remove" || name == "remove";
  return removes && (file.ends_with("/_weakrefset.py") || file.ends_with("/weakref.py"));
}

/// Functions that give all attributes of an object.
bool asks_for_everything(PyObject* self, std::string_view name) {
  if (name == "__reduce_ex__" || name == "__getstate__" || name == "__dir__") return true;
  if (name != "vars" && name != "dir") return false;
  const char* module = PyModule_Check(self) ? PyModule_GetName(self) : nullptr;
  return module && std::string_view(module) == "builtins";
}

/// Classes whose methods do what graphs would not do again.
struct Classes {
  PyObject* file = imported("_io", "_IOBase");
  PyObject* numbers = imported("_random", "Random");
  PyObject* date = imported("datetime", "date");
};
const Classes& classes() {
  static const Classes known;
  return known;
}

/// The same of a method of an object.
const char* why_not_method(PyObject* object, std::string_view method) {
  const auto& [file, numbers, date] = classes();
  if (is_instance(object, file)) return "a graph reads and writes no files";
  if (is_instance(object, numbers)) return "a graph would keep the numbers that were drawn when it was captured";
  bool clock = method == "now" || method == "today" || method == "utcnow";
  if (clock && PyType_Check(object) &&
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), reinterpret_cast<PyTypeObject*>(date)))
    return "a graph would keep the time at which it was captured";
  return nullptr;
}

/// What is known of the functions that a capture may run.
class FrameWatch {
 public:
  /// `functions`: a set of those whose reads are watched; `codes`: of their code, and that of functions inside of them.
  /// `questions`: of code of this package that asks for what graphs do not keep to. `own`, `library`: folders of this
  /// package and of Python's library.
  FrameWatch(nb::object functions, nb::object codes, nb::object questions, std::vector<std::string> own,
             std::string library)
      : functions_(std::move(functions)),
        codes_(std::move(codes)),
        questions_(std::move(questions)),
        own_(std::move(own)),
        library_(std::move(library)) {}

  void on_call(PyFrameObject* frame) {
    if (int signal = signal_handled_by(frame)) {
      breaks_.attr("signalled")(signal);
      return;
    }
    Verdict verdict = verdict_of(code_of(frame), frame);
    if (verdict == Verdict::Question && !is_called_by_own(frame))
      stop(text_of(reinterpret_cast<PyFunctionObject*>(function_of(frame))->func_name), kSettings);
    if (verdict != Verdict::Unforeseen && verdict != Verdict::Library) return;
    PyObject* function = function_of(frame);
    if (PySet_Contains(functions_.ptr(), function) == 1 || is_own_call(frame)) return;
    breaks_.attr("not_foreseen")(nb::handle(function));
  }

  void on_call_of_c(PyFrameObject* frame, PyObject* callee) {
    if (!PyCFunction_Check(callee) || verdict_of(code_of(frame), frame) == Verdict::Own) return;
    PyObject* self = PyCFunction_GET_SELF(callee);
    if (!self) return;
    std::string name = reinterpret_cast<PyCFunctionObject*>(callee)->m_ml->ml_name;
    if (asks_for_everything(self, name) && !is_own_call(frame)) {
      breaks_.attr("asks_for_everything")();
      return;
    }
    const char* why = PyModule_Check(self) ? why_not_module(self, name) : why_not_method(self, name);
    if (why && !is_own_call(frame)) stop(name, why);
  }

  /// Whether it is this package, or what it called of Python's library, or a module that is loaded, that runs the
  /// frame.
  bool is_own_call(PyFrameObject* frame) {
    bool library = true;  // all frames so far
    nb::object at = nb::borrow(reinterpret_cast<PyObject*>(frame));
    while (at) {
      auto* current = reinterpret_cast<PyFrameObject*>(at.ptr());
      nb::object code = code_of(current);
      Verdict verdict = verdict_of(code, current);
      if (verdict == Verdict::Import || (library && verdict == Verdict::Own)) return true;
      if (verdict == Verdict::Own) return false;
      library &= verdict == Verdict::Library || verdict == Verdict::Question || is_library(code);
      if (verdict == Verdict::Foreseen && !library) return false;
      at = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
    }
    return false;
  }

  bool is_called_by_own(PyFrameObject* frame) {
    nb::object caller = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
    return caller && is_own_call(reinterpret_cast<PyFrameObject*>(caller.ptr()));
  }

 private:
  enum class Verdict : uint8_t { Own, Import, Question, Foreseen, Library, Unforeseen };

  void stop(std::string_view name, const char* why) { breaks_.attr("stop_call")(make_text(name), why); }

  static nb::object code_of(PyFrameObject* frame) {
    return nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  }

  /// Of Python's library, or text that it has evaluated.
  bool is_library(const nb::object& code) const {
    auto* object = reinterpret_cast<PyCodeObject*>(code.ptr());
    std::string_view file = text_of(object->co_filename);
    if (file == "<string>" && text_of(object->co_name) == "<module>") return true;
    if (file.starts_with("<frozen ")) return true;
    return file.starts_with(library_) && file.find("-packages") == std::string_view::npos;
  }

  Verdict verdict_of(const nb::object& code, PyFrameObject* frame) {
    auto [known, is_new] = verdicts_.try_emplace(code.ptr(), Verdict::Unforeseen);
    if (!is_new) return known->second;
    kept_.push_back(code);
    auto* object = reinterpret_cast<PyCodeObject*>(code.ptr());
    std::string_view file = text_of(object->co_filename);
    if (file.starts_with("<frozen importlib") || file.starts_with("<frozen zipimport"))
      return known->second = Verdict::Import;
    PyObject* function = function_of(frame);
    if (file.starts_with("<") && (is_own(function) || makes_named_tuple(function)))  // generated methods
      return known->second = Verdict::Own;
    for (const std::string& prefix : own_)
      if (file.starts_with(prefix)) {
        bool asks = PySet_Contains(questions_.ptr(), code.ptr()) == 1;
        return known->second = asks ? Verdict::Question : Verdict::Own;
      }
    if (is_callback_of_weak_set(file, text_of(object->co_name))) return known->second = Verdict::Own;
    if (PySet_Contains(codes_.ptr(), code.ptr()) == 1) known->second = Verdict::Foreseen;
    else if (is_library(code)) known->second = Verdict::Library;
    return known->second;
  }

  nb::object functions_, codes_, questions_;
  // Looked up before: a frame may have builtins of its own, which cannot import.
  nb::object breaks_ = nb::module_::import_("umbra._dynamo.breaks");
  std::vector<std::string> own_;
  std::string library_;
  std::unordered_map<PyObject*, Verdict> verdicts_;
  std::vector<nb::object> kept_;  // code that must not make way for other code
};

thread_local std::unique_ptr<FrameWatch> g_watch;

/// What was there before a watch began: another profiler, for one.
struct Profiler {
  Py_tracefunc function = nullptr;
  nb::object object;
};

int on_event(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
  if (!g_watch || !is_capturing()) return 0;
  if (what != PyTrace_CALL && what != PyTrace_C_CALL) return 0;
  return guarded_int([&] {
    if (what == PyTrace_CALL) g_watch->on_call(frame);
    else g_watch->on_call_of_c(frame, argument);
    return 0;
  });
}

/// The watches around this thread's last one: a backend may capture, too.
thread_local std::vector<std::pair<Profiler, std::unique_ptr<FrameWatch>>> g_outer;

void start(nb::object functions, nb::object codes, nb::object questions, std::vector<std::string> own,
           std::string library) {
  classes();
  auto watch = std::make_unique<FrameWatch>(std::move(functions), std::move(codes), std::move(questions),
                                            std::move(own), std::move(library));
  PyThreadState* thread = PyThreadState_Get();
  g_outer.emplace_back(Profiler{thread->c_profilefunc, nb::borrow(thread->c_profileobj)}, std::move(g_watch));
  g_watch = std::move(watch);
  PyEval_SetProfile(on_event, nullptr);
}

void stop() {
  auto [before, outer] = std::move(g_outer.back());
  g_outer.pop_back();
  PyEval_SetProfile(before.function, before.object.ptr());
  g_watch = std::move(outer);
}

}  // namespace

bool is_the_user_asking() {
  PyFrameObject* frame = PyEval_GetFrame();
  return frame && g_watch && is_capturing() && !g_watch->is_own_call(frame);
}

void end_capture_of_question(const char* what) {
  if (is_the_user_asking()) end_capture(what, kSettings);
}

void end_capture_of_question(const Tensor& tensor, const char* what) {
  if (is_functional(tensor) && is_the_user_asking()) end_capture(what, kSettings);
}

void bind_capture_frames(nb::module_& m) {
  // _watch_frames(functions, codes, questions, own, library): until _stop_watching_frames() calls of Python functions
  // that are in neither set, and whose files are not in one of the folders `own`, go to breaks.not_foreseen before they
  // run. What these call of Python's library is theirs.
  m.def("_watch_frames", start);
  m.def("_stop_watching_frames", stop);
  // _is_of_user(frame): whether a frame of what is captured works for the user, and not for this package.
  m.def("_is_of_user", [](nb::handle frame) {
    return g_watch && is_capturing() && !g_watch->is_own_call(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  });
}

}  // namespace umbra::python
