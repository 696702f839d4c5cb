// Sums, products and powers: the polynomial part of the normal form.
#include <cmath>

#include "sym/checked.h"
#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

using TermList = SmallVector<Term, 8>;
using FactorList = SmallVector<Factor, 8>;
using ExpressionList = SmallVector<const Expression*, 8>;

bool floating(Terms values) {
  for (const Expression* value : values)
    if (value->type() == Type::Float) return true;
  return false;
}

void collect_term(TermList& terms, int64_t& constant, const Expression* a) {
  if (a->is(Kind::Integer)) {
    constant = checked_add(constant, a->integer());
    return;
  }
  Term term = split_coefficient(a);
  for (Term& known : terms)
    if (known.rest == term.rest) {
      known.coefficient = checked_add(known.coefficient, term.coefficient);
      return;
    }
  terms.push_back(term);
}

void collect_factor(FactorList& factors, int64_t& coefficient, const Expression* a) {
  if (a->is(Kind::Integer)) {
    coefficient = checked_multiply(coefficient, a->integer());
    return;
  }
  Factor factor = split_power(a);
  for (Factor& known : factors)
    if (known.base == factor.base) {
      known.exponent = checked_add(known.exponent, factor.exponent);
      return;
    }
  factors.push_back(factor);
}

Terms factors_of(const Expression* const& a) { return a->is(Kind::Mul) ? a->args() : Terms(&a, 1); }

/// Exponents of a term over a list of bases.
void exponents_of(const Expression* term, const ExpressionList& bases, int64_t* out) {
  std::fill_n(out, bases.size(), 0);
  if (term->is_number()) return;
  for (const Expression* factor : factors_of(term)) {
    if (factor->is_number()) continue;
    Factor power = split_power(factor);
    out[std::find(bases.begin(), bases.end(), power.base) - bases.begin()] = power.exponent;
  }
}

/// Orders the terms of a sum as sympy prints them: by exponents of the sorted bases, the highest first, constants last.
void order_terms(ExpressionList& terms) {
  // `3 - 2*s0`: a positive number before the only other, negative, simple term.
  if (terms.size() == 2) {
    if (terms[1]->is_number()) std::swap(terms[0], terms[1]);
    if (terms[0]->is(Kind::Integer) && terms[0]->integer() > 0 && terms[1]->is(Kind::Mul) &&
        terms[1]->args().size() == 2 && terms[1]->arg(0)->is(Kind::Integer) && terms[1]->arg(0)->integer() < 0)
      return;
    if (terms[0]->is_number()) {
      std::swap(terms[0], terms[1]);
      return;
    }
  }
  ExpressionList bases;
  for (const Expression* term : terms) {
    if (term->is_number()) continue;
    for (const Expression* factor : factors_of(term)) {
      if (factor->is_number()) continue;
      const Expression* base = split_power(factor).base;
      if (std::find(bases.begin(), bases.end(), base) == bases.end()) bases.push_back(base);
    }
  }
  std::sort(bases.begin(), bases.end(), [](const Expression* a, const Expression* b) { return compare(a, b) < 0; });
  size_t width = bases.size();
  std::vector<int64_t> exponents(terms.size() * width);
  SmallVector<uint32_t, 8> order;
  for (size_t i = 0; i < terms.size(); ++i) {
    exponents_of(terms[i], bases, exponents.data() + i * width);
    order.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int64_t* x = exponents.data() + a * width;
    const int64_t* y = exponents.data() + b * width;
    return std::lexicographical_compare(y, y + width, x, x + width);
  });
  ExpressionList sorted;
  for (uint32_t i : order) sorted.push_back(terms[i]);
  terms = sorted;
}

}  // namespace

Term split_coefficient(const Expression* a) {
  ExpressionTable& table = a->env().table();
  if (a->is(Kind::Integer)) return {a->integer(), table.integer(1)};
  if (!a->is(Kind::Mul) || !a->arg(0)->is(Kind::Integer)) return {1, a};
  return {a->arg(0)->integer(), table.rest_of(a)};
}

const Expression* ExpressionTable::rest_of(const Expression* product) {
  if (!product->without_coefficient_) {
    Terms factors = product->args().drop_front();
    product->without_coefficient_ = factors.size() == 1 ? factors[0] : intern(Kind::Mul, product->type_, factors);
  }
  return product->without_coefficient_;
}

const Expression* ExpressionTable::scaled(int64_t coefficient, const Expression* rest) {
  if (coefficient == 1) return rest;
  ExpressionList factors;
  factors.push_back(integer(coefficient));
  if (rest->is(Kind::Mul)) factors.append(rest->args().begin(), rest->args().end());
  else factors.push_back(rest);
  return intern(Kind::Mul, rest->type_, factors);
}

// ---- sums
const Expression* ExpressionTable::add(const Expression* a, const Expression* b) {
  const Expression* terms[] = {a, b};
  return add(Terms(terms, 2));
}

const Expression* ExpressionTable::add(Terms values) {
  if (floating(values)) return float_sum(values);
  TermList terms;
  int64_t constant = 0;
  for (const Expression* const& value : values)
    for (const Expression* term : terms_of(value)) collect_term(terms, constant, term);
  ExpressionList result;
  for (const Term& term : terms) {
    if (term.coefficient == 0) continue;
    result.push_back(scaled(term.coefficient, term.rest));
  }
  if (result.empty()) return integer(constant);
  if (constant != 0) result.push_back(integer(constant));
  if (result.size() == 1) return result[0];
  order_terms(result);
  return intern(Kind::Add, Type::Int, result);
}

const Expression* ExpressionTable::negate(const Expression* a) { return multiply(integer(-1), a); }
const Expression* ExpressionTable::subtract(const Expression* a, const Expression* b) { return add(a, negate(b)); }

// ---- products
const Expression* ExpressionTable::multiply(const Expression* a, const Expression* b) {
  const Expression* factors[] = {a, b};
  return multiply(Terms(factors, 2));
}

const Expression* ExpressionTable::multiply(Terms values) {
  if (floating(values)) return float_product(values);
  FactorList factors;
  int64_t coefficient = 1;
  for (const Expression* const& value : values)
    for (const Expression* factor : factors_of(value)) collect_factor(factors, coefficient, factor);
  if (coefficient == 0 || factors.empty()) return integer(coefficient);
  // A number times a lone sum is distributed; in longer products sums stay factors.
  if (factors.size() == 1 && factors[0].exponent == 1 && factors[0].base->is(Kind::Add) && coefficient != 1) {
    ExpressionList terms;
    for (const Expression* term : factors[0].base->args()) {
      Term split = split_coefficient(term);
      int64_t product = checked_multiply(coefficient, split.coefficient);
      terms.push_back(term->is(Kind::Integer) ? integer(product) : scaled(product, split.rest));
    }
    order_terms(terms);
    return intern(Kind::Add, Type::Int, terms);
  }
  ExpressionList result;
  for (const Factor& factor : factors)
    result.push_back(factor.exponent == 1 ? factor.base : power(factor.base, integer(factor.exponent)));
  if (result.size() == 1) return scaled(coefficient, result[0]);
  std::sort(result.begin(), result.end(), [](const Expression* a, const Expression* b) { return compare(a, b) < 0; });
  if (coefficient != 1) result.insert(0, integer(coefficient));
  return intern(Kind::Mul, Type::Int, result);
}

const Expression* ExpressionTable::power(const Expression* base, const Expression* exponent) {
  if (base->type() == Type::Float || exponent->type() == Type::Float) {
    if (base->is_number() && exponent->is_number())
      return real(std::pow(to_float(base)->real(), to_float(exponent)->real()));
    const Expression* args[] = {to_float(base), to_float(exponent)};
    return intern(Kind::FloatPow, Type::Float, Terms(args, 2));
  }
  if (!exponent->is(Kind::Integer)) {
    const Expression* args[] = {base, exponent};
    return intern(Kind::PowByNatural, Type::Int, Terms(args, 2));
  }
  int64_t n = exponent->integer();
  check<ValueError>(n >= 0, "a symbolic integer cannot be raised to the negative power ", n);
  if (n == 0) return integer(1);
  if (n == 1) return base;
  if (base->is(Kind::Integer)) return integer(checked_power(base->integer(), n));
  if (base->is(Kind::Pow)) return power(base->arg(0), integer(checked_multiply(base->arg(1)->integer(), n)));
  if (base->is(Kind::Mul)) {
    ExpressionList factors;
    for (const Expression* factor : base->args()) factors.push_back(power(factor, exponent));
    return multiply(factors);
  }
  const Expression* args[] = {base, exponent};
  return intern(Kind::Pow, Type::Int, Terms(args, 2));
}

// ---- floating point: commutative, but never reassociated
const Expression* ExpressionTable::float_sum(Terms values) {
  const Expression* sum = to_float(values[0]);
  for (const Expression* value : values.drop_front()) {
    const Expression* next = to_float(value);
    if (sum->is(Kind::Float) && next->is(Kind::Float)) {
      sum = real(sum->real() + next->real());
      continue;
    }
    ExpressionList terms = {sum, next};
    if (compare(sum, next) > 0) std::swap(terms[0], terms[1]);
    order_terms(terms);
    sum = intern(Kind::Add, Type::Float, terms);
  }
  return sum;
}

const Expression* ExpressionTable::float_product(Terms values) {
  const Expression* product = values[0];
  for (const Expression* value : values.drop_front()) {
    const Expression* a = product;
    const Expression* b = value;
    // An integer of -1 is a sign; other numbers are floats.
    if (!a->is_integer(-1)) a = to_float(a);
    if (!b->is_integer(-1)) b = to_float(b);
    if (a->is_number() && b->is_number()) {
      product = real(to_float(a)->real() * to_float(b)->real());
      continue;
    }
    if (compare(a, b) > 0) std::swap(a, b);
    const Expression* factors[] = {a, b};
    bool twice_negated = a->is_integer(-1) && b->is(Kind::Mul) && b->arg(0)->is_integer(-1);
    product = twice_negated ? b->arg(1) : intern(Kind::Mul, Type::Float, Terms(factors, 2));
  }
  return product;
}

// ---- multiplying out
namespace {
constexpr size_t kMostTerms = 256;  // a product that would grow beyond this stays as it is
}

const Expression* ExpressionTable::expand_product(Terms factors, const Expression* original) {
  const Expression* product = integer(1);
  for (const Expression* factor : factors) {
    Factor power = split_power(factor);
    const Expression* base = expand(power.base);
    int64_t repeats = base->is(Kind::Add) ? power.exponent : 1;
    if (repeats > 8) return original;
    if (repeats == 1 && power.exponent != 1) base = this->power(base, integer(power.exponent));
    for (int64_t i = 0; i < repeats; ++i) {
      Terms left = terms_of(product), right = terms_of(base);
      if (left.size() * right.size() > kMostTerms) return original;
      ExpressionList terms;
      for (const Expression* x : left)
        for (const Expression* y : right) terms.push_back(multiply(x, y));
      product = add(terms);
    }
  }
  return product;
}

const Expression* ExpressionTable::expand(const Expression* a) {
  if (a->type() != Type::Int) return a;
  if (a->expanded_) return a->expanded_;
  const Expression* result = a;
  if (a->is(Kind::Add)) {
    ExpressionList terms;
    for (const Expression* term : a->args()) terms.push_back(expand(term));
    result = add(terms);
  } else if (a->is(Kind::Mul) || (a->is(Kind::Pow) && a->arg(0)->is(Kind::Add))) {
    result = expand_product(factors_of(a), a);
  }
  a->expanded_ = result;
  return result;
}

}  // namespace umbra::sym
