// Symbolic expressions: interned, immutable, in a normal form.
//
// Every expression belongs to a ShapeEnv and lives as long as that does. Equal expressions are the same pointer, so
// comparing and hashing one costs what it costs for an int. The normal form is that of sympy, which is also how
// expressions print: sums of products with integer coefficients, terms in the order they print in. Products of sums are
// kept as they are (`4*s0*(u0 - 1)`); ShapeEnv multiplies them out when it has to decide a question.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/core/array_ref.h"
#include "umbra/core/integer.h"
#include "umbra/core/sym_int.h"
#include "umbra/sym/range.h"

namespace UMBRA_API umbra {
namespace sym {

class ShapeEnv;
class ExpressionTable;

enum class Kind : uint8_t {
  Integer,
  Float,
  Boolean,
  Symbol,
  Add,           // n-ary; terms in print order, an integer constant among them
  Mul,           // n-ary; an integer coefficient (if not 1) first
  Pow,           // base, natural number above 1
  PowByNatural,  // base, symbolic exponent
  FloorDiv,
  Mod,
  BitAnd,  // of integers in two's complement, as long as need be
  BitOr,
  BitXor,
  Min,
  Max,
  IntTrueDiv,
  FloatTrueDiv,
  FloatPow,
  ToFloat,
  Sqrt,
  Sin,
  Cos,
  Tan,
  Sinh,
  Cosh,
  Tanh,
  Asin,
  Acos,
  Atan,
  Log2,
  FloorToInt,
  CeilToInt,
  TruncToInt,
  RoundToInt,    // halves to the even one
  RoundDecimal,  // a float, and how many digits it keeps behind the point
  Where,         // condition, value if true, value if false
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,  // > and >= are < and <= with the sides exchanged
};

enum class Type : uint8_t { Int, Float, Bool };

/// A value: of an integer or a bool, or of a float.
struct Number {
  Type type = Type::Int;
  Integer integer = 0;  // also a bool
  double real = 0;
  double as_double() const { return type == Type::Float ? real : static_cast<double>(integer); }
};

class Expression;
struct Term;
using Terms = ArrayRef<const Expression*>;

class Expression final : public SymNode {
 public:
  Kind kind() const { return kind_; }
  Type type() const { return type_; }
  ShapeEnv& env() const { return *env_; }
  Terms args() const { return {args_, count_}; }
  const Expression* arg(size_t i) const { return args_[i]; }

  bool is(Kind kind) const { return kind_ == kind; }
  bool is_integer(Integer value) const { return kind_ == Kind::Integer && integer_ == value; }
  bool is_number() const { return kind_ == Kind::Integer || kind_ == Kind::Float; }
  bool is_relation() const { return kind_ >= Kind::Eq && kind_ <= Kind::Le; }
  Integer integer() const { return integer_; }
  double real() const { return real_; }
  bool truth() const { return integer_ != 0; }
  /// Of Lt and Le: written with the sides exchanged.
  bool flipped() const { return (kind_ == Kind::Lt || kind_ == Kind::Le) && integer_ != 0; }
  /// Position of a symbol in its ShapeEnv.
  uint32_t symbol_index() const { return static_cast<uint32_t>(integer_); }
  /// Whether an unbacked symbol occurs in it.
  bool unbacked() const { return unbacked_; }
  /// The program has this condition and has not asked for its truth, which follows only from what sizes are taken to
  /// be.
  bool is_unasked() const { return held_ == Held::Unasked; }
  void hold() const {
    if (held_ == Held::No) held_ = Held::Unasked;
  }
  /// How many expressions stand inside one another below this one; 0 for numbers and symbols.
  uint32_t depth() const { return depth_; }
  /// The value for the example inputs, where it has a hint: an integer that 64 bits need not hold.
  Number hint() const;

  // What the layers below ask of an expression; see SymNode.
  SymInt int_binary(SymOp op, SymInt a, SymInt b) const override;
  SymBool compare(SymOp op, SymInt a, SymInt b) const override;
  bool decide(SymOp op, SymInt a, SymInt b, const void* asker) const override;
  SymFloat float_binary(SymOp op, SymFloat a, SymFloat b) const override;
  SymBool float_compare(SymOp op, SymFloat a, SymFloat b) const override;
  SymBool bool_binary(SymOp op, SymBool a, SymBool b) const override;
  SymFloat to_float(SymInt a) const override;
  SymFloat true_divide(SymInt a, SymInt b) const override;
  SymFloat float_unary(SymOp op, SymFloat a) const override;
  SymInt round_to_int(SymOp op, SymFloat a) const override;
  SymBool bool_not() const override;
  int64_t guard_int() const override;
  double guard_float() const override;
  bool guard_bool() const override;
  bool guard_or(bool fallback) const override;
  int statically_known() const override;
  bool expect_true(const char* message) const override;
  bool has_hint() const override { return has_hint_; }
  int64_t hint_int() const override;
  double hint_float() const override;
  std::string to_string() const override;

 private:
  friend class ExpressionTable;
  friend class ShapeEnv;
  Expression() = default;

  Kind kind_;
  Type type_;
  bool unbacked_ = false;
  bool has_hint_ = false;
  bool divided_ = false;  // by something that is no number, in it or in a part of it
  uint32_t count_ = 0;
  uint32_t id_ = 0;
  uint32_t depth_ = 0;
  uint64_t hash_ = 0;
  ShapeEnv* env_ = nullptr;
  const Expression* const* args_ = nullptr;
  union {
    Integer integer_ = 0;
    double real_;
  };
  union {
    Integer hint_integer_ = 0;
    double hint_real_;
  };

  // Derived facts, kept where they are asked for. Those with a version hold for that state of the ShapeEnv's knowledge.
  mutable Range range_;
  mutable FloatRange float_range_;  // of a float, by the same version
  mutable uint32_t range_version_ = 0;
  mutable uint32_t simplified_version_ = 0;
  mutable uint32_t canonical_version_ = 0;
  mutable uint32_t answer_version_ = 0;
  mutable int8_t answer_ = -1;  // of a bool: 1 and 0 hold for good, -1 for answer_version_
  /// Of a relation whose answer follows only from what sizes are taken to be: the program has it without having asked,
  /// or has asked.
  enum class Held : uint8_t { No, Unasked, Asked };
  mutable Held held_ = Held::No;
  mutable const Expression* simplified_ = nullptr;
  mutable const Expression* canonical_ = nullptr;
  mutable const Expression* expanded_ = nullptr;
  mutable const Expression* without_coefficient_ = nullptr;
};

/// Makes expressions: the intern table of a ShapeEnv, and the rules of the normal form.
class ExpressionTable {
 public:
  explicit ExpressionTable(ShapeEnv& env);
  ExpressionTable(const ExpressionTable&) = delete;
  ~ExpressionTable();

  const Expression* integer(Integer value);
  const Expression* real(double value);
  const Expression* boolean(bool value);
  const Expression* symbol(uint32_t index);

  const Expression* add(const Expression* a, const Expression* b);
  const Expression* add(Terms terms);
  const Expression* subtract(const Expression* a, const Expression* b);
  const Expression* negate(const Expression* a);
  const Expression* multiply(const Expression* a, const Expression* b);
  const Expression* multiply(Terms factors);
  const Expression* power(const Expression* base, const Expression* exponent);
  const Expression* floor_divide(const Expression* a, const Expression* b);
  const Expression* modulo(const Expression* a, const Expression* b);
  /// Kind::BitAnd, BitOr or BitXor.
  const Expression* bitwise(Kind kind, const Expression* a, const Expression* b);
  /// Kind::Min or Kind::Max.
  const Expression* extremum(Kind kind, Terms values);
  const Expression* true_divide(const Expression* a, const Expression* b);
  const Expression* to_float(const Expression* a);
  /// A function of one float: Kind::Sqrt to Kind::Log2.
  const Expression* function(Kind kind, const Expression* a);
  const Expression* round_decimal(const Expression* a, int64_t digits);
  /// Kind::FloorToInt, CeilToInt, TruncToInt or RoundToInt.
  const Expression* round(Kind kind, const Expression* a);
  const Expression* where(const Expression* condition, const Expression* yes, const Expression* no);
  /// Any of Eq, Ne, Lt, Le. A flipped one was written with its sides exchanged, `b > a`, and prints so.
  const Expression* relation(Kind kind, const Expression* a, const Expression* b, bool flipped = false);
  /// Kind::And or Kind::Or.
  const Expression* logical(Kind kind, Terms values);
  const Expression* logical_not(const Expression* a);
  /// Applies the normal form to a kind and arguments of any sort: what substitution and the parser use.
  const Expression* make(Kind kind, Terms args);
  /// The same of other arguments.
  const Expression* remake(const Expression* a, Terms args);

  /// Products of sums multiplied out, as far as that stays small.
  const Expression* expand(const Expression* a);
  size_t size() const { return count_; }

 private:
  friend class ShapeEnv;
  Expression* allocate(Kind kind, Type type);
  Terms keep(Terms args);
  const Expression* intern(Kind kind, Type type, Terms args, Integer payload = 0);
  static void inherit(Expression& node);
  void grow();
  friend Term split_coefficient(const Expression* a);
  const Expression* scaled(Integer coefficient, const Expression* rest);
  const Expression* rest_of(const Expression* product);
  const Expression* lengthened(const Expression* sum, const Expression* term);
  const Expression* expand_node(const Expression* a);
  const Expression* expand_product(Terms factors, const Expression* original);
  const Expression* float_sum(Terms terms);
  const Expression* float_product(Terms factors);
  bool may_be_zero(const Expression* divisor);
  const Expression* quotient_by_integer(const Expression* a, Integer divisor);

  ShapeEnv& env_;
  uint16_t generation_;
  bool divisors_are_nonzero_ = false;  // in a question, which is about values: a division by zero has none
  std::vector<Expression*> nodes_;     // blocks of the process's store of expressions
  size_t used_ = 0;                    // of the last block
  std::vector<std::byte*> lists_;      // blocks of argument lists
  std::byte* free_ = nullptr;
  std::byte* end_ = nullptr;
  std::vector<const Expression*> slots_;  // open addressing, a power of two
  size_t count_ = 0;
};

/// The order of factors and arguments, which is sympy's: numbers, symbols by name, products, sums, functions, min and
/// max.
int compare(const Expression* a, const Expression* b);

/// A term as coefficient times rest: `-4*s0*s1` is -4 and `s0*s1`; an integer is itself and 1.
struct Term {
  Integer coefficient;
  const Expression* rest;
};
Term split_coefficient(const Expression* a);
/// The terms of a sum, the factors of a product (without its coefficient), or the expression alone.
Terms terms_of(const Expression* const& a);
/// A factor as base and exponent: `s0**2` is s0 and 2.
struct Factor {
  const Expression* base;
  Integer exponent;
};
Factor split_power(const Expression* a);

/// Nonnegative (positive) by the assumption that sizes are positive, whatever ranges are known; sympy's notion.
bool assumed_nonnegative(const Expression* a);
bool assumed_positive(const Expression* a);

/// The symbols that occur in an expression, each once, in order of first occurrence.
std::vector<const Expression*> free_symbols(const Expression* a);

/// The value of a node from the values of its arguments; shared by hints and evaluation. False where there is none: a
/// division by zero, or a number that does not fit.
bool evaluate_node(const Expression& node, ArrayRef<Number> values, Number& result);

}  // namespace sym
}  // namespace umbra
