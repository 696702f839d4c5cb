// What is known: ranges of expressions and the truth of conditions.
#include <cmath>
#include <numeric>

#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

int both(int a, int b) { return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1; }

}  // namespace

// ---- ranges
Range ShapeEnv::range(const Expression* a) {
  if (a->is(Kind::Integer)) return Range::point(a->integer());
  if (a->is(Kind::Symbol)) return symbols_[a->symbol_index()].range;
  if (a->range_version_ != version_) {
    Range result = compute_range(a, false);
    a->range_ = result;
    a->range_version_ = version_;
  }
  return a->range_;
}

Range ShapeEnv::compute_range(const Expression* a, bool sizes_above_one) {
  auto of = [&](const Expression* part) { return sizes_above_one ? compute_range(part, true) : range(part); };
  auto fold = [&](auto combine) {
    Range result = of(a->arg(0));
    for (const Expression* part : a->args().drop_front()) result = combine(result, of(part));
    return result;
  };
  Range result;
  switch (a->kind()) {
    case Kind::Integer: return Range::point(a->integer());
    case Kind::Symbol: {
      const Symbol& symbol = symbols_[a->symbol_index()];
      bool assumed = sizes_above_one && symbol.size_like && symbol.range.upper >= 2;
      return assumed ? symbol.range.intersect({2}) : symbol.range;
    }
    case Kind::Add: result = fold([](Range x, Range y) { return x + y; }); break;
    case Kind::Mul: result = fold([](Range x, Range y) { return x * y; }); break;
    case Kind::Min: result = fold([](Range x, Range y) { return minimum(x, y); }); break;
    case Kind::Max: result = fold([](Range x, Range y) { return maximum(x, y); }); break;
    case Kind::Pow:
    case Kind::PowByNatural: result = power(of(a->arg(0)), of(a->arg(1))); break;
    case Kind::FloorDiv: result = floor_divide(of(a->arg(0)), of(a->arg(1))); break;
    case Kind::Mod: result = modulo(of(a->arg(0)), of(a->arg(1))); break;
    case Kind::Where: result = of(a->arg(1)).unite(of(a->arg(2))); break;
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt: result = to_integers(float_range(a->arg(0))); break;
    default: break;
  }
  if (bounds_.empty()) return result;
  // What has been learnt about the expression as a whole, up to scale and constant.
  Linear linear = decompose(a);
  auto bound = bounds_.find(linear.form);
  if (bound == bounds_.end()) return result;
  Range narrowed = result.intersect(bound->second * Range::point(linear.scale) + Range::point(linear.constant));
  return narrowed.empty() ? result : narrowed;
}

FloatRange ShapeEnv::float_range(const Expression* a) {
  switch (a->kind()) {
    case Kind::Float: return FloatRange::point(a->real());
    case Kind::Integer: return FloatRange::point(static_cast<double>(a->integer()));
    case Kind::ToFloat: return to_float(range(a->arg(0)));
    case Kind::IntTrueDiv: return divide(to_float(range(a->arg(0))), to_float(range(a->arg(1))));
    case Kind::FloatTrueDiv: return divide(float_range(a->arg(0)), float_range(a->arg(1)));
    case Kind::Sqrt: {
      FloatRange inner = float_range(a->arg(0));
      return {inner.lower > 0 ? std::sqrt(inner.lower) : 0.0, inner.upper >= 0 ? std::sqrt(inner.upper) : 0.0};
    }
    case Kind::Add: return float_range(a->arg(0)) + float_range(a->arg(1));
    case Kind::Mul: return float_range(a->arg(0)) * float_range(a->arg(1));
    case Kind::Min:
    case Kind::Max: {
      FloatRange result = float_range(a->arg(0));
      for (const Expression* part : a->args().drop_front()) {
        FloatRange next = float_range(part);
        result = a->is(Kind::Min) ? FloatRange{std::min(result.lower, next.lower), std::min(result.upper, next.upper)}
                                  : FloatRange{std::max(result.lower, next.lower), std::max(result.upper, next.upper)};
      }
      return result;
    }
    default: return {};
  }
}

Range ShapeEnv::bound_range(SymInt value) {
  return value.is_symbolic() ? range(simplify(expression(value))) : Range::point(value.value());
}

// ---- the form in which questions are decided
const Expression* ShapeEnv::canonical(const Expression* a) {
  if (a->canonical_version_ == version_) return a->canonical_;
  const Expression* result = rewrite_divisions(table_.expand(simplify(a)));
  a->canonical_ = result;
  a->canonical_version_ = version_;
  return result;
}

/// m * (x // m) is x - x % m. With it, sums over whole blocks cancel.
const Expression* ShapeEnv::rewrite_divisions(const Expression* a) {
  for (int round = 0; round < 4; ++round) {
    SmallVector<const Expression*, 8> terms;
    bool changed = false;
    for (const Expression* term : terms_of(a)) {
      Term split = split_coefficient(term);
      Terms factors = split.rest->is(Kind::Mul) ? split.rest->args() : Terms(&split.rest, 1);
      const Expression* replaced = nullptr;
      for (size_t i = 0; i < factors.size() && !replaced; ++i) {
        if (!factors[i]->is(Kind::FloorDiv)) continue;
        const Expression* divisor = factors[i]->arg(1);
        SmallVector<const Expression*, 8> others;
        for (size_t j = 0; j < factors.size(); ++j)
          if (j != i) others.push_back(factors[j]);
        others.push_back(table_.integer(split.coefficient));
        const Expression* rest = table_.multiply(others);
        if (table_.modulo(rest, divisor) != table_.integer(0)) continue;
        const Expression* dividend = factors[i]->arg(0);
        replaced = table_.multiply(table_.floor_divide(rest, divisor),
                                   table_.subtract(dividend, simplify(table_.modulo(dividend, divisor))));
      }
      changed |= replaced != nullptr;
      terms.push_back(replaced ? replaced : term);
    }
    if (!changed) return a;
    a = table_.expand(table_.add(terms));
  }
  return a;
}

ShapeEnv::Linear ShapeEnv::decompose(const Expression* a) {
  Linear linear;
  if (a->is(Kind::Integer)) {
    linear.constant = a->integer();
    return linear;
  }
  ExpressionTable& table = a->env().table();
  Terms terms = terms_of(a);
  int64_t sign = 0;
  for (const Expression* term : terms) {
    if (term->is(Kind::Integer)) {
      linear.constant = term->integer();
      continue;
    }
    int64_t coefficient = split_coefficient(term).coefficient;
    if (sign == 0) sign = coefficient < 0 ? -1 : 1;
    linear.scale = std::gcd(linear.scale, coefficient);
  }
  linear.scale *= sign;
  if (linear.scale == 1 && linear.constant == 0) {
    linear.form = a;
    return linear;
  }
  SmallVector<const Expression*, 8> scaled;
  for (const Expression* term : terms) {
    if (term->is(Kind::Integer)) continue;
    Term split = split_coefficient(term);
    scaled.push_back(table.multiply(table.integer(split.coefficient / linear.scale), split.rest));
  }
  linear.form = table.add(scaled);
  return linear;
}

// ---- truth
int ShapeEnv::known(const Expression* condition) {
  if (condition->is(Kind::Boolean)) return condition->truth();
  if (condition->answer_ >= 0) return condition->answer_;
  if (condition->answer_version_ == version_) return -1;
  int answer = compute_known(condition);
  condition->answer_ = static_cast<int8_t>(answer);
  condition->answer_version_ = version_;
  return answer;
}

int ShapeEnv::compute_known(const Expression* condition) {
  switch (condition->kind()) {
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return condition->arg(0)->type() == Type::Float ? known_float_relation(condition)
                                                      : known_relation(condition, false);
    case Kind::And: {
      int answer = 1;
      for (const Expression* part : condition->args()) answer = both(answer, known(part));
      return answer;
    }
    case Kind::Or: {
      int none = 1;
      for (const Expression* part : condition->args()) {
        int answer = known(part);
        none = both(none, answer < 0 ? -1 : !answer);
      }
      return none < 0 ? -1 : !none;
    }
    case Kind::Not: {
      int answer = known(condition->arg(0));
      return answer < 0 ? -1 : !answer;
    }
    default: return -1;
  }
}

/// A sum divided by the factors that all its terms have and that are above zero: of the same sign, and with a tighter
/// range (s1 - s0*s1 is 1 - s0 in this sense).
const Expression* ShapeEnv::without_common_factors(const Expression* form, bool sizes_above_one) {
  Terms terms = terms_of(form);
  if (terms.size() < 2) return form;
  auto factors = [](const Expression* const& rest) { return rest->is(Kind::Mul) ? rest->args() : Terms(&rest, 1); };
  auto exponent_in = [&](const Expression* base, const Expression* term) -> int64_t {
    Term split = split_coefficient(term);
    for (const Expression* factor : factors(split.rest))
      if (Factor f = split_power(factor); f.base == base) return f.exponent;
    return 0;
  };
  SmallVector<const Expression*, 8> divided(terms.begin(), terms.end());
  Term first = split_coefficient(terms[0]);
  for (const Expression* factor : factors(first.rest)) {
    Factor common = split_power(factor);
    for (const Expression* term : terms) common.exponent = std::min(common.exponent, exponent_in(common.base, term));
    Range base = sizes_above_one ? compute_range(common.base, true) : range(common.base);
    if (common.exponent <= 0 || common.base->is(Kind::Integer) || base.lower <= 0) continue;
    for (const Expression*& term : divided)
      for (int64_t i = 0; i < common.exponent; ++i) term = table_.floor_divide(term, common.base);
  }
  return table_.add(divided);
}

int ShapeEnv::known_relation(const Expression* condition, bool sizes_above_one) {
  const Expression* a = condition->arg(0);
  const Expression* b = condition->arg(1);
  Kind kind = condition->kind();
  // The largest int64 is an open end (`x[a:]`): nothing reaches it.
  if (kind == Kind::Lt || kind == Kind::Le) {
    if (b->is_integer(kInfinity)) return 1;
    if (a->is_integer(kInfinity)) return 0;
  }
  Linear difference = decompose(canonical(table_.subtract(a, b)));
  Range apart = Range::point(difference.constant);
  if (difference.form) {
    Range form = sizes_above_one ? compute_range(difference.form, true) : range(difference.form);
    apart = form * Range::point(difference.scale) + Range::point(difference.constant);
  }
  // Multiplying out may loosen a range; the sides as they stand are another bound.
  Range sides = sizes_above_one ? compute_range(a, true) + -compute_range(b, true) : range(a) + -range(b);
  if (Range tighter = apart.intersect(sides); !tighter.empty()) apart = tighter;
  // Against zero only the sign counts.
  if (difference.form && difference.constant == 0 && apart.contains(0)) {
    const Expression* sign = without_common_factors(difference.form, sizes_above_one);
    Range signs = sizes_above_one ? compute_range(sign, true) : range(sign);
    if (sign != difference.form) apart = signs * Range::point(difference.scale);
  }
  if (kind == Kind::Lt) return apart.upper < 0 ? 1 : apart.lower >= 0 ? 0 : -1;
  if (kind == Kind::Le) return apart.upper <= 0 ? 1 : apart.lower > 0 ? 0 : -1;
  int equal = -1;
  if (!apart.contains(0)) {
    equal = 0;
  } else if (apart.is_point()) {
    equal = 1;
  } else if (difference.form) {
    if (difference.constant % difference.scale != 0) {
      equal = 0;
    } else if (auto values = excluded_.find(difference.form); values != excluded_.end()) {
      int64_t value = -(difference.constant / difference.scale);
      if (std::find(values->second.begin(), values->second.end(), value) != values->second.end()) equal = 0;
    }
  }
  return equal < 0 ? -1 : (kind == Kind::Eq ? equal : !equal);
}

int ShapeEnv::known_float_relation(const Expression* condition) {
  FloatRange a = float_range(condition->arg(0)), b = float_range(condition->arg(1));
  switch (condition->kind()) {
    case Kind::Lt: return a.upper < b.lower ? 1 : a.lower >= b.upper ? 0 : -1;
    case Kind::Le: return a.upper <= b.lower ? 1 : a.lower > b.upper ? 0 : -1;
    case Kind::Eq: return a.upper < b.lower || b.upper < a.lower ? 0 : -1;
    default: return a.upper < b.lower || b.upper < a.lower ? 1 : -1;
  }
}

}  // namespace umbra::sym
