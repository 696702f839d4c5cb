// What is asked of symbolic numbers without a value: what is known, the example's value, what must hold.
#include "fake.h"
#include "sym.h"
#include "sym/observed.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/functions.h"

namespace umbra::python {

const SymNode* expect_node(nb::handle object) {
  PyObject* o = object.ptr();
  if (!is_sym_int(o) && !is_sym_float(o) && !is_sym_bool(o))
    fail<TypeError>("expected a SymInt, SymFloat or SymBool, not ", short_type_name(Py_TYPE(o)));
  return node_of(o);
}

bool plain_truth(nb::handle object) {
  int truth = PyObject_IsTrue(object.ptr());
  checked(truth);
  return truth == 1;
}

std::optional<SymBool> read_bool(PyObject* object) {
  if (is_sym_bool(object)) return SymBool(node_of(object));
  if (PyBool_Check(object)) return SymBool(object == Py_True);
  return std::nullopt;
}
/// Of two bools; with a number on one side they are the numbers 0 and 1, as in Python.

void bind_sym_questions(nb::module_& m) {
  m.def("_sym_statically_known_true", [](nb::handle a) {
    auto x = read_bool(a.ptr());
    return x && x->known_true() && x->guard_bool();  // the program goes by it
  });
  m.def("_sym_guard_or", [](nb::handle a, bool fallback) {
    auto x = read_bool(a.ptr());
    return x ? x->guard_or(fallback) : plain_truth(a);
  });
  m.def("_sym_guard_size_oblivious", [](nb::handle a) {
    auto x = read_bool(a.ptr());
    if (!x || !x->is_symbolic()) return plain_truth(a);
    return env_of(x->node()).guard_size_oblivious(static_cast<const sym::Expression*>(x->node()));
  });
  m.def("_sym_expect_true", [](nb::handle a, const std::string& message) {
    auto x = read_bool(a.ptr());
    return x ? x->expect_true(message.c_str()) : plain_truth(a);
  });
  m.def("_sym_has_hint", [](nb::handle a) { return expect_node(a)->has_hint(); });
  m.def("_sym_hint", [](nb::handle a) -> nb::object {
    const SymNode* node = expect_node(a);
    if (is_sym_float(a.ptr())) return nb::float_(node->hint_float());
    if (is_sym_bool(a.ptr())) return nb::bool_(node->hint_int() != 0);
    check<Error>(node->has_hint(), "the symbolic value ", node->to_string(), " has no hint");
    return integer_object(static_cast<const sym::Expression*>(node)->hint().integer);
  });
  // What it is for the example that goes along with a capture, where that is known.
  m.def("_sym_observed", [](nb::handle a) -> nb::object {
    std::optional<sym::Number> seen = sym::observed(static_cast<const sym::Expression*>(expect_node(a)));
    if (!seen) return nb::none();
    if (is_sym_float(a.ptr())) return nb::float_(seen->as_double());
    if (is_sym_bool(a.ptr())) return nb::bool_(seen->integer != 0);
    return integer_object(seen->integer);
  });
  m.def("_sym_shape_env",
        [](nb::handle a) { return ShapeEnvObject{IntrusivePtr<sym::ShapeEnv>(&env_of(expect_node(a)))}; });
  m.def("_sym_free_symbols", [](nb::handle a) {
    auto* expression = static_cast<const sym::Expression*>(expect_node(a));
    std::vector<std::string> names;
    for (const sym::Expression* symbol : sym::free_symbols(expression->env().simplify(expression)))
      names.push_back(expression->env().symbol(symbol).name);
    return names;
  });
  m.def("_sym_expression", [](nb::handle a) { return expect_node(a)->to_string(); });
}

}  // namespace umbra::python
