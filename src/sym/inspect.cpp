// Looking into expressions: the order they sort in, their parts, what sympy assumes of them.
#include "umbra/sym/affine.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

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

int compare_args(const Expression* a, const Expression* b) {
  if (a->args().size() != b->args().size()) return a->args().size() < b->args().size() ? -1 : 1;
  // A relation sorts as it prints, numbers on the right.
  bool a_flipped = prints_flipped(a), b_flipped = prints_flipped(b);
  for (size_t i = 0; i < a->args().size(); ++i)
    if (int order = compare(a->arg(a_flipped ? 1 - i : i), b->arg(b_flipped ? 1 - i : i))) return order;
  return 0;
}

}  // namespace

int compare(const Expression* a, const Expression* b) {
  if (a == b) return 0;
  if (a->is_number() || b->is_number()) {
    if (a->is_number() && b->is_number()) return compare_numbers(a, b);
    return a->is_number() ? -1 : 1;
  }
  Term left = split_coefficient(a), right = split_coefficient(b);
  Factor x = split_power(left.rest), y = split_power(right.rest);
  if (x.base != y.base) {
    int rank = class_rank(x.base), other = class_rank(y.base);
    if (rank != other) return rank < other ? -1 : 1;
    if (x.base->is(Kind::Symbol)) {
      ShapeEnv& env = a->env();
      return env.symbol(x.base).name.compare(env.symbol(y.base).name) < 0 ? -1 : 1;
    }
    if (int order = function_name(x.base).compare(function_name(y.base))) return order < 0 ? -1 : 1;
    if (int order = compare_args(x.base, y.base)) return order;
  }
  if (x.exponent != y.exponent) return x.exponent < y.exponent ? -1 : 1;
  if (left.coefficient != right.coefficient) return left.coefficient < right.coefficient ? -1 : 1;
  return sign(static_cast<int64_t>(a->symbol_index()) - b->symbol_index());
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

namespace {
void collect_symbols(const Expression* a, std::vector<const Expression*>& out) {
  if (a->is(Kind::Symbol)) {
    if (std::find(out.begin(), out.end(), a) == out.end()) out.push_back(a);
    return;
  }
  for (const Expression* arg : a->args()) collect_symbols(arg, out);
}
}  // namespace

std::vector<const Expression*> free_symbols(const Expression* a) {
  std::vector<const Expression*> out;
  collect_symbols(a, out);
  return out;
}

bool assumed_nonnegative(const Expression* a) {
  switch (a->kind()) {
    case Kind::Integer: return a->integer() >= 0;
    case Kind::Symbol: return a->env().symbol(a).positive;
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
        int64_t least = 0;
        for (const Expression* term : a->args()) {
          if (term->is(Kind::Integer)) {
            least += term->integer();
          } else {
            if (!assumed_positive(term)) return false;
            least += std::max<int64_t>(1, split_coefficient(term).coefficient);
          }
        }
        return least >= 0;
      }();
    }
    default: return false;
  }
}

bool assumed_positive(const Expression* a) {
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
