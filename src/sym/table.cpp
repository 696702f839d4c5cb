// The intern table: storage of expressions, hints, the sort order.
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

constexpr size_t kBlockSize = size_t{64} << 10;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(Kind kind, Terms args, int64_t payload) {
  uint64_t hash = mix(static_cast<uint64_t>(kind) + 1, static_cast<uint64_t>(payload));
  for (const Expression* arg : args) hash = mix(hash, reinterpret_cast<uintptr_t>(arg) >> 4);
  return hash;
}

Number hint_of(const Expression* a) {
  Number number{a->type()};
  if (a->type() == Type::Float)
    number.real = a->hint_float();
  else
    number.integer = a->hint_int();
  return number;
}

}  // namespace

ExpressionTable::ExpressionTable(ShapeEnv& env) : env_(env), slots_(256) {}

ExpressionTable::~ExpressionTable() {
  for (std::byte* block : blocks_) delete[] block;
}

Expression* ExpressionTable::allocate(Kind kind, Type type) {
  static_assert(alignof(Expression) <= 8);
  if (static_cast<size_t>(end_ - free_) < sizeof(Expression)) {
    blocks_.push_back(new std::byte[kBlockSize]);
    free_ = blocks_.back();
    end_ = free_ + kBlockSize;
  }
  auto* node = new (free_) Expression();
  free_ += sizeof(Expression);
  node->kind_ = kind;
  node->type_ = type;
  node->env_ = &env_;
  node->id_ = static_cast<uint32_t>(count_);
  return node;
}

const Expression* ExpressionTable::intern(Kind kind, Type type, Terms args, int64_t payload) {
  uint64_t hash = hash_of(kind, args, payload);
  size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at]; at = (at + 1) & mask) {
    const Expression* candidate = slots_[at];
    if (candidate->hash_ == hash && candidate->kind_ == kind && candidate->integer_ == payload &&
        candidate->args() == args)
      return candidate;
  }
  Expression* node = allocate(kind, type);
  node->hash_ = hash;
  node->integer_ = payload;
  node->count_ = static_cast<uint32_t>(args.size());
  if (!args.empty()) {
    size_t bytes = args.size() * sizeof(const Expression*);
    if (static_cast<size_t>(end_ - free_) < bytes) {
      size_t block = std::max(kBlockSize, bytes);
      blocks_.push_back(new std::byte[block]);
      free_ = blocks_.back();
      end_ = free_ + block;
    }
    std::memcpy(free_, args.data(), bytes);
    node->args_ = reinterpret_cast<const Expression* const*>(free_);
    free_ += bytes;

    bool hinted = true;
    for (const Expression* arg : args) {
      node->unbacked_ |= arg->unbacked_;
      hinted &= arg->has_hint_;
    }
    if (hinted) {
      SmallVector<Number, 6> values;
      for (const Expression* arg : args) values.push_back(hint_of(arg));
      Number hint;
      node->has_hint_ = evaluate_node(*node, values, hint);
      if (type == Type::Float)
        node->hint_real_ = hint.real;
      else
        node->hint_integer_ = hint.integer;
    }
  } else if (kind != Kind::Symbol) {
    node->has_hint_ = true;
    node->hint_integer_ = payload;  // of a float, its bits
  }
  slots_[at] = node;
  if (++count_ * 2 > slots_.size()) grow();
  return node;
}

void ExpressionTable::grow() {
  std::vector<const Expression*> old(slots_.size() * 2);
  old.swap(slots_);
  size_t mask = slots_.size() - 1;
  for (const Expression* node : old) {
    if (!node) continue;
    size_t at = node->hash_ & mask;
    while (slots_[at]) at = (at + 1) & mask;
    slots_[at] = node;
  }
}

const Expression* ExpressionTable::integer(int64_t value) { return intern(Kind::Integer, Type::Int, {}, value); }
const Expression* ExpressionTable::real(double value) {
  return intern(Kind::Float, Type::Float, {}, std::bit_cast<int64_t>(value));
}
const Expression* ExpressionTable::boolean(bool value) { return intern(Kind::Boolean, Type::Bool, {}, value); }
const Expression* ExpressionTable::symbol(uint32_t index) {
  return intern(Kind::Symbol, env_.symbols()[index].type, {}, index);
}

// ---- the sort order
// ----------------------------------------------------------------------------------------------------
namespace {

int sign(int64_t difference) { return difference < 0 ? -1 : difference > 0; }

/// sympy sorts first by the class of an expression: numbers, symbols, products, sums, functions, the rest.
int class_rank(const Expression* a) {
  switch (a->kind()) {
    case Kind::Integer:
    case Kind::Float:
      return 1;
    case Kind::Symbol:
      return 2;
    case Kind::Mul:
      return 30;
    case Kind::Add:
      return 31;
    case Kind::Pow:
      return 32;
    case Kind::Min:
    case Kind::Max:
    case Kind::Boolean:
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return 50;
    default:
      return 40;
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

// ---- numbers
// -----------------------------------------------------------------------------------------------------------
namespace {

int64_t wrapping_power(int64_t base, int64_t exponent) {
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<int64_t>(result);
}

bool relation_holds(Kind kind, const Number& a, const Number& b) {
  if (a.type == Type::Float || b.type == Type::Float) {
    double x = a.as_double(), y = b.as_double();
    return kind == Kind::Eq ? x == y : kind == Kind::Ne ? x != y : kind == Kind::Lt ? x < y : x <= y;
  }
  int64_t x = a.integer, y = b.integer;
  return kind == Kind::Eq ? x == y : kind == Kind::Ne ? x != y : kind == Kind::Lt ? x < y : x <= y;
}

bool to_integer(double value, int64_t& result) {
  if (!(value > -9.2e18 && value < 9.2e18)) return false;
  result = static_cast<int64_t>(value);
  return true;
}

}  // namespace

bool evaluate_node(const Expression& node, ArrayRef<Number> values, Number& result) {
  result = Number{node.type()};
  bool floating = node.type() == Type::Float;
  auto fold = [&](auto integers, auto reals) {
    result.integer = values[0].integer;
    result.real = values[0].as_double();
    for (const Number& value : values.drop_front()) {
      result.integer = integers(result.integer, value.integer);
      if (floating) result.real = reals(result.real, value.as_double());
    }
    return true;
  };
  switch (node.kind()) {
    case Kind::Integer:
    case Kind::Boolean:
      return result.integer = node.integer(), true;
    case Kind::Float:
      return result.real = node.real(), true;
    case Kind::Symbol:
      return false;
    case Kind::Add:
      return fold([](int64_t a,
                     int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); },
                  [](double a, double b) { return a + b; });
    case Kind::Mul:
      return fold([](int64_t a,
                     int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); },
                  [](double a, double b) { return a * b; });
    case Kind::Min:
      return fold([](int64_t a, int64_t b) { return std::min(a, b); },
                  [](double a, double b) { return std::min(a, b); });
    case Kind::Max:
      return fold([](int64_t a, int64_t b) { return std::max(a, b); },
                  [](double a, double b) { return std::max(a, b); });
    case Kind::Pow:
    case Kind::PowByNatural:
      if (values[1].integer < 0) return false;
      return result.integer = wrapping_power(values[0].integer, values[1].integer), true;
    case Kind::FloorDiv:
      if (values[1].integer == 0) return false;
      return result.integer = floor_divide(values[0].integer, values[1].integer), true;
    case Kind::Mod:
      if (values[1].integer == 0) return false;
      return result.integer = modulo(values[0].integer, values[1].integer), true;
    case Kind::IntTrueDiv:
    case Kind::FloatTrueDiv:
      if (values[1].as_double() == 0) return false;
      return result.real = values[0].as_double() / values[1].as_double(), true;
    case Kind::FloatPow:
      return result.real = std::pow(values[0].as_double(), values[1].as_double()), true;
    case Kind::ToFloat:
      return result.real = values[0].as_double(), true;
    case Kind::Sqrt:
      return result.real = std::sqrt(values[0].as_double()), true;
    case Kind::FloorToInt:
      return to_integer(std::floor(values[0].as_double()), result.integer);
    case Kind::CeilToInt:
      return to_integer(std::ceil(values[0].as_double()), result.integer);
    case Kind::TruncToInt:
      return to_integer(std::trunc(values[0].as_double()), result.integer);
    case Kind::Where: {
      Number chosen = values[0].integer ? values[1] : values[2];
      result.integer = chosen.integer;
      result.real = chosen.as_double();
      return true;
    }
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return result.integer = relation_holds(node.kind(), values[0], values[1]), true;
    case Kind::And:
      return fold([](int64_t a, int64_t b) { return a & b; }, [](double a, double) { return a; });
    case Kind::Or:
      return fold([](int64_t a, int64_t b) { return a | b; }, [](double a, double) { return a; });
    case Kind::Not:
      return result.integer = !values[0].integer, true;
  }
  return false;
}

// ---- looking into expressions
// ------------------------------------------------------------------------------------------
Terms terms_of(const Expression* const& a) { return a->is(Kind::Add) ? a->args() : Terms(&a, 1); }

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
    case Kind::Integer:
      return a->integer() >= 0;
    case Kind::Symbol:
      return a->env().symbol(a).positive;
    case Kind::Pow:
      return a->arg(1)->integer() % 2 == 0 || assumed_nonnegative(a->arg(0));
    case Kind::Max:
      return std::any_of(a->args().begin(), a->args().end(), assumed_nonnegative);
    case Kind::Mod:
      return assumed_positive(a->arg(1));
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
    default:
      return false;
  }
}

bool assumed_positive(const Expression* a) {
  switch (a->kind()) {
    case Kind::Integer:
      return a->integer() > 0;
    case Kind::Symbol:
      return a->env().symbol(a).positive;
    case Kind::Mul:
    case Kind::Min:
      return std::all_of(a->args().begin(), a->args().end(), assumed_positive);
    case Kind::Max:
      return std::any_of(a->args().begin(), a->args().end(), assumed_positive);
    case Kind::Pow:
      return assumed_positive(a->arg(0));
    case Kind::Add:
      return std::all_of(a->args().begin(), a->args().end(), assumed_nonnegative) &&
             std::any_of(a->args().begin(), a->args().end(), assumed_positive);
    default:
      return false;
  }
}

}  // namespace umbra::sym
