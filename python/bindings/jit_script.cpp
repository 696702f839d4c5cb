// Compiling Python functions: their source is read in C++, names are looked up in Python.
#include "jit.h"
#include "tensor_type.h"
#include "umbra/jit/compile.h"

namespace umbra::python {

using jit::Sugared;
using jit::SugaredPtr;

namespace {

nb::object exception(const char* name) { return nb::module_::import_("umbra.jit.frontend").attr(name); }

/// What Python cannot compile is told by its own exceptions.
template <class F> auto compiling(F&& body) {
  try {
    return body();
  } catch (const jit::UnsupportedSyntax& error) {
    PyErr_SetString(exception(error.node ? "UnsupportedNodeError" : "NotSupportedError").ptr(), error.what());
    throw nb::python_error();
  }
}

/// Asks Python what names stand for: an object with the methods name, type and member.
class PythonResolver final : public jit::Resolver {
 public:
  explicit PythonResolver(nb::object names) : names_(std::move(names)) {}

  SugaredPtr name(const std::string& name) override { return read(names_.attr("name")(name)); }
  jit::TypePtr type(const std::string& text) override {
    nb::object found = names_.attr("type")(text);
    return found.is_none() ? nullptr : nb::cast<JitType>(found).type;
  }
  std::string generic(const std::string& path) override { return nb::cast<std::string>(names_.attr("generic")(path)); }
  SugaredPtr attribute(const Sugared& of, const std::string& name) override {
    if (of.kind == Sugared::Kind::Python)
      return read(
          names_.attr("attribute")(nb::handle(jit::expect_object<PythonObject>(of.value, "an object").get()), name));
    jit::ClassPtr cls = of.kind == Sugared::Kind::Variable ? of.variable->type()->cls
                        : of.type                          ? of.type->cls
                                                           : nullptr;
    if (!cls) return nullptr;
    nb::object found = names_.attr("member")(JitClass{cls}, name);
    if (found.is_none()) return nullptr;
    if (nb::isinstance<nb::str>(found[0]) && nb::cast<std::string>(found[0]) == "method") {
      auto s = std::make_shared<Sugared>();
      s->kind = Sugared::Kind::Method;
      s->self = std::make_shared<Sugared>(of);
      s->name = nb::cast<std::string>(nb::object(found[1]));  // of a property: its getter
      return s;
    }
    return read(found);
  }
  std::string setter(const Sugared& of, const std::string& name) override {
    if (!of.variable || !of.variable->type()->cls) return "";
    return nb::cast<std::string>(names_.attr("setter")(JitClass{of.variable->type()->cls}, name));
  }
  jit::FunctionPtr callable(const Sugared& of, size_t count) override {
    nb::object found =
        names_.attr("callable")(nb::handle(jit::expect_object<PythonObject>(of.value, "an object").get()), count);
    return found.is_none() ? nullptr : nb::cast<JitFunction>(found).function;
  }
  std::optional<bool> module_instance(const jit::TypePtr& type, const std::string& path) override {
    nb::object cls = type->cls ? nb::cast(JitClass{type->cls}) : nb::none();
    nb::object found = names_.attr("module_instance")(cls, path);
    return found.is_none() ? std::nullopt : std::optional(nb::cast<bool>(found));
  }
  std::string exception(const std::string& path) override {
    return nb::cast<std::string>(names_.attr("exception")(path));
  }

 private:
  SugaredPtr read(nb::object found) {
    if (found.is_none()) return nullptr;
    std::string kind = nb::cast<std::string>(found[0]);
    nb::object what = found[1];
    if (kind == "builtin") return jit::sugar_builtin(nb::cast<std::string>(what));
    if (kind == "namespace") return jit::sugar_namespace(nb::cast<std::string>(what));
    if (kind == "function") return jit::sugar_function(nb::cast<JitFunction>(what).function);
    if (kind == "type") return jit::sugar_type(nb::cast<JitType>(what).type);
    if (kind == "constant") return jit::sugar_constant(to_jit(what.ptr(), nullptr));
    if (kind == "typed") return jit::sugar_constant(to_jit(nb::object(what[1]).ptr(), nb::cast<JitType>(what[0]).type));
    if (kind == "choice") {  // an argument's name and place, its default, and what it chooses from
      auto s = std::make_shared<Sugared>();
      s->kind = Sugared::Kind::Choice;
      s->name = nb::cast<std::string>(nb::object(what[0]));
      s->place = nb::cast<size_t>(nb::object(what[1]));
      s->value = Value(nb::cast<bool>(nb::object(what[2])));
      s->parts = {read(what[3]), read(what[4])};
      return s;
    }
    if (kind == "overloads") {
      auto s = std::make_shared<Sugared>();
      s->kind = Sugared::Kind::Overloads;
      for (nb::handle f : nb::cast<nb::list>(what))
        s->parts.push_back(jit::sugar_function(nb::cast<JitFunction>(f).function));
      return s;
    }
    auto s = std::make_shared<Sugared>();
    if (kind == "error") {
      s->kind = Sugared::Kind::Refused;
      s->name = nb::cast<std::string>(what);
      return s;
    }
    s->kind = Sugared::Kind::Python;
    s->name = type_name(what.ptr());
    s->value = Value::object(make_counted<PythonObject>(what.ptr()));
    return s;
  }
  nb::object names_;
};

/// A parameter's default; one without an annotation is a tensor.
Value default_of(const jit::Parameter& parameter, nb::handle value) {
  bool tensor = parameter.type->is(jit::TypeKind::Tensor);
  if (tensor && !is_tensor(value.ptr()))
    throw jit::CompileError(concat("Expected a default value of type Tensor (inferred) on parameter \"", parameter.name,
                                   "\". Because \"", parameter.name,
                                   "\" was not annotated with an explicit type it is assumed to be type 'Tensor'."));
  return to_jit(value.ptr(), parameter.type);
}

JitFunction compile(const std::string& source, const std::string& file, int line, size_t indent,
                    const std::string& name, nb::object names, std::optional<JitType> self, nb::dict defaults,
                    bool annotations_only) {
  return compiling([&] {
    auto text = std::make_shared<jit::SourceText>(jit::SourceText{source, file, line, indent, nullptr});
    jit::TreePtr def;
    for (const jit::TreePtr& t : jit::parse(text))
      if (t->kind == jit::Syntax::Def) def = t;
    check(def != nullptr, "the source of ", name, " is no function");
    auto function = std::make_shared<jit::Function>();
    function->name = name;
    auto resolver = std::make_shared<PythonResolver>(names);
    jit::declare(*function, *def, *resolver, self ? self->type : nullptr);
    for (auto [key, value] : defaults)
      for (jit::Parameter& p : function->parameters)
        if (p.name == nb::cast<std::string>(key)) p.default_value = default_of(p, value);
    if (!annotations_only) function->define = [resolver, def](jit::Function& f) { jit::define(f, def, *resolver); };
    return JitFunction{function};
  });
}

}  // namespace

void bind_jit_script(nb::module_& m) {
  m.def("_jit_compile", compile, nb::arg("source"), nb::arg("file"), nb::arg("line"), nb::arg("indent"),
        nb::arg("name"), nb::arg("names"), nb::arg("self").none(), nb::arg("defaults"),
        nb::arg("annotations_only") = false);
  m.def("_jit_define", [](const JitFunction& f) { return compiling([&] { return f.function->ensure() != nullptr; }); });
}

}  // namespace umbra::python
