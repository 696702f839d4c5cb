// Tracing from Python: the running line, names of variables, warnings.
#include <nanobind/stl/shared_ptr.h>

#include "jit.h"
#include "tensor_type.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

/// "file.py:12:0" of an instruction.
class Instruction final : public jit::LateText {
 public:
  Instruction(PyCodeObject* code, int offset) : code_(code), offset_(offset) {}  // takes the reference
  ~Instruction() override {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire lock;
    Py_DECREF(code_);
  }
  std::string text() const override {
    nb::gil_scoped_acquire lock;
    return concat(text_of(code_->co_filename), ":", PyCode_Addr2Line(code_, offset_), ":0");
  }

 private:
  PyCodeObject* code_;
  int offset_;
};

/// Where the innermost Python frame stands.
jit::SharedText running_line() {
  nb::gil_scoped_acquire lock;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  return make_counted<Instruction>(PyFrame_GetCode(frame), PyFrame_GetLasti(frame));
}

/// The name of a local variable of the running function that holds the tensor.
std::string variable_name(const Tensor& tensor) {
  nb::gil_scoped_acquire lock;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return "";
  PyCodeObject* code = PyFrame_GetCode(frame);
  bool own = text_of(code->co_filename).ends_with("umbra/jit/_trace.py");  // its names are not the user's
  Py_DECREF(code);
  if (own) return "";
  nb::object locals = nb::steal(PyFrame_GetLocals(frame));
  if (!locals.is_valid()) {
    PyErr_Clear();
    return "";
  }
  if (!PyDict_Check(locals.ptr())) locals = nb::module_::import_("builtins").attr("dict")(locals);
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(locals.ptr(), &at, &key, &value);) {
    if (!is_tensor(value) || !tensor_of(value).is_same(tensor)) continue;
    std::string_view name = text_of(key);
    if (name != "self" && !name.starts_with(".")) return std::string(name);
  }
  return "";
}

/// The name that a class has in programs, with a number where another one has it already.
std::string qualified_name(nb::handle cls) {
  static std::unordered_map<std::string, int> in_use;
  std::string module = nb::cast<std::string>(cls.attr("__module__"));
  std::string name = nb::cast<std::string>(cls.attr("__name__"));
  std::string path = "__torch__";
  if (module == "umbra" || module.starts_with("umbra.")) path += ".torch" + module.substr(5);
  else if (module != "__main__") path += "." + module;
  int count = in_use[path + "." + name]++;
  return count == 0 ? path + "." + name : concat(path, ".___torch_mangle_", count - 1, ".", name);
}

/// Makes the objects of a program for a module and for those inside it: tensors and modules, and no methods yet.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(nb::handle marked_methods) : marked_methods_(marked_methods) {}

  Value build(nb::handle module) {
    nb::dict own = nb::cast<nb::dict>(module.attr("__dict__"));
    if (PyObject* compiled = PyDict_GetItemString(own.ptr(), "_c"))
      return nb::cast<JitObject>(nb::handle(compiled)).value;
    if (auto found = known_.find(module.ptr()); found != known_.end()) return found->second;
    for (const char* hooks : {"_backward_hooks", "_backward_pre_hooks"})
      if (PyObject* found = PyDict_GetItemString(own.ptr(), hooks); found && PyObject_IsTrue(found) == 1)
        fail<ValueError>("Modules that have backward hooks assigned can't be compiled: ", nb::str(module).c_str());
    auto cls = std::make_shared<jit::ClassType>();
    cls->name = qualified_name(module.type());
    cls->is_module = true;
    std::vector<Value> values;
    auto add = [&](std::string name, jit::TypePtr type, Value value, bool parameter = false, bool buffer = false) {
      cls->add_attribute({std::move(name), std::move(type), parameter, buffer});
      values.push_back(std::move(value));
    };
    for (bool parameter : {true, false})
      each(module, parameter ? "_parameters" : "_buffers", [&](std::string name, nb::handle tensor) {
        bool none = tensor.is_none();
        jit::TypePtr type = none ? jit::simple_type(jit::TypeKind::None) : jit::tensor_type();
        Value value = to_jit(tensor.ptr(), type);
        add(std::move(name), std::move(type), std::move(value), parameter && !none, !parameter && !none);
      });
    static const jit::TypePtr truth = jit::simple_type(jit::TypeKind::Bool), maybe = jit::optional_type(truth);
    add("training", truth, Value(nb::cast<bool>(module.attr("training"))));
    add("_is_full_backward_hook", maybe, Value());
    each(module, "_modules", [&](std::string name, nb::handle child) {
      if (child.is_none()) return;
      Value made = build(child);
      jit::TypePtr type = jit::class_type(jit::expect_object<jit::Instance>(made, "a module").cls);
      add(std::move(name), std::move(type), std::move(made));
    });
    auto instance = make_counted<jit::Instance>(cls);
    instance->slots = std::move(values);
    return finish(module, Value::object(instance));
  }

  nb::dict objects;  // by the modules' ids
  nb::list marked;   // (module, object) of classes with marks

 private:
  template <class F> static void each(nb::handle module, const char* kind, F&& visit) {
    nb::object members = module.attr(kind);
    for (auto [name, value] : nb::borrow<nb::dict>(members)) visit(std::string(text_of(name.ptr())), value);
  }

  Value finish(nb::handle module, Value made) {
    known_[module.ptr()] = made;
    nb::object object = nb::cast(JitObject{made});
    objects[nb::steal(PyLong_FromVoidPtr(module.ptr()))] = object;
    auto [found, fresh] = has_marks_.try_emplace(module.type().ptr(), false);
    if (fresh) found->second = nb::len(marked_methods_(module.type())) > 0;
    if (found->second) marked.append(nb::make_tuple(module, object));
    return made;
  }

  nb::handle marked_methods_;
  std::unordered_map<PyObject*, Value> known_;
  std::unordered_map<PyObject*, bool> has_marks_;
};

void warn_in_python(const std::string& text) {
  nb::gil_scoped_acquire lock;
  nb::object warn = nb::module_::import_("umbra.jit._trace").attr("_warn");
  warn(text);
}

}  // namespace

void bind_jit_trace(nb::module_& m) {
  jit::set_trace_front_end({running_line, variable_name, warn_in_python});
  using TracePtr = IntrusivePtr<jit::Trace>;
  struct TraceRef {
    TracePtr trace;
    std::shared_ptr<jit::TraceScope> scope;
  };
  nb::class_<TraceRef>(m, "_jit_Trace")
      .def(
          "__init__",
          [](TraceRef* t, bool force_outplace) {
            new (t) TraceRef{make_counted<jit::Trace>(force_outplace), nullptr};
          },
          nb::arg("force_outplace") = false)
      .def("enter", [](TraceRef& t) { t.scope = std::make_shared<jit::TraceScope>(*t.trace); })
      .def("leave", [](TraceRef& t) { t.scope = nullptr; })
      .def("set_self", [](TraceRef& t, const JitObject& o) { t.trace->set_self(o.value); })
      .def("add_input", [](TraceRef& t, const std::string& name,
                           nb::handle value) { t.trace->add_input(name, to_jit(value.ptr(), nullptr)); })
      .def(
          "set_output",
          [](TraceRef& t, nb::handle value, bool strict) { t.trace->set_output(to_jit(value.ptr(), nullptr), strict); },
          nb::arg("value").none(), nb::arg("strict"))
      .def("enter_module", [](TraceRef& t, const JitObject& module) { t.trace->enter_module(module.value); })
      .def("leave_module", [](TraceRef& t) { t.trace->leave_module(); })
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
    builder.objects.attr("pop")(nb::steal(PyLong_FromVoidPtr(module.ptr())),
                                nb::none());  // calls of the root are no calls
    return nb::make_tuple(JitObject{made}, builder.objects, builder.marked);
  });
  m.def("_get_tracing_state", [] {
    bool tracing = jit::active_trace() != nullptr && jit::active_trace()->on;
    return tracing ? nb::object(nb::bool_(true)) : nb::object(nb::none());
  });
  m.def("_jit_is_tracing", [] { return jit::active_trace() != nullptr && jit::active_trace()->on; });
}

}  // namespace umbra::python
