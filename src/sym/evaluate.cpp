// Values of expressions from the values of their arguments: one rule a kind, for hints and for evaluation alike.
#include <cmath>

#include "sym/checked.h"
#include "sym/float_functions.h"
#include "umbra/sym/expression.h"

namespace umbra::sym {
namespace {

template <class Value> bool holds(Kind kind, Value a, Value b) {
  return kind == Kind::Eq ? a == b : kind == Kind::Ne ? a != b : kind == Kind::Lt ? a < b : a <= b;
}

bool evaluate_condition(Kind kind, ArrayRef<Number> values, Integer& result) {
  auto truth = [](const Number& value) { return value.integer != 0; };
  switch (kind) {
    case Kind::And: result = std::all_of(values.begin(), values.end(), truth); return true;
    case Kind::Or: result = std::any_of(values.begin(), values.end(), truth); return true;
    case Kind::Not: result = !values[0].integer; return true;
    default: break;
  }
  bool floating = values[0].type == Type::Float || values[1].type == Type::Float;
  result = floating ? holds(kind, values[0].as_double(), values[1].as_double())
                    : holds(kind, values[0].integer, values[1].integer);
  return true;
}

bool round_to_integer(Kind kind, double value, Integer& result) {
  switch (kind) {
    case Kind::FloorToInt: value = std::floor(value); break;
    case Kind::CeilToInt: value = std::ceil(value); break;
    case Kind::RoundToInt: value = std::nearbyint(value); break;
    default: value = std::trunc(value);
  }
  if (!(value > -1.7e38 && value < 1.7e38)) return false;
  result = static_cast<Integer>(value);
  return true;
}

/// Combines all values, as far as `combine` says that the result fits.
template <class Combine> bool fold(ArrayRef<Number> values, Integer& result, Combine combine) {
  result = values[0].integer;
  for (const Number& value : values.drop_front())
    if (!combine(result, value.integer, result)) return false;
  return true;
}

bool evaluate_two(Kind kind, Integer a, Integer b, Integer& result) {
  switch (kind) {
    case Kind::Pow:
    case Kind::PowByNatural: return b >= 0 && integer_power(a, b, result);
    case Kind::BitAnd: result = a & b; return true;
    case Kind::BitOr: result = a | b; return true;
    case Kind::BitXor: result = a ^ b; return true;
    default:
      if (b == 0 || (a == kSmallestInteger && b == -1)) return false;
      result = kind == Kind::FloorDiv ? floor_quotient(a, b) : floor_remainder(a, b);
      return true;
  }
}

bool evaluate_integer(Kind kind, ArrayRef<Number> values, Integer& result) {
  switch (kind) {
    case Kind::Add:
      return fold(values, result, [](Integer a, Integer b, Integer& r) { return !__builtin_add_overflow(a, b, &r); });
    case Kind::Mul:
      return fold(values, result, [](Integer a, Integer b, Integer& r) { return !__builtin_mul_overflow(a, b, &r); });
    case Kind::Min:
      return fold(values, result, [](Integer a, Integer b, Integer& r) { return r = std::min(a, b), true; });
    case Kind::Max:
      return fold(values, result, [](Integer a, Integer b, Integer& r) { return r = std::max(a, b), true; });
    case Kind::Where: result = values[0].integer ? values[1].integer : values[2].integer; return true;
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt:
    case Kind::RoundToInt: return round_to_integer(kind, values[0].as_double(), result);
    default: return evaluate_two(kind, values[0].integer, values[1].integer, result);
  }
}

template <class Combine> double fold_real(ArrayRef<Number> values, Combine combine) {
  double result = values[0].as_double();
  for (const Number& value : values.drop_front()) result = combine(result, value.as_double());
  return result;
}

bool evaluate_real(Kind kind, ArrayRef<Number> values, double& result) {
  if (const FloatFunction* function = float_function(kind)) {
    result = function->of(values[0].as_double());
    return !std::isnan(result);
  }
  switch (kind) {
    case Kind::Add: result = fold_real(values, [](double a, double b) { return a + b; }); return true;
    case Kind::Mul: result = fold_real(values, [](double a, double b) { return a * b; }); return true;
    case Kind::Min: result = fold_real(values, [](double a, double b) { return std::min(a, b); }); return true;
    case Kind::Max: result = fold_real(values, [](double a, double b) { return std::max(a, b); }); return true;
    case Kind::Where: result = (values[0].integer ? values[1] : values[2]).as_double(); return true;
    case Kind::ToFloat: result = values[0].as_double(); return true;
    case Kind::RoundDecimal: result = round_decimal(values[0].as_double(), to_int64(values[1].integer)); return true;
    case Kind::FloatPow: {
      double base = values[0].as_double(), exponent = values[1].as_double();
      result = std::pow(base, exponent);
      return (base != 0 || exponent >= 0) && !std::isnan(result);
    }
    case Kind::FloorDiv:
    case Kind::Mod: {
      double a = values[0].as_double(), b = values[1].as_double();
      if (b == 0) return false;
      result = sym_float_binary(kind == Kind::Mod ? SymOp::Mod : SymOp::FloorDiv, a, b).value();
      return true;
    }
    case Kind::IntTrueDiv:
      if (values[1].integer == 0) return false;
      result = true_quotient(values[0].integer, values[1].integer);
      return true;
    default:  // FloatTrueDiv
      if (values[1].as_double() == 0) return false;
      result = values[0].as_double() / values[1].as_double();
      return true;
  }
}

}  // namespace

bool evaluate_node(const Expression& node, ArrayRef<Number> values, Number& result) {
  result = Number{node.type()};
  if (node.is(Kind::Symbol)) return false;
  if (node.is(Kind::Float)) {
    result.real = node.real();
    return true;
  }
  if (node.args().empty()) {
    result.integer = node.integer();
    return true;
  }
  switch (node.type()) {
    case Type::Int: return evaluate_integer(node.kind(), values, result.integer);
    case Type::Float: return evaluate_real(node.kind(), values, result.real);
    default: return evaluate_condition(node.kind(), values, result.integer);
  }
}

}  // namespace umbra::sym
