// Minimum and maximum, relations, and, or, not.
#include <unordered_set>

#include "sym/float_functions.h"
#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

using ExpressionList = SmallVector<const Expression*, 8>;

constexpr size_t kMostCompared = 32;  // beyond this, extrema are not thinned out: it takes a square of comparisons

bool before(const Expression* a, const Expression* b) { return compare(a, b) < 0; }

/// The values, those inside values of the same kind with them, each once. Such values are flat themselves.
void flatten(Kind kind, Terms values, ExpressionList& out) {
  std::unordered_set<const Expression*> seen;
  for (const Expression* const& value : values)
    for (const Expression* one : value->is(kind) ? value->args() : Terms(&value, 1))
      if (seen.insert(one).second) out.push_back(one);
}

Kind negated(Kind kind) { return kind == Kind::Eq ? Kind::Ne : Kind::Eq; }

}  // namespace

const Expression* ExpressionTable::extremum(Kind kind, Terms values) {
  bool floating = false;
  for (const Expression* value : values) floating |= value->type() == Type::Float;
  ExpressionList all;
  flatten(kind, values, all);
  if (floating) {
    for (const Expression*& value : all) value = to_float(value);
  } else if (all.size() <= kMostCompared) {
    // A value that another one is known to reach or pass does not matter.
    for (size_t i = all.size(); i-- > 0 && all.size() > 1;) {
      bool needless = false;
      for (size_t j = 0; j < all.size() && !needless; ++j) {
        if (i == j) continue;
        const Expression* covered =
            kind == Kind::Max ? relation(Kind::Le, all[i], all[j]) : relation(Kind::Le, all[j], all[i]);
        needless = env_.known(covered) == 1;
        if (needless && !divisors_are_nonzero_) env_.rely_on(covered);
      }
      if (needless) all.erase(i);
    }
  }
  if (all.size() == 1) return all[0];
  std::sort(all.begin(), all.end(), before);
  const Expression* result = intern(kind, floating ? Type::Float : Type::Int, all);
  bool numbers = std::all_of(all.begin(), all.end(), [](const Expression* a) { return a->is_number(); });
  return numbers && floating ? real(result->hint_float()) : result;
}

const Expression* ExpressionTable::where(const Expression* condition, const Expression* yes, const Expression* no) {
  if (condition->is(Kind::Boolean)) return condition->truth() ? yes : no;
  if (yes == no) return yes;
  bool floating = yes->type() == Type::Float || no->type() == Type::Float;
  const Expression* args[] = {condition, floating ? to_float(yes) : yes, floating ? to_float(no) : no};
  return intern(Kind::Where, args[1]->type(), Terms(args, 3));
}

const Expression* ExpressionTable::relation(Kind kind, const Expression* a, const Expression* b, bool flipped) {
  bool floating = a->type() == Type::Float || b->type() == Type::Float;
  if (floating) {
    a = to_float(a);
    b = to_float(b);
  }
  if (a == b) return boolean(kind == Kind::Eq || kind == Kind::Le);
  if (a->type() == Type::Bool || b->type() == Type::Bool) {
    check<TypeError>(a->type() == b->type() && (kind == Kind::Eq || kind == Kind::Ne),
                     "cannot compare a bool and a number");
    const Expression* yes[] = {a, b};
    const Expression* no[] = {logical_not(a), logical_not(b)};
    const Expression* equal[] = {logical(Kind::And, Terms(yes, 2)), logical(Kind::And, Terms(no, 2))};
    const Expression* either = logical(Kind::Or, Terms(equal, 2));
    return kind == Kind::Eq ? either : logical_not(either);
  }
  // Equality has no direction: the number stands on the right, as people write it.
  if ((kind == Kind::Eq || kind == Kind::Ne) && (a->is_number() || (!b->is_number() && compare(a, b) > 0)))
    std::swap(a, b);
  const Expression* args[] = {a, b};
  bool ordered = kind == Kind::Lt || kind == Kind::Le;  // a number stands on the right in any case
  const Expression* result =
      intern(kind, Type::Bool, Terms(args, 2), flipped && ordered && !a->is_number() && !b->is_number());
  if (a->is_number() && b->is_number()) return boolean(result->hint().integer != 0);
  return result;
}

const Expression* ExpressionTable::logical(Kind kind, Terms values) {
  bool absorbing = kind == Kind::Or;
  ExpressionList flat, all;
  flatten(kind, values, flat);
  for (const Expression* value : flat) {
    check<TypeError>(value->type() == Type::Bool, "and, or: not a bool");
    if (value->is(Kind::Boolean)) {
      if (value->truth() == absorbing) return value;
      continue;
    }
    all.push_back(value);
  }
  if (all.empty()) return boolean(!absorbing);
  if (all.size() == 1) return all[0];
  auto upright = [this](const Expression* value) {
    return value->flipped() ? relation(value->kind(), value->arg(0), value->arg(1)) : value;
  };
  std::unordered_set<const Expression*> present;
  for (const Expression* value : all) present.insert(upright(value));
  for (const Expression* value : all)
    if (present.count(upright(logical_not(value)))) return boolean(absorbing);
  std::sort(all.begin(), all.end(), before);
  return intern(kind, Type::Bool, all);
}

const Expression* ExpressionTable::logical_not(const Expression* a) {
  switch (a->kind()) {
    case Kind::Boolean: return boolean(!a->truth());
    case Kind::Not: return a->arg(0);
    case Kind::Eq:
    case Kind::Ne: return relation(negated(a->kind()), a->arg(0), a->arg(1));
    case Kind::Lt: return relation(Kind::Le, a->arg(1), a->arg(0), !a->flipped());
    case Kind::Le: return relation(Kind::Lt, a->arg(1), a->arg(0), !a->flipped());
    default:
      check<TypeError>(a->type() == Type::Bool, "not: not a bool");
      return intern(Kind::Not, Type::Bool, Terms(&a, 1));
  }
}

const Expression* ExpressionTable::remake(const Expression* a, Terms args) {
  return a->flipped() ? relation(a->kind(), args[0], args[1], true) : make(a->kind(), args);
}

const Expression* ExpressionTable::make(Kind kind, Terms args) {
  switch (kind) {
    case Kind::Add: return add(args);
    case Kind::Mul: return multiply(args);
    case Kind::Pow:
    case Kind::PowByNatural:
    case Kind::FloatPow: return power(args[0], args[1]);
    case Kind::FloorDiv: return floor_divide(args[0], args[1]);
    case Kind::Mod: return modulo(args[0], args[1]);
    case Kind::BitAnd:
    case Kind::BitOr:
    case Kind::BitXor: return bitwise(kind, args[0], args[1]);
    case Kind::Min:
    case Kind::Max: return extremum(kind, args);
    case Kind::IntTrueDiv:
    case Kind::FloatTrueDiv: return true_divide(args[0], args[1]);
    case Kind::ToFloat: return to_float(args[0]);
    case Kind::RoundDecimal:
      check<ValueError>(args[1]->is(Kind::Integer), "round() of a symbolic float takes a number of digits");
      return round_decimal(args[0], to_int64(args[1]->integer()));
    case Kind::FloorToInt:
    case Kind::CeilToInt:
    case Kind::TruncToInt:
    case Kind::RoundToInt: return round(kind, args[0]);
    case Kind::Where: return where(args[0], args[1], args[2]);
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le: return relation(kind, args[0], args[1]);
    case Kind::And:
    case Kind::Or: return logical(kind, args);
    case Kind::Not: return logical_not(args[0]);
    default: check<Error>(float_function(kind), "an atom has no arguments"); return function(kind, args[0]);
  }
}

}  // namespace umbra::sym
