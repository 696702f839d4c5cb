// Sums, products and powers: the polynomial part of the normal form.
#include <cmath>
#include <unordered_map>

#include "sym/checked.h"
#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/shape_env.h"
#include "umbra/sym/walk.h"

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

/// The terms of a sum so far. Beyond a few they are found by their hash: sums of many sizes are made, too.
class TermCollector {
 public:
  void add(const Expression* a) {
    if (a->is(Kind::Integer)) {
      constant_ = checked_add(constant_, a->integer());
      return;
    }
    Term term = split_coefficient(a);
    if (Term* known = find(term.rest)) known->coefficient = checked_add(known->coefficient, term.coefficient);
    else insert(term);
  }
  const TermList& terms() const { return terms_; }
  Integer constant() const { return constant_; }

 private:
  static constexpr size_t kFew = 16;

  Term* find(const Expression* rest) {
    if (terms_.size() > kFew) {
      auto place = places_.find(rest);
      return place == places_.end() ? nullptr : &terms_[place->second];
    }
    for (Term& known : terms_)
      if (known.rest == rest) return &known;
    return nullptr;
  }
  void insert(const Term& term) {
    terms_.push_back(term);
    if (terms_.size() == kFew + 1) {
      for (size_t i = 0; i < terms_.size(); ++i) places_.emplace(terms_[i].rest, i);
    } else if (terms_.size() > kFew) {
      places_.emplace(term.rest, terms_.size() - 1);
    }
  }

  TermList terms_;
  Integer constant_ = 0;
  std::unordered_map<const Expression*, size_t> places_;
};

void collect_factor(FactorList& factors, Integer& coefficient, const Expression* a) {
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

/// Terms by their factors, bases in order; the factors of all stand in one list.
class Monomials {
 public:
  struct Monomial {
    const Expression* term;
    size_t first, count;
  };

  Monomial add(const Expression* term) {
    size_t first = factors_.size();
    if (!term->is_number())
      for (const Expression* factor : factors_of(term))
        if (!factor->is_number()) factors_.push_back(split_power(factor));
    // Factors of a product are in order, but for sums and powers among them.
    if (factors_.size() - first > 1)
      std::sort(factors_.begin() + first, factors_.end(),
                [](const Factor& a, const Factor& b) { return compare(a.base, b.base) < 0; });
    return {term, first, factors_.size() - first};
  }

  /// Whether a term stands before another: where their bases or exponents first differ, the one with more of the
  /// earlier base; one without any, a number, last.
  bool before(const Monomial& a, const Monomial& b) const {
    for (size_t i = 0;; ++i) {
      if (i == a.count) return false;
      if (i == b.count) return true;
      const Factor &x = factors_[a.first + i], &y = factors_[b.first + i];
      if (x.base != y.base) return compare(x.base, y.base) < 0;
      if (x.exponent != y.exponent) return x.exponent > y.exponent;
    }
  }

 private:
  FactorList factors_;
};

/// `3 - 2*s0`: of two terms, a positive number stands before a negative, simple one.
bool number_first(const Expression* number, const Expression* other) {
  return number->is(Kind::Integer) && number->integer() > 0 && other->is(Kind::Mul) && other->args().size() == 2 &&
         other->arg(0)->is(Kind::Integer) && other->arg(0)->integer() < 0;
}

/// Orders the terms of a sum as sympy prints them: by exponents of the sorted bases, the highest first, constants last.
void order_terms(ExpressionList& terms) {
  if (terms.size() == 2 && (terms[0]->is_number() || terms[1]->is_number())) {
    if (terms[1]->is_number()) std::swap(terms[0], terms[1]);
    if (!number_first(terms[0], terms[1])) std::swap(terms[0], terms[1]);
    return;
  }
  Monomials monomials;
  SmallVector<Monomials::Monomial, 8> order;
  for (const Expression* term : terms) order.push_back(monomials.add(term));
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return monomials.before(a, b); });
  for (size_t i = 0; i < terms.size(); ++i) terms[i] = order[i].term;
}

/// Puts a term that is none of a long sum's into its place: sums that grow term by term are not sorted each time.
void insert_term(ExpressionList& terms, const Expression* term) {
  Monomials monomials;
  Monomials::Monomial added = monomials.add(term);
  size_t low = 0, high = terms.size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (monomials.before(added, monomials.add(terms[middle]))) high = middle;
    else low = middle + 1;
  }
  terms.insert(low, term);
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

const Expression* ExpressionTable::scaled(Integer coefficient, const Expression* rest) {
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

/// A long sum and one more term, where that is no other's multiple. Null where it is.
const Expression* ExpressionTable::lengthened(const Expression* sum, const Expression* term) {
  constexpr size_t kLong = 16;
  if (!sum->is(Kind::Add) || sum->args().size() < kLong || term->is(Kind::Add) || term->is_number()) return nullptr;
  const Expression* rest = split_coefficient(term).rest;
  for (const Expression* known : sum->args())
    if (known == rest || (known->is(Kind::Mul) && split_coefficient(known).rest == rest)) return nullptr;
  ExpressionList terms(sum->args().begin(), sum->args().end());
  insert_term(terms, term);
  return intern(Kind::Add, Type::Int, terms);
}

const Expression* ExpressionTable::add(Terms values) {
  if (floating(values)) return float_sum(values);
  if (values.size() == 2) {
    if (const Expression* sum = lengthened(values[0], values[1])) return sum;
    if (const Expression* sum = lengthened(values[1], values[0])) return sum;
  }
  TermCollector terms;
  for (const Expression* const& value : values)
    for (const Expression* term : terms_of(value)) terms.add(term);
  ExpressionList result;
  for (const Term& term : terms.terms()) {
    if (term.coefficient == 0) continue;
    result.push_back(scaled(term.coefficient, term.rest));
  }
  if (result.empty()) return integer(terms.constant());
  if (terms.constant() != 0) result.push_back(integer(terms.constant()));
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
  Integer coefficient = 1;
  for (const Expression* const& value : values)
    for (const Expression* factor : factors_of(value)) collect_factor(factors, coefficient, factor);
  if (coefficient == 0 || factors.empty()) return integer(coefficient);
  // A number times a lone sum is distributed; in longer products sums stay factors.
  if (factors.size() == 1 && factors[0].exponent == 1 && factors[0].base->is(Kind::Add) && coefficient != 1) {
    ExpressionList terms;
    for (const Expression* term : factors[0].base->args()) {
      Term split = split_coefficient(term);
      Integer product = checked_multiply(coefficient, split.coefficient);
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
  Integer n = exponent->integer();
  check<ValueError>(n >= 0, "a symbolic integer cannot be raised to the negative power ", integer_text(n));
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
    Integer repeats = base->is(Kind::Add) ? power.exponent : 1;
    if (repeats > 8) return original;
    if (repeats == 1 && power.exponent != 1) base = this->power(base, integer(power.exponent));
    for (Integer i = 0; i < repeats; ++i) {
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

const Expression* ExpressionTable::expand_node(const Expression* a) {
  if (a->is(Kind::Add)) {
    ExpressionList terms;
    for (const Expression* term : a->args()) terms.push_back(expand(term));
    return add(terms);
  }
  return expand_product(factors_of(a), a);
}

const Expression* ExpressionTable::expand(const Expression* a) {
  auto needs = [](const Expression* part) {
    bool grows = part->is(Kind::Add) || part->is(Kind::Mul) || (part->is(Kind::Pow) && part->arg(0)->is(Kind::Add));
    return grows && part->type() == Type::Int && !part->expanded_;
  };
  if (a->depth() > kDeep) bottom_up(a, needs, [this](const Expression* part) { part->expanded_ = expand_node(part); });
  if (needs(a)) a->expanded_ = expand_node(a);
  return a->expanded_ ? a->expanded_ : a;
}

}  // namespace umbra::sym
