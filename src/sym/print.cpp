#include "umbra/sym/print.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "sym/float_functions.h"
#include "umbra/core/error.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

// How tightly sympy says an expression binds; one that binds no tighter than its surroundings gets parentheses.
constexpr int kOr = 20, kAnd = 30, kRelation = 35, kBitOr = 36, kBitAnd = 38, kAdd = 40, kMul = 50, kPow = 60,
              kFunction = 70, kNot = 100, kAlmostAtom = 999, kAtom = 1000;

bool negative_coefficient(const Expression* a) {
  const Expression* first = a->arg(0);
  return (first->is(Kind::Integer) && first->integer() < 0) || (first->is(Kind::Float) && first->real() < 0);
}

int precedence(const Expression* a) {
  switch (a->kind()) {
    case Kind::Integer: return a->integer() < 0 ? kAdd : kAtom;
    case Kind::Float: return a->real() < 0 ? kAdd : kAtom;
    case Kind::Add: return kAdd;
    case Kind::Mul: return negative_coefficient(a) ? kAdd : kMul;
    case Kind::Pow:
    case Kind::FloatPow: return kPow;
    case Kind::PowByNatural: return kMul;
    case Kind::FloorDiv:
    case Kind::Mod:
    case Kind::BitAnd:
    case Kind::BitOr:
    case Kind::BitXor:
    case Kind::IntTrueDiv:
    case Kind::FloatTrueDiv:
    case Kind::Where:
    case Kind::Lt:
    case Kind::Le: return kRelation;
    case Kind::Eq:
    case Kind::Ne: return kMul;
    case Kind::And: return kAnd;
    case Kind::Or: return kOr;
    case Kind::Not: return kNot;
    case Kind::ToFloat:
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt:
    case Kind::RoundToInt:
    case Kind::RoundDecimal: return kFunction;
    default: return float_function(a->kind()) ? kFunction : kAtom;
  }
}

std::string_view relation_sign(const Expression* a) {
  switch (a->kind()) {
    case Kind::Eq: return " == ";
    case Kind::Ne: return " != ";
    case Kind::Lt: return prints_flipped(a) ? " > " : " < ";
    default: return prints_flipped(a) ? " >= " : " <= ";
  }
}

const Expression* left(const Expression* a) { return a->arg(prints_flipped(a) ? 1 : 0); }
const Expression* right(const Expression* a) { return a->arg(prints_flipped(a) ? 0 : 1); }

/// What the printers share: parentheses and joining.
class Printer {
 public:
  virtual ~Printer() = default;
  virtual std::string print(const Expression* a) const = 0;

  /// The whole text; nothing where it would be too long or too deep to be of use to anyone.
  std::optional<std::string> whole(const Expression* a) const {
    constexpr uint32_t kDeepest = 1000;
    if (a->depth() > kDeepest) return std::nullopt;
    left_ = kMostNodes;
    std::string text = print(a);
    return left_ == 0 ? std::nullopt : std::optional(std::move(text));
  }

 protected:
  /// Counts a node. Expressions share their parts, so that a small one can have a text without end.
  bool exhausted() const {
    if (left_ > 0) --left_;
    return left_ == 0;
  }

  std::string parenthesised(const Expression* a, int level) const {
    std::string text = print(a);
    return precedence(a) <= level ? "(" + text + ")" : text;
  }
  template <class List> std::string join(const List& values, std::string_view separator, int level) const {
    std::string out;
    for (const Expression* value : values) {
      if (!out.empty()) out += separator;
      out += parenthesised(value, level);
    }
    return out;
  }
  std::string call(std::string_view name, Terms args) const {
    return std::string(name) + "(" + join(args, ", ", 0) + ")";
  }
  std::string relation(const Expression* a) const {
    std::string text = parenthesised(left(a), precedence(a));
    text += relation_sign(a);
    return text + parenthesised(right(a), precedence(a));
  }

 private:
  static constexpr size_t kMostNodes = 100'000;
  mutable size_t left_ = kMostNodes;
};

/// sympy's str.
class TextPrinter : public Printer {
 public:
  std::string print(const Expression* a) const override {
    if (exhausted()) return "...";
    switch (a->kind()) {
      case Kind::Integer: return integer_text(a->integer());
      case Kind::Float: return float_text(a->real());
      case Kind::Boolean: return a->truth() ? "True" : "False";
      case Kind::Symbol: return a->env().symbol(a).name;
      case Kind::Add: return sum(a);
      case Kind::Mul: return product(a);
      case Kind::Pow: return parenthesised(a->arg(0), kPow) + "**" + parenthesised(a->arg(1), kPow);
      case Kind::FloorDiv:
        return "(" + parenthesised(a->arg(0), kAlmostAtom) + "//" + parenthesised(a->arg(1), kAlmostAtom) + ")";
      case Kind::Eq: return call("Eq", a->args());
      case Kind::Ne: return call("Ne", a->args());
      case Kind::Lt:
      case Kind::Le: return relation(a);
      case Kind::And: return join(a->args(), " & ", kBitAnd);
      case Kind::Or: return join(a->args(), " | ", kBitOr);
      case Kind::Not: return "~" + parenthesised(a->arg(0), kNot);
      default: return call(function_name(a), a->args());
    }
  }

 private:
  std::string sum(const Expression* a) const {
    std::string out;
    for (const Expression* term : a->args()) {
      std::string text = print(term);
      bool minus = text.front() == '-';
      if (minus) text.erase(0, 1);
      if (precedence(term) < kAdd) text = "(" + text + ")";
      if (out.empty()) out = minus ? "-" + text : text;
      else out += (minus ? " - " : " + ") + text;
    }
    return out;
  }

  std::string product(const Expression* a) const {
    bool minus = negative_coefficient(a);
    std::string out = minus ? "-" : "";
    Terms factors = a->args();
    bool first = true;
    if (minus) {
      const Expression* coefficient = factors[0];
      factors = factors.drop_front();
      if (!coefficient->is_integer(-1)) {
        std::string digits = print(coefficient);
        out += digits.substr(1);
        first = false;
      }
    }
    for (const Expression* factor : factors) {
      if (!first) out += "*";
      first = false;
      out += parenthesised(factor, precedence(a));
    }
    return out;
  }
};

/// sympy's str, with comparisons as PyTorch keeps them for the run.
class ConditionPrinter final : public TextPrinter {
 public:
  std::string print(const Expression* a) const override {
    if (!a->is_relation() || a->arg(0)->type() == Type::Bool) return TextPrinter::print(a);
    auto [less, more] = sides(a);
    if (a->is(Kind::Eq) || a->is(Kind::Ne)) {
      bool exchanged = !more->is_number() && (less->is_number() || compare(more, less) < 0);
      if (exchanged) std::swap(less, more);
      return (a->is(Kind::Eq) ? "Eq(" : "Ne(") + print(less) + ", " + print(more) + ")";
    }
    return parenthesised(less, precedence(a)) + (a->is(Kind::Lt) ? " < " : " <= ") + parenthesised(more, precedence(a));
  }

 private:
  /// Of integers: without a common factor, and each term on the side where it is added.
  static std::pair<const Expression*, const Expression*> sides(const Expression* a) {
    if (a->arg(0)->type() == Type::Float) return {a->arg(0), a->arg(1)};
    ExpressionTable& table = a->env().table();
    const Expression* difference = table.subtract(a->arg(1), a->arg(0));
    Integer factor = 0;
    for (const Expression* term : terms_of(difference))
      factor = common_divisor(factor, split_coefficient(term).coefficient);
    SmallVector<const Expression*, 8> less, more;
    for (const Expression* term : terms_of(difference)) {
      Term split = split_coefficient(term);
      Integer coefficient = split.coefficient / std::max<Integer>(factor, 1);
      if (coefficient < 0) less.push_back(table.multiply(table.integer(-coefficient), split.rest));
      else more.push_back(table.multiply(table.integer(coefficient), split.rest));
    }
    return {table.add(less), table.add(more)};
  }
  static Integer common_divisor(Integer a, Integer b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a < 0 ? -a : a;
  }
};

/// sympy's srepr.
class SreprPrinter final : public Printer {
 public:
  std::string print(const Expression* a) const override {
    if (exhausted()) return "...";
    switch (a->kind()) {
      case Kind::Integer: return "Integer(" + integer_text(a->integer()) + ")";
      case Kind::Float: return "Float('" + float_text(a->real(), 17) + "', precision=53)";
      case Kind::Boolean: return a->truth() ? "true" : "false";
      case Kind::Symbol: return symbol(a);
      case Kind::Mul: return product(a);
      case Kind::Lt:
      case Kind::Le: return std::string(function_name(a)) + "(" + print(left(a)) + ", " + print(right(a)) + ")";
      default: return call(function_name(a), a->args());
    }
  }

 private:
  static std::string symbol(const Expression* a) {
    const Symbol& symbol = a->env().symbol(a);
    std::string out = "Symbol('" + symbol.name + "'";
    if (symbol.positive) out += ", positive=True";
    if (symbol.type == Type::Int) out += ", integer=True";
    if (symbol.type == Type::Float && symbol.backed) out += ", real=True";
    return out + ")";
  }
  /// sympy splits a negative coefficient: `Mul(Integer(-1), Integer(2), ...)`.
  std::string product(const Expression* a) const {
    const Expression* coefficient = a->arg(0);
    if (!coefficient->is(Kind::Integer) || coefficient->integer() >= -1) return call("Mul", a->args());
    std::string out = "Mul(Integer(-1), Integer(" + integer_text(-coefficient->integer()) + ")";
    for (const Expression* factor : a->args().drop_front()) out += ", " + print(factor);
    return out + ")";
  }
};

/// Python code.
class PythonPrinter final : public Printer {
 public:
  explicit PythonPrinter(const std::function<std::string(const Expression*)>& name) : name_(name) {}
  std::string print(const Expression* a) const override {
    if (exhausted()) return "...";
    switch (a->kind()) {
      case Kind::Integer: return integer_text(a->integer());
      case Kind::Float: return shortest(a->real());
      case Kind::Boolean: return a->truth() ? "True" : "False";
      case Kind::Symbol: return name_(a);
      case Kind::Add: return join(constant_first(a), " + ", kAdd);
      case Kind::Mul: return join(a->args(), "*", precedence(a));
      case Kind::Pow:
        if (a->arg(1)->integer() > 8) return join(a->args(), " ** ", kPow);
        return join(std::vector<const Expression*>(static_cast<size_t>(a->arg(1)->integer()), a->arg(0)), "*", kMul);
      case Kind::PowByNatural:
      case Kind::FloatPow: return join(a->args(), " ** ", kPow);
      case Kind::FloorDiv: return join(a->args(), " // ", kAlmostAtom);
      case Kind::Mod: return join(a->args(), " % ", kAlmostAtom);
      case Kind::BitAnd: return join(a->args(), " & ", kAlmostAtom);
      case Kind::BitOr: return join(a->args(), " | ", kAlmostAtom);
      case Kind::BitXor: return join(a->args(), " ^ ", kAlmostAtom);
      case Kind::IntTrueDiv:
      case Kind::FloatTrueDiv: return join(a->args(), " / ", kAlmostAtom);
      case Kind::Min: return call("torch.sym_min", a->args());
      case Kind::Max: return call("torch.sym_max", a->args());
      case Kind::ToFloat: return call("torch.sym_float", a->args());
      case Kind::FloorToInt: return call("math.floor", a->args());
      case Kind::CeilToInt: return call("math.ceil", a->args());
      case Kind::TruncToInt: return call("math.trunc", a->args());
      case Kind::RoundToInt:
      case Kind::RoundDecimal: return call("round", a->args());
      case Kind::Where: return print(a->arg(1)) + " if " + print(a->arg(0)) + " else " + print(a->arg(2));
      case Kind::Eq:
      case Kind::Ne:
      case Kind::Lt:
      case Kind::Le: return relation(a);
      case Kind::And: return join(a->args(), " and ", kAnd);
      case Kind::Or: return join(a->args(), " or ", kOr);
      case Kind::Not: return "not (" + print(a->arg(0)) + ")";
      default: return call("torch._sym_" + std::string(float_function(a->kind())->name), a->args());
    }
  }

 private:
  static std::vector<const Expression*> constant_first(const Expression* a) {
    std::vector<const Expression*> terms = a->args().vec();
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Expression* x, const Expression* y) { return compare(x, y) < 0; });
    return terms;
  }
  static std::string shortest(double value) {
    char buffer[40];
    auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, end);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  const std::function<std::string(const Expression*)>& name_;
};

}  // namespace

bool prints_flipped(const Expression* a) {
  return (a->is(Kind::Lt) || a->is(Kind::Le)) && (a->arg(0)->is_number() || a->flipped());
}

std::string_view function_name(const Expression* a) {
  // In the order of Kind.
  static constexpr std::string_view kNames[] = {"Integer",
                                                "Float",
                                                "Boolean",
                                                "Symbol",
                                                "Add",
                                                "Mul",
                                                "Pow",
                                                "PowByNatural",
                                                "FloorDiv",
                                                "PythonMod",
                                                "BitwiseFn_bitwise_and",
                                                "BitwiseFn_bitwise_or",
                                                "BitwiseFn_bitwise_xor",
                                                "Min",
                                                "Max",
                                                "IntTrueDiv",
                                                "FloatTrueDiv",
                                                "FloatPow",
                                                "ToFloat",
                                                "OpaqueUnaryFn_sqrt",
                                                "OpaqueUnaryFn_sin",
                                                "OpaqueUnaryFn_cos",
                                                "OpaqueUnaryFn_tan",
                                                "OpaqueUnaryFn_sinh",
                                                "OpaqueUnaryFn_cosh",
                                                "OpaqueUnaryFn_tanh",
                                                "OpaqueUnaryFn_asin",
                                                "OpaqueUnaryFn_acos",
                                                "OpaqueUnaryFn_atan",
                                                "OpaqueUnaryFn_log2",
                                                "FloorToInt",
                                                "CeilToInt",
                                                "TruncToInt",
                                                "RoundToInt",
                                                "RoundDecimal",
                                                "Where",
                                                "Equality",
                                                "Unequality",
                                                "StrictLessThan",
                                                "LessThan",
                                                "And",
                                                "Or",
                                                "Not"};
  static_assert(std::size(kNames) == static_cast<size_t>(Kind::Not) + 1);
  if (prints_flipped(a)) return a->is(Kind::Lt) ? "StrictGreaterThan" : "GreaterThan";
  // PyTorch's Mod is the one for floats, and for integers that are known to be nonnegative.
  auto nonnegative = [&] { return assumed_nonnegative(a->arg(0)) && assumed_nonnegative(a->arg(1)); };
  if (a->is(Kind::Mod) && (a->type() == Type::Float || nonnegative())) return "Mod";
  return kNames[static_cast<size_t>(a->kind())];
}

std::string float_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-oo" : "oo";
  if (value == 0) return "0.0";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
  std::string text = buffer;
  size_t mark = text.find('e');
  int exponent = std::atoi(text.c_str() + mark + 1);
  std::string mantissa = text.substr(0, mark), sign;
  if (mantissa[0] == '-') {
    sign = "-";
    mantissa.erase(0, 1);
  }
  std::string all = mantissa.substr(0, 1) + mantissa.substr(2);
  while (all.size() > 1 && all.back() == '0') all.pop_back();
  // sympy writes plainly what lies between 1e-5 and the precision.
  if (exponent <= -5 || exponent >= digits) {
    std::string fraction = all.size() > 1 ? all.substr(1) : "0";
    return sign + all[0] + "." + fraction + "e" + (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(-exponent - 1, '0') + all;
  size_t whole = static_cast<size_t>(exponent) + 1;
  if (all.size() < whole) all.append(whole - all.size(), '0');
  std::string fraction = all.substr(whole);
  return sign + all.substr(0, whole) + "." + (fraction.empty() ? "0" : fraction);
}

std::string to_text(const Expression* a) {
  return TextPrinter().whole(a).value_or(concat("<an expression of ", a->depth(), " levels>"));
}

std::string to_condition_text(const Expression* a) { return ConditionPrinter().whole(a).value_or(to_text(a)); }

namespace {
std::string complete(std::optional<std::string> text) {
  check<ValueError>(text.has_value(), "a symbolic expression is too large to be written");
  return std::move(*text);
}
}  // namespace

std::string to_srepr(const Expression* a) { return complete(SreprPrinter().whole(a)); }
std::string to_python(const Expression* a, const std::function<std::string(const Expression*)>& name) {
  return complete(PythonPrinter(name).whole(a));
}

}  // namespace umbra::sym
