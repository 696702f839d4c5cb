// Looking into expressions: the order they sort in, their parts, what sympy assumes of them.
#include <unordered_set>

#include "umbra/sym/affine.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"
#include "umbra/sym/walk.h"

namespace umbra::sym {

// ---- the sort order
namespace {

int sign(int64_t difference) { return difference < 0 ? -1 : difference > 0; }

/// sympy sorts first by the class of an expression: numbers, symbols, products, sums, functions, the rest.
int class_rank(const Expression* a) {
  switch (a->kind()) {
    case Kind::Integer:
    case Kind::Float: return 1;
    case Kind::Symbol: return 2;
    case Kind::Mul: return 30;
    case Kind::Add: return 31;
    case Kind::Pow: return 32;
    case Kind::Min:
    case Kind::Max:
    case Kind::Boolean:
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not: return 50;
    default: return 40;
  }
}

int compare_numbers(const Expression* a, const Expression* b) {
  if (a->is(Kind::Integer) && b->is(Kind::Integer))
    return a->integer() < b->integer() ? -1 : a->integer() > b->integer();
  double x = a->is(Kind::Integer) ? static_cast<double>(a->integer()) : a->real();
  double y = b->is(Kind::Integer) ? static_cast<double>(b->integer()) : b->real();
  return x < y ? -1 : x > y ? 1 : sign(static_cast<int>(a->kind()) - static_cast<int>(b->kind()));
}

/// What is left to compare of two expressions: all of them, or, once their bases are found alike, the rest.
struct Pending {
  const Expression *a, *b;
  bool bases_alike;
};

int compare_rest(const Expression* a, const Expression* b) {
  Term left = split_coefficient(a), right = split_coefficient(b);
  Integer x = split_power(left.rest).exponent, y = split_power(right.rest).exponent;
  if (x != y) return x < y ? -1 : 1;
  if (left.coefficient != right.coefficient) return left.coefficient < right.coefficient ? -1 : 1;
  return sign(static_cast<int64_t>(a->symbol_index()) - b->symbol_index());
}

/// The order of two different functions, as far as it does not depend on their arguments.
int compare_heads(const Expression* a, const Expression* b) {
  int rank = class_rank(a), other = class_rank(b);
  if (rank != other) return rank < other ? -1 : 1;
  if (a->is(Kind::Symbol)) return a->env().symbol(a).name.compare(b->env().symbol(b).name) < 0 ? -1 : 1;
  if (int order = function_name(a).compare(function_name(b))) return order < 0 ? -1 : 1;
  if (a->args().size() != b->args().size()) return a->args().size() < b->args().size() ? -1 : 1;
  return 0;
}

}  // namespace

int compare(const Expression* a, const Expression* b) {
  SmallVector<Pending, 16> pending = {Pending{a, b, false}};
  while (!pending.empty()) {
    auto [x, y, bases_alike] = pending.back();
    pending.pop_back();
    if (x == y) continue;
    if (x->is_number() || y->is_number()) {
      if (x->is_number() && y->is_number()) return compare_numbers(x, y);
      return x->is_number() ? -1 : 1;
    }
    if (bases_alike) {
      if (int order = compare_rest(x, y)) return order;
      continue;
    }
    const Expression* p = split_power(split_coefficient(x).rest).base;
    const Expression* q = split_power(split_coefficient(y).rest).base;
    pending.push_back({x, y, true});
    if (p == q) continue;
    if (int order = compare_heads(p, q)) return order;
    // A relation sorts as it prints, numbers on the right.
    bool p_flipped = prints_flipped(p), q_flipped = prints_flipped(q);
    for (size_t i = p->args().size(); i-- > 0;)
      pending.push_back({p->arg(p_flipped ? 1 - i : i), q->arg(q_flipped ? 1 - i : i), false});
  }
  return 0;
}

// ---- looking into expressions
Terms terms_of(const Expression* const& a) { return a->is(Kind::Add) ? a->args() : Terms(&a, 1); }

std::optional<Affine> affine_in(const Expression* a, const Expression* symbol) {
  Affine result;
  for (const Expression* term : terms_of(a)) {
    Term split = split_coefficient(term);
    if (term->is(Kind::Integer)) result.constant = term->integer();
    else if (split.rest == symbol) result.coefficient = split.coefficient;
    else return std::nullopt;
  }
  return result;
}

Factor split_power(const Expression* a) {
  if (a->is(Kind::Pow)) return {a->arg(0), a->arg(1)->integer()};
  return {a, 1};
}

std::vector<const Expression*> free_symbols(const Expression* a) {
  std::vector<const Expression*> out;
  std::unordered_set<const Expression*> seen;
  SmallVector<const Expression*, 16> pending = {a};
  while (!pending.empty()) {
    const Expression* one = pending.back();
    pending.pop_back();
    bool symbol = one->is(Kind::Symbol);
    if ((!symbol && one->args().empty()) || !seen.insert(one).second) continue;
    if (symbol) out.push_back(one);
    for (size_t i = one->args().size(); i-- > 0;) pending.push_back(one->arg(i));
  }
  return out;
}

bool assumed_nonnegative(const Expression* a) {
  if (a->depth() > kDeep) return false;  // not looked into so far; it only decides how a remainder prints
  switch (a->kind()) {
    case Kind::Integer: return a->integer() >= 0;
    case Kind::Symbol: {
      const Symbol& symbol = a->env().symbol(a);
      return symbol.positive || (!symbol.backed && symbol.range.lower >= 0);
    }
    case Kind::Pow: return a->arg(1)->integer() % 2 == 0 || assumed_nonnegative(a->arg(0));
    case Kind::Max: return std::any_of(a->args().begin(), a->args().end(), assumed_nonnegative);
    case Kind::Mod: return assumed_positive(a->arg(1));
    case Kind::Add:
    case Kind::Mul:
    case Kind::Min:
    case Kind::FloorDiv: {
      if (std::all_of(a->args().begin(), a->args().end(), assumed_nonnegative)) return true;
      // s0 - 1: a sum of positive terms outweighs the constant.
      return a->is(Kind::Add) && [&] {
        Integer least = 0;
        for (const Expression* term : a->args()) {
          if (term->is(Kind::Integer)) {
            least += term->integer();
          } else {
            if (!assumed_positive(term)) return false;
            least += std::max<Integer>(1, split_coefficient(term).coefficient);
          }
        }
        return least >= 0;
      }();
    }
    default: return false;
  }
}

bool assumed_positive(const Expression* a) {
  if (a->depth() > kDeep) return false;
  switch (a->kind()) {
    case Kind::Integer: return a->integer() > 0;
    case Kind::Symbol: return a->env().symbol(a).positive;
    case Kind::Mul:
    case Kind::Min: return std::all_of(a->args().begin(), a->args().end(), assumed_positive);
    case Kind::Max: return std::any_of(a->args().begin(), a->args().end(), assumed_positive);
    case Kind::Pow: return assumed_positive(a->arg(0));
    case Kind::Add:
      return std::all_of(a->args().begin(), a->args().end(), assumed_nonnegative) &&
             std::any_of(a->args().begin(), a->args().end(), assumed_positive);
    default: return false;
  }
}

}  // namespace umbra::sym
