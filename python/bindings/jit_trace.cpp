// Tracing from Python: the running line, names of variables, warnings.
#include <nanobind/stl/shared_ptr.h>

#include "jit.h"
#include "lock.h"
#include "tensor_type.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

/// "file.py:12:0" of an instruction.
class Instruction final : public jit::LateText, public jit::RecycledObject<Instruction> {
 public:
  Instruction(PyCodeObject* code, int offset) : code_(code), offset_(offset) {}  // takes the reference
  ~Instruction() override {
    if (!Py_IsInitialized()) return;
    WithLock lock;
    Py_DECREF(code_);
  }
  std::string text() const override {
    WithLock lock;
    return concat(text_of(code_->co_filename), ":", PyCode_Addr2Line(code_, offset_), ":0");
  }
  /// As Python's own stacks show it.
  jit::SourceRange range() const override {
    WithLock lock;
    std::string line = concat(text_of(code_->co_filename), "(", PyCode_Addr2Line(code_, offset_),
                              "): ", text_of(code_->co_name), "\n");
    size_t size = line.size();
    return {std::make_shared<jit::SourceText>(jit::SourceText{.text = std::move(line), .file = ""}), 0, size};
  }

 private:
  PyCodeObject* code_;
  int offset_;
};

/// Where the innermost Python frame stands.
jit::SharedText running_line() {
  WithLock lock;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  return make_counted<Instruction>(PyFrame_GetCode(frame), PyFrame_GetLasti(frame));
}

/// The local variables of the function that calls an operator, read once for all of the call's arguments.
class Locals {
 public:
  static Locals& running() {
    thread_local Locals locals;
    return locals;
  }
  void forget() { dict_.reset(), frame_.reset(); }

  std::string name_of(const Tensor& tensor) {
    PyFrameObject* frame = PyEval_GetFrame();
    if (!frame) return "";
    if (frame_.ptr() != reinterpret_cast<PyObject*>(frame) || at_ != PyFrame_GetLasti(frame)) read(frame);
    if (!dict_.is_valid()) return "";
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict_.ptr(), &at, &key, &value);) {
      if (!is_tensor(value) || !tensor_of(value).is_same(tensor)) continue;
      std::string_view name = text_of(key);
      if (name != "self" && !name.starts_with(".")) return std::string(name);
    }
    return "";
  }

 private:
  void read(PyFrameObject* frame) {
    frame_ = nb::borrow(reinterpret_cast<PyObject*>(frame));
    at_ = PyFrame_GetLasti(frame);
    dict_.reset();
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool own = text_of(code->co_filename).ends_with("umbra/jit/_trace.py");  // its names are not the user's
    Py_DECREF(code);
    if (own) return;
    dict_ = nb::steal(PyFrame_GetLocals(frame));
    if (!dict_.is_valid()) return PyErr_Clear();
    if (!PyDict_Check(dict_.ptr())) dict_ = nb::module_::import_("builtins").attr("dict")(dict_);
  }

  nb::object frame_, dict_;
  int at_ = -1;  // the frame's instruction
};

/// The name of a local variable of the running function that holds the tensor.
std::string variable_name(const Tensor& tensor) {
  WithLock lock;
  return Locals::running().name_of(tensor);
}

void forget_locals() {
  WithLock lock;
  Locals::running().forget();
}

/// The name that a class has in programs, without the number that tells it from others of the name.
std::string plain_name(nb::handle cls) {
  std::string module = nb::cast<std::string>(cls.attr("__module__"));
  std::string name = nb::cast<std::string>(cls.attr("__name__"));
  std::string path = "__torch__.";
  if (module == "umbra" || module.starts_with("umbra.")) path += "torch" + module.substr(5) + ".";
  else if (module != "__main__") path += module + ".";
  return path + name;
}

/// How often each name was given.
int& count_of(const std::string& name) {
  static std::unordered_map<std::string, int> counts;
  return counts[name];
}

std::string numbered(const std::string& name, int& count) {
  if (count++ == 0) return name;
  size_t dot = name.rfind('.');
  return concat(std::string_view(name).substr(0, dot), ".___torch_mangle_", count - 2,
                std::string_view(name).substr(dot));
}

/// The name that a class has in programs, with a number where another one has it already.
std::string qualified_name(nb::handle cls) {
  std::string name = plain_name(cls);
  return numbered(name, count_of(name));
}

/// The objects of a program by the modules that they are of.
using TracedModules = std::unordered_map<PyObject*, Value>;
struct TracedModulesRef {
  std::shared_ptr<const TracedModules> modules;
};

/// What the trace on this thread makes methods of.
struct RunningTrace {
  jit::Trace* trace = nullptr;
  const TracedModules* modules = nullptr;
};
thread_local RunningTrace g_running;

/// A trace that records on this thread.
class Recording {
 public:
  Recording(jit::Trace& trace, const TracedModules* modules)
      : scope_(trace), before_(std::exchange(g_running, {&trace, modules})) {}
  ~Recording() { g_running = before_; }
  Recording(const Recording&) = delete;

 private:
  jit::TraceScope scope_;
  RunningTrace before_;
};

/// Makes the objects of a program for a module and for those inside it: tensors and modules, and no methods yet.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(nb::handle marked_methods) : marked_methods_(marked_methods) {}

  Value build(nb::handle module) {
    nb::object own = owned(PyObject_GenericGetDict(module.ptr(), nullptr));
    auto entry = [&](const char* name) { return PyDict_GetItemWithError(own.ptr(), interned(name)); };
    if (PyObject* compiled = entry("_c")) return nb::cast<JitObject>(nb::handle(compiled)).value;
    if (auto found = modules.find(module.ptr()); found != modules.end()) return found->second;
    for (const char* hooks : {"_backward_hooks", "_backward_pre_hooks"})
      if (PyObject* found = entry(hooks); found && PyObject_IsTrue(found) == 1)
        fail<ValueError>("Modules that have backward hooks assigned can't be compiled: ", nb::str(module).c_str());
    return finish(
        module, make(module, members(module, "_parameters"), members(module, "_buffers"), members(module, "_modules")));
  }

  TracedModules modules;
  nb::list marked;  // (module, object) of classes with marks

 private:
  struct Known {
    std::string name;
    int* count;
    bool has_marks;
  };

  static PyObject* interned(const char* name) {
    static std::unordered_map<std::string_view, PyObject*> names;
    PyObject*& found = names[name];
    return found ? found : found = PyUnicode_InternFromString(name);
  }
  static nb::dict members(nb::handle module, const char* kind) {
    return nb::borrow<nb::dict>(owned(PyObject_GetAttr(module.ptr(), interned(kind))));
  }

  const Known& known(nb::handle type) {
    auto [found, fresh] = types_.try_emplace(type.ptr());
    if (fresh) {
      std::string name = plain_name(type);
      int& count = count_of(name);
      found->second = {std::move(name), &count, nb::len(marked_methods_(type)) > 0};
    }
    return found->second;
  }

  Value make(nb::handle module, nb::dict parameters, nb::dict buffers, nb::dict children) {
    static const jit::TypePtr tensor = jit::tensor_type(), none = jit::simple_type(jit::TypeKind::None),
                              truth = jit::simple_type(jit::TypeKind::Bool), maybe = jit::optional_type(truth);
    auto cls = std::make_shared<jit::ClassType>();
    const Known& type = known(module.type());
    cls->name = numbered(type.name, *type.count);
    cls->is_module = true;
    std::vector<Value> values;
    size_t count = parameters.size() + buffers.size() + children.size() + 2;
    cls->attributes.reserve(count);
    values.reserve(count);
    auto add = [&](std::string name, const jit::TypePtr& of, Value value, bool parameter = false, bool buffer = false) {
      cls->add_attribute({std::move(name), of, parameter, buffer});
      values.push_back(std::move(value));
    };
    for (bool parameter : {true, false})
      for (auto [name, value] : parameter ? parameters : buffers) {
        const jit::TypePtr& of = value.is_none() ? none : tensor;
        add(std::string(text_of(name.ptr())), of, to_jit(value.ptr(), of), parameter && of == tensor,
            !parameter && of == tensor);
      }
    add("training", truth, Value(nb::cast<bool>(module.attr("training"))));
    add("_is_full_backward_hook", maybe, Value());
    for (auto [name, child] : children) {
      if (child.is_none()) continue;
      Value made = build(child);
      jit::TypePtr of = jit::class_type(jit::expect_object<jit::Instance>(made, "a module").cls);
      add(std::string(text_of(name.ptr())), of, std::move(made));
    }
    auto instance = make_counted<jit::Instance>(std::move(cls));
    instance->slots = std::move(values);
    return Value::object(instance);
  }

  Value finish(nb::handle module, Value made) {
    modules.emplace(module.ptr(), made);
    if (known(module.type()).has_marks) marked.append(nb::make_tuple(module, JitObject{made}));
    return made;
  }

  nb::handle marked_methods_;
  std::unordered_map<PyObject*, Known> types_;
};

void warn_in_python(const std::string& text) {
  WithLock lock;
  nb::object warn = nb::module_::import_("umbra.jit._trace").attr("_warn");
  warn(text);
}

}  // namespace

TracedModuleCall::TracedModuleCall(PyObject* module) {
  if (!possible()) return;
  auto found = g_running.modules->find(module);
  if (found == g_running.modules->end()) return;
  g_running.trace->enter_module(found->second);
  trace_ = g_running.trace;
}
TracedModuleCall::~TracedModuleCall() {
  if (trace_) trace_->leave_module();
}
bool TracedModuleCall::possible() { return g_running.modules != nullptr; }

void bind_jit_trace(nb::module_& m) {
  jit::set_trace_front_end({running_line, variable_name, warn_in_python, forget_locals});
  using TracePtr = IntrusivePtr<jit::Trace>;
  struct TraceRef {
    TracePtr trace;
    std::shared_ptr<const TracedModules> modules;  // null: none has a method of its own
    std::unique_ptr<Recording> recording;
  };
  nb::class_<TracedModulesRef>(m, "_jit_TracedModules");
  nb::class_<TraceRef>(m, "_jit_Trace")
      .def(
          "__init__",
          [](TraceRef* t, bool force_outplace) {
            new (t) TraceRef{make_counted<jit::Trace>(force_outplace), nullptr, nullptr};
          },
          nb::arg("force_outplace") = false)
      .def("enter", [](TraceRef& t) { t.recording = std::make_unique<Recording>(*t.trace, t.modules.get()); })
      .def("leave", [](TraceRef& t) { t.recording = nullptr; })
      .def("set_modules", [](TraceRef& t, const TracedModulesRef& m) { t.modules = m.modules; })
      .def("set_self", [](TraceRef& t, const JitObject& o) { t.trace->set_self(o.value); })
      .def("add_input", [](TraceRef& t, const std::string& name,
                           nb::handle value) { t.trace->add_input(name, to_jit(value.ptr(), nullptr)); })
      .def(
          "set_output",
          [](TraceRef& t, nb::handle value, bool strict) { t.trace->set_output(to_jit(value.ptr(), nullptr), strict); },
          nb::arg("value").none(), nb::arg("strict"))
      .def("make_methods", [](TraceRef& t, const std::string& method) { t.trace->make_methods(method); })
      .def("record_python",
           [](TraceRef& t, const std::string& name, nb::object function, nb::args args) {
             // The last two are the result and whether the function wrote its inputs.
             std::vector<Value> arguments;
             for (size_t i = 0; i + 2 < args.size(); ++i)
               if (is_tensor(args[i].ptr())) arguments.push_back(to_jit(args[i].ptr(), nullptr));
             t.trace->record_python(name, Value::object(make_counted<PythonObject>(function.ptr())), arguments,
                                    to_jit(args[args.size() - 2].ptr(), nullptr),
                                    nb::cast<bool>(args[args.size() - 1]));
           })
      .def("knows", [](TraceRef& t, const Tensor& tensor) { return t.trace->knows(tensor); })
      .def_prop_rw(
          "on", [](TraceRef& t) { return t.trace->on; }, [](TraceRef& t, bool on) { t.trace->on = on; })
      .def_prop_ro("graph", [](TraceRef& t) { return t.trace->graph(); });
  m.def("_jit_qualified_name", qualified_name);
  m.def("_jit_build", [](nb::handle module, nb::handle marked_methods) {
    ModuleBuilder builder(marked_methods);
    Value made = builder.build(module);
    builder.modules.erase(module.ptr());  // calls of the root are no calls
    TracedModulesRef modules{std::make_shared<TracedModules>(std::move(builder.modules))};
    return nb::make_tuple(JitObject{made}, std::move(modules), builder.marked);
  });
  struct TracingState {
    TracePtr trace;
  };
  nb::class_<TracingState>(m, "TracingState")
      .def("push_scope", [](TracingState& s, const std::string& name) { s.trace->push_scope(name); })
      .def("pop_scope", [](TracingState& s) { s.trace->pop_scope(); })
      .def("current_scope", [](TracingState& s) { return s.trace->current_scope(); })
      .def("graph", [](TracingState& s) { return s.trace->graph(); })
      .def("__repr__", [](TracingState&) { return "<TracingState>"; });
  m.def("_get_tracing_state", []() -> nb::object {
    jit::Trace* trace = jit::active_trace();
    return trace && trace->on ? nb::cast(TracingState{TracePtr(trace)}) : nb::object(nb::none());
  });
  m.def("_jit_is_tracing", [] { return jit::active_trace() != nullptr && jit::active_trace()->on; });
}

}  // namespace umbra::python
