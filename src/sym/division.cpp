// Floor division, remainder, true division and the way between integers and floats.
#include <cmath>

#include "sym/checked.h"
#include "sym/rely.h"
#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/shape_env.h"
#include "umbra/sym/walk.h"

namespace umbra::sym {
namespace {

/// An expression as a product: a coefficient and powers. Sums among the bases have content 1 and a positive first term.
struct Product {
  Integer coefficient = 1;
  SmallVector<Factor, 8> factors;

  Factor* find(const Expression* base) {
    for (Factor& factor : factors)
      if (factor.base == base) return &factor;
    return nullptr;
  }
  void multiply(const Expression* base, Integer exponent) {
    if (Factor* known = find(base)) known->exponent += exponent;
    else factors.push_back({base, exponent});
  }
};

Product factorise(const Expression* a);

/// What all terms of a sum have in common.
Product common_content(const Expression* sum) {
  Product content;
  content.coefficient = 0;
  bool first = true;
  for (const Expression* term : sum->args()) {
    Product product = factorise(term);
    content.coefficient = greatest_common_divisor(content.coefficient, product.coefficient);
    if (first) {
      content.factors = product.factors;
      first = false;
      continue;
    }
    for (size_t i = content.factors.size(); i-- > 0;) {
      Factor* match = product.find(content.factors[i].base);
      if (match) content.factors[i].exponent = std::min(content.factors[i].exponent, match->exponent);
      else content.factors.erase(i);
    }
  }
  return content;
}

const Expression* rebuild(ExpressionTable& table, const Product& product) {
  SmallVector<const Expression*, 8> factors = {table.integer(product.coefficient)};
  for (const Factor& factor : product.factors)
    if (factor.exponent != 0) factors.push_back(table.power(factor.base, table.integer(factor.exponent)));
  return table.multiply(factors);
}

/// a divided by a product that is known to divide it.
Product divide_exactly(Product a, const Product& b) {
  a.coefficient /= b.coefficient;
  for (const Factor& factor : b.factors) a.find(factor.base)->exponent -= factor.exponent;
  return a;
}

Product factorise_sum(const Expression* sum) {
  if (sum->depth() > kDeep) return {1, {{sum, 1}}};  // sums within products within sums: looked into only so far
  ExpressionTable& table = sum->env().table();
  Product content = common_content(sum);
  const Expression* first = sum->arg(0)->is(Kind::Integer) ? sum->arg(1) : sum->arg(0);
  if (split_coefficient(first).coefficient < 0) content.coefficient = -content.coefficient;
  if (content.coefficient == 1 && content.factors.empty()) {
    content.factors.push_back({sum, 1});
    return content;
  }
  SmallVector<const Expression*, 8> terms;
  for (const Expression* term : sum->args()) terms.push_back(rebuild(table, divide_exactly(factorise(term), content)));
  content.multiply(table.add(terms), 1);
  return content;
}

Product factorise(const Expression* a) {
  Product result;
  if (a->is(Kind::Integer)) {
    result.coefficient = a->integer();
    return result;
  }
  if (a->is(Kind::Add)) return factorise_sum(a);
  Terms factors = a->is(Kind::Mul) ? a->args() : Terms(&a, 1);
  for (const Expression* factor : factors) {
    if (factor->is(Kind::Integer)) {
      result.coefficient = checked_multiply(result.coefficient, factor->integer());
      continue;
    }
    Factor power = split_power(factor);
    if (!power.base->is(Kind::Add)) {
      result.multiply(power.base, power.exponent);
      continue;
    }
    Product inner = factorise_sum(power.base);
    result.coefficient = checked_multiply(result.coefficient, checked_power(inner.coefficient, power.exponent));
    for (const Factor& base : inner.factors) result.multiply(base.base, base.exponent * power.exponent);
  }
  return result;
}

/// Whether b divides a whatever the symbols are.
bool divides(Product b, Product a) {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0) return false;
  for (const Factor& factor : b.factors) {
    const Factor* match = a.find(factor.base);
    if (!match || match->exponent < factor.exponent) return false;
  }
  return true;
}

Product common_factor(Product a, Product b) {
  Product common;
  common.coefficient = greatest_common_divisor(a.coefficient, b.coefficient);
  for (const Factor& factor : a.factors)
    if (const Factor* match = b.find(factor.base))
      common.factors.push_back({factor.base, std::min(factor.exponent, match->exponent)});
  return common;
}

[[noreturn]] void fail_zero() { fail<ZeroDivisionError>("integer division or modulo by zero"); }

}  // namespace

/// `(4*s0 + s1) // 4` is `s0 + s1 // 4`. Null where no term is divisible.
const Expression* ExpressionTable::quotient_by_integer(const Expression* a, Integer divisor) {
  SmallVector<const Expression*, 8> whole, rest;
  for (const Expression* term : terms_of(a)) {
    Term split = split_coefficient(term);
    if (split.coefficient % divisor != 0) {
      rest.push_back(term);
      continue;
    }
    const Expression* quotient = integer(split.coefficient / divisor);
    whole.push_back(term->is(Kind::Integer) ? quotient : multiply(quotient, split.rest));
  }
  if (whole.empty()) return nullptr;
  if (!rest.empty()) whole.push_back(floor_divide(add(rest), integer(divisor)));
  return add(whole);
}

/// Whether a division by an integer of the inputs may fail when the program runs: it is then kept, whatever its value
/// would be otherwise. Divisions by sizes are made by the library for the most part, and cancel as in PyTorch.
bool ExpressionTable::may_be_zero(const Expression* divisor) {
  if (divisors_are_nonzero_ || divisor->is(Kind::Integer) || !env_.range(divisor).contains(0)) return false;
  std::vector<const Expression*> symbols = free_symbols(divisor);
  return std::any_of(symbols.begin(), symbols.end(), [this](const Expression* one) {
    const Symbol& symbol = env_.symbol(one);
    return symbol.backed && !symbol.positive;
  });
}

namespace {
/// A value follows from the ranges of all symbols in two expressions.
void rely_on_ranges(ShapeEnv& env, const Expression* a, const Expression* b) {
  for (const Expression* one : {a, b})
    for (const Expression* symbol : free_symbols(one)) rely_on_least(env, env.symbols()[symbol->symbol_index()]);
}

bool is_zero(const Expression* a) { return a->is_integer(0) || (a->is(Kind::Float) && a->real() == 0); }

/// A function of floats; of plain ones it is a number.
const Expression* folded(ExpressionTable& table, const Expression* a) {
  auto plain = [](const Expression* arg) { return arg->is_number(); };
  return std::all_of(a->args().begin(), a->args().end(), plain) ? table.real(a->hint().real) : a;
}
}  // namespace

const Expression* ExpressionTable::floor_divide(const Expression* a, const Expression* b) {
  if (a->type() == Type::Float || b->type() == Type::Float) {
    const Expression* floats[] = {to_float(a), to_float(b)};
    check<ZeroDivisionError>(!is_zero(floats[1]), "float floor division by zero");
    return folded(*this, intern(Kind::FloorDiv, Type::Float, Terms(floats, 2)));
  }
  if (b->is_integer(0)) fail_zero();
  if (b->is_integer(1)) return a;
  if (b->is_integer(-1)) return negate(a);
  bool kept = may_be_zero(b);
  if (a->is_integer(0) && !kept) return a;
  if (a == b && !kept) return integer(1);
  if (a->is(Kind::Integer) && b->is(Kind::Integer)) return integer(floor_quotient(a->integer(), b->integer()));
  // Rounding down twice is rounding down once, if the outer divisor is positive and the product of both fits.
  if (a->is(Kind::FloorDiv) && env_.range(b).lower >= 1) {
    Integer outer = b->is(Kind::Integer) ? b->integer() : 1, product;
    if (!__builtin_mul_overflow(split_coefficient(a->arg(1)).coefficient, outer, &product))
      return floor_divide(a->arg(0), multiply(a->arg(1), b));
  }
  if (b->is(Kind::Integer))
    if (const Expression* quotient = quotient_by_integer(a, b->integer())) return quotient;
  Product dividend = factorise(a), divisor = factorise(b);
  Product common = common_factor(dividend, divisor);
  if (kept) common.factors.clear();
  if (common.coefficient != 1 || !common.factors.empty()) {
    const Expression* x = rebuild(*this, divide_exactly(dividend, common));
    const Expression* y = rebuild(*this, divide_exactly(divisor, common));
    return floor_divide(a->is(Kind::Add) ? expand(x) : x, b->is(Kind::Add) ? expand(y) : y);
  }
  Range quotient = sym::floor_divide(env_.range(a), env_.range(b));
  if (quotient.is_point() && !kept) {
    if (!divisors_are_nonzero_) rely_on_ranges(env_, a, b);
    return integer(quotient.lower);
  }
  const Expression* args[] = {a, b};
  return intern(Kind::FloorDiv, Type::Int, Terms(args, 2));
}

const Expression* ExpressionTable::modulo(const Expression* a, const Expression* b) {
  if (a->type() == Type::Float || b->type() == Type::Float) {
    const Expression* floats[] = {to_float(a), to_float(b)};
    check<ZeroDivisionError>(!is_zero(floats[1]), "float modulo");
    return folded(*this, intern(Kind::Mod, Type::Float, Terms(floats, 2)));
  }
  if (b->is_integer(0)) fail_zero();
  if (b->is_integer(1) || b->is_integer(-1)) return integer(0);
  bool kept = may_be_zero(b);
  if ((a->is_integer(0) || a == b) && !kept) return integer(0);
  if (a->is(Kind::Integer) && b->is(Kind::Integer)) return integer(floor_remainder(a->integer(), b->integer()));
  Product divisor = factorise(b);
  if (divides(divisor, factorise(a)) && !kept) return integer(0);
  SmallVector<const Expression*, 8> rest;
  bool dropped = false;
  for (const Expression* term : terms_of(a)) {
    if (divides(divisor, factorise(term)) && !kept) {
      dropped = true;
    } else if (term->is(Kind::Integer) && b->is(Kind::Integer) && term->integer() / b->integer() != 0) {
      dropped = true;
      rest.push_back(integer(term->integer() % b->integer()));
    } else {
      rest.push_back(term);
    }
  }
  if (dropped) return modulo(add(rest), b);
  Range dividend = env_.range(a), modulus = env_.range(b);
  if (dividend.lower >= 0 && modulus.lower > 0 && dividend.upper < modulus.lower) {
    if (!divisors_are_nonzero_) rely_on_ranges(env_, a, b);
    return a;
  }
  Range remainder = sym::modulo(dividend, modulus);
  if (remainder.is_point() && !kept) {
    if (!divisors_are_nonzero_) rely_on_ranges(env_, a, b);
    return integer(remainder.lower);
  }
  const Expression* args[] = {a, b};
  return intern(Kind::Mod, Type::Int, Terms(args, 2));
}

const Expression* ExpressionTable::bitwise(Kind kind, const Expression* a, const Expression* b) {
  const Expression* args[] = {a, b};
  const Expression* result = intern(kind, Type::Int, Terms(args, 2));
  return a->is(Kind::Integer) && b->is(Kind::Integer) ? integer(result->hint().integer) : result;
}

const Expression* ExpressionTable::true_divide(const Expression* a, const Expression* b) {
  check<ZeroDivisionError>(!is_zero(b), "division by zero");
  bool integers = a->type() == Type::Int && b->type() == Type::Int;
  if (integers && a->is_number() && b->is_number()) return real(true_quotient(a->integer(), b->integer()));
  if (a->is_number() && b->is_number()) return real(to_float(a)->real() / to_float(b)->real());
  if (!integers) {
    a = to_float(a);
    b = to_float(b);
  }
  const Expression* args[] = {a, b};
  return intern(integers ? Kind::IntTrueDiv : Kind::FloatTrueDiv, Type::Float, Terms(args, 2));
}

const Expression* ExpressionTable::to_float(const Expression* a) {
  if (a->type() == Type::Float) return a;
  if (a->is(Kind::Integer)) return real(static_cast<double>(a->integer()));
  return intern(Kind::ToFloat, Type::Float, Terms(&a, 1));
}

const Expression* ExpressionTable::function(Kind kind, const Expression* a) {
  a = to_float(a);
  const Expression* result = intern(kind, Type::Float, Terms(&a, 1));
  check<ValueError>(!a->has_hint() || result->has_hint(), "math domain error");
  return folded(*this, result);
}

const Expression* ExpressionTable::round_decimal(const Expression* a, int64_t digits) {
  const Expression* args[] = {to_float(a), integer(digits)};
  return folded(*this, intern(Kind::RoundDecimal, Type::Float, Terms(args, 2)));
}

const Expression* ExpressionTable::round(Kind kind, const Expression* a) {
  if (a->type() == Type::Int) return a;
  if (a->is(Kind::ToFloat)) return a->arg(0);
  const Expression* rounded = intern(kind, Type::Int, Terms(&a, 1));
  if (!a->is(Kind::Float)) return rounded;
  check<ValueError>(rounded->has_hint(), "cannot convert ", a->real(), " to an integer");
  return integer(rounded->hint().integer);
}

}  // namespace umbra::sym
