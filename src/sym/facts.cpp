// What is known: ranges of expressions, truth of conditions, and how a new fact narrows the old ones.
#include <cmath>
#include <numeric>

#include "sym/checked.h"
#include "umbra/core/error.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

/// The x with coefficient * x in range.
Range divide_range(Range range, int64_t coefficient) {
  auto down = [&](int64_t end) {
    return end == kInfinity || end == kMinusInfinity ? end : floor_divide(end, coefficient);
  };
  auto up = [&](int64_t end) {
    if (end == kInfinity || end == kMinusInfinity) return end;
    return floor_divide(end, coefficient) + (modulo(end, coefficient) != 0);
  };
  if (coefficient > 0) return {up(range.lower), down(range.upper)};
  Range flipped = -range;
  coefficient = -coefficient;
  return {up(flipped.lower), down(flipped.upper)};
}

bool occurs(const Expression* symbol, const Expression* in) {
  if (symbol == in) return true;
  for (const Expression* arg : in->args())
    if (occurs(symbol, arg)) return true;
  return false;
}

int both(int a, int b) { return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1; }

}  // namespace

// ---- ranges
// ------------------------------------------------------------------------------------------------------------
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
    case Kind::Integer:
      return Range::point(a->integer());
    case Kind::Symbol: {
      const Symbol& symbol = symbols_[a->symbol_index()];
      return sizes_above_one && symbol.size_like ? symbol.range.intersect({2}) : symbol.range;
    }
    case Kind::Add:
      result = fold([](Range x, Range y) { return x + y; });
      break;
    case Kind::Mul:
      result = fold([](Range x, Range y) { return x * y; });
      break;
    case Kind::Min:
      result = fold([](Range x, Range y) { return minimum(x, y); });
      break;
    case Kind::Max:
      result = fold([](Range x, Range y) { return maximum(x, y); });
      break;
    case Kind::Pow:
    case Kind::PowByNatural:
      result = power(of(a->arg(0)), of(a->arg(1)));
      break;
    case Kind::FloorDiv:
      result = floor_divide(of(a->arg(0)), of(a->arg(1)));
      break;
    case Kind::Mod:
      result = modulo(of(a->arg(0)), of(a->arg(1)));
      break;
    case Kind::Where:
      result = of(a->arg(1)).unite(of(a->arg(2)));
      break;
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt:
      result = to_integers(float_range(a->arg(0)));
      break;
    default:
      break;
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
    case Kind::Float:
      return FloatRange::point(a->real());
    case Kind::Integer:
      return FloatRange::point(static_cast<double>(a->integer()));
    case Kind::ToFloat:
      return to_float(range(a->arg(0)));
    case Kind::IntTrueDiv:
      return divide(to_float(range(a->arg(0))), to_float(range(a->arg(1))));
    case Kind::FloatTrueDiv:
      return divide(float_range(a->arg(0)), float_range(a->arg(1)));
    case Kind::Sqrt: {
      FloatRange inner = float_range(a->arg(0));
      return {inner.lower > 0 ? std::sqrt(inner.lower) : 0.0, inner.upper >= 0 ? std::sqrt(inner.upper) : 0.0};
    }
    case Kind::Add:
      return float_range(a->arg(0)) + float_range(a->arg(1));
    case Kind::Mul:
      return float_range(a->arg(0)) * float_range(a->arg(1));
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
    default:
      return {};
  }
}

Range ShapeEnv::bound_range(SymInt value) {
  return value.is_symbolic() ? range(simplify(expression(value))) : Range::point(value.value());
}

// ---- the form in which questions are decided
// ---------------------------------------------------------------------------
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
// -------------------------------------------------------------------------------------------------------------
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
    default:
      return -1;
  }
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
    case Kind::Lt:
      return a.upper < b.lower ? 1 : a.lower >= b.upper ? 0 : -1;
    case Kind::Le:
      return a.upper <= b.lower ? 1 : a.lower > b.upper ? 0 : -1;
    case Kind::Eq:
      return a.upper < b.lower || b.upper < a.lower ? 0 : -1;
    default:
      return a.upper < b.lower || b.upper < a.lower ? 1 : -1;
  }
}

// ---- learning
// ----------------------------------------------------------------------------------------------------------
void ShapeEnv::assume(const Expression* condition) { learn(simplify(condition)); }

void ShapeEnv::declare_equal(SymInt a, SymInt b) {
  declaring_ = true;
  assume(table_.relation(Kind::Eq, expression(a), expression(b)));
  declaring_ = false;
}

void ShapeEnv::constrain_range(const Expression* symbol, Range range) {
  narrow_linear(decompose(canonical(symbol)), range);
  propagate();
}

void ShapeEnv::learn(const Expression* condition) {
  if (condition->is(Kind::Boolean)) return;
  if (condition->is(Kind::And)) {
    for (const Expression* part : condition->args()) learn(part);
  } else if (condition->is(Kind::Not) && condition->arg(0)->is(Kind::Or)) {
    for (const Expression* part : condition->arg(0)->args()) learn(table_.logical_not(part));
  } else if (condition->is_relation() && condition->arg(0)->type() == Type::Int) {
    Linear difference = decompose(canonical(table_.subtract(condition->arg(0), condition->arg(1))));
    if (difference.form) {
      switch (condition->kind()) {
        case Kind::Eq:
          learn_equal(difference);
          break;
        case Kind::Ne:
          learn_unequal(difference);
          break;
        case Kind::Lt:
          narrow_linear(difference, {kMinusInfinity, -1});
          break;
        default:
          narrow_linear(difference, {kMinusInfinity, 0});
          break;
      }
    }
  }
  condition->answer_ = 1;
  table_.logical_not(condition)->answer_ = 0;
  ++version_;
  propagate();
}

void ShapeEnv::learn_equal(const Linear& linear) {
  if (linear.constant % linear.scale != 0) return;
  int64_t value = -(linear.constant / linear.scale);
  // What the user declares is in order; it is not to narrow the ranges that go with it.
  if (!declaring_) narrow(linear.form, Range::point(value));
  if (!linear.form->is(Kind::Add)) return;
  // Solve for a symbol that stands alone: an unbacked one if there is one, else the youngest.
  const Expression* chosen = nullptr;
  int64_t sign = 0;
  for (const Expression* term : linear.form->args()) {
    Term split = split_coefficient(term);
    if (!split.rest->is(Kind::Symbol) || (split.coefficient != 1 && split.coefficient != -1)) continue;
    bool alone = std::none_of(linear.form->args().begin(), linear.form->args().end(),
                              [&](const Expression* other) { return other != term && occurs(split.rest, other); });
    if (!alone) continue;
    bool better = !chosen || (split.rest->unbacked() && !chosen->unbacked()) ||
                  (split.rest->unbacked() == chosen->unbacked() && split.rest->symbol_index() > chosen->symbol_index());
    if (!better) continue;
    chosen = split.rest;
    sign = split.coefficient;
  }
  if (!chosen) return;
  const Expression* rest = table_.subtract(linear.form, table_.multiply(table_.integer(sign), chosen));
  replace(chosen, table_.multiply(table_.integer(sign), table_.subtract(table_.integer(value), rest)));
}

void ShapeEnv::learn_unequal(const Linear& linear) {
  if (linear.constant % linear.scale != 0) return;
  int64_t value = -(linear.constant / linear.scale);
  std::vector<int64_t>& values = excluded_[linear.form];
  values.push_back(value);
  // A value at an end of the range moves the end.
  for (bool moved = true; moved;) {
    moved = false;
    Range known = range(linear.form);
    for (int64_t one : values) {
      if (known.is_point()) break;
      if (one == known.lower && one != kMinusInfinity) moved |= narrow(linear.form, {one + 1, kInfinity});
      if (one == known.upper && one != kInfinity) moved |= narrow(linear.form, {kMinusInfinity, one - 1});
      if (moved) break;
    }
  }
}

void ShapeEnv::replace(const Expression* symbol, const Expression* by) {
  by = simplify(by);
  Symbol& target = symbols_[symbol->symbol_index()];
  if (target.replacement || occurs(symbol, by)) return;
  Range known = target.range;
  target.replacement = by;
  if (declaring_) target.declared = by;
  ++version_;
  if (by->is(Kind::Integer)) {
    target.range = Range::point(by->integer());
    return;
  }
  if (declaring_) return;
  narrow_linear(decompose(canonical(by)), known);
  Range both = target.range.intersect(range(by));
  if (!both.empty()) target.range = both;
}

void ShapeEnv::narrow_linear(const Linear& linear, Range range) {
  if (!linear.form) return;
  narrow(linear.form, divide_range(range + Range::point(-linear.constant), linear.scale));
}

bool ShapeEnv::narrow(const Expression* form, Range to) {
  Range known = range(form);
  Range narrowed = known.intersect(to);
  // An empty range is a contradiction, which only a wrong assumption can bring about: the old range is kept.
  if (narrowed.empty() || narrowed == known) return false;
  if (form->is(Kind::Symbol)) {
    Symbol& symbol = symbols_[form->symbol_index()];
    symbol.range = narrowed;
    ++version_;
    if (!symbol.replacement) {
      if (narrowed.is_point()) replace(form, table_.integer(narrowed.lower));
    } else {
      narrow_linear(decompose(canonical(symbol.replacement)), narrowed);
    }
    return true;
  }
  bounds_[form] = narrowed;
  ++version_;
  narrow_parts(form, narrowed);
  return true;
}

/// What a range of the whole says about its parts.
void ShapeEnv::narrow_parts(const Expression* form, Range whole) {
  switch (form->kind()) {
    case Kind::Add:
      for (const Expression* term : form->args()) {
        if (term->is(Kind::Integer)) continue;
        Range others = Range::point(0);
        for (const Expression* other : form->args())
          if (other != term) others = others + range(other);
        Term split = split_coefficient(term);
        narrow(split.rest, divide_range(whole + -others, split.coefficient));
      }
      return;
    case Kind::Mul: {
      // Of positive factors, each is at most the bound over the least of the others.
      if (whole.upper == kInfinity) return;
      for (const Expression* factor : form->args()) {
        Range others = Range::point(1);
        for (const Expression* other : form->args())
          if (other != factor) others = others * range(other);
        if (range(factor).lower < 0 || others.lower < 1) continue;
        narrow(factor, {kMinusInfinity, floor_divide(whole.upper, others.lower)});
      }
      return;
    }
    case Kind::FloorDiv: {
      if (!form->arg(1)->is(Kind::Integer) || form->arg(1)->integer() <= 0) return;
      Range divisor = Range::point(form->arg(1)->integer());
      Range inner = {(Range{whole.lower, whole.lower} * divisor).lower,
                     (Range{whole.upper, whole.upper} * divisor).upper};
      if (inner.upper != kInfinity)
        inner = {inner.lower, (Range::point(inner.upper) + Range::point(divisor.lower - 1)).upper};
      narrow_linear(decompose(canonical(form->arg(0))), inner);
      return;
    }
    case Kind::Max:
    case Kind::Min:
      for (const Expression* value : form->args()) {
        Range bound = form->is(Kind::Max) ? Range{kMinusInfinity, whole.upper} : Range{whole.lower, kInfinity};
        narrow_linear(decompose(canonical(value)), bound);
      }
      return;
    default:
      return;
  }
}

void ShapeEnv::propagate() {
  for (int round = 0; round < 4; ++round) {
    uint32_t before = version_;
    std::vector<std::pair<const Expression*, Range>> facts(bounds_.begin(), bounds_.end());
    // By age, so that what follows from the facts does not depend on where expressions lie in memory.
    std::sort(facts.begin(), facts.end(), [](const auto& a, const auto& b) { return a.first->id_ < b.first->id_; });
    for (const auto& [form, bound] : facts) {
      const Expression* simpler = canonical(form);
      if (simpler != form) narrow_linear(decompose(simpler), bound);
      narrow_parts(form, bound);
    }
    if (version_ == before) return;
  }
}

}  // namespace umbra::sym
