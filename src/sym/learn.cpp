// Learning: how a new fact narrows what is known.
#include <algorithm>

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

}  // namespace

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
        case Kind::Eq: learn_equal(difference); break;
        case Kind::Ne: learn_unequal(difference); break;
        case Kind::Lt: narrow_linear(difference, {kMinusInfinity, -1}); break;
        default: narrow_linear(difference, {kMinusInfinity, 0}); break;
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
    default: return;
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
