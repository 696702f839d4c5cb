#include "graph/symbolic_functions.h"

#include <cmath>

#include "umbra/core/error.h"

namespace umbra::fx {

namespace {

using Inputs = ArrayRef<Value>;

bool is_floating(const Value& v) { return v.tag() == Value::Tag::Double || v.tag() == Value::Tag::SymFloat; }
bool is_boolean(const Value& v) { return v.tag() == Value::Tag::Bool || v.tag() == Value::Tag::SymBool; }

void check_count(Inputs inputs, size_t count) {
  check<TypeError>(inputs.size() == count, "expected ", count, " arguments, got ", inputs.size());
  for (const Value& v : inputs) check<TypeError>(v.is_scalar(), "expected a number, got ", tag_name(v.tag()));
}

/// A function of two numbers: on floats where one is a float, else on integers.
template <class Integers> Function::Evaluate arithmetic(SymOp op, Integers integers) {
  return [op, integers](Inputs in) -> Value {
    check_count(in, 2);
    if (is_floating(in[0]) || is_floating(in[1]))
      return sym_float_binary(op, in[0].to_sym_float(), in[1].to_sym_float());
    return integers(in[0].to_sym_int(), in[1].to_sym_int());
  };
}

template <class Integers> Function::Evaluate comparison(SymOp op, Integers integers) {
  return [op, integers](Inputs in) -> Value {
    check_count(in, 2);
    if (is_floating(in[0]) || is_floating(in[1]))
      return sym_float_compare(op, in[0].to_sym_float(), in[1].to_sym_float());
    return integers(in[0].to_sym_int(), in[1].to_sym_int());
  };
}

void check_divisor(SymInt b) {
  check<ValueError>(b.is_symbolic() || b.value() != 0, "integer division or modulo by zero");
}

Value true_divide(Inputs in) {
  check_count(in, 2);
  if (is_floating(in[0]) || is_floating(in[1]))
    return sym_float_binary(SymOp::TrueDiv, in[0].to_sym_float(), in[1].to_sym_float());
  SymInt divisor = in[1].to_sym_int();
  check<ValueError>(divisor.is_symbolic() || divisor.value() != 0, "division by zero");
  return sym_true_divide(in[0].to_sym_int(), divisor);
}

Value power(Inputs in) {
  check_count(in, 2);
  bool negative = !is_floating(in[1]) && in[1].is_int() && in[1].to_int() < 0;
  if (is_floating(in[0]) || is_floating(in[1]) || negative)
    return sym_float_binary(SymOp::Pow, in[0].to_sym_float(), in[1].to_sym_float());
  return sym_pow(in[0].to_sym_int(), in[1].to_sym_int());
}

Value negative(Inputs in) {
  check_count(in, 1);
  return Value(-in[0].to_scalar());
}

/// Truth of booleans, bits of integers.
template <class Bits, class Truth> Function::Evaluate bitwise(Bits bits, Truth truth) {
  return [bits, truth](Inputs in) -> Value {
    check_count(in, 2);
    if (is_boolean(in[0]) && is_boolean(in[1])) return truth(in[0].to_sym_bool(), in[1].to_sym_bool());
    return bits(in[0].to_int(), in[1].to_int());
  };
}

int64_t bits_and(int64_t a, int64_t b) { return a & b; }
int64_t bits_or(int64_t a, int64_t b) { return a | b; }

Value logical_not(Inputs in) {
  check_count(in, 1);
  return sym_not(in[0].to_sym_bool());
}

Function::Evaluate rounding(SymOp op) {
  return [op](Inputs in) -> Value {
    check_count(in, 1);
    if (!is_floating(in[0])) return in[0].to_sym_int();
    return sym_round(op, in[0].to_sym_float());
  };
}

Value round_half_even(Inputs in) {
  check_count(in, 1);
  if (!is_floating(in[0])) return in[0].to_sym_int();
  return static_cast<int64_t>(std::nearbyint(in[0].to_double()));
}

Value square_root(Inputs in) {
  check_count(in, 1);
  return sym_sqrt(in[0].to_sym_float());
}

Value to_float(Inputs in) {
  check_count(in, 1);
  return in[0].to_sym_float();
}

Value choose(Inputs in) {
  check_count(in, 3);
  return in[0].to_bool() ? in[1] : in[2];
}

Value sum_of(Inputs in) {
  check<TypeError>(in.size() == 1, "sym_sum takes one list of numbers");
  SymInt total = 0;
  if (in[0].is_int_list())
    for (SymInt v : in[0].int_list()) total += v;
  else
    for (const Value& v : in[0].list()) total += v.to_sym_int();
  return total;
}

Value get_item(Inputs in) {
  check<TypeError>(in.size() == 2, "getitem takes a list and an index");
  auto index = [&](size_t size) {
    int64_t i = in[1].to_int(), n = static_cast<int64_t>(size);
    check<IndexError>(i >= -n && i < n, "tuple index out of range");
    return static_cast<size_t>(i < 0 ? i + n : i);
  };
  switch (in[0].tag()) {
    case Value::Tag::List: return in[0].list()[index(in[0].list().size())];
    case Value::Tag::TensorList: return Value(in[0].tensor_list()[index(in[0].tensor_list().size())]);
    case Value::Tag::IntList: return Value(in[0].int_list()[index(in[0].int_list().size())]);
    default: fail<TypeError>("getitem expects a list, got ", tag_name(in[0].tag()));
  }
}

/// Python's operators, which code writes as such.
std::vector<Function> python_operators() {
  auto floor_divide = [](SymInt a, SymInt b) {
    check_divisor(b);
    return a / b;
  };
  auto remainder = [](SymInt a, SymInt b) {
    check_divisor(b);
    return a % b;
  };
  auto shift_left = [](SymInt a, SymInt b) { return a * sym_pow(2, b); };
  auto shift_right = [](SymInt a, SymInt b) { return a / sym_pow(2, b); };
  auto bits_xor = [](int64_t a, int64_t b) { return a ^ b; };
  auto truth_xor = [](SymBool a, SymBool b) { return sym_or(sym_and(a, sym_not(b)), sym_and(sym_not(a), b)); };
  return {
      {"operator.getitem", "{}[{}]", get_item},
      {"operator.add", "{} + {}", arithmetic(SymOp::Add, [](SymInt a, SymInt b) { return a + b; })},
      {"operator.sub", "{} - {}", arithmetic(SymOp::Sub, [](SymInt a, SymInt b) { return a - b; })},
      {"operator.mul", "{} * {}", arithmetic(SymOp::Mul, [](SymInt a, SymInt b) { return a * b; })},
      {"operator.floordiv", "{} // {}", arithmetic(SymOp::FloorDiv, floor_divide)},
      {"operator.truediv", "{} / {}", true_divide},
      {"operator.mod", "{} % {}", arithmetic(SymOp::Mod, remainder)},
      {"operator.pow", "{} ** {}", power},
      {"operator.lshift", "{} << {}", arithmetic(SymOp::Mul, shift_left)},
      {"operator.rshift", "{} >> {}", arithmetic(SymOp::FloorDiv, shift_right)},
      {"operator.and_", "{} & {}", bitwise(bits_and, sym_and)},
      {"operator.or_", "{} | {}", bitwise(bits_or, sym_or)},
      {"operator.xor", "{} ^ {}", bitwise(bits_xor, truth_xor)},
      {"operator.eq", "{} == {}", comparison(SymOp::Eq, sym_eq)},
      {"operator.ne", "{} != {}", comparison(SymOp::Ne, sym_ne)},
      {"operator.lt", "{} < {}", comparison(SymOp::Lt, sym_lt)},
      {"operator.gt", "{} > {}", comparison(SymOp::Gt, sym_gt)},
      {"operator.le", "{} <= {}", comparison(SymOp::Le, sym_le)},
      {"operator.ge", "{} >= {}", comparison(SymOp::Ge, sym_ge)},
      {"operator.neg", "-{}", negative},
      {"operator.pos", "+{}",
       [](Inputs in) {
         check_count(in, 1);
         return in[0];
       }},
      {"operator.not_", "", logical_not},
      {"operator.matmul", "{} @ {}", {}},
      {"operator.invert", "~{}", {}},
  };
}

/// Functions that code calls by name.
std::vector<Function> named_functions() {
  auto float_power = [](Inputs in) -> Value {
    check_count(in, 2);
    return sym_float_binary(SymOp::Pow, in[0].to_sym_float(), in[1].to_sym_float());
  };
  return {
      {"torch.sym_not", "", logical_not},
      {"torch.sym_and", "", bitwise(bits_and, sym_and)},
      {"torch.sym_or", "", bitwise(bits_or, sym_or)},
      {"torch.sym_max", "", arithmetic(SymOp::Max, sym_max)},
      {"torch.sym_min", "", arithmetic(SymOp::Min, sym_min)},
      {"torch.sym_float", "", to_float},
      {"torch.sym_int", "", rounding(SymOp::Trunc)},
      {"torch.sym_ite", "", choose},
      {"torch.sym_sum", "", sum_of},
      {"torch._sym_sqrt", "", square_root},
      {"math.floor", "", rounding(SymOp::Floor)},
      {"math.ceil", "", rounding(SymOp::Ceil)},
      {"math.trunc", "", rounding(SymOp::Trunc)},
      {"math.sqrt", "", square_root},
      {"math.pow", "", float_power},
      {"builtins.round", "", round_half_even},
  };
}

}  // namespace

std::vector<Function> symbolic_functions() {
  std::vector<Function> out = python_operators();
  for (Function& f : named_functions()) out.push_back(std::move(f));
  return out;
}

}  // namespace umbra::fx
