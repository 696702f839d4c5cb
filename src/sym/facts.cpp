// What is known: ranges of expressions and the truth of conditions.
#include <cmath>
#include <unordered_map>

#include "sym/checked.h"
#include "sym/tables.h"
#include "umbra/sym/shape_env.h"
#include "umbra/sym/walk.h"

namespace umbra::sym {
namespace {

int both(int a, int b) { return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1; }

/// All ones below the highest bit of a bound, which no bits of smaller numbers go beyond.
Integer all_ones(Integer most) {
  Integer ones = 1;
  while (ones < most && ones < kInfinity / 2) ones = 2 * ones + 1;
  return ones < most ? kInfinity : ones;
}

Range bitwise(Kind kind, Range a, Range b) {
  if (kind == Kind::BitAnd && (a.lower >= 0 || b.lower >= 0)) {
    if (a.lower >= 0 && b.lower >= 0) return {0, std::min(a.upper, b.upper)};
    return {0, a.lower >= 0 ? a.upper : b.upper};
  }
  if (kind == Kind::BitAnd || a.lower < 0 || b.lower < 0) return {};
  return {kind == Kind::BitOr ? std::max(a.lower, b.lower) : 0, all_ones(std::max(a.upper, b.upper))};
}

/// A relation of two sides that lie so far apart.
int known_by_range(Kind kind, Range apart) {
  if (kind == Kind::Lt) return apart.upper < 0 ? 1 : apart.lower >= 0 ? 0 : -1;
  if (kind == Kind::Le) return apart.upper <= 0 ? 1 : apart.lower > 0 ? 0 : -1;
  int equal = !apart.contains(0) ? 0 : apart.is_point() ? 1 : -1;
  return equal < 0 ? -1 : (kind == Kind::Eq ? equal : !equal);
}

}  // namespace

namespace {
/// The example's size was two or more, which says nothing of other inputs: a Dim may promise to take less.
bool is_assumed(const Symbol& symbol) {
  return symbol.backed && symbol.positive && symbol.range.lower == 2 && symbol.initial.lower == 2;
}
}  // namespace

// ---- ranges
Range ShapeEnv::range_of_symbol(const Symbol& symbol, Sizes sizes) const {
  Range range = symbol.range;
  if (sizes == Sizes::AboveOne && symbol.size_like && range.upper >= 2) return range.intersect({2});
  if (sizes == Sizes::NotAssumed && is_assumed(symbol))
    range.lower = symbol.promised ? std::max<Integer>(symbol.promised->lower, 0) : 0;
  return range;
}

Range ShapeEnv::range_of_node(const Expression* a, const std::function<Range(const Expression*)>& of) {
  auto fold = [&](auto combine) {
    Range result = of(a->arg(0));
    for (const Expression* part : a->args().drop_front()) result = combine(result, of(part));
    return result;
  };
  switch (a->kind()) {
    case Kind::Add: return fold([](Range x, Range y) { return x + y; });
    case Kind::Mul: return fold([](Range x, Range y) { return x * y; });
    case Kind::Min: return fold([](Range x, Range y) { return minimum(x, y); });
    case Kind::Max: return fold([](Range x, Range y) { return maximum(x, y); });
    case Kind::Pow:
    case Kind::PowByNatural: return power(of(a->arg(0)), of(a->arg(1)));
    case Kind::FloorDiv: return floor_divide(of(a->arg(0)), of(a->arg(1)));
    case Kind::Mod: return modulo(of(a->arg(0)), of(a->arg(1)));
    case Kind::BitAnd:
    case Kind::BitOr:
    case Kind::BitXor: return bitwise(a->kind(), of(a->arg(0)), of(a->arg(1)));
    case Kind::Where: return of(a->arg(1)).unite(of(a->arg(2)));
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt:
    case Kind::RoundToInt: return to_integers(float_range(a->arg(0)));
    default: return {};
  }
}

Range ShapeEnv::range(const Expression* a) {
  if (a->is(Kind::Integer)) return Range::point(a->integer());
  if (a->is(Kind::Symbol)) return symbols_[a->symbol_index()].range;
  auto needs = [this](const Expression* part) {
    return part->type() == Type::Int && part->depth() > 0 && part->range_version_ != version_;
  };
  auto visit = [this](const Expression* part) {
    Range result = range_of_node(part, [this](const Expression* arg) { return range(arg); });
    if (!tables_->bounds.empty()) {
      // What has been learnt about the expression as a whole, up to scale and constant.
      Linear linear = decompose(part);
      if (auto bound = tables_->bounds.find(linear.form); bound != tables_->bounds.end()) {
        Range learnt = bound->second * Range::point(linear.scale) + Range::point(linear.constant);
        if (Range narrowed = result.intersect(learnt); !narrowed.empty()) result = narrowed;
      }
    }
    part->range_ = result;
    part->range_version_ = version_;
  };
  if (a->depth() > kDeep) bottom_up(a, needs, visit);
  if (needs(a)) visit(a);
  return a->range_;
}

/// The range under another reading of what sizes are; not kept, and not looked for far inside.
Range ShapeEnv::range(const Expression* a, Sizes sizes) {
  if (sizes == Sizes::AsKnown || a->is(Kind::Integer)) return range(a);
  if (a->is(Kind::Symbol)) return range_of_symbol(symbols_[a->symbol_index()], sizes);
  std::unordered_map<const Expression*, Range> ranges;
  auto of = [&](const Expression* part) {
    if (part->is(Kind::Integer)) return Range::point(part->integer());
    return part->is(Kind::Symbol) ? range_of_symbol(symbols_[part->symbol_index()], sizes) : ranges.at(part);
  };
  bottom_up(
      a, [&](const Expression* part) { return part->type() == Type::Int && part->depth() > 0 && !ranges.count(part); },
      [&](const Expression* part) {
        bool rounded = part->args().size() == 1 && part->arg(0)->type() == Type::Float;
        // Ranges of floats are only known as they are.
        Range result = rounded && sizes == Sizes::NotAssumed ? Range{} : range_of_node(part, of);
        if (sizes == Sizes::AboveOne)
          if (Range both = result.intersect(range(part)); !both.empty()) result = both;
        ranges.emplace(part, result);
      });
  return of(a);
}

FloatRange ShapeEnv::float_range_of_node(const Expression* a) {
  switch (a->kind()) {
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

FloatRange ShapeEnv::float_range(const Expression* a) {
  if (a->is(Kind::Float)) return FloatRange::point(a->real());
  if (a->is(Kind::Integer)) return FloatRange::point(static_cast<double>(a->integer()));
  auto needs = [this](const Expression* part) {
    return part->type() == Type::Float && part->depth() > 0 && part->range_version_ != version_;
  };
  auto visit = [this](const Expression* part) {
    part->float_range_ = float_range_of_node(part);
    part->range_version_ = version_;
  };
  if (a->depth() > kDeep) bottom_up(a, needs, visit);
  if (needs(a)) visit(a);
  return a->depth() > 0 && a->type() == Type::Float ? a->float_range_ : FloatRange{};
}

Range ShapeEnv::bound_range(SymInt value) {
  return value.is_symbolic() ? range(simplify(expression(value))) : Range::point(value.value());
}

// ---- the form in which questions are decided
const Expression* ShapeEnv::canonical(const Expression* a) {
  if (a->canonical_version_ == version_) return a->canonical_;
  const Expression* result = simplify(a);
  DivisorScope nonzero(table_, true);  // a question is about values: where there is one, no divisor is zero
  if (result->divided_)
    result = rebuild(
        result, table_, [](const Expression* atom) { return atom; }, true);
  result = rewrite_divisions(table_.expand(result));
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
  Integer sign = 0;
  for (const Expression* term : terms) {
    if (term->is(Kind::Integer)) {
      linear.constant = term->integer();
      continue;
    }
    Integer coefficient = split_coefficient(term).coefficient;
    if (sign == 0) sign = coefficient < 0 ? -1 : 1;
    linear.scale = greatest_common_divisor(linear.scale, coefficient);
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
  auto needs = [this](const Expression* part) {
    bool compound = part->is(Kind::And) || part->is(Kind::Or) || part->is(Kind::Not) || part->is_relation();
    return compound && part->answer_ < 0 && part->answer_version_ != version_;
  };
  auto visit = [this](const Expression* part) {
    part->answer_ = static_cast<int8_t>(compute_known(part));
    part->answer_version_ = version_;
  };
  if (condition->depth() > kDeep && !condition->is_relation()) bottom_up(condition, needs, visit);
  if (needs(condition)) visit(condition);
  return condition->answer_;
}

int ShapeEnv::compute_known(const Expression* condition) {
  switch (condition->kind()) {
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return condition->arg(0)->type() == Type::Float ? known_float_relation(condition)
                                                      : known_relation(condition, Sizes::AsKnown);
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
const Expression* ShapeEnv::without_common_factors(const Expression* form, Sizes sizes) {
  Terms terms = terms_of(form);
  if (terms.size() < 2) return form;
  auto factors = [](const Expression* const& rest) { return rest->is(Kind::Mul) ? rest->args() : Terms(&rest, 1); };
  auto exponent_in = [&](const Expression* base, const Expression* term) -> Integer {
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
    Range base = range(common.base, sizes);
    if (common.exponent <= 0 || common.base->is(Kind::Integer) || base.lower <= 0) continue;
    for (const Expression*& term : divided)
      for (Integer i = 0; i < common.exponent; ++i) term = table_.floor_divide(term, common.base);
  }
  return table_.add(divided);
}

namespace {

/// A sum is at least what it is with a maximum replaced by one of its arguments, and the like: Max(a, b) - a >= a - a.
template <class RangeOf>
Range range_by_extremes(ExpressionTable& table, const Expression* sum, const RangeOf& range_of) {
  constexpr size_t kFew = 16;  // longer ones would cost more than they tell
  // What is put together here may ask in its turn: one step is looked ahead, not all of them.
  static thread_local bool looking = false;
  Range out;
  if (looking || !sum->is(Kind::Add) || sum->args().size() > kFew) return out;
  struct Looking {
    Looking() { looking = true; }
    ~Looking() { looking = false; }
  } here;
  for (const Expression* term : sum->args()) {
    Term split = split_coefficient(term);
    bool is_max = split.rest->is(Kind::Max);
    if ((!is_max && !split.rest->is(Kind::Min)) || split.rest->args().size() > kFew) continue;
    const Expression *others = table.subtract(sum, term), *scale = table.integer(split.coefficient);
    for (const Expression* argument : split.rest->args()) {
      Range with;
      try {
        with = range_of(table.add(others, table.multiply(scale, argument)));
      } catch (const OverflowError&) {
        continue;
      }
      if (is_max == (split.coefficient > 0)) out.lower = std::max(out.lower, with.lower);
      else out.upper = std::min(out.upper, with.upper);
    }
  }
  return out;
}

}  // namespace

int ShapeEnv::known_relation(const Expression* condition, Sizes sizes) {
  const Expression* a = condition->arg(0);
  const Expression* b = condition->arg(1);
  Kind kind = condition->kind();
  // Multiplying out may loosen a range, so the sides as they stand are another bound.
  Range apart = range(a, sizes) + -range(b, sizes);
  Linear difference;
  try {
    difference = decompose(canonical(table_.subtract(a, b)));
  } catch (const OverflowError&) {
    return known_by_range(kind, apart);  // the terms of both sides together do not fit
  }
  Range together = Range::point(difference.constant);
  if (difference.form) {
    Range form = range(difference.form, sizes);
    Range extremes = range_by_extremes(table_, difference.form, [&](const Expression* e) { return range(e, sizes); });
    if (Range tighter = form.intersect(extremes); !tighter.empty()) form = tighter;
    together = form * Range::point(difference.scale) + Range::point(difference.constant);
  }
  if (Range tighter = apart.intersect(together); !tighter.empty()) apart = tighter;
  // Against zero only the sign counts.
  if (difference.form && difference.constant == 0 && apart.contains(0)) {
    const Expression* sign = without_common_factors(difference.form, sizes);
    if (sign != difference.form) apart = range(sign, sizes) * Range::point(difference.scale);
  }
  if (int answer = known_by_range(kind, apart); answer >= 0 || kind == Kind::Lt || kind == Kind::Le || !difference.form)
    return answer;
  bool unequal = difference.constant % difference.scale != 0;
  if (auto values = tables_->excluded.find(difference.form); !unequal && values != tables_->excluded.end()) {
    Integer value = -(difference.constant / difference.scale);
    unequal = std::find(values->second.begin(), values->second.end(), value) != values->second.end();
  }
  return unequal ? kind == Kind::Ne : -1;
}

/// Whether a condition is known without taking the sizes of inputs to be two or more.
bool ShapeEnv::follows_without_assumptions(const Expression* condition) {
  if (condition->is_relation() && condition->arg(0)->type() == Type::Int)
    return known_relation(condition, Sizes::NotAssumed) >= 0;
  std::vector<const Expression*> symbols = free_symbols(condition);
  return std::none_of(symbols.begin(), symbols.end(),
                      [this](const Expression* one) { return is_assumed(symbol(one)); });
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
