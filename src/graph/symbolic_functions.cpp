#include "graph/symbolic_functions.h"

#include <cmath>

#include "umbra/core/error.h"
#include "umbra/core/integer.h"
#include "umbra/sym/functions.h"
#include "umbra/sym/shape_env.h"

namespace umbra::fx {

namespace {

using Inputs = ArrayRef<Value>;

bool is_floating(const Value& v) { return v.tag() == Value::Tag::Double || v.tag() == Value::Tag::SymFloat; }
bool is_boolean(const Value& v) { return v.tag() == Value::Tag::Bool || v.tag() == Value::Tag::SymBool; }

void check_count(Inputs inputs, size_t count) {
  check<TypeError>(inputs.size() == count, "expected ", count, " arguments, got ", inputs.size());
  for (const Value& v : inputs) check<TypeError>(v.is_scalar(), "expected a number, got ", tag_name(v.tag()));
}

/// Plain integers are computed exactly and must fit 64 bits in the end: some that do are none that a SymInt holds.
Value plain_integers(SymOp op, Integer a, Integer b) {
  bool divides = op == SymOp::FloorDiv || op == SymOp::Mod;
  check<ZeroDivisionError>(!divides || b != 0, "integer division or modulo by zero");
  switch (op) {
    case SymOp::Add: return to_int64(a + b);
    case SymOp::Sub: return to_int64(a - b);
    case SymOp::Mul: return to_int64(a * b);
    case SymOp::FloorDiv: return to_int64(floor_quotient(a, b));
    case SymOp::Mod: return to_int64(floor_remainder(a, b));
    case SymOp::Min: return to_int64(std::min(a, b));
    case SymOp::Max: return to_int64(std::max(a, b));
    case SymOp::BitAnd: return to_int64(a & b);
    case SymOp::BitOr: return to_int64(a | b);
    case SymOp::BitXor: return to_int64(a ^ b);
    case SymOp::Eq: return a == b;
    case SymOp::Ne: return a != b;
    case SymOp::Lt: return a < b;
    case SymOp::Le: return a <= b;
    case SymOp::Gt: return a > b;
    default: return a >= b;
  }
}

bool is_plain_integer(const Value& v) { return v.is_int() || v.is_bool(); }

/// A function of two numbers: on floats where one is a float, else on integers.
template <class Symbols> Function::Evaluate arithmetic(SymOp op, Symbols symbols) {
  return [op, symbols](Inputs in) -> Value {
    check_count(in, 2);
    if (is_floating(in[0]) || is_floating(in[1]))
      return sym_float_binary(op, in[0].to_sym_float(), in[1].to_sym_float());
    if (is_plain_integer(in[0]) && is_plain_integer(in[1])) return plain_integers(op, in[0].to_int(), in[1].to_int());
    return symbols(in[0].to_sym_int(), in[1].to_sym_int());
  };
}

/// The comparison itself, where it is about a number that only the run tells and the answer follows from what is known
/// of it already: a graph that is made of this one states it again. Else the answer.
SymBool as_written(sym::ShapeEnv& env, SymOp op, SymInt a, SymInt b, SymBool answer) {
  const sym::Expression *left = env.expression(a), *right = env.expression(b);
  if (!left->unbacked() && !right->unbacked()) return answer;
  bool turned = op == SymOp::Gt || op == SymOp::Ge;
  sym::Kind kind = op == SymOp::Eq                      ? sym::Kind::Eq
                   : op == SymOp::Ne                    ? sym::Kind::Ne
                   : op == SymOp::Lt || op == SymOp::Gt ? sym::Kind::Lt
                                                        : sym::Kind::Le;
  const sym::Expression* written = env.table().relation(kind, turned ? right : left, turned ? left : right);
  return written->is(sym::Kind::Boolean) ? answer : sym::ShapeEnv::sym_bool(written);
}

Function::Evaluate comparison(SymOp op) {
  return [op](Inputs in) -> Value {
    check_count(in, 2);
    if (is_floating(in[0]) || is_floating(in[1]))
      return sym_float_compare(op, in[0].to_sym_float(), in[1].to_sym_float());
    if (is_plain_integer(in[0]) && is_plain_integer(in[1])) return plain_integers(op, in[0].to_int(), in[1].to_int());
    SymInt a = in[0].to_sym_int(), b = in[1].to_sym_int();
    if (!a.is_symbolic() && !b.is_symbolic()) return sym_compare(op, a, b);
    auto& env = static_cast<const sym::Expression*>((a.is_symbolic() ? a : b).node())->env();
    SymBool answer = env.hold(op, a, b);
    return answer.is_symbolic() ? answer : as_written(env, op, a, b, answer);
  };
}

/// Shifts, by any number of bits.
Function::Evaluate shift(SymInt (*symbols)(SymInt, SymInt)) {
  return [symbols](Inputs in) -> Value {
    check_count(in, 2);
    check<TypeError>(!is_floating(in[0]) && !is_floating(in[1]), "a float cannot be shifted");
    return symbols(in[0].to_sym_int(), in[1].to_sym_int());
  };
}

Value true_divide(Inputs in) {
  check_count(in, 2);
  if (is_floating(in[0]) || is_floating(in[1]))
    return sym_float_binary(SymOp::TrueDiv, in[0].to_sym_float(), in[1].to_sym_float());
  SymInt divisor = in[1].to_sym_int();
  check<ZeroDivisionError>(divisor.is_symbolic() || divisor.value() != 0, "division by zero");
  return sym_true_divide(in[0].to_sym_int(), divisor);
}

/// A number that 64 bits do not hold ends it soon enough.
int64_t plain_power(int64_t base, int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  Integer result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = to_int64(result * base);
  return to_int64(result);
}

Value power(Inputs in) {
  check_count(in, 2);
  bool negative = !is_floating(in[1]) && in[1].is_int() && in[1].to_int() < 0;
  if (is_floating(in[0]) || is_floating(in[1]) || negative)
    return sym_float_binary(SymOp::Pow, in[0].to_sym_float(), in[1].to_sym_float());
  if (is_plain_integer(in[0]) && is_plain_integer(in[1])) return plain_power(in[0].to_int(), in[1].to_int());
  return sym_pow(in[0].to_sym_int(), in[1].to_sym_int());
}

Value negative(Inputs in) {
  check_count(in, 1);
  if (is_plain_integer(in[0])) return plain_integers(SymOp::Sub, 0, in[0].to_int());
  return Value(-in[0].to_scalar());
}

/// Truth of booleans, bits of integers.
template <class Truth> Function::Evaluate bitwise(SymOp op, Truth truth) {
  return [op, truth](Inputs in) -> Value {
    check_count(in, 2);
    if (is_boolean(in[0]) && is_boolean(in[1])) return truth(in[0].to_sym_bool(), in[1].to_sym_bool());
    check<TypeError>(!is_floating(in[0]) && !is_floating(in[1]), "a float has no bits");
    if (is_plain_integer(in[0]) && is_plain_integer(in[1])) return plain_integers(op, in[0].to_int(), in[1].to_int());
    return sym_bitwise(op, in[0].to_sym_int(), in[1].to_sym_int());
  };
}

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

/// Python's round: to an integer, or where there are digits to a number of the same type.
Value round_half_even(Inputs in) {
  bool digits = in.size() == 2 && !in[1].is_none();
  check_count(digits ? in : Inputs(in.data(), 1), digits ? 2 : 1);
  if (!is_floating(in[0])) {
    check<NotImplementedError>(!digits || in[1].to_int() >= 0, "round() of an integer to tens is not supported");
    return in[0].to_sym_int();
  }
  if (digits) return sym_round_decimal(in[0].to_sym_float(), in[1].to_int());
  return sym_round_half_even(in[0].to_sym_float());
}

Function::Evaluate function_of_float(const char* name) {
  return [name](Inputs in) -> Value {
    check_count(in, 1);
    return sym_function(name, in[0].to_sym_float());
  };
}

Value to_float(Inputs in) {
  check_count(in, 1);
  return in[0].to_sym_float();
}

Value choose(Inputs in) {
  check_count(in, 3);
  SymBool condition = in[0].to_sym_bool();
  if (!condition.is_symbolic()) return condition.value() ? in[1] : in[2];
  if (is_floating(in[1]) || is_floating(in[2])) return sym_where(condition, in[1].to_sym_float(), in[2].to_sym_float());
  return sym_where(condition, in[1].to_sym_int(), in[2].to_sym_int());
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
  auto quotient = [](SymInt a, SymInt b) { return a / b; };
  auto remainder = [](SymInt a, SymInt b) { return a % b; };
  auto truth_xor = [](SymBool a, SymBool b) { return sym_or(sym_and(a, sym_not(b)), sym_and(sym_not(a), b)); };
  return {
      {"operator.getitem", "{}[{}]", get_item},
      {"operator.add", "{} + {}", arithmetic(SymOp::Add, [](SymInt a, SymInt b) { return a + b; })},
      {"operator.sub", "{} - {}", arithmetic(SymOp::Sub, [](SymInt a, SymInt b) { return a - b; })},
      {"operator.mul", "{} * {}", arithmetic(SymOp::Mul, [](SymInt a, SymInt b) { return a * b; })},
      {"operator.floordiv", "{} // {}", arithmetic(SymOp::FloorDiv, quotient)},
      {"operator.truediv", "{} / {}", true_divide},
      {"operator.mod", "{} % {}", arithmetic(SymOp::Mod, remainder)},
      {"operator.pow", "{} ** {}", power},
      {"operator.lshift", "{} << {}", shift(sym_shift_left)},
      {"operator.rshift", "{} >> {}", shift(sym_shift_right)},
      {"operator.and_", "{} & {}", bitwise(SymOp::BitAnd, sym_and)},
      {"operator.or_", "{} | {}", bitwise(SymOp::BitOr, sym_or)},
      {"operator.xor", "{} ^ {}", bitwise(SymOp::BitXor, truth_xor)},
      {"operator.eq", "{} == {}", comparison(SymOp::Eq)},
      {"operator.ne", "{} != {}", comparison(SymOp::Ne)},
      {"operator.lt", "{} < {}", comparison(SymOp::Lt)},
      {"operator.gt", "{} > {}", comparison(SymOp::Gt)},
      {"operator.le", "{} <= {}", comparison(SymOp::Le)},
      {"operator.ge", "{} >= {}", comparison(SymOp::Ge)},
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
      {"torch.sym_and", "", bitwise(SymOp::BitAnd, sym_and)},
      {"torch.sym_or", "", bitwise(SymOp::BitOr, sym_or)},
      {"torch.sym_max", "", arithmetic(SymOp::Max, sym_max)},
      {"torch.sym_min", "", arithmetic(SymOp::Min, sym_min)},
      {"torch.sym_float", "", to_float},
      {"torch.sym_int", "", rounding(SymOp::Trunc)},
      {"torch.sym_ite", "", choose},
      {"torch.sym_sum", "", sum_of},
      {"math.floor", "", rounding(SymOp::Floor)},
      {"math.ceil", "", rounding(SymOp::Ceil)},
      {"math.trunc", "", rounding(SymOp::Trunc)},
      {"math.pow", "", float_power},
      {"builtins.round", "", round_half_even},
  };
}

}  // namespace

std::vector<Function> symbolic_functions() {
  std::vector<Function> out = python_operators();
  for (Function& f : named_functions()) out.push_back(std::move(f));
  for (const char* name : {"sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "log2"})
    for (const char* place : {"torch._sym_", "math."})
      out.push_back({std::string(place) + name, "", function_of_float(name)});
  return out;
}

}  // namespace umbra::fx
