// Numbers that may be symbols: what sizes, strides and offsets are made of.
//
// A SymInt is eight bytes and trivially copyable: an int64, or a pointer to an interned expression. Expressions belong
// to their ShapeEnv, which every fake tensor, graph and program made with it keeps alive; a SymInt does not keep it
// alive, but it knows when it has outlived it: that is an error.
#pragma once

#include <cstdint>
#include <string>

#include "umbra/core/array_ref.h"

namespace UMBRA_API umbra {

class SymInt;
class SymFloat;
class SymBool;

enum class SymOp : uint8_t {
  Add,
  Sub,
  Mul,
  FloorDiv,
  Mod,
  Pow,
  TrueDiv,
  Min,
  Max,
  Neg,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Not,
  ToFloat,
  Floor,
  Ceil,
  Trunc,
  Sqrt,
  BitAnd,
  BitOr,
  BitXor,
};

/// An expression as the layers below sym/ see it. sym/ has the only implementation.
class SymNode {
 public:
  /// Environments have one of so many numbers, in turn.
  static constexpr uint32_t kGenerations = (1u << 14) - 1;

  virtual ~SymNode() = default;
  /// The number of the environment it belongs to; 0 where that is gone. Whoever keeps a node notes it, and asks.
  uint16_t generation() const { return generation_; }
  [[noreturn]] static void refuse_stale();
  /// Combines two integers of which at least one is symbolic.
  virtual SymInt int_binary(SymOp op, SymInt a, SymInt b) const = 0;
  virtual SymBool compare(SymOp op, SymInt a, SymInt b) const = 0;
  /// compare, answered with a guard if need be. `asker` is the code that goes by the answer.
  virtual bool decide(SymOp op, SymInt a, SymInt b, const void* asker) const = 0;
  virtual SymFloat float_binary(SymOp op, SymFloat a, SymFloat b) const = 0;
  virtual SymBool float_compare(SymOp op, SymFloat a, SymFloat b) const = 0;
  virtual SymBool bool_binary(SymOp op, SymBool a, SymBool b) const = 0;
  virtual SymFloat to_float(SymInt a) const = 0;
  virtual SymFloat true_divide(SymInt a, SymInt b) const = 0;
  virtual SymFloat float_unary(SymOp op, SymFloat a) const = 0;
  virtual SymInt round_to_int(SymOp op, SymFloat a) const = 0;
  virtual SymBool bool_not() const = 0;
  /// Answers with a value now, and records the guard that makes the answer hold; throws for unbacked symbols.
  virtual int64_t guard_int() const = 0;
  virtual double guard_float() const = 0;
  virtual bool guard_bool() const = 0;
  /// Like guard_bool, with an answer for unbacked symbols that are not known; nothing is recorded for those.
  virtual bool guard_or(bool fallback) const = 0;
  /// The truth if it is known without a guard: 1 true, 0 false, -1 not known.
  virtual int statically_known() const = 0;
  /// Expects a bool node: becomes a fact of the ShapeEnv, checked at run time where it is not known already.
  virtual bool expect_true(const char* message) const = 0;
  virtual bool has_hint() const = 0;
  virtual int64_t hint_int() const = 0;
  virtual double hint_float() const = 0;
  virtual std::string to_string() const = 0;

 protected:
  uint16_t generation_ = 0;
};

class SymInt {
 public:
  SymInt() = default;
  /// Numbers below -2^62 could not be told from pointers; they are refused.
  constexpr SymInt(int64_t value) : data_(value) {
    if (value < kLeast) [[unlikely]]
      refuse(value);
  }
  constexpr SymInt(int value) : data_(value) {}
  constexpr SymInt(unsigned value) : data_(value) {}
  constexpr SymInt(size_t value) : data_(static_cast<int64_t>(value)) {
    if (value > INT64_MAX) [[unlikely]]
      refuse(value);
  }
  constexpr SymInt(long long value) : SymInt(static_cast<int64_t>(value)) {}
  constexpr SymInt(unsigned long long value) : SymInt(static_cast<size_t>(value)) {}
  static SymInt from_raw(int64_t bits) {
    SymInt result;
    result.data_ = bits;
    return result;
  }
  explicit SymInt(const SymNode* node)
      : data_(static_cast<int64_t>(reinterpret_cast<uintptr_t>(node) | kTag |
                                   (uintptr_t{node->generation()} << kAddressBits))) {}

  bool is_symbolic() const { return data_ < kLeast; }
  /// The expression; only where is_symbolic() is true. An error where its ShapeEnv is gone.
  const SymNode* node() const {
    auto bits = static_cast<uintptr_t>(data_);
    auto* node = reinterpret_cast<const SymNode*>(bits & ((uintptr_t{1} << kAddressBits) - 1));
    if (node->generation() != (bits >> kAddressBits & SymNode::kGenerations)) [[unlikely]]
      SymNode::refuse_stale();
    return node;
  }
  /// The plain number; only where is_symbolic() is false.
  int64_t value() const { return data_; }
  /// The number, if need be by a guard that specialises the program to it.
  int64_t guard_int() const { return is_symbolic() ? node()->guard_int() : data_; }
  /// The bits: equal for equal expressions, since those are interned.
  int64_t raw() const { return data_; }
  bool same(SymInt other) const { return data_ == other.data_; }
  bool has_hint() const { return !is_symbolic() || node()->has_hint(); }
  int64_t hint() const { return is_symbolic() ? node()->hint_int() : data_; }

  SymInt operator-() const { return SymInt(0) - *this; }
  // What does not fit 64 bits is an error: a size that wrapped around would be a wrong address later.
  friend SymInt operator+(SymInt a, SymInt b) {
    int64_t sum;
    if (plain(a, b) && !__builtin_add_overflow(a.data_, b.data_, &sum)) [[likely]]
      return sum;
    return slow(SymOp::Add, a, b);
  }
  friend SymInt operator-(SymInt a, SymInt b) {
    int64_t difference;
    if (plain(a, b) && !__builtin_sub_overflow(a.data_, b.data_, &difference)) [[likely]]
      return difference;
    return slow(SymOp::Sub, a, b);
  }
  friend SymInt operator*(SymInt a, SymInt b) {
    int64_t product;
    if (plain(a, b) && !__builtin_mul_overflow(a.data_, b.data_, &product)) [[likely]]
      return product;
    return slow(SymOp::Mul, a, b);
  }
  /// Floor division and remainder, as Python has them. The divisor must not be zero.
  friend SymInt operator/(SymInt a, SymInt b);
  friend SymInt operator%(SymInt a, SymInt b);
  SymInt& operator+=(SymInt b) { return *this = *this + b; }
  SymInt& operator-=(SymInt b) { return *this = *this - b; }
  SymInt& operator*=(SymInt b) { return *this = *this * b; }

  // Comparisons answer at once. With symbols they may leave a guard; sym_eq and the like do not.
  friend bool operator==(SymInt a, SymInt b) { return a.data_ == b.data_ || (!plain(a, b) && decide(SymOp::Eq, a, b)); }
  friend bool operator!=(SymInt a, SymInt b) { return !(a == b); }
  friend bool operator<(SymInt a, SymInt b) { return plain(a, b) ? a.data_ < b.data_ : decide(SymOp::Lt, a, b); }
  friend bool operator<=(SymInt a, SymInt b) { return plain(a, b) ? a.data_ <= b.data_ : decide(SymOp::Le, a, b); }
  friend bool operator>(SymInt a, SymInt b) { return b < a; }
  friend bool operator>=(SymInt a, SymInt b) { return b <= a; }

  static constexpr bool can_hold(int64_t value) { return value >= kLeast; }
  [[noreturn]] static void refuse(int64_t value);
  [[noreturn]] static void refuse(size_t value);

 private:
  // A pointer: bit 63 without bit 62, the generation, the address.
  static constexpr uintptr_t kTag = uintptr_t{1} << 63;
  static constexpr int kAddressBits = 48;
  static constexpr int64_t kLeast = -(int64_t{1} << 62);  // numbers below this are pointers
  static bool plain(SymInt a, SymInt b) { return a.data_ >= kLeast && b.data_ >= kLeast; }
  static SymInt slow(SymOp op, SymInt a, SymInt b);
  static bool decide(SymOp op, SymInt a, SymInt b);
  int64_t data_ = 0;
};
static_assert(sizeof(SymInt) == 8);
SymInt operator/(SymInt a, SymInt b);
SymInt operator%(SymInt a, SymInt b);

class SymFloat {
 public:
  SymFloat(double value = 0) : value_(value) {}
  explicit SymFloat(const SymNode* node) : node_(node), generation_(node->generation()) {}
  bool is_symbolic() const { return node_ != nullptr; }
  /// The expression, null for a plain number. An error where its ShapeEnv is gone.
  const SymNode* node() const {
    if (node_ && (generation_ == 0 || node_->generation() != generation_)) [[unlikely]]
      SymNode::refuse_stale();
    return node_;
  }
  double value() const { return value_; }
  double guard_float() const { return node_ ? node()->guard_float() : value_; }

 private:
  double value_ = 0;
  const SymNode* node_ = nullptr;
  uint16_t generation_ = 0;
};

class SymBool {
 public:
  SymBool(bool value = false) : value_(value) {}
  explicit SymBool(const SymNode* node) : generation_(node->generation()), node_(node) {}
  bool is_symbolic() const { return node_ != nullptr; }
  /// The expression, null for a plain bool. An error where its ShapeEnv is gone.
  const SymNode* node() const {
    if (node_ && (generation_ == 0 || node_->generation() != generation_)) [[unlikely]]
      SymNode::refuse_stale();
    return node_;
  }
  bool value() const { return value_; }
  bool guard_bool() const { return node_ ? node()->guard_bool() : value_; }
  /// The truth, by a guard if need be; `fallback` where only the run can tell (torch's guard_or_false, guard_or_true).
  bool guard_or(bool fallback) const { return node_ ? node()->guard_or(fallback) : value_; }
  /// True only where that is known without a guard.
  bool known_true() const { return node_ ? node()->statically_known() == 1 : value_; }
  bool known_false() const { return node_ ? node()->statically_known() == 0 : !value_; }
  /// Takes the condition for granted from here on; a run-time assertion where it is not known.
  bool expect_true(const char* message = "") const { return node_ ? node()->expect_true(message) : value_; }

 private:
  bool value_ = false;
  uint16_t generation_ = 0;
  const SymNode* node_ = nullptr;
};

/// SymOp::Eq, Ne, Lt, Le, Gt or Ge.
SymBool sym_compare(SymOp op, SymInt a, SymInt b);
SymBool sym_eq(SymInt a, SymInt b);
SymBool sym_ne(SymInt a, SymInt b);
SymBool sym_lt(SymInt a, SymInt b);
SymBool sym_le(SymInt a, SymInt b);
SymBool sym_gt(SymInt a, SymInt b);
SymBool sym_ge(SymInt a, SymInt b);
SymBool sym_and(SymBool a, SymBool b);
SymBool sym_or(SymBool a, SymBool b);
SymBool sym_not(SymBool a);
SymInt sym_min(SymInt a, SymInt b);
SymInt sym_max(SymInt a, SymInt b);
SymInt sym_pow(SymInt a, SymInt b);
/// SymOp::BitAnd, BitOr or BitXor of two integers.
SymInt sym_bitwise(SymOp op, SymInt a, SymInt b);
/// a * 2**b and a // 2**b. A negative b is an error.
SymInt sym_shift_left(SymInt a, SymInt b);
SymInt sym_shift_right(SymInt a, SymInt b);
SymFloat sym_float(SymInt a);
SymFloat sym_true_divide(SymInt a, SymInt b);
SymFloat sym_float_binary(SymOp op, SymFloat a, SymFloat b);
SymBool sym_float_compare(SymOp op, SymFloat a, SymFloat b);
SymFloat sym_sqrt(SymFloat a);
/// Floor, ceiling or truncation of a float to an integer.
SymInt sym_round(SymOp op, SymFloat a);
/// True where a == b is known without a guard; for choices of strides that may fall back to the general case.
inline bool known_equal(SymInt a, SymInt b) { return a.same(b) || sym_eq(a, b).known_true(); }

std::string to_string(SymInt value);
std::string to_string(const SymFloat& value);
std::string to_string(const SymBool& value);

using SymIntArrayRef = ArrayRef<SymInt>;
using SymShape = SmallVector<SymInt, 6>;

/// Plain ints seen as SymInts: the bits are the same, but for numbers so low that they would be pointers; those are
/// refused.
inline SymIntArrayRef as_sym(IntArrayRef ints) {
  for (int64_t value : ints)
    if (!SymInt::can_hold(value)) [[unlikely]]
      SymInt::refuse(value);
  return {reinterpret_cast<const SymInt*>(ints.data()), ints.size()};
}
/// The ints behind SymInts, if need be by guards that specialise the program to them.
std::vector<int64_t> guard_ints(SymIntArrayRef values);
bool any_symbolic(SymIntArrayRef values);

}  // namespace umbra
