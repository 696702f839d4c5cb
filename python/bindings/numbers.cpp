// Tensor's arithmetic: x + y, 2 - x, x += y, x < y and the conversions to Python's numbers.
#include <atomic>

#include "construct.h"
#include "functions.h"
#include "overridable.h"
#include "properties.h"
#include "tensor_type.h"
#include "umbra/core/warning.h"
#include "umbra/jit/trace.h"
#include "umbra/transform/vmap.h"
#include "values.h"

namespace umbra::python {

namespace {

template <size_t N> struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }
};
/// A function object of the operator that a protocol calls; made on first use. Classes and modes hear of the member
/// of Tensor that torch names for it.
template <Name kName, Reading kReading = Reading::Method, Name kMember = kName> PyObject* function() {
  static PyObject* f = make_function(concat("aten::", kName.text), kReading, kMember.text);
  return f;
}

/// Offers `a - b` of a tensor on the right as the method `b.__rsub__(a)`; false where nobody wants it.
bool offer_reversed(const char* method, PyObject* a, PyObject* b, PyObject** result) {
  bool number = PyLong_CheckExact(a) || PyFloat_CheckExact(a);
  if (!may_be_overridden(b) && (number || !class_has_torch_function(Py_TYPE(a)))) return false;
  PyObject* values[] = {b, a};
  return offer_operand(method, values, result);
}

/// An operator of a tensor on the left. Where nobody takes it, a tensor of another class on the right may take its
/// reversed form: Python asks a slot that both classes have only once.
PyObject* forward(PyObject* function, const char* reversed, PyObject* a, PyObject* b) {
  PyObject* result = call_operand(function, a, b);
  if (result != Py_NotImplemented || !is_tensor(b) || Py_TYPE(a) == Py_TYPE(b)) return result;
  PyObject* answer = nullptr;
  if (!offer_reversed(reversed, a, b, &answer)) return result;
  Py_DECREF(result);
  return answer;
}

// ---- binary operators; the left operand is a tensor, or else the right one is ----

template <Name kName> PyObject* commutative(PyObject* a, PyObject* b) {
  return is_tensor(a) ? call_operand(function<kName>(), a, b) : call_operand(function<kName>(), b, a);
}
/// Operators that are composites of a tensor on the left, and the function itself of a number there.
template <Name kName, Name kReversed> PyObject* bitwise(PyObject* a, PyObject* b) {
  return is_tensor(a) ? call_operand(function<kName>(), a, b) : call_operand(function<kReversed>(), b, a);
}
PyObject* subtract(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return forward(function<"sub">(), "__rsub__", a, b);
  PyObject* result = nullptr;
  if (offer_reversed("__rsub__", a, b, &result)) return result;
  return call_operand(function<"rsub", Reading::Method, "__rsub__">(), b, a);
}
PyObject* true_divide(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return forward(function<"div">(), "__rtruediv__", a, b);
  PyObject* result = nullptr;
  if (offer_reversed("__rtruediv__", a, b, &result)) return result;
  PyObject* inverse = call_function(function<"reciprocal">(), &b, 1, nullptr);
  if (!inverse) return nullptr;
  nb::object keep = nb::steal(inverse);
  return PyNumber_Multiply(inverse, a);  // which an array on the left may take
}
/// Operators whose functions take a number on either side.
template <Name kName, Name kMember, Name kReversed> PyObject* either_side(PyObject* a, PyObject* b) {
  PyObject* operation = function<kName, Reading::Function, kMember>();
  if (is_tensor(a)) return forward(operation, kReversed.text, a, b);
  PyObject* result = nullptr;
  if (offer_reversed(kReversed.text, a, b, &result)) return result;
  return call_operand(operation, a, b);
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return either_side<"pow", "__pow__", "__rpow__">(a, b);
}
/// A number on the left is made a tensor of the other's kind.
template <Name kName, Name kReversed> PyObject* lifted(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return forward(function<kName>(), kReversed.text, a, b);
  PyObject* result = nullptr;
  if (offer_reversed(kReversed.text, a, b, &result)) return result;
  return guarded([&]() -> PyObject* {
    Scalar number;
    if (!read_scalar(a, number)) Py_RETURN_NOTIMPLEMENTED;
    nb::object left = owned(wrap(wrapped_number(number)));
    return call_operand(function<kName>(), left.ptr(), b);
  });
}

template <Name kName, Name kMember = kName> PyObject* in_place(PyObject* a, PyObject* b) {
  return call_operand(function<kName, Reading::Method, kMember>(), a, b);
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place<"pow_", "__ipow__">(a, b); }

template <Name kName, Name kMember = kName> PyObject* unary(PyObject* self) {
  return call_function(function<kName, Reading::Method, kMember>(), &self, 1, nullptr);
}

PyObject* invert(PyObject* self) {
  return guarded([&] {
    check<TypeError>(is_integral(tensor_of(self).dtype(), true),
                     "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return unary<"bitwise_not", "__invert__">(self);
  });
}

/// Of tensors and numbers classes hear as `__eq__`, of an operand of their own that is neither as the method.
PyObject* equal(PyObject* a, PyObject* b) {
  bool usual = is_tensor(b) || PyNumber_Check(b);
  return call_operand(usual ? function<"eq", Reading::Method, "__eq__">() : function<"eq">(), a, b);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  // NumPy leaves the question whether an array is equal to the tensor.
  if ((op == Py_EQ || op == Py_NE) && std::string_view(type_name(b)) == "numpy.ndarray")
    return guarded([&] {
      nb::object array = owned(wrap(tensor_from_data(b)));
      return call_operand(op == Py_EQ ? function<"eq">() : function<"ne">(), a, array.ptr());
    });
  switch (op) {
    case Py_LT: return call_operand(function<"lt">(), a, b);
    case Py_LE: return call_operand(function<"le">(), a, b);
    case Py_EQ: return equal(a, b);
    case Py_NE: return call_operand(function<"ne">(), a, b);
    case Py_GT: return call_operand(function<"gt">(), a, b);
    default: return call_operand(function<"ge">(), a, b);
  }
}

// ---- conversions ----

Scalar single_item(PyObject* self) {
  const Tensor& t = tensor_of(self);
  SymInt count = t.sym_numel();
  if (!count.is_symbolic() && count.value() != 1)
    fail<ValueError>("only one element tensors can be converted to Python scalars");
  static const Operator& item = get_operator("aten::item");
  Value frame[1] = {Value::borrow(t)};
  item.call(frame);
  return frame[0].to_scalar();
}

PyObject* integer_object(const Scalar& value) {
  return value.kind() == Scalar::Kind::UInt ? wrap(value) : PyLong_FromLongLong(value.to_int());
}

int truth(PyObject* self) {
  return guarded_int([&]() -> int {
    const Tensor& t = tensor_of(self);
    SymInt count = t.sym_numel();
    if (count == 0) fail("Boolean value of Tensor with no values is ambiguous");
    if (count != 1) fail("Boolean value of Tensor with more than one value is ambiguous");
    check(!transform::is_batched_inside(t),
          "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support "
          "that yet, please file an issue at https://github.com/pytorch/pytorch/issues .");
    jit::warn_of_value("a Python boolean");
    return single_item(self).to_bool();
  });
}
PyObject* as_int(PyObject* self) {
  return guarded([&] {
    jit::warn_of_value("a Python integer");
    Scalar value = single_item(self);
    if (value.is_floating() && !value.is_symbolic()) return PyLong_FromDouble(value.to_double());
    return integer_object(value);
  });
}
PyObject* as_float(PyObject* self) {
  return guarded([&] {
    jit::warn_of_value("a Python float");
    static std::atomic<bool> warned = false;
    if (is_grad_enabled() && tensor_of(self).requires_grad() && tells_once(warned))
      warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using ",
           "tensor.detach() first.");
    return PyFloat_FromDouble(single_item(self).to_double());
  });
}
PyObject* as_index(PyObject* self) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    bool single = t.sym_numel().same(1) && is_integral(t.dtype(), true);
    check<TypeError>(single, "only integer tensors of a single element can be converted to an index");
    return integer_object(single_item(self));
  });
}

}  // namespace

/// As a method: from a slot's wrapper Python makes the concatenation of sequences of every subclass, too, and what that
/// gives is the result, NotImplemented as well.
void add_number_methods(std::vector<PyMethodDef>& methods) {
  methods.push_back({"__iadd__", in_place<"add_">, METH_O | METH_COEXIST, nullptr});
}

void add_number_slots(std::vector<PyType_Slot>& slots) {
  std::initializer_list<PyType_Slot> own = {
      slot(Py_nb_add, commutative<"add">),
      slot(Py_nb_subtract, subtract),
      slot(Py_nb_multiply, commutative<"mul">),
      slot(Py_nb_true_divide, true_divide),
      slot(Py_nb_floor_divide, either_side<"floor_divide", "__floordiv__", "__rfloordiv__">),
      slot(Py_nb_remainder, either_side<"remainder", "remainder", "__rmod__">),
      slot(Py_nb_power, power),
      slot(Py_nb_matrix_multiply, either_side<"matmul", "matmul", "__rmatmul__">),
      slot(Py_nb_and, bitwise<"__and__", "bitwise_and">),
      slot(Py_nb_or, bitwise<"__or__", "bitwise_or">),
      slot(Py_nb_xor, bitwise<"__xor__", "bitwise_xor">),
      slot(Py_nb_lshift, lifted<"__lshift__", "__rlshift__">),
      slot(Py_nb_rshift, lifted<"__rshift__", "__rrshift__">),
      slot(Py_nb_inplace_add, in_place<"add_">),
      slot(Py_nb_inplace_subtract, in_place<"sub_">),
      slot(Py_nb_inplace_multiply, in_place<"mul_">),
      slot(Py_nb_inplace_true_divide, in_place<"div_">),
      slot(Py_nb_inplace_floor_divide, in_place<"floor_divide_">),
      slot(Py_nb_inplace_remainder, in_place<"remainder_">),
      slot(Py_nb_inplace_power, in_place_power),
      slot(Py_nb_inplace_and, in_place<"__iand__">),
      slot(Py_nb_inplace_or, in_place<"__ior__">),
      slot(Py_nb_inplace_xor, in_place<"__ixor__">),
      slot(Py_nb_inplace_lshift, in_place<"__ilshift__">),
      slot(Py_nb_inplace_rshift, in_place<"__irshift__">),
      slot(Py_nb_negative, unary<"neg">),
      slot(Py_nb_positive, unary<"positive">),
      slot(Py_nb_absolute, unary<"abs">),
      slot(Py_nb_invert, invert),
      slot(Py_nb_bool, integer_slot<"__bool__", truth>),
      slot(Py_nb_int, unary_slot<"__int__", as_int>),
      slot(Py_nb_float, unary_slot<"__float__", as_float>),
      slot(Py_nb_index, unary_slot<"__index__", as_index>),
      slot(Py_tp_richcompare, compare),
  };
  slots.insert(slots.end(), own);
}

}  // namespace umbra::python
