// Values of expressions from the values of their arguments: one rule a kind, for hints and for evaluation alike.
#include <cmath>

#include "umbra/sym/expression.h"

namespace umbra::sym {
namespace {

// Hints wrap around like the machine's integers; only the normal form insists on 64 bits.
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t wrapping_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = wrapping_multiply(base, base))
    if (exponent & 1) result = wrapping_multiply(result, base);
  return result;
}

template <class Value> bool holds(Kind kind, Value a, Value b) {
  return kind == Kind::Eq ? a == b : kind == Kind::Ne ? a != b : kind == Kind::Lt ? a < b : a <= b;
}

bool evaluate_condition(Kind kind, ArrayRef<Number> values, int64_t& result) {
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

bool round_to_integer(Kind kind, double value, int64_t& result) {
  value = kind == Kind::FloorToInt ? std::floor(value) : kind == Kind::CeilToInt ? std::ceil(value) : std::trunc(value);
  if (!(value > -9.2e18 && value < 9.2e18)) return false;
  result = static_cast<int64_t>(value);
  return true;
}

template <class Combine> int64_t fold(ArrayRef<Number> values, Combine combine) {
  int64_t result = values[0].integer;
  for (const Number& value : values.drop_front()) result = combine(result, value.integer);
  return result;
}

bool evaluate_integer(Kind kind, ArrayRef<Number> values, int64_t& result) {
  switch (kind) {
    case Kind::Add: result = fold(values, wrapping_add); return true;
    case Kind::Mul: result = fold(values, wrapping_multiply); return true;
    case Kind::Min: result = fold(values, [](int64_t a, int64_t b) { return std::min(a, b); }); return true;
    case Kind::Max: result = fold(values, [](int64_t a, int64_t b) { return std::max(a, b); }); return true;
    case Kind::Where: result = values[0].integer ? values[1].integer : values[2].integer; return true;
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt: return round_to_integer(kind, values[0].as_double(), result);
    default: break;
  }
  int64_t a = values[0].integer, b = values[1].integer;
  bool power = kind == Kind::Pow || kind == Kind::PowByNatural;
  if (power ? b < 0 : b == 0) return false;
  result = power ? wrapping_power(a, b) : kind == Kind::FloorDiv ? floor_divide(a, b) : modulo(a, b);
  return true;
}

template <class Combine> double fold_real(ArrayRef<Number> values, Combine combine) {
  double result = values[0].as_double();
  for (const Number& value : values.drop_front()) result = combine(result, value.as_double());
  return result;
}

bool evaluate_real(Kind kind, ArrayRef<Number> values, double& result) {
  switch (kind) {
    case Kind::Add: result = fold_real(values, [](double a, double b) { return a + b; }); return true;
    case Kind::Mul: result = fold_real(values, [](double a, double b) { return a * b; }); return true;
    case Kind::Min: result = fold_real(values, [](double a, double b) { return std::min(a, b); }); return true;
    case Kind::Max: result = fold_real(values, [](double a, double b) { return std::max(a, b); }); return true;
    case Kind::Where: result = (values[0].integer ? values[1] : values[2]).as_double(); return true;
    case Kind::ToFloat: result = values[0].as_double(); return true;
    case Kind::Sqrt: result = std::sqrt(values[0].as_double()); return true;
    case Kind::FloatPow: result = std::pow(values[0].as_double(), values[1].as_double()); return true;
    default:  // IntTrueDiv, FloatTrueDiv
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
