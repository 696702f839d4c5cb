// Learning: how a new fact narrows what is known.
#include <algorithm>
#include <unordered_map>

#include "sym/rely.h"
#include "sym/tables.h"
#include "umbra/core/error.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

/// The x with coefficient * x in range.
Range divide_range(Range range, Integer coefficient) {
  if (coefficient < 0) {
    range = -range;
    coefficient = -coefficient;
  }
  if (range.lower != kMinusInfinity)
    range.lower = floor_quotient(range.lower, coefficient) + (floor_remainder(range.lower, coefficient) != 0);
  if (range.upper != kInfinity) range.upper = floor_quotient(range.upper, coefficient);
  return range;
}

bool occurs(const Expression* symbol, const Expression* in) {
  std::vector<const Expression*> symbols = free_symbols(in);
  return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
}

/// In how many terms of a sum each symbol occurs.
std::unordered_map<const Expression*, int> count_occurrences(const Expression* sum) {
  std::unordered_map<const Expression*, int> counts;
  for (const Expression* term : sum->args())
    for (const Expression* symbol : free_symbols(term)) ++counts[symbol];
  return counts;
}

[[noreturn]] void fail_contradiction(const Expression* form, Range known, Range told) {
  fail("contradictory facts about symbolic sizes: ", form->to_string(), " is known to lie in ", known,
       " and would have to lie in ", told);
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
  SmallVector<const Expression*, 8> pending = {condition};
  while (!pending.empty()) {
    const Expression* fact = pending.back();
    pending.pop_back();
    if (fact->is(Kind::Boolean)) continue;
    learn_one(fact);
    bool none = fact->is(Kind::Not) && fact->arg(0)->is(Kind::Or);
    if (fact->is(Kind::And))
      for (const Expression* part : fact->args()) pending.push_back(part);
    if (none)
      for (const Expression* part : fact->arg(0)->args()) pending.push_back(table_.logical_not(part));
  }
}

/// A fact that is not made of others; of one that is, only that it holds.
void ShapeEnv::learn_one(const Expression* condition) {
  if (condition->is_relation() && condition->arg(0)->type() == Type::Int) {
    try {
      learn_relation(condition);
    } catch (const OverflowError&) {
      // Its terms do not fit together: the fact is kept as it stands, without what would follow from it.
    }
  }
  const Expression* opposite = table_.logical_not(condition);
  condition->answer_ = 1;
  opposite->answer_ = 0;
  if (condition->is(Kind::Lt) || condition->is(Kind::Le)) {  // written the other way round
    table_.relation(condition->kind(), condition->arg(0), condition->arg(1), !condition->flipped())->answer_ = 1;
    table_.relation(opposite->kind(), opposite->arg(0), opposite->arg(1), !opposite->flipped())->answer_ = 0;
  }
  ++version_;
  propagate();
}

void ShapeEnv::learn_relation(const Expression* condition) {
  Linear difference = decompose(canonical(table_.subtract(condition->arg(0), condition->arg(1))));
  if (!difference.form) return;
  switch (condition->kind()) {
    case Kind::Eq: learn_equal(difference); break;
    case Kind::Ne: learn_unequal(difference); break;
    case Kind::Lt: narrow_linear(difference, {kMinusInfinity, -1}); break;
    default: narrow_linear(difference, {kMinusInfinity, 0}); break;
  }
}

void ShapeEnv::learn_equal(const Linear& linear) {
  if (linear.constant % linear.scale != 0) fail_contradiction(linear.form, range(linear.form), {0, -1});
  Integer value = -(linear.constant / linear.scale);
  // What the user declares is in order; it is not to narrow the ranges that go with it.
  if (!declaring_) narrow(linear.form, Range::point(value));
  if (!linear.form->is(Kind::Add)) return;
  // Solve for a symbol that stands alone: an unbacked one if there is one, else the youngest, or, where names are made
  // from sources, the one that PyTorch solves for: of the largest example, the last by name.
  auto is_later = [this](const Expression* a, const Expression* b) {
    if (options_.naming == Naming::Sequential || a->unbacked()) return a->symbol_index() > b->symbol_index();
    if (int64_t x = sym_int(a).hint(), y = sym_int(b).hint(); x != y) return x > y;
    return symbol(a).name > symbol(b).name;
  };
  const Expression* chosen = nullptr;
  Integer sign = 0;
  auto occurrences = count_occurrences(linear.form);
  for (const Expression* term : linear.form->args()) {
    Term split = split_coefficient(term);
    if (!split.rest->is(Kind::Symbol) || (split.coefficient != 1 && split.coefficient != -1)) continue;
    if (occurrences[split.rest] != 1) continue;
    bool better = !chosen || (split.rest->unbacked() && !chosen->unbacked()) ||
                  (split.rest->unbacked() == chosen->unbacked() && is_later(split.rest, chosen));
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
  Integer value = -(linear.constant / linear.scale);
  std::vector<Integer>& values = tables_->excluded[linear.form];
  values.push_back(value);
  // A value at an end of the range moves the end.
  for (bool moved = true; moved;) {
    moved = false;
    Range known = range(linear.form);
    for (Integer one : values) {
      if (known.is_point()) break;
      if (one == known.lower && one != kMinusInfinity) {
        if (linear.form->is(Kind::Symbol)) rely_on_least(*this, symbols_[linear.form->symbol_index()]);
        moved |= narrow(linear.form, {one + 1, kInfinity});
      }
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
    if (!known.contains(by->integer())) fail_contradiction(symbol, known, Range::point(by->integer()));
    target.range = Range::point(by->integer());
    return;
  }
  if (declaring_) return;
  narrow_linear(decompose(canonical(by)), known);
  Range both = target.range.intersect(range(by));
  if (both.empty()) fail_contradiction(symbol, target.range, range(by));
  target.range = both;
  // A named dimension that turns out to be a size that nobody named is promised for no more than that one.
  if (!by->is(Kind::Symbol) || !target.backed || !target.dim.empty()) return;
  std::optional<Range>& promised = symbols_[by->symbol_index()].promised;
  if (promised) promised->lower = std::max(promised->lower, known.lower);
}

void ShapeEnv::narrow_linear(const Linear& linear, Range range) {
  if (!linear.form) return;
  narrow(linear.form, divide_range(range + Range::point(-linear.constant), linear.scale));
}

bool ShapeEnv::narrow(const Expression* form, Range to) {
  constexpr int kFurthest = 16;
  Range known = range(form);
  Range narrowed = known.intersect(to);
  if (narrowed.empty()) fail_contradiction(form, known, to);
  if (narrowed == known || narrowing_ > kFurthest) return false;
  if (form->is(Kind::Symbol)) return narrow_symbol(form, narrowed);
  // From here on the number stands for the expression, also where one end came from sizes being two or more. A fact
  // that names the number is said already.
  if (narrowed.is_point() && !to.is_point()) rely_on(table_.relation(Kind::Eq, form, table_.integer(narrowed.lower)));
  tables_->bounds[form] = narrowed;
  ++version_;
  narrow_parts(form, narrowed);
  return true;
}

bool ShapeEnv::narrow_symbol(const Expression* expression, Range narrowed) {
  Symbol& symbol = symbols_[expression->symbol_index()];
  if (narrowed.is_point() && narrowed.lower == symbol.range.lower) rely_on_least(*this, symbol);
  symbol.range = narrowed;
  ++version_;
  if (!symbol.replacement) {
    if (narrowed.is_point()) replace(expression, table_.integer(narrowed.lower));
  } else {
    narrow_linear(decompose(canonical(symbol.replacement)), narrowed);
  }
  return true;
}

/// Each term of a sum lies in what the others leave of the whole.
void ShapeEnv::narrow_terms(const Expression* sum, Range whole) {
  Terms terms = sum->args();
  std::vector<Range> after(terms.size() + 1, Range::point(0));  // sums of the terms from one on
  for (size_t i = terms.size(); i-- > 0;) after[i] = after[i + 1] + range(terms[i]);
  Range before = Range::point(0);
  for (size_t i = 0; i < terms.size(); ++i) {
    Range own = range(terms[i]);
    if (!terms[i]->is(Kind::Integer)) {
      Term split = split_coefficient(terms[i]);
      narrow(split.rest, divide_range(whole + -(before + after[i + 1]), split.coefficient));
    }
    before = before + own;
  }
}

/// What a range of the whole says about its parts.
void ShapeEnv::narrow_parts(const Expression* form, Range whole) {
  struct Level {
    explicit Level(int& count) : count(++count) {}
    ~Level() { --count; }
    int& count;
  } level(narrowing_);
  switch (form->kind()) {
    case Kind::Add: return narrow_terms(form, whole);
    case Kind::Mul: {
      // Of positive factors, each is at most the bound over the least of the others. The size of an input keeps its
      // range, as in PyTorch: the guard that is known says as much.
      if (whole.upper == kInfinity) return;
      for (const Expression* factor : form->args()) {
        Range others = Range::point(1);
        for (const Expression* other : form->args())
          if (other != factor) others = others * range(other);
        if (range(factor).lower < 0 || others.lower < 1) continue;
        if (others.lower != others.upper && factor->is(Kind::Symbol) && symbol(factor).backed) continue;
        narrow(factor, {kMinusInfinity, floor_quotient(whole.upper, others.lower)});
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
    std::vector<std::pair<const Expression*, Range>> facts(tables_->bounds.begin(), tables_->bounds.end());
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
