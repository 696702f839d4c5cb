// Types, classes, functions, objects and graphs of TorchScript programs.
#include "jit.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include "tensor_type.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/passes.h"
#include "umbra/jit/source.h"
#include "values.h"

namespace umbra::python {

using jit::ClassPtr;
using jit::ClassType;
using jit::Function;
using jit::FunctionPtr;
using jit::Graph;
using jit::Type;
using jit::TypeKind;
using jit::TypePtr;
using jit::Variable;

namespace {

using GraphPtr = std::shared_ptr<Graph>;
using TypeRef = JitType;
using ClassRef = JitClass;
using FunctionRef = JitFunction;

nb::object jit_error() { return nb::module_::import_("umbra.jit").attr("Error"); }

template <class F> auto raising(F&& body) {
  try {
    return body();
  } catch (const jit::RaisedError& error) {
    PyErr_SetString(jit_error().ptr(), error.what());
    throw nb::python_error();
  }
}

// ---- types ----

TypePtr simple_by_name(const std::string& name) {
  for (int k = 0; k <= static_cast<int>(TypeKind::Function); ++k)
    if (TypePtr type = jit::simple_type(static_cast<TypeKind>(k)); type && type->annotation() == name) return type;
  fail<TypeError>("no TorchScript type is called ", name);
}

std::vector<TypePtr> types_of(const std::vector<TypeRef>& refs) {
  std::vector<TypePtr> out;
  for (const TypeRef& r : refs) out.push_back(r.type);
  return out;
}

const char* kind_name(TypeKind kind) {
  static const char* const names[] = {"TensorType",    "IntType",      "FloatType", "BoolType",     "ComplexType",
                                      "NumberType",    "StringType",   "NoneType",  "AnyType",      "DeviceObjType",
                                      "GeneratorType", "OptionalType", "ListType",  "TupleType",    "DictType",
                                      "UnionType",     "ClassType",    "EnumType",  "FunctionType", "FutureType"};
  return names[static_cast<int>(kind)];
}

void bind_types(nb::module_& m) {
  nb::class_<TypeRef>(m, "_jit_Type")
      .def("__str__", [](const TypeRef& t) { return t.type->annotation(); })
      .def("__repr__", [](const TypeRef& t) { return t.type->annotation(); })
      .def("str", [](const TypeRef& t) { return t.type->text(); })
      .def_prop_ro("annotation_str", [](const TypeRef& t) { return t.type->annotation(); })
      .def("kind",
           [](const TypeRef& t) {
             return t.type->cls && t.type->cls->is_interface ? "InterfaceType" : kind_name(t.type->kind);
           })
      .def("__eq__", [](const TypeRef& a, const TypeRef& b) { return jit::same_type(a.type, b.type); })
      .def("__hash__", [](const TypeRef& t) { return nb::hash(nb::cast(t.type->annotation())); })
      .def("isSubtypeOf", [](const TypeRef& a, const TypeRef& b) { return jit::is_subtype(a.type, b.type); })
      .def("unify",
           [](const TypeRef& a, const TypeRef& b) -> nb::object {
             TypePtr both = jit::unify(a.type, b.type);
             return both ? nb::cast(TypeRef{both}) : nb::none();
           })
      .def("elements",
           [](const TypeRef& t) {
             std::vector<TypeRef> out;
             for (const TypePtr& e : t.type->elements) out.push_back({e});
             return out;
           })
      .def("getElementType", [](const TypeRef& t) { return TypeRef{t.type->element()}; })
      .def("name",
           [](const TypeRef& t) {
             return t.type->cls ? t.type->cls->name.substr(t.type->cls->name.rfind('.') + 1) : t.type->name;
           })
      .def("qualified_name", [](const TypeRef& t) { return t.type->cls ? t.type->cls->name : t.type->name; })
      .def("sizes", [](const TypeRef& t) { return t.type->tensor.sizes; })
      .def("strides", [](const TypeRef& t) { return t.type->tensor.strides; })
      .def("dim",
           [](const TypeRef& t) {
             return t.type->tensor.sizes ? std::optional<size_t>(t.type->tensor.sizes->size()) : std::nullopt;
           })
      .def("scalarType",
           [](const TypeRef& t) -> std::optional<std::string> {
             return t.type->tensor.dtype ? std::optional<std::string>(kernel_name(*t.type->tensor.dtype))
                                         : std::nullopt;
           })
      .def("class_",
           [](const TypeRef& t) -> nb::object { return t.type->cls ? nb::cast(ClassRef{t.type->cls}) : nb::none(); });
  m.def("_jit_simple_type", [](const std::string& name) { return TypeRef{simple_by_name(name)}; });
  m.def("_jit_optional_type", [](const TypeRef& t) { return TypeRef{jit::optional_type(t.type)}; });
  m.def("_jit_list_type", [](const TypeRef& t) { return TypeRef{jit::list_type(t.type)}; });
  m.def("_jit_future_type", [](const TypeRef& t) { return TypeRef{jit::future_type(t.type)}; });
  m.def("_jit_dict_type", [](const TypeRef& k, const TypeRef& v) { return TypeRef{jit::dict_type(k.type, v.type)}; });
  m.def("_jit_tuple_type", [](const std::vector<TypeRef>& t) { return TypeRef{jit::tuple_type(types_of(t))}; });
  m.def("_jit_union_type", [](const std::vector<TypeRef>& t) { return TypeRef{jit::union_type(types_of(t))}; });
  m.def("_jit_named_tuple_type",
        [](const std::string& name, std::vector<std::string> fields, const std::vector<TypeRef>& t, nb::list defaults) {
          std::vector<Value> values;
          for (size_t i = 0; i < defaults.size(); ++i)
            values.push_back(to_jit(nb::object(defaults[i]).ptr(), t[t.size() - defaults.size() + i].type));
          return TypeRef{jit::named_tuple_type(name, std::move(fields), types_of(t), std::move(values))};
        });
  m.def(
      "_jit_type_of", [](nb::handle object) { return TypeRef{jit::type_of(to_jit(object.ptr(), nullptr))}; },
      nb::arg("object").none());
}

// ---- classes ----

/// What a class of programs has: overloads, hooks, constants, attributes and methods.
void bind_members(nb::class_<ClassRef>& cls) {
  cls.def("add_overloads", [](ClassRef& c, const std::string& name,
                              std::vector<std::string> methods) { c.cls->overloads[name] = std::move(methods); })
      .def("has_overloads", [](const ClassRef& c, const std::string& name) { return c.cls->overloads.contains(name); })
      .def("set_hooks",
           [](ClassRef& c, std::vector<std::string> pre, std::vector<std::string> post) {
             c.cls->pre_hooks = std::move(pre);
             c.cls->hooks = std::move(post);
           })
      .def("hooks", [](const ClassRef& c) { return std::make_pair(c.cls->pre_hooks, c.cls->hooks); })
      .def("is_interface", [](const ClassRef& c) { return c.cls->is_interface; })
      .def("constant",
           [](const ClassRef& c, const std::string& name) -> nb::object {
             for (const auto& [key, value] : c.cls->constants)
               if (key == name) return from_jit(value);
             fail<AttributeError>("'", c.cls->name, "' has no constant '", name, "'");
           })
      .def("has_constant",
           [](const ClassRef& c, const std::string& name) {
             for (const auto& [key, value] : c.cls->constants)
               if (key == name) return true;
             return false;
           })
      .def_prop_ro("name", [](const ClassRef& c) { return c.cls->name; })
      .def_prop_ro("type", [](const ClassRef& c) { return TypeRef{jit::class_type(c.cls)}; })
      .def("__eq__", [](const ClassRef& a, const ClassRef& b) { return a.cls == b.cls; })
      .def("__hash__", [](const ClassRef& a) { return reinterpret_cast<intptr_t>(a.cls.get()) >> 4; })
      .def(
          "add_attribute",
          [](ClassRef& c, const std::string& name, const TypeRef& type, bool parameter, bool buffer) {
            c.cls->add_attribute({name, type.type, parameter, buffer});
          },
          nb::arg("name"), nb::arg("type"), nb::arg("is_parameter") = false, nb::arg("is_buffer") = false)
      .def(
          "add_constant",
          [](ClassRef& c, const std::string& name, nb::handle value, std::optional<TypeRef> type) {
            c.cls->constants.emplace_back(name, to_jit(value.ptr(), type ? type->type : nullptr));
          },
          nb::arg("name"), nb::arg("value").none(), nb::arg("type") = nb::none())
      .def("attribute_names",
           [](const ClassRef& c) {
             std::vector<std::string> out;
             for (const auto& a : c.cls->attributes) out.push_back(a.name);
             return out;
           })
      .def("module_names",
           [](const ClassRef& c) {
             std::vector<std::string> out;
             for (const auto& a : c.cls->attributes)
               if (a.type->cls && a.type->cls->is_module) out.push_back(a.name);
             return out;
           })
      .def("attribute_type",
           [](const ClassRef& c, const std::string& name) -> nb::object {
             int i = c.cls->find(name);
             return i < 0 ? nb::none() : nb::cast(TypeRef{c.cls->attributes[static_cast<size_t>(i)].type});
           })
      .def("is_parameter",
           [](const ClassRef& c, const std::string& name) {
             int i = c.cls->find(name);
             return i >= 0 && c.cls->attributes[static_cast<size_t>(i)].is_parameter;
           })
      .def("is_buffer",
           [](const ClassRef& c, const std::string& name) {
             int i = c.cls->find(name);
             return i >= 0 && c.cls->attributes[static_cast<size_t>(i)].is_buffer;
           })
      .def("is_module", [](const ClassRef& c) { return c.cls->is_module; })
      .def("is_container", [](const ClassRef& c) { return c.cls->is_container; })
      .def("set_container", [](const ClassRef& c) { c.cls->is_container = true; })
      .def("add_method",
           [](ClassRef& c, const std::string& name, const FunctionRef& f) { c.cls->add_method(name, f.function); })
      .def("method",
           [](const ClassRef& c, const std::string& name) -> nb::object {
             FunctionPtr f = c.cls->method(name);
             return f ? nb::cast(FunctionRef{f}) : nb::none();
           })
      .def("new", [](const ClassRef& c) { return JitObject{Value::object(make_counted<jit::Instance>(c.cls))}; })
      .def("copy", [](const ClassRef& c) { return ClassRef{std::make_shared<ClassType>(*c.cls)}; });
}

void bind_classes(nb::module_& m) {
  nb::class_<ClassRef> cls(m, "_jit_Class");
  cls.def_static("make",
                 [](const std::string& name, bool is_module) {
                   auto cls = std::make_shared<ClassType>();
                   cls->name = name;
                   cls->is_module = is_module;
                   return ClassRef{cls};
                 })
      .def_static("make_interface",
                  [](const std::string& name, bool is_module) {
                    auto cls = std::make_shared<ClassType>();
                    cls->name = name;
                    cls->is_module = is_module;
                    cls->is_interface = true;
                    return ClassRef{cls};
                  })
      .def_static("make_enum", [](const std::string& name, const TypeRef& value,
                                  const std::vector<std::pair<std::string, nb::object>>& members) {
        auto cls = std::make_shared<ClassType>();
        cls->name = name;
        cls->is_enum = true;
        cls->enum_value = value.type;
        for (const auto& [key, object] : members) cls->constants.emplace_back(key, to_jit(object.ptr(), value.type));
        return ClassRef{cls};
      });
  bind_members(cls);
}

// ---- functions and methods ----

nb::object call_function(const FunctionPtr& function, nb::args args, nb::kwargs kwargs) {
  function->ensure();
  std::vector<Value> arguments = read_arguments(*function, 0, args, kwargs);
  return raising([&] {
    if (jit::Trace* trace = jit::active_trace())
      return from_jit(trace->call_function(function, std::move(arguments)), function->result);
    return from_jit(jit::run(*function, std::move(arguments)), function->result);
  });
}

nb::object call_method(const JitObject& self, const std::string& name, nb::args args, nb::kwargs kwargs) {
  FunctionPtr method = self.instance().cls->method(name);
  if (!method) fail<AttributeError>("'", self.instance().cls->name, "' object has no attribute or method '", name, "'");
  if (!method->ignored) method->ensure();
  std::vector<Value> arguments = read_arguments(*method, 1, args, kwargs);
  return raising([&] {
    if (jit::Trace* trace = jit::active_trace())
      return from_jit(trace->call_method(self.value, name, std::move(arguments)), method->result);
    arguments.insert(arguments.begin(), self.value);
    return from_jit(jit::run(*method, std::move(arguments)), method->result);
  });
}

/// A method's graph keeps the object, whose class has the methods that it calls.
GraphPtr graph_of(const FunctionRef& f) {
  auto both = std::make_shared<std::pair<GraphPtr, Value>>(f.function->ensure(), f.owner);
  return GraphPtr(both, both->first.get());
}

FunctionRef function_of_graph(const std::string& name, const GraphPtr& graph) {
  auto f = std::make_shared<Function>();
  f->name = name;
  f->graph = graph;
  for (const auto& v : graph->block().inputs())
    f->parameters.push_back({jit::parameter_name(*v), jit::without_details(v->type()), {}, false});
  if (graph->block().outputs.size() != 1) {
    jit::Variables outputs = graph->block().outputs;
    std::vector<TypePtr> types;
    for (Variable* v : outputs) types.push_back(v->type());
    graph->block().outputs.clear();
    graph->add_output(graph->insert("prim::TupleConstruct", outputs, {jit::tuple_type(types)})->output());
  }
  f->result = jit::without_details(graph->block().outputs[0]->type());
  return {f};
}

/// A function as a method of a class that it does not read.
FunctionRef method_of(Function& function, const ClassPtr& cls) {
  auto f = std::make_shared<Function>(function);
  function.ensure();
  f->name = cls->name + ".forward";
  f->define = nullptr;
  f->program = nullptr;
  f->parameters = function.parameters;
  f->result = function.result;
  f->graph = std::make_shared<Graph>();
  f->graph->add_input("self", jit::class_type(cls));
  jit::ValueMap values;
  for (const auto& v : function.graph->block().inputs()) {
    values[v.get()] = f->graph->block().add_input(v->type());
    if (!v->name().empty()) values[v.get()]->set_name(v->name());
  }
  f->graph->block().outputs = jit::copy_into(*f->graph, function.graph->block(), values);
  f->parameters.insert(f->parameters.begin(), {"self", jit::class_type(cls), {}, false});
  return {f};
}

void bind_script_functions(nb::module_& m) {
  nb::class_<FunctionRef>(m, "_jit_Function")
      .def_prop_ro("name",
                   [](const FunctionRef& f) { return f.function->name.substr(f.function->name.rfind('.') + 1); })
      .def_prop_ro("qualified_name", [](const FunctionRef& f) { return f.function->name; })
      .def_prop_ro("graph", graph_of)
      .def_prop_ro("schema", [](const FunctionRef& f) { return f.function->ensure(), f.function->schema(); })
      .def("inlined_graph",
           [](const FunctionRef& f) {
             GraphPtr copy = f.function->ensure()->copy();
             jit::inline_calls(*copy);
             return copy;
           })
      .def_prop_ro("code",
                   [](const FunctionRef& f) {
                     return jit::SourcePrinter().function(
                         *f.function, f.function->name.substr(f.function->name.rfind('.') + 1), false);
                   })
      .def("code_with_constants",
           [](const FunctionRef& f) {
             jit::SourcePrinter printer;
             std::string text =
                 printer.function(*f.function, f.function->name.substr(f.function->name.rfind('.') + 1), false);
             nb::dict constants;
             for (size_t i = 0; i < printer.constants().size(); ++i)
               constants[("c" + std::to_string(i)).c_str()] = from_jit(Value(printer.constants()[i]));
             return std::make_pair(text, constants);
           })
      .def(
          "set_default",
          [](FunctionRef& f, const std::string& name, nb::handle value) {
            for (auto& p : f.function->parameters)
              if (p.name == name) p.default_value = to_jit(value.ptr(), p.type);
          },
          nb::arg("name"), nb::arg("value").none())
      .def("set_parameter_type",
           [](FunctionRef& f, size_t i, const TypeRef& t) { f.function->parameters.at(i).type = t.type; })
      .def("set_result", [](FunctionRef& f, const TypeRef& t) { f.function->result = t.type; })
      .def("parameters",
           [](const FunctionRef& f) {
             std::vector<std::pair<std::string, TypeRef>> out;
             for (const auto& p : f.function->parameters) out.emplace_back(p.name, TypeRef{p.type});
             return out;
           })
      .def("result", [](const FunctionRef& f) { return f.function->ensure(), TypeRef{f.function->result}; })
      .def("declared_result",
           [](const FunctionRef& f) -> nb::object {
             return f.function->result ? nb::cast(TypeRef{f.function->result}) : nb::none();
           })
      .def("copy", [](const FunctionRef& f) { return FunctionRef{std::make_shared<Function>(*f.function)}; })
      .def("__eq__", [](const FunctionRef& a, const FunctionRef& b) { return a.function == b.function; })
      .def("__hash__", [](const FunctionRef& a) { return reinterpret_cast<intptr_t>(a.function.get()) >> 4; })
      .def("__call__", [](const FunctionRef& f, nb::args args, nb::kwargs kwargs) {
        return call_function(f.function, args, kwargs);
      });
  m.def("_jit_python_method",
        [](const std::string& name, nb::object callable, const std::vector<std::pair<std::string, TypeRef>>& parameters,
           const TypeRef& result) {
          auto f = std::make_shared<Function>();
          f->name = name;
          f->ignored = true;
          f->python = Value::object(make_counted<PythonObject>(callable.ptr()));
          for (const auto& [key, type] : parameters) f->parameters.push_back({key, type.type, {}, false});
          f->result = result.type;
          return FunctionRef{f};
        });
  m.def("_jit_unused_function", [](const FunctionRef& declared, const std::string& text) {
    auto f = std::make_shared<Function>(*declared.function);
    if (!f->result) f->result = jit::tensor_type();
    f->define = [text](Function& self) {  // takes what it takes, and raises
      self.graph = std::make_shared<Graph>();
      for (const auto& p : self.parameters) self.graph->add_input(p.name, p.type);
      self.graph->insert("prim::RaiseException", {self.graph->insert_constant(Value(text))}, {});
      self.graph->add_output(self.graph->insert("prim::Uninitialized", {}, {self.result})->output());
    };
    return FunctionRef{f};
  });
  m.def("_create_function_from_graph", function_of_graph);
  m.def("_jit_method_of", [](const FunctionRef& f, const ClassRef& c) { return method_of(*f.function, c.cls); });
  m.def("_jit_freeze", [](const JitObject& o, const std::vector<std::string>& preserved) {
    return JitObject{jit::freeze(o.value, preserved)};
  });
}

// ---- objects ----

void bind_objects(nb::module_& m) {
  nb::class_<JitObject>(m, "_jit_Object")
      .def("class_", [](const JitObject& o) { return ClassRef{o.instance().cls}; })
      .def("getattr",
           [](const JitObject& o, const std::string& name) {
             int i = o.instance().cls->find(name);
             Value v = load_shared(o.instance().attribute(name));
             return from_jit(v, o.instance().cls->attributes[static_cast<size_t>(i)].type);
           })
      .def("object", [](const JitObject& o,
                        const std::string& name) { return JitObject{load_shared(o.instance().attribute(name))}; })
      .def("hasattr", [](const JitObject& o, const std::string& name) { return o.instance().cls->find(name) >= 0; })
      .def(
          "setattr",
          [](JitObject& o, const std::string& name, nb::handle value) {
            Value& slot = o.instance().attribute(name);
            int i = o.instance().cls->find(name);
            store_shared(slot, to_jit(value.ptr(), o.instance().cls->attributes[static_cast<size_t>(i)].type));
          },
          nb::arg("name"), nb::arg("value").none())
      .def("_method_names", [](const JitObject& o) { return o.instance().cls->method_order; })
      .def("_has_method",
           [](const JitObject& o, const std::string& name) { return o.instance().cls->method(name) != nullptr; })
      .def("_get_method",
           [](const JitObject& o, const std::string& name) {
             FunctionPtr method = o.instance().cls->method(name);
             check(method != nullptr, "Method '", name, "' is not defined.");
             return FunctionRef{method, o.value};
           })
      .def("qualified_name", [](const JitObject& o) { return o.instance().cls->name; })
      .def("identity", [](const JitObject& o) { return reinterpret_cast<intptr_t>(o.value.object()); })
      .def("__eq__", [](const JitObject& a, const JitObject& b) { return a.value.object() == b.value.object(); })
      .def("__hash__", [](const JitObject& o) { return reinterpret_cast<intptr_t>(o.value.object()) >> 4; })
      .def("deepcopy",
           [](const JitObject& o, bool tensors) {
             std::unordered_map<const void*, Value> memo;
             return JitObject{jit::deep_copy(o.value, tensors, memo)};
           })
      .def("call", [](const JitObject& o, const std::string& name, nb::args args, nb::kwargs kwargs) {
        return call_method(o, name, args, kwargs);
      });
}

/// Switches of PyTorch's executor that programs here do not depend on; they keep what was set.
void bind_switches(nb::module_& m) {
  static bool inline_everything = true, profiling = true, optimize = true;
  m.def("_jit_get_inline_everything_mode", [] { return inline_everything; });
  m.def("_jit_set_inline_everything_mode", [](bool on) { inline_everything = on; });
  m.def("_jit_set_profiling_executor", [](bool on) { return std::exchange(profiling, on); });
  m.def("_jit_set_profiling_mode", [](bool on) { return std::exchange(profiling, on); });
  m.def(
      "_get_graph_executor_optimize",
      [](std::optional<bool> on) { return on ? std::exchange(optimize, *on) : optimize; }, nb::arg("on") = nb::none());
}

}  // namespace

void bind_jit(nb::module_& m) {
  bind_switches(m);
  bind_jit_values(m);
  bind_types(m);
  bind_classes(m);
  bind_jit_graphs(m);
  bind_jit_passes(m);
  bind_script_functions(m);
  bind_objects(m);
  bind_jit_trace(m);
  bind_jit_script(m);
  bind_jit_files(m);
  bind_jit_containers(m);
}

}  // namespace umbra::python
