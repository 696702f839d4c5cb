// SymInt, SymFloat and SymBool in Python: arithmetic gives expressions, a question for a value (bool, int, an index)
// leaves a guard.
#include "sym.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "capture_frames.h"
#include "capture_watch.h"
#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/functions.h"
#include "umbra/sym/shape_env.h"
#include "values.h"

namespace umbra::python {

PyTypeObject* g_sym_int_type;
PyTypeObject* g_sym_float_type;
PyTypeObject* g_sym_bool_type;

namespace {

PyObject* make(PyTypeObject* type, const SymNode* node) {
  auto* self = PyObject_New(PySym, type);
  if (!self) throw nb::python_error();
  self->node = node;
  self->owner = &env_of(node);
  self->owner->retain();
  return reinterpret_cast<PyObject*>(self);
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<PySym*>(self)->owner->release();
  PyObject_Free(self);
  Py_DECREF(type);
}

/// An operand: an integer or a float, symbolic or not.
struct Operand {
  bool is_float = false;
  SymInt integer = 0;
  SymFloat real;
  std::optional<Integer> large;  // an integer that a SymInt does not hold, until it has become an expression

  const SymNode* node() const {
    if (is_float) return real.node();
    return integer.is_symbolic() ? integer.node() : nullptr;
  }
  SymFloat as_float() const { return is_float ? real : sym_float(integer); }
};

/// A condition among numbers is 1 or 0, without being asked.
SymInt bool_as_int(const SymBool& value) { return sym_where(value, SymInt(1), SymInt(0)); }

/// A Python int; one of more than 64 bits becomes an expression once it is known of which environment.
void read_long(PyObject* object, Operand& out) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow && SymInt::can_hold(value)) {
    out.integer = SymInt(static_cast<int64_t>(value));
    return;
  }
  nb::object text = nb::steal(checked(PyObject_Str(object)));
  out.large = read_integer(nb::cast<std::string>(text));
  check<OverflowError>(out.large.has_value(),
                       "an integer of more than 128 bits cannot be combined with a symbolic one");
}

/// Makes expressions of large integers, in the environment of the other operand.
void settle(Operand& x, Operand& y) {
  for (auto [one, other] : {std::pair(&x, &y), std::pair(&y, &x)}) {
    if (!one->large) continue;
    check<OverflowError>(other->node(), "an integer of more than 64 bits cannot be combined with a plain number here");
    one->integer = sym::ShapeEnv::sym_int(env_of(other->node()).table().integer(*one->large));
  }
}

bool read_operand(PyObject* object, Operand& out) {
  if (is_sym_int(object)) out.integer = sym_int_of(object);
  else if (is_sym_float(object)) out.is_float = true, out.real = SymFloat(node_of(object));
  else if (is_sym_bool(object)) out.integer = bool_as_int(SymBool(node_of(object)));
  else if (PyBool_Check(object)) out.integer = object == Py_True ? 1 : 0;
  else if (PyFloat_Check(object)) out.is_float = true, out.real = SymFloat(PyFloat_AS_DOUBLE(object));
  else if (is_tensor(object)) return false;
  else if (PyLong_CheckExact(object)) read_long(object, out);
  else return read_int(object, out.integer);
  return true;
}

template <class F> PyObject* with_operands(PyObject* a, PyObject* b, F&& body) {
  return guarded([&]() -> PyObject* {
    Operand x, y;
    if (!read_operand(a, x) || !read_operand(b, y)) Py_RETURN_NOTIMPLEMENTED;
    settle(x, y);
    return body(x, y);
  });
}

void check_divisor(const Operand& y, const char* what) {
  bool zero = y.is_float ? !y.real.is_symbolic() && y.real.value() == 0 : y.integer.same(0);
  check<ZeroDivisionError>(!zero, what);
}

template <SymOp kOp> PyObject* arithmetic(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) {
    if (x.is_float || y.is_float) return wrap(sym_float_binary(kOp, x.as_float(), y.as_float()));
    if constexpr (kOp == SymOp::Add) return wrap(x.integer + y.integer);
    else if constexpr (kOp == SymOp::Sub) return wrap(x.integer - y.integer);
    else return wrap(x.integer * y.integer);
  });
}

PyObject* true_divide(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) {
    check_divisor(y, "division by zero");
    if (x.is_float || y.is_float) return wrap(sym_float_binary(SymOp::TrueDiv, x.as_float(), y.as_float()));
    return wrap(sym_true_divide(x.integer, y.integer));
  });
}

PyObject* floor_divide(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) {
    if (x.is_float || y.is_float) return wrap(sym_float_binary(SymOp::FloorDiv, x.as_float(), y.as_float()));
    check_divisor(y, "integer division or modulo by zero");
    return wrap(x.integer / y.integer);
  });
}

PyObject* remainder(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) {
    if (x.is_float || y.is_float) return wrap(sym_float_binary(SymOp::Mod, x.as_float(), y.as_float()));
    check_divisor(y, "integer division or modulo by zero");
    return wrap(x.integer % y.integer);
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return with_operands(a, b, [](const Operand& x, const Operand& y) {
    bool natural = !x.is_float && !y.is_float && (y.integer.is_symbolic() || y.integer.value() >= 0);
    if (natural) return wrap(sym_pow(x.integer, y.integer));
    return wrap(sym_float_binary(SymOp::Pow, x.as_float(), y.as_float()));
  });
}

PyObject* shift_left(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) -> PyObject* {
    if (x.is_float || y.is_float) Py_RETURN_NOTIMPLEMENTED;
    return wrap(sym_shift_left(x.integer, y.integer));
  });
}
PyObject* shift_right(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) -> PyObject* {
    if (x.is_float || y.is_float) Py_RETURN_NOTIMPLEMENTED;
    return wrap(sym_shift_right(x.integer, y.integer));
  });
}

template <SymOp kOp> PyObject* bitwise(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Operand& x, const Operand& y) -> PyObject* {
    if (x.is_float || y.is_float) Py_RETURN_NOTIMPLEMENTED;
    return wrap(sym_bitwise(kOp, x.integer, y.integer));
  });
}

PyObject* negative(PyObject* self) {
  return guarded([&] {
    if (is_sym_float(self)) return wrap(sym_float_binary(SymOp::Mul, SymFloat(-1.0), SymFloat(node_of(self))));
    return wrap(-sym_int_of(self));
  });
}
PyObject* positive(PyObject* self) { return Py_NewRef(self); }
PyObject* absolute(PyObject* self) {
  return guarded([&] {
    if (is_sym_float(self)) {
      SymFloat value(node_of(self));
      SymFloat opposite = sym_float_binary(SymOp::Mul, SymFloat(-1.0), value);
      SymFloat larger = sym_float_binary(SymOp::Max, value, opposite);
      return wrap(sym_float_binary(SymOp::Add, larger, SymFloat(0.0)));  // of two zeros either may be the larger one
    }
    SymInt value = sym_int_of(self);
    return wrap(sym_max(value, -value));
  });
}

SymOp relation(int op) {
  constexpr SymOp kOps[] = {SymOp::Lt, SymOp::Le, SymOp::Eq, SymOp::Ne, SymOp::Gt, SymOp::Ge};
  return kOps[op];
}

/// A comparison that the program may go by: an answer that is known at once is relied on.
SymBool compare_integers(SymOp op, SymInt x, SymInt y) {
  const SymNode* node = x.is_symbolic() ? x.node() : y.is_symbolic() ? y.node() : nullptr;
  SymBool answer = sym_compare(op, x, y);
  if (node && !answer.is_symbolic()) env_of(node).rely_on(op, x, y);
  return answer;
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  return with_operands(a, b, [op](const Operand& x, const Operand& y) {
    if (x.is_float || y.is_float) return wrap(sym_float_compare(relation(op), x.as_float(), y.as_float()));
    return wrap(compare_integers(relation(op), x.integer, y.integer));
  });
}

/// Whether the condition decides an `assert` of a program that is exported.
bool is_exported_assertion() {
  return nb::cast<bool>(nb::module_::import_("umbra._export.assertions").attr("is_exported_assertion")());
}

/// The answer that the program goes by. What only data decides cannot be told; what is asserted holds in every run that
/// goes on.
bool decide(const SymBool& condition) {
  try {
    return condition.guard_bool();
  } catch (const GuardOnDataDependentSymNode&) {
    if (!is_exported_assertion()) throw;
  }
  return condition.expect_true("");
}

int truth(PyObject* self) {
  return guarded_int([&]() -> int {
    if (is_sym_bool(self)) return decide(SymBool(node_of(self)));
    if (is_sym_float(self)) return sym_float_compare(SymOp::Ne, SymFloat(node_of(self)), SymFloat(0.0)).guard_bool();
    return compare_integers(SymOp::Ne, sym_int_of(self), 0).guard_bool();
  });
}

PyObject* as_int(PyObject* self) {
  return guarded([&] {
    SymInt value = is_sym_float(self) ? sym_round(SymOp::Trunc, SymFloat(node_of(self))) : sym_int_of(self);
    if (!value.is_symbolic()) return PyLong_FromLongLong(value.value());
    auto* expression = static_cast<const sym::Expression*>(value.node());
    return integer_object(expression->env().guard_integer(expression)).release().ptr();
  });
}
PyObject* to_int(PyObject* self) {
  note_int_conversion();
  return as_int(self);
}
PyObject* as_float(PyObject* self) {
  return guarded([&] {
    if (is_sym_float(self)) return PyFloat_FromDouble(node_of(self)->guard_float());
    auto* expression = static_cast<const sym::Expression*>(node_of(self));
    return PyFloat_FromDouble(static_cast<double>(expression->env().guard_integer(expression)));
  });
}
template <SymOp kOp> PyObject* round_float(PyObject* self, PyObject*) {
  return guarded([&] { return is_sym_int(self) ? Py_NewRef(self) : wrap(sym_round(kOp, SymFloat(node_of(self)))); });
}

/// Python's round(): to the nearest integer, halves to the even one.
PyObject* round_half_even(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* digits = Py_None;
    if (!PyArg_ParseTuple(args, "|O", &digits)) throw nb::python_error();
    if (is_sym_int(self)) return Py_NewRef(self);
    SymFloat value(node_of(self));
    if (digits == Py_None) return wrap(sym_round_half_even(value));
    long long count = PyLong_AsLongLong(digits);
    if (count == -1 && PyErr_Occurred()) throw nb::python_error();
    return wrap(sym_round_decimal(value, count));
  });
}
PyObject* is_integer(PyObject* self, PyObject*) {
  return guarded([&] {
    if (is_sym_int(self)) return Py_NewRef(Py_True);
    SymFloat value(node_of(self));
    return wrap(sym_float_compare(SymOp::Eq, sym_float(sym_round(SymOp::Floor, value)), value));
  });
}
PyObject* conjugate(PyObject* self, PyObject*) { return Py_NewRef(self); }

/// What a compiled function makes of a number's text is no part of its graphs, so the text is that of the number in
/// this call, which a guard fixes.
PyObject* text_of_value(PyObject* self) {
  nb::object value = is_sym_bool(self)    ? nb::object(nb::bool_(node_of(self)->guard_bool()))
                     : is_sym_float(self) ? owned(as_float(self))
                                          : owned(as_int(self));
  return PyObject_Repr(value.ptr());
}
PyObject* repr(PyObject* self) {
  return guarded(
      [&] { return is_capturing() ? text_of_value(self) : make_text(node_of(self)->to_string()).release().ptr(); });
}
/// The hash of the value, which a guard fixes: equal values have to have equal hashes.
Py_hash_t hash_of_value(PyObject* self) {
  Py_hash_t hash = -1;
  guarded_int([&] {
    nb::object value = is_sym_bool(self)    ? nb::object(nb::bool_(node_of(self)->guard_bool()))
                       : is_sym_float(self) ? nb::object(nb::float_(node_of(self)->guard_float()))
                                            : owned(as_int(self));
    hash = PyObject_Hash(value.ptr());
    return 0;
  });
  return hash;
}
/// A function that is compiled may look a size up in a dict, which asks for its value.
Py_hash_t hash_of_int(PyObject* self) {
  if (is_capturing()) return hash_of_value(self);
  PyErr_Format(PyExc_TypeError, "unhashable type: non-nested %s", short_type_name(Py_TYPE(self)).c_str());
  return -1;
}

// ---- SymBool ----

template <class F, class G> PyObject* with_bools(PyObject* a, PyObject* b, F&& body, G&& with_numbers) {
  return guarded([&]() -> PyObject* {
    auto x = read_bool(a), y = read_bool(b);
    return x && y ? wrap(body(*x, *y)) : with_numbers();
  });
}
SymBool sym_xor(SymBool a, SymBool b) { return sym_or(sym_and(a, sym_not(b)), sym_and(sym_not(a), b)); }
template <SymOp kOp> PyObject* bool_binary(PyObject* a, PyObject* b) {
  SymBool (*combine)(SymBool, SymBool) = kOp == SymOp::BitAnd ? sym_and : kOp == SymOp::BitOr ? sym_or : sym_xor;
  return with_bools(a, b, combine, [&] { return bitwise<kOp>(a, b); });
}
PyObject* bool_compare(PyObject* a, PyObject* b, int op) {
  if (op != Py_EQ && op != Py_NE) return compare(a, b, op);
  auto ask = [op](const SymBool& x, const SymBool& y) {
    SymBool differ = sym_xor(x, y);
    return op == Py_NE ? differ : sym_not(differ);
  };
  return with_bools(a, b, ask, [&] { return compare(a, b, op); });
}
PyObject* bool_as_int_object(PyObject* self) {
  return guarded([&] { return PyLong_FromLong(node_of(self)->guard_bool()); });
}

// ---- what a capture is told ----

Value plain_or_symbolic(PyObject* object) {
  if (is_sym_int(object)) return Value(sym_int_of(object));
  if (is_sym_float(object)) return Value(SymFloat(node_of(object)));
  if (is_sym_bool(object)) return Value(SymBool(node_of(object)));
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (PyFloat_Check(object)) return Value(PyFloat_AS_DOUBLE(object));
  int overflow = 1;
  long long value = PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
  return overflow ? Value() : Value(static_cast<int64_t>(value));
}

/// A text that a template can be given.
template <size_t kSize> struct FixedText {
  char text[kSize];
  constexpr FixedText(const char (&from)[kSize]) { std::copy(from, from + kSize, text); }
};

/// The result of a call, which captures are told of: their graphs make the number as the program does.
PyObject* noted(const char* function, std::initializer_list<PyObject*> operands, PyObject* result) {
  if (!result || result == Py_NotImplemented || !are_symbol_calls_noted()) return result;
  // Powers and extremes of integers that are floats begin with a conversion, which the expression has.
  std::string_view name = function;
  bool converts = name == "operator.pow" || name.starts_with("torch.sym_m");
  if (converts && is_sym_float(result) && std::ranges::any_of(operands, is_sym_int)) return result;
  std::vector<Value> values;
  for (PyObject* operand : operands) {
    values.push_back(operand ? plain_or_symbolic(operand) : Value());
    if (operand && values.back().is_none()) return result;
  }
  Value value = plain_or_symbolic(result);
  if (!value.is_none()) note_symbol_call(function, std::move(values), value);
  return result;
}

template <auto kFunction, FixedText kName> PyObject* noted_binary(PyObject* a, PyObject* b) {
  return noted(kName.text, {a, b}, kFunction(a, b));
}
template <auto kFunction, FixedText kName> PyObject* noted_unary(PyObject* a) {
  return noted(kName.text, {a}, kFunction(a));
}
template <auto kFunction, FixedText kName> PyObject* noted_method(PyObject* a, PyObject* none) {
  return noted(kName.text, {a}, kFunction(a, none));
}
PyObject* noted_power(PyObject* a, PyObject* b, PyObject* modulus) {
  return noted("operator.pow", {a, b}, power(a, b, modulus));
}
template <auto kFunction> PyObject* noted_compare(PyObject* a, PyObject* b, int op) {
  constexpr const char* kNames[] = {"operator.lt", "operator.le", "operator.eq",
                                    "operator.ne", "operator.gt", "operator.ge"};
  return noted(kNames[op], {a, b}, kFunction(a, b, op));
}

/// For the user's code that is compiled a symbol is the number that it stands for: `isinstance(size, int)`.
PyObject* get_class(PyObject* self, void*) {
  PyTypeObject* type = Py_TYPE(self);
  if (is_capturing() && is_the_user_asking())
    type = is_sym_bool(self) ? &PyBool_Type : is_sym_float(self) ? &PyFloat_Type : &PyLong_Type;
  return Py_NewRef(reinterpret_cast<PyObject*>(type));
}
PyGetSetDef g_number_properties[] = {
    {"__class__", get_class, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef g_number_methods[] = {
    {"__floor__", noted_method<round_float<SymOp::Floor>, "math.floor">, METH_NOARGS, nullptr},
    {"__ceil__", noted_method<round_float<SymOp::Ceil>, "math.ceil">, METH_NOARGS, nullptr},
    {"__trunc__", noted_method<round_float<SymOp::Trunc>, "math.trunc">, METH_NOARGS, nullptr},
    {"__round__", round_half_even, METH_VARARGS, nullptr},
    {"is_integer", is_integer, METH_NOARGS, nullptr},
    {"conjugate", conjugate, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <class F> PyType_Slot slot(int id, F* function) { return {id, reinterpret_cast<void*>(function)}; }

void bind_numbers(nb::module_& m) {
  PyType_Slot slots[] = {slot(Py_tp_dealloc, deallocate),
                         slot(Py_tp_repr, repr),
                         slot(Py_tp_hash, hash_of_int),
                         slot(Py_tp_richcompare, noted_compare<compare>),
                         {Py_tp_methods, g_number_methods},
                         {Py_tp_getset, g_number_properties},
                         slot(Py_nb_add, noted_binary<arithmetic<SymOp::Add>, "operator.add">),
                         slot(Py_nb_subtract, noted_binary<arithmetic<SymOp::Sub>, "operator.sub">),
                         slot(Py_nb_multiply, noted_binary<arithmetic<SymOp::Mul>, "operator.mul">),
                         slot(Py_nb_true_divide, noted_binary<true_divide, "operator.truediv">),
                         slot(Py_nb_floor_divide, noted_binary<floor_divide, "operator.floordiv">),
                         slot(Py_nb_remainder, noted_binary<remainder, "operator.mod">),
                         slot(Py_nb_power, noted_power),
                         slot(Py_nb_lshift, noted_binary<shift_left, "operator.lshift">),
                         slot(Py_nb_rshift, noted_binary<shift_right, "operator.rshift">),
                         slot(Py_nb_and, noted_binary<bitwise<SymOp::BitAnd>, "operator.and_">),
                         slot(Py_nb_or, noted_binary<bitwise<SymOp::BitOr>, "operator.or_">),
                         slot(Py_nb_xor, noted_binary<bitwise<SymOp::BitXor>, "operator.xor">),
                         slot(Py_nb_negative, noted_unary<negative, "operator.neg">),
                         slot(Py_nb_positive, positive),
                         slot(Py_nb_absolute, absolute),
                         slot(Py_nb_bool, truth),
                         slot(Py_nb_int, to_int),
                         slot(Py_nb_float, as_float),
                         slot(Py_nb_index, as_int),
                         {0, nullptr}};
  unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec int_spec = {"umbra.SymInt", sizeof(PySym), 0, flags, slots};
  g_sym_int_type = add_type(m.ptr(), int_spec);
  slots[std::size(slots) - 2] = {0, nullptr};  // a float is no index
  slots[2] = slot(Py_tp_hash, hash_of_value);
  PyType_Spec float_spec = {"umbra.SymFloat", sizeof(PySym), 0, flags, slots};
  g_sym_float_type = add_type(m.ptr(), float_spec);
}

void bind_bool(nb::module_& m) {
  PyType_Slot slots[] = {slot(Py_tp_dealloc, deallocate),
                         slot(Py_tp_repr, repr),
                         slot(Py_tp_hash, hash_of_value),
                         {Py_tp_getset, g_number_properties},
                         slot(Py_tp_richcompare, noted_compare<bool_compare>),
                         slot(Py_nb_and, noted_binary<bool_binary<SymOp::BitAnd>, "operator.and_">),
                         slot(Py_nb_or, noted_binary<bool_binary<SymOp::BitOr>, "operator.or_">),
                         slot(Py_nb_xor, bool_binary<SymOp::BitXor>),
                         slot(Py_nb_add, arithmetic<SymOp::Add>),  // with numbers it is 0 or 1
                         slot(Py_nb_subtract, arithmetic<SymOp::Sub>),
                         slot(Py_nb_multiply, arithmetic<SymOp::Mul>),
                         slot(Py_nb_bool, truth),
                         slot(Py_nb_int, bool_as_int_object),
                         {0, nullptr}};
  PyType_Spec spec = {"umbra.SymBool", sizeof(PySym), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  g_sym_bool_type = add_type(m.ptr(), spec);
}

/// What math and operators do to plain numbers.
void bind_functions(nb::module_& m) {
  auto both = [](nb::handle a, nb::handle b, SymOp op) {
    if (PyLong_CheckExact(a.ptr()) && PyLong_CheckExact(b.ptr())) {  // plain ones of any length
      int less = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_LT);
      checked(less);
      return nb::borrow((less == 1) == (op == SymOp::Max) ? b : a);
    }
    Operand x, y;
    if (!read_operand(a.ptr(), x) || !read_operand(b.ptr(), y)) fail<TypeError>("expected numbers");
    settle(x, y);
    if (x.is_float || y.is_float) return nb::steal(wrap(sym_float_binary(op, x.as_float(), y.as_float())));
    return nb::steal(wrap(op == SymOp::Max ? sym_max(x.integer, y.integer) : sym_min(x.integer, y.integer)));
  };
  auto told = [](const char* function, std::initializer_list<PyObject*> operands, nb::object result) {
    return nb::steal(noted(function, operands, result.release().ptr()));
  };
  m.def(
      "sym_max",
      [both, told](nb::handle a, nb::handle b) {
        return told("torch.sym_max", {a.ptr(), b.ptr()}, both(a, b, SymOp::Max));
      },
      "The larger of two numbers that may be symbolic.");
  m.def(
      "sym_min",
      [both, told](nb::handle a, nb::handle b) {
        return told("torch.sym_min", {a.ptr(), b.ptr()}, both(a, b, SymOp::Min));
      },
      "The smaller of two numbers that may be symbolic.");
  m.def("_sym_sum", [](nb::sequence values) {
    std::vector<SymInt> terms;
    const SymNode* symbolic = nullptr;
    for (nb::handle value : values) {
      SymInt term;
      check<TypeError>(read_int(value.ptr(), term), "sym_sum(): expected integers");
      terms.push_back(term);
      if (term.is_symbolic()) symbolic = term.node();
    }
    check<TypeError>(symbolic, "sym_sum(): none of the integers is symbolic");
    sym::ShapeEnv& env = env_of(symbolic);
    std::vector<const sym::Expression*> expressions;
    for (SymInt term : terms) expressions.push_back(env.simplify(env.expression(term)));
    return nb::steal(wrap(sym::ShapeEnv::sym_int(env.table().add(expressions))));
  });
  for (const char* name : {"sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "log2"})
    m.def(("_sym_" + std::string(name)).c_str(), [name](nb::handle a) {
      Operand x;
      check<TypeError>(read_operand(a.ptr(), x), "expected a number");
      return nb::steal(wrap(sym_function(name, x.as_float())));
    });
  m.def(
      "sym_float",
      [](nb::handle a) {
        Operand x;
        check<TypeError>(read_operand(a.ptr(), x), "expected a number");
        return nb::steal(noted("torch.sym_float", {a.ptr()}, wrap(x.as_float())));
      },
      "`float()` of a number that may be symbolic.");
  m.def(
      "sym_not",
      [](nb::handle a) {
        auto x = read_bool(a.ptr());
        if (!x) return nb::steal(PyBool_FromLong(!plain_truth(a)));
        return nb::steal(noted("torch.sym_not", {a.ptr()}, wrap(sym_not(*x))));
      },
      "`not`, of a condition that may be symbolic.");
  m.def(
      "sym_ite",
      [](nb::handle condition, nb::handle yes, nb::handle no) {
        auto which = read_bool(condition.ptr());
        if (!which)
          fail<TypeError>("sym_ite(): the condition must be a bool, not ", short_type_name(Py_TYPE(condition.ptr())));
        if (!which->is_symbolic()) return nb::borrow(which->value() ? yes : no);
        Operand a, b;
        if (!read_operand(yes.ptr(), a) || !read_operand(no.ptr(), b)) fail<TypeError>("sym_ite(): expected numbers");
        check<AssertionError>(a.is_float == b.is_float, "sym_ite(): both numbers must be of one type, got ",
                              short_type_name(Py_TYPE(yes.ptr())), " and ", short_type_name(Py_TYPE(no.ptr())));
        return nb::steal(a.is_float ? wrap(sym_where(*which, a.real, b.real))
                                    : wrap(sym_where(*which, a.integer, b.integer)));
      },
      "The second or the third by a condition that may be symbolic.");
}

}  // namespace

nb::object integer_object(Integer value) {
  if (fits_int64(value)) return nb::steal(PyLong_FromLongLong(static_cast<int64_t>(value)));
  return nb::steal(checked(PyLong_FromString(integer_text(value).c_str(), nullptr, 10)));
}

PyObject* wrap_symbol(SymInt value) {
  auto* expression = static_cast<const sym::Expression*>(value.node());
  if (expression->is(sym::Kind::Integer)) return integer_object(expression->integer()).release().ptr();
  return make(g_sym_int_type, expression);
}
PyObject* wrap(const SymFloat& value) {
  return value.is_symbolic() ? make(g_sym_float_type, value.node()) : PyFloat_FromDouble(value.value());
}
PyObject* wrap(const SymBool& value) {
  return value.is_symbolic() ? make(g_sym_bool_type, value.node()) : PyBool_FromLong(value.value());
}

PyObject* wrap(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::Bool: return PyBool_FromLong(value.to_bool());
    case Scalar::Kind::Int: return PyLong_FromLongLong(value.to_int());
    case Scalar::Kind::UInt: return PyLong_FromUnsignedLongLong(value.to_uint());
    case Scalar::Kind::Double: return PyFloat_FromDouble(value.to_double());
    case Scalar::Kind::Complex: return PyComplex_FromDoubles(value.to_complex().real(), value.to_complex().imag());
    case Scalar::Kind::SymInt: return wrap(value.to_sym_int());
    case Scalar::Kind::SymFloat: return wrap(value.to_sym_float());
    default: return wrap(value.to_sym_bool());
  }
}

void bind_sym(nb::module_& m) {
  bind_numbers(m);
  bind_bool(m);
  bind_functions(m);
  bind_sym_questions(m);
}

}  // namespace umbra::python
