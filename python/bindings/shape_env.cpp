// ShapeEnv: the symbols of a captured program, and what is known about them.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "fake.h"
#include "tensor_type.h"
#include "umbra/sym/constraints.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/print.h"
#include "values.h"

namespace umbra::python {

namespace {

using sym::ShapeEnv;

nb::object wrap_int(SymInt value) { return nb::steal(wrap(value)); }

SymInt expect_int(nb::handle object) {
  SymInt value;
  if (!read_int(object.ptr(), value))
    fail<TypeError>("expected an int or a SymInt, not ", short_type_name(Py_TYPE(object.ptr())));
  return value;
}

sym::SymbolOptions symbol_options(const std::string& policy, const std::string& dim, std::optional<int64_t> least,
                                  std::optional<int64_t> most, bool size) {
  sym::SymbolOptions options;
  options.policy = policy == "static"    ? sym::Policy::Static
                   : policy == "dynamic" ? sym::Policy::Dynamic
                                         : sym::Policy::Duck;
  options.dim = dim;
  options.size = size;
  if (least || most) {
    sym::Range range;
    if (least) range.lower = *least;
    if (most) range.upper = *most;
    options.range = range;
  }
  return options;
}

using Names = std::map<std::string, std::string>;

/// An expression as Python code, with the names that are given for its symbols.
std::string code_of(const ShapeEnv& env, const sym::Expression* expression, const Names& names) {
  return sym::to_python(expression, [&](const sym::Expression* symbol) {
    const std::string& own = env.symbol(symbol).name;
    auto found = names.find(own);
    check<ValueError>(found != names.end(), "the symbol ", own, " is no input's size");
    return found->second;
  });
}

/// Guards and ranges of expressions that come as text: from files and from Python's source.
void bind_expression_texts(nb::module_& m) {
  m.def("_evaluate_guard_code", [](const std::string& code, const std::map<std::string, int64_t>& values) {
    auto env = make_counted<ShapeEnv>();
    sym::Bindings bindings;
    sym::ParseOptions options;
    options.source = [&](std::string_view path) {
      auto value = values.find(std::string(path));
      check<ValueError>(value != values.end(), "the guards name no input of this call: ", std::string(path));
      const sym::Expression* symbol = env->declare_symbol(path, false);
      bindings.set(symbol, value->second);
      return symbol;
    };
    std::optional<sym::Number> holds = env->evaluate(sym::parse(*env, code, options), bindings);
    return holds && holds->integer != 0;
  });
  // The range of an expression given as text, with the ranges of its symbols: ("int" | "float" | "bool", least, most).
  using Ends = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  m.def("_bound_expression", [](const std::string& text, const std::map<std::string, Ends>& ranges) {
    auto env = make_counted<ShapeEnv>();
    sym::ParseOptions options;
    options.symbol = [&](std::string_view name, std::optional<bool>) {
      auto given = ranges.find(std::string(name));
      sym::Range range;
      if (given != ranges.end() && given->second.first) range.lower = *given->second.first;
      if (given != ranges.end() && given->second.second) range.upper = *given->second.second;
      return env->declare_symbol(name, false, {}, range);
    };
    const sym::Expression* expression = sym::parse(*env, text, options);
    if (expression->type() == sym::Type::Float) {
      sym::FloatRange range = env->float_range(expression);
      return nb::make_tuple("float", range.lower, range.upper);
    }
    if (expression->type() == sym::Type::Bool) {
      int known = env->known(expression);
      return nb::make_tuple("bool", known == 1, known != 0);
    }
    sym::Range range = env->range(expression);
    return nb::make_tuple("int", integer_object(range.lower), integer_object(range.upper));
  });
  m.def("_condition_text", [](const std::string& text) {
    auto env = make_counted<ShapeEnv>();
    return sym::to_condition_text(sym::parse(*env, text));
  });
}

}  // namespace

void bind_shape_env(nb::module_& m) {
  nb::class_<ShapeEnvObject>(m, "_ShapeEnv")
      .def(
          "__init__",
          [](ShapeEnvObject* self, bool duck_shape, bool specialize_zero_one) {
            sym::ShapeEnvOptions options{.duck_shape = duck_shape, .specialize_zero_one = specialize_zero_one};
            options.naming = sym::Naming::BySource;  // as PyTorch names them
            new (self) ShapeEnvObject{make_counted<ShapeEnv>(options)};
          },
          nb::arg("duck_shape") = true, nb::arg("specialize_zero_one") = true)
      .def_prop_ro("_cdata", [](const ShapeEnvObject& e) { return reinterpret_cast<uintptr_t>(e.env.get()); })
      .def(
          "create_symbol",
          [](const ShapeEnvObject& e, int64_t hint, const std::string& source, const std::string& policy,
             const std::string& dim, std::optional<int64_t> least, std::optional<int64_t> most, bool size) {
            return wrap_int(e.env->create_symbol(hint, source, symbol_options(policy, dim, least, most, size)));
          },
          nb::arg("hint"), nb::arg("source"), nb::arg("policy") = "duck", nb::arg("dim") = "",
          nb::arg("least") = nb::none(), nb::arg("most") = nb::none(), nb::arg("size") = true)
      .def("create_unbacked_symint", [](const ShapeEnvObject& e) { return wrap_int(e.env->create_unbacked()); })
      .def("create_unbacked_symfloat",
           [](const ShapeEnvObject& e) { return nb::steal(wrap(e.env->create_unbacked_float())); })
      .def("create_unbacked_symbool",
           [](const ShapeEnvObject& e) { return nb::steal(wrap(e.env->create_unbacked_bool())); })
      .def("guards",
           [](const ShapeEnvObject& e) {
             std::vector<std::pair<std::string, std::string>> out;
             for (const sym::Guard& g : e.env->guards())
               out.emplace_back(sym::to_text(g.condition), g.location ? g.location->text() : "");
             return out;
           })
      .def("runtime_asserts",
           [](const ShapeEnvObject& e) {
             std::vector<std::pair<std::string, std::string>> out;
             for (const sym::RuntimeAssert& a : e.env->runtime_asserts())
               out.emplace_back(sym::to_condition_text(a.condition), a.message);
             return out;
           })
      .def("symbols",
           [](const ShapeEnvObject& e) {
             nb::list out;
             for (const sym::Symbol& s : e.env->symbols()) {
               nb::dict entry;
               entry["name"] = s.name;
               entry["backed"] = s.backed;
               entry["size_like"] = s.size_like;
               entry["dim"] = s.dim;
               entry["hint"] =
                   s.backed && s.type == sym::Type::Int ? integer_object(s.expression->hint().integer) : nb::none();
               entry["replacement"] =
                   s.replacement ? nb::cast(sym::to_text(e.env->simplify(s.expression))) : nb::none();
               entry["sources"] = s.sources;
               entry["initial"] = nb::make_tuple(integer_object(s.initial.lower), integer_object(s.initial.upper));
               entry["range"] = nb::make_tuple(integer_object(s.range.lower), integer_object(s.range.upper));
               out.append(entry);
             }
             return out;
           })
      .def("bound",
           [](const ShapeEnvObject& e, nb::handle value) {
             sym::Range range = e.env->bound_range(expect_int(value));
             return nb::make_tuple(integer_object(range.lower), integer_object(range.upper));
           })
      .def("simplify",
           [](const ShapeEnvObject& e, nb::handle value) { return wrap_int(e.env->simplify(expect_int(value))); })
      .def("constrain_range",
           [](const ShapeEnvObject& e, nb::handle value, int64_t least, std::optional<int64_t> most) {
             SymInt symbol = expect_int(value);
             sym::Range range{least};
             if (most) range.upper = *most;
             if (symbol.is_symbolic()) e.env->constrain_range(e.env->expression(symbol), range);
           })
      .def("accepts",
           [](const ShapeEnvObject& e, nb::sequence expected, const std::vector<int64_t>& actual, bool numbers) {
             std::vector<std::pair<SymInt, int64_t>> sizes;
             for (size_t i = 0; i < actual.size(); ++i) {
               nb::object size = expected[i];
               sizes.emplace_back(expect_int(size), actual[i]);
             }
             return e.env->accepts(sizes, numbers);
           })
      .def("guard_code",
           [](const ShapeEnvObject& e, const Names& names) {
             std::vector<std::string> out;
             auto known = [&](const sym::Expression* symbol) { return e.env->simplify(symbol); };
             for (const sym::Guard& g : e.env->guards()) {
               const sym::Expression* condition =
                   e.env->substitute(g.condition, known);  // equal numbers are said before
               if (!condition->is(sym::Kind::Boolean) && !sym::follows_from_ranges(*e.env, condition))
                 out.push_back(code_of(*e.env, condition, names));
             }
             return out;
           })
      .def("number_code",
           [](const ShapeEnvObject& e, nb::handle number, const Names& names) {
             return code_of(*e.env, e.env->simplify(e.env->expression(expect_int(number))), names);
           })
      .def("suppress_guards",
           [](const ShapeEnvObject& e, bool suppressed) { return e.env->suppress_guards(suppressed); })
      .def("assumptions",
           [](const ShapeEnvObject& e) {
             std::vector<std::string> out;
             for (const sym::Guard& g : e.env->assumptions()) out.push_back(sym::to_text(g.condition));
             return out;
           })
      .def("version", [](const ShapeEnvObject& e) { return e.env->version(); });
  m.def("_sym_mark_size_like", [](nb::handle value) {
    SymInt symbol = expect_int(value);
    if (symbol.is_symbolic()) static_cast<const sym::Expression*>(symbol.node())->env().mark_size_like(symbol);
  });
  bind_expression_texts(m);
}

}  // namespace umbra::python
