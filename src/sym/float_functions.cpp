#include "sym/float_functions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "umbra/core/error.h"
#include "umbra/sym/functions.h"
#include "umbra/sym/shape_env.h"

namespace umbra {
namespace sym {

namespace {
constexpr FloatFunction kFunctions[] = {
    {Kind::Sqrt, "sqrt", std::sqrt}, {Kind::Sin, "sin", std::sin},    {Kind::Cos, "cos", std::cos},
    {Kind::Tan, "tan", std::tan},    {Kind::Sinh, "sinh", std::sinh}, {Kind::Cosh, "cosh", std::cosh},
    {Kind::Tanh, "tanh", std::tanh}, {Kind::Asin, "asin", std::asin}, {Kind::Acos, "acos", std::acos},
    {Kind::Atan, "atan", std::atan}, {Kind::Log2, "log2", std::log2},
};

/// To a multiple of a power of ten above 1; the remainder of two floats is exact.
double round_to_tens(double value, double unit) {
  double rest = std::fmod(std::abs(value), unit), whole = std::abs(value) - rest;
  bool odd = std::fmod(whole / unit, 2) == 1;
  if (rest > unit / 2 || (rest == unit / 2 && odd)) whole += unit;
  return std::copysign(whole, value);
}
}  // namespace

ArrayRef<FloatFunction> float_functions() { return {kFunctions, std::size(kFunctions)}; }

const FloatFunction* float_function(Kind kind) {
  auto found = std::ranges::find(kFunctions, kind, &FloatFunction::kind);
  return found == std::end(kFunctions) ? nullptr : found;
}

double round_decimal(double value, int64_t digits) {
  constexpr int64_t kMostDigits = 323;  // no float has more behind the point that a rounding changes
  if (!std::isfinite(value) || digits > kMostDigits) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) return round_to_tens(value, std::pow(10.0, static_cast<double>(-digits)));
  std::string text(static_cast<size_t>(kMostDigits + 320), '\0');
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits), value);
  return std::strtod(text.c_str(), nullptr);
}

namespace {
ShapeEnv& env_of(const SymNode* node) { return static_cast<const Expression*>(node)->env(); }
}  // namespace
}  // namespace sym

SymInt sym_where(const SymBool& condition, SymInt yes, SymInt no) {
  if (!condition.is_symbolic()) return condition.value() ? yes : no;
  sym::ShapeEnv& env = sym::env_of(condition.node());
  return sym::ShapeEnv::sym_int(env.table().where(env.expression(condition), env.expression(yes), env.expression(no)));
}

SymFloat sym_where(const SymBool& condition, const SymFloat& yes, const SymFloat& no) {
  if (!condition.is_symbolic()) return condition.value() ? yes : no;
  sym::ShapeEnv& env = sym::env_of(condition.node());
  return sym::ShapeEnv::sym_float(
      env.table().where(env.expression(condition), env.expression(yes), env.expression(no)));
}

SymInt sym_round_half_even(const SymFloat& a) {
  if (!a.is_symbolic()) return sym_round(SymOp::Floor, SymFloat(std::nearbyint(a.value())));
  sym::ShapeEnv& env = sym::env_of(a.node());
  return sym::ShapeEnv::sym_int(env.table().round(sym::Kind::RoundToInt, env.simplify(env.expression(a))));
}

SymFloat sym_round_decimal(const SymFloat& a, int64_t digits) {
  if (!a.is_symbolic()) return SymFloat(sym::round_decimal(a.value(), digits));
  sym::ShapeEnv& env = sym::env_of(a.node());
  return sym::ShapeEnv::sym_float(env.table().round_decimal(env.simplify(env.expression(a)), digits));
}

SymFloat sym_function(std::string_view name, const SymFloat& a) {
  auto functions = sym::float_functions();
  auto function = std::ranges::find(functions, name, &sym::FloatFunction::name);
  check<ValueError>(function != functions.end(), "there is no function ", name, " of symbolic floats");
  if (a.is_symbolic()) {
    sym::ShapeEnv& env = sym::env_of(a.node());
    return sym::ShapeEnv::sym_float(env.table().function(function->kind, env.simplify(env.expression(a))));
  }
  double value = function->of(a.value());
  check<ValueError>(!std::isnan(value) || std::isnan(a.value()), "math domain error");
  return SymFloat(value);
}

}  // namespace umbra
