// The C++ side of fx.GraphModule: Python's object holds one of these and keeps its attributes in step.
#include "autograd.h"
#include "graph_objects.h"
#include "tensor_type.h"
#include "umbra/capture/retrace.h"
#include "umbra/graph/interpreter.h"
#include "umbra/graph/print.h"

namespace umbra::python {

namespace {

/// A module written in Python, called by graphs.
class PythonModule final : public umbra::Callable {
 public:
  explicit PythonModule(nb::handle module) : module_(module) {}
  Value call(std::vector<Value> inputs) const override {
    WithLock lock;
    nb::list args;
    for (const Value& v : inputs) args.append(nb::steal(checked(wrap(v))));
    return read_any(owned(PyObject_CallObject(module_.get(), owned(PyList_AsTuple(args.ptr())).ptr())).ptr());
  }
  PyObject* object() const { return module_.get(); }

 private:
  python::Callable module_;
};

constexpr const char* kKinds[] = {"parameter", "buffer", "constant", "module", "object"};

fx::AttributeKind read_kind(const std::string& name) {
  for (size_t i = 0; i < std::size(kKinds); ++i)
    if (name == kKinds[i]) return static_cast<fx::AttributeKind>(i);
  fail<ValueError>("unknown kind of attribute: ", name);
}

Value read_attribute(nb::handle value, const std::string& kind) {
  GraphModuleObject* graph_module;
  if (!value.is_none() && nb::try_cast(value, graph_module)) return Value::object(graph_module->module);
  if (kind == "module") return Value::object(make_counted<PythonModule>(value));
  return read_any(value.ptr());
}

/// What an attribute is to Python: a tensor, a graph module, or the object itself.
nb::object wrap_attribute(const Value& value) {
  if (value.tag() == Value::Tag::Object) {
    if (auto* module = dynamic_cast<fx::GraphModule*>(value.object()))
      return nb::cast(GraphModuleObject{IntrusivePtr<fx::GraphModule>(module)});
    if (auto* module = dynamic_cast<PythonModule*>(value.object())) return nb::borrow(module->object());
  }
  return nb::steal(checked(wrap(value)));
}

}  // namespace

std::vector<Value> read_values(nb::handle sequence) {
  std::vector<Value> out;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) out.push_back(read_any(item.ptr()));
  return out;
}

nb::list wrap_values(const std::vector<Value>& values) {
  nb::list out;
  for (const Value& v : values) out.append(nb::steal(checked(wrap(v))));
  return out;
}

void bind_graph_module(nb::module_& m) {
  nb::class_<GraphModuleObject>(m, "_GraphModule", nb::type_slots(graph_module_slots))
      .def_prop_ro("_cdata", [](const GraphModuleObject& g) { return reinterpret_cast<uintptr_t>(g.module.get()); })
      .def_prop_ro("graph", [](const GraphModuleObject& g) { return wrap(g.module->graph()); })
      .def_prop_rw(
          "class_name", [](const GraphModuleObject& g) { return g.module->class_name(); },
          [](GraphModuleObject& g, const std::string& name) { g.module->set_class_name(name); })
      .def("attributes",
           [](const GraphModuleObject& g) {
             nb::list out;
             for (const fx::Attribute& a : g.module->attributes())
               out.append(nb::make_tuple(a.path, kKinds[static_cast<int>(a.kind)], wrap_attribute(a.value)));
             return out;
           })
      .def(
          "set",
          [](GraphModuleObject& g, const std::string& path, nb::handle value, const std::string& kind) {
            g.module->set(path, read_attribute(value, kind), read_kind(kind));
          },
          nb::arg("path"), nb::arg("value").none(), nb::arg("kind"))
      .def("holds_tensor",
           [](const GraphModuleObject& g, const std::string& path, const Tensor& tensor) {
             const Value* value = g.module->find(path);
             return value && value->is_tensor() && value->tensor_ref().is_same(tensor);
           })
      .def("remove", [](GraphModuleObject& g, const std::string& path) { g.module->remove(path); })
      .def("run",
           [](const GraphModuleObject& g, nb::handle inputs) {
             fx::PlainErrors plain;
             return wrap_values(g.module->run(read_values(inputs)));
           })
      .def("run_with_origins",
           [](const GraphModuleObject& g, nb::handle inputs) {
             return wrap_values(run_with_origins(g.module, read_values(inputs)));
           })
      .def("call", [](const GraphModuleObject& g,
                      nb::handle inputs) { return nb::steal(wrap(g.module->call(read_values(inputs)))); })
      .def("code", [](const GraphModuleObject& g) { return g.module->code(); })
      .def(
          "readable",
          [](const GraphModuleObject& g, bool stride, bool device) {
            return fx::readable_code(*g.module, {.verbose = true, .include_stride = stride, .include_device = device});
          },
          nb::arg("include_stride") = false, nb::arg("include_device") = false);
}

}  // namespace umbra::python
