// Arithmetic, comparison and mathematics of numbers.
#include <cmath>
#include <numeric>

#include "jit/builtin_rules.h"

namespace umbra::jit {
namespace {

TypePtr arithmetic(const Types& t) { return t.size() == 2 ? promoted(t[0], t[1]) : nullptr; }
TypePtr true_division(const Types& t) {
  TypePtr type = arithmetic(t);
  return type && is_int(type) ? float_type() : type;
}
TypePtr comparison(const Types& t) { return t.size() == 2 && promoted(t[0], t[1]) ? bool_type() : nullptr; }
TypePtr unary(const Types& t) { return t.size() == 1 && is_number(t[0]) ? t[0] : nullptr; }
TypePtr unary_to_float(const Types& t) { return t.size() == 1 && is_number(t[0]) ? float_type() : nullptr; }
TypePtr unary_to_int(const Types& t) { return t.size() == 1 && is_number(t[0]) ? int_type() : nullptr; }
TypePtr float_to_bool(const Types& t) { return t.size() == 1 && is_float(t[0]) ? bool_type() : nullptr; }
TypePtr float_to_pair(const Types& t) {
  return t.size() == 1 && is_float(t[0]) ? tuple_type({float_type(), float_type()}) : nullptr;
}
TypePtr float_to_parts(const Types& t) {
  return t.size() == 1 && is_float(t[0]) ? tuple_type({float_type(), int_type()}) : nullptr;
}
TypePtr float_and_int(const Types& t) {
  return t.size() == 2 && is_float(t[0]) && is_int(t[1]) ? float_type() : nullptr;
}
TypePtr magnitude(const Types& t) {
  return t.size() == 1 && is_number(t[0]) ? (t[0]->is(TypeKind::Complex) ? float_type() : t[0]) : nullptr;
}
TypePtr digits_rule(const Types& t) { return t.size() == 1 && is_int(t[0]) ? string_type() : nullptr; }

/// 0x1f, 0o17, 0b101.
Value digits(int64_t number, unsigned base, const char* prefix) {
  std::string out;
  uint64_t rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  do out.insert(out.begin(), "0123456789abcdef"[rest % base]);
  while ((rest /= base) != 0);
  return Value((number < 0 ? "-" : "") + (prefix + out));
}
TypePtr binary_to_float(const Types& t) { return arithmetic(t) ? float_type() : nullptr; }
TypePtr bits(const Types& t) {
  if (t.size() != 2) return nullptr;
  if (is_int(t[0]) && is_int(t[1])) return int_type();
  return is_bool(t[0]) && is_bool(t[1]) ? bool_type() : nullptr;
}

bool any_complex(const Value* a) { return a[0].tag() == Value::Tag::Complex || a[1].tag() == Value::Tag::Complex; }
/// Integers, sizes of a captured program among them: `to_int` of one leaves a guard.
bool is_whole(const Value& v) { return v.is_int() || v.is_sym_int(); }
bool both_ints(const Value* a) { return is_whole(a[0]) && is_whole(a[1]); }
/// Integers of which the run tells one.
bool any_symbolic(const Value* a) { return (a[0].is_sym_int() || a[1].is_sym_int()) && both_ints(a); }

template <class F> Value arithmetic_of(const Value* a, F&& f) {
  if (any_symbolic(a)) return Value(f(a[0].to_sym_int(), a[1].to_sym_int()));
  if (any_complex(a)) return Value(f(a[0].to_complex(), a[1].to_complex()));
  if (both_ints(a))  // wraps around where it does not fit
    return Value(static_cast<int64_t>(f(static_cast<uint64_t>(a[0].to_int()), static_cast<uint64_t>(a[1].to_int()))));
  return Value(f(a[0].to_double(), a[1].to_double()));
}
bool equals(const Value* a) {
  if (any_complex(a)) return a[0].to_complex() == a[1].to_complex();
  return both_ints(a) ? a[0].to_int() == a[1].to_int() : a[0].to_double() == a[1].to_double();
}
template <class F> Value compared(const Value* a, F&& f) {
  return both_ints(a) ? Value(f(a[0].to_int(), a[1].to_int())) : Value(f(a[0].to_double(), a[1].to_double()));
}

int64_t floor_divide(int64_t a, int64_t b) {
  check<ZeroDivisionError>(b != 0, "integer division or modulo by zero");
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
int64_t modulo(int64_t a, int64_t b) {
  check<ZeroDivisionError>(b != 0, "integer division or modulo by zero");
  if (b == -1) return 0;
  int64_t m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
double modulo(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

int64_t to_integer(double value) {
  check<OverflowError>(std::isfinite(value), "cannot convert float ", value != value ? "NaN" : "infinity",
                       " to integer");
  check<OverflowError>(std::fabs(value) < 9.3e18, "the number does not fit 64 bits");
  return static_cast<int64_t>(value);
}

template <double (*kFunction)(double)> Value through_double(Value* a, size_t) {
  return Value(kFunction(a[0].to_double()));
}
template <double (*kFunction)(double, double)> Value through_doubles(Value* a, size_t) {
  return Value(kFunction(a[0].to_double(), a[1].to_double()));
}
double radians(double d) { return d * M_PI / 180; }
double degrees(double r) { return r * 180 / M_PI; }
double real_log(double x) {
  check<ValueError>(x > 0, "math domain error");
  return std::log(x);
}
double real_sqrt(double x) {
  check<ValueError>(x >= 0, "math domain error");
  return std::sqrt(x);
}

int64_t factorial(int64_t n) {
  check<ValueError>(n >= 0, "factorial() not defined for negative values");
  int64_t out = 1;
  for (int64_t i = 2; i <= n; ++i) out *= i;
  return out;
}

TypePtr boolean_not(const Types& t) { return t.size() == 1 && is_bool(t[0]) ? bool_type() : nullptr; }
TypePtr bool_comparison(const Types& t) {
  return t.size() == 2 && is_bool(t[0]) && is_bool(t[1]) ? bool_type() : nullptr;
}
TypePtr to_int_rule(const Types& t) {
  return t.size() == 1 && (is_number(t[0]) || is_bool(t[0]) || is_string(t[0])) ? int_type() : nullptr;
}
TypePtr to_float_rule(const Types& t) { return to_int_rule(t) ? float_type() : nullptr; }
TypePtr to_bool_rule(const Types& t) {
  return t.size() == 1 && (is_number(t[0]) || is_bool(t[0])) ? bool_type() : nullptr;
}
TypePtr range_length(const Types& t) { return t.size() == 3 ? int_type() : nullptr; }
TypePtr extreme(const Types& t) {
  TypePtr type = t.size() == 2 ? promoted(t[0], t[1]) : nullptr;
  if (t.size() == 2 && is_bool(t[0]) && is_bool(t[1])) return bool_type();
  return type;
}
TypePtr divmod_rule(const Types& t) {
  TypePtr type = arithmetic(t);
  return type ? tuple_type({type, type}) : nullptr;
}
TypePtr complex_rule(const Types& t) {
  if (t.empty() || t.size() > 2) return nullptr;
  for (const TypePtr& a : t)
    if (!is_number(a) && !is_bool(a)) return nullptr;
  return simple_type(TypeKind::Complex);
}

}  // namespace

const std::vector<Builtin> kNumberBuiltins = {
    {"aten::add", arithmetic, [](Value* a, size_t) { return arithmetic_of(a, [](auto x, auto y) { return x + y; }); }},
    {"aten::sub", arithmetic, [](Value* a, size_t) { return arithmetic_of(a, [](auto x, auto y) { return x - y; }); }},
    {"aten::mul", arithmetic, [](Value* a, size_t) { return arithmetic_of(a, [](auto x, auto y) { return x * y; }); }},
    {"aten::div", true_division,
     [](Value* a, size_t) {
       if (any_complex(a)) return Value(a[0].to_complex() / a[1].to_complex());
       return Value(a[0].to_double() / a[1].to_double());  // by zero: infinity, as in PyTorch's programs
     }},
    {"aten::floordiv", arithmetic,
     [](Value* a, size_t) {
       if (any_symbolic(a)) return Value(a[0].to_sym_int() / a[1].to_sym_int());
       if (both_ints(a)) return Value(floor_divide(a[0].to_int(), a[1].to_int()));
       return Value(std::floor(a[0].to_double() / a[1].to_double()));
     }},
    {"aten::remainder", arithmetic,
     [](Value* a, size_t) {
       if (any_symbolic(a)) return Value(a[0].to_sym_int() % a[1].to_sym_int());
       return both_ints(a) ? Value(modulo(a[0].to_int(), a[1].to_int()))
                           : Value(modulo(a[0].to_double(), a[1].to_double()));
     }},
    {"aten::fmod", binary_to_float, through_doubles<std::fmod>},
    {"aten::pow", true_division,
     [](Value* a, size_t) {
       if (any_complex(a)) return Value(std::pow(a[0].to_complex(), a[1].to_complex()));
       double base = a[0].to_double(), exponent = a[1].to_double();
       check<ZeroDivisionError>(base != 0 || exponent >= 0, "0.0 cannot be raised to a negative power");
       return Value(std::pow(base, exponent));
     }},
    {"aten::neg", unary,
     [](Value* a, size_t) {
       if (a[0].tag() == Value::Tag::Complex) return Value(-a[0].to_complex());
       if (a[0].is_sym_int()) return Value(-a[0].to_sym_int());
       return a[0].is_int() ? Value(-a[0].to_int()) : Value(-a[0].to_double());
     }},
    {"prim::abs", magnitude,
     [](Value* a, size_t) {
       if (a[0].tag() == Value::Tag::Complex) return Value(std::abs(a[0].to_complex()));
       return is_whole(a[0]) ? Value(std::abs(a[0].to_int())) : Value(std::fabs(a[0].to_double()));
     }},
    {"aten::eq", comparison, [](Value* a, size_t) { return Value(equals(a)); }},
    {"aten::ne", comparison, [](Value* a, size_t) { return Value(!equals(a)); }},
    {"aten::lt", comparison, [](Value* a, size_t) { return compared(a, [](auto x, auto y) { return x < y; }); }},
    {"aten::le", comparison, [](Value* a, size_t) { return compared(a, [](auto x, auto y) { return x <= y; }); }},
    {"aten::gt", comparison, [](Value* a, size_t) { return compared(a, [](auto x, auto y) { return x > y; }); }},
    {"aten::ge", comparison, [](Value* a, size_t) { return compared(a, [](auto x, auto y) { return x >= y; }); }},
    {"aten::eq", bool_comparison, [](Value* a, size_t) { return Value(a[0].to_bool() == a[1].to_bool()); }},
    {"aten::ne", bool_comparison, [](Value* a, size_t) { return Value(a[0].to_bool() != a[1].to_bool()); }},
    {"aten::__and__", bits,
     [](Value* a, size_t) {
       return a[0].is_bool() ? Value(a[0].to_bool() && a[1].to_bool()) : Value(a[0].to_int() & a[1].to_int());
     }},
    {"aten::__or__", bits,
     [](Value* a, size_t) {
       return a[0].is_bool() ? Value(a[0].to_bool() || a[1].to_bool()) : Value(a[0].to_int() | a[1].to_int());
     }},
    {"aten::__xor__", bits,
     [](Value* a, size_t) {
       return a[0].is_bool() ? Value(a[0].to_bool() != a[1].to_bool()) : Value(a[0].to_int() ^ a[1].to_int());
     }},
    {"aten::__lshift__", bits,
     [](Value* a, size_t) {
       int64_t n = a[1].to_int();
       check<ValueError>(n >= 0 && n < 64, "a shift by ", n, " is not defined");
       return Value(static_cast<int64_t>(static_cast<uint64_t>(a[0].to_int()) << n));
     }},
    {"aten::__rshift__", bits,
     [](Value* a, size_t) {
       int64_t n = a[1].to_int();
       check<ValueError>(n >= 0 && n < 64, "a shift by ", n, " is not defined");
       return Value(a[0].to_int() >> n);
     }},
    {"aten::__not__", boolean_not, [](Value* a, size_t) { return Value(!a[0].to_bool()); }},
    {"aten::Int", to_int_rule,
     [](Value* a, size_t) {
       if (a[0].is_string()) {
         const std::string& text = a[0].to_string();
         char* end = nullptr;
         int64_t value = std::strtoll(text.c_str(), &end, 10);
         check<ValueError>(!text.empty() && *end == 0, "invalid literal for int() with base 10: '", text, "'");
         return Value(value);
       }
       return Value(a[0].is_double() ? to_integer(a[0].to_double()) : a[0].to_int());
     }},
    {"aten::Float", to_float_rule,
     [](Value* a, size_t) {
       if (!a[0].is_string()) return Value(a[0].to_double());
       const std::string& text = a[0].to_string();
       char* end = nullptr;
       double value = std::strtod(text.c_str(), &end);
       check<ValueError>(!text.empty() && *end == 0, "could not convert string to float: '", text, "'");
       return Value(value);
     }},
    {"aten::Bool", to_bool_rule,
     [](Value* a, size_t) { return Value(a[0].is_bool() ? a[0].to_bool() : a[0].to_double() != 0); }},
    {"aten::Complex", complex_rule,
     [](Value* a, size_t n) {
       std::complex<double> z = a[0].to_complex();
       return Value(n == 2 ? z + std::complex<double>(0, 1) * a[1].to_complex() : z);
     }},
    {"aten::__range_length", range_length,
     [](Value* a, size_t) {
       int64_t start = a[0].to_int(), stop = a[1].to_int(), step = a[2].to_int();
       check<ValueError>(step != 0, "range() arg 3 must not be zero");
       if (step > 0) return Value(start < stop ? (stop - start + step - 1) / step : int64_t{0});
       return Value(start > stop ? (start - stop - step - 1) / -step : int64_t{0});
     }},
    {"aten::__derive_index", range_length,
     [](Value* a, size_t) { return Value(a[1].to_int() + a[0].to_int() * a[2].to_int()); }},
    {"prim::max", extreme,
     [](Value* a, size_t) {
       if (any_symbolic(a)) return Value(sym_max(a[0].to_sym_int(), a[1].to_sym_int()));
       if (a[0].tag() == a[1].tag()) return a[a[1].to_double() > a[0].to_double()];
       return Value(std::max(a[0].to_double(), a[1].to_double()));
     }},
    {"prim::min", extreme,
     [](Value* a, size_t) {
       if (any_symbolic(a)) return Value(sym_min(a[0].to_sym_int(), a[1].to_sym_int()));
       if (a[0].tag() == a[1].tag()) return a[a[1].to_double() < a[0].to_double()];
       return Value(std::min(a[0].to_double(), a[1].to_double()));
     }},
    {"aten::round", unary_to_float, through_double<std::nearbyint>},
    {"aten::divmod", divmod_rule,
     [](Value* a, size_t) {
       check(a[1].to_double() != 0,
             "ZeroDivisionError: ", both_ints(a) ? "integer division or modulo by zero" : "float divmod()");
       if (both_ints(a))
         return Value(
             std::vector<Value>{floor_divide(a[0].to_int(), a[1].to_int()), modulo(a[0].to_int(), a[1].to_int())});
       double m = modulo(a[0].to_double(), a[1].to_double());
       return Value(std::vector<Value>{Value((a[0].to_double() - m) / a[1].to_double()), Value(m)});
     }},
    {"aten::floor", unary_to_int, [](Value* a, size_t) { return Value(to_integer(std::floor(a[0].to_double()))); }},
    {"aten::ceil", unary_to_int, [](Value* a, size_t) { return Value(to_integer(std::ceil(a[0].to_double()))); }},
    {"aten::sqrt", unary_to_float, through_double<real_sqrt>},
    {"aten::exp", unary_to_float, through_double<std::exp>},
    {"aten::expm1", unary_to_float, through_double<std::expm1>},
    {"aten::log", unary_to_float, through_double<real_log>},
    {"aten::log", binary_to_float,
     [](Value* a, size_t) { return Value(std::log(a[0].to_double()) / std::log(a[1].to_double())); }},
    {"aten::mathremainder", binary_to_float, through_doubles<std::remainder>},
    {"aten::ldexp", float_and_int,
     [](Value* a, size_t) { return Value(std::ldexp(a[0].to_double(), static_cast<int>(a[1].to_int()))); }},
    {"aten::frexp", float_to_parts,
     [](Value* a, size_t) {
       int exponent = 0;
       double mantissa = std::frexp(a[0].to_double(), &exponent);
       return Value(std::vector<Value>{Value(mantissa), Value(static_cast<int64_t>(exponent))});
     }},
    {"aten::modf", float_to_pair,
     [](Value* a, size_t) {
       double whole = 0, part = std::modf(a[0].to_double(), &whole);
       return Value(std::vector<Value>{Value(part), Value(whole)});
     }},
    {"aten::hex", digits_rule, [](Value* a, size_t) { return digits(a[0].to_int(), 16, "0x"); }},
    {"aten::oct", digits_rule, [](Value* a, size_t) { return digits(a[0].to_int(), 8, "0o"); }},
    {"aten::bin", digits_rule, [](Value* a, size_t) { return digits(a[0].to_int(), 2, "0b"); }},
    {"aten::log1p", unary_to_float, through_double<std::log1p>},
    {"aten::log10", unary_to_float, through_double<std::log10>},
    {"aten::sin", unary_to_float, through_double<std::sin>},
    {"aten::cos", unary_to_float, through_double<std::cos>},
    {"aten::tan", unary_to_float, through_double<std::tan>},
    {"aten::asin", unary_to_float, through_double<std::asin>},
    {"aten::acos", unary_to_float, through_double<std::acos>},
    {"aten::atan", unary_to_float, through_double<std::atan>},
    {"aten::sinh", unary_to_float, through_double<std::sinh>},
    {"aten::cosh", unary_to_float, through_double<std::cosh>},
    {"aten::tanh", unary_to_float, through_double<std::tanh>},
    {"aten::asinh", unary_to_float, through_double<std::asinh>},
    {"aten::acosh", unary_to_float, through_double<std::acosh>},
    {"aten::atanh", unary_to_float, through_double<std::atanh>},
    {"aten::erf", unary_to_float, through_double<std::erf>},
    {"aten::erfc", unary_to_float, through_double<std::erfc>},
    {"aten::gamma", unary_to_float, through_double<std::tgamma>},
    {"aten::lgamma", unary_to_float, through_double<std::lgamma>},
    {"aten::fabs", unary_to_float, through_double<std::fabs>},
    {"aten::radians", unary_to_float, through_double<radians>},
    {"aten::degrees", unary_to_float, through_double<degrees>},
    {"aten::atan2", binary_to_float, through_doubles<std::atan2>},
    {"aten::copysign", binary_to_float, through_doubles<std::copysign>},
    {"aten::isnan", float_to_bool, [](Value* a, size_t) { return Value(std::isnan(a[0].to_double())); }},
    {"aten::isinf", float_to_bool, [](Value* a, size_t) { return Value(std::isinf(a[0].to_double())); }},
    {"aten::isfinite", float_to_bool, [](Value* a, size_t) { return Value(std::isfinite(a[0].to_double())); }},
    {"aten::factorial", unary_to_int, [](Value* a, size_t) { return Value(factorial(a[0].to_int())); }},
    {"aten::gcd", bits, [](Value* a, size_t) { return Value(std::gcd(a[0].to_int(), a[1].to_int())); }},
};

}  // namespace umbra::jit
