// Tracing from Python: the running line, names of variables, warnings.
#include <nanobind/stl/shared_ptr.h>

#include "jit.h"
#include "tensor_type.h"
#include "umbra/core/warning.h"

namespace umbra::python {

namespace {

/// "file.py:12:0" of the innermost Python frame.
std::string running_line() {
  nb::gil_scoped_acquire lock;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return "";
  PyCodeObject* code = PyFrame_GetCode(frame);
  std::string out = concat(text_of(code->co_filename), ":", PyFrame_GetLineNumber(frame), ":0");
  Py_DECREF(code);
  return out;
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
  nb::object items = nb::steal(PyMapping_Items(locals.ptr()));
  for (nb::handle pair : items) {
    nb::handle value = pair[1];
    if (is_tensor(value.ptr()) && tensor_of(value.ptr()).is_same(tensor)) {
      std::string name = nb::cast<std::string>(pair[0]);
      if (name != "self" && !name.starts_with(".")) return name;
    }
  }
  return "";
}

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
      .def("enter_module", [](TraceRef& t, const std::string& path) { t.trace->enter_module(path); })
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
  m.def("_get_tracing_state", [] {
    bool tracing = jit::active_trace() != nullptr && jit::active_trace()->on;
    return tracing ? nb::object(nb::bool_(true)) : nb::object(nb::none());
  });
  m.def("_jit_is_tracing", [] { return jit::active_trace() != nullptr && jit::active_trace()->on; });
}

}  // namespace umbra::python
