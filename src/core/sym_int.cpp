#include "umbra/core/sym_int.h"

#include <charconv>
#include <cmath>

#include "core/low_numbers.h"
#include "umbra/core/call_site.h"
#include "umbra/core/error.h"
#include "umbra/core/integer.h"

namespace umbra {

SymInt (*make_low_number)(int64_t) = nullptr;
SymBool (*hold_comparison)(SymOp, SymInt, SymInt) = nullptr;

namespace {

const SymNode* any_node(SymInt a, SymInt b) { return a.is_symbolic() ? a.node() : b.node(); }
const SymNode* any_node(const SymFloat& a, const SymFloat& b) { return a.is_symbolic() ? a.node() : b.node(); }

[[noreturn]] void fail_zero() { fail<ZeroDivisionError>("integer division or modulo by zero"); }

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail_zero();
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

SymInt integer_power(SymInt base, int64_t exponent) {
  check<ValueError>(exponent >= 0, "Integers to negative integer powers are not allowed.");
  if (exponent == 0 || base.same(1)) return 1;
  if (base.same(0)) return 0;
  if (base.same(-1)) return exponent % 2 == 0 ? 1 : -1;
  SymInt result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = result * base;  // an overflow ends it soon enough
  return result;
}

}  // namespace

SymInt SymInt::slow(SymOp op, SymInt a, SymInt b) {
  if (plain(a, b))
    fail("integer overflow: ", a,
         op == SymOp::Add   ? " + "
         : op == SymOp::Sub ? " - "
                            : " * ",
         b, " does not fit 64 bits");
  return any_node(a, b)->int_binary(op, a, b);
}
void SymInt::refuse(int64_t value) { fail("a size, stride or index of ", value, " is out of range"); }
void SymInt::refuse(size_t value) { fail("a size, stride or index of ", value, " is out of range"); }
bool SymInt::decide(SymOp op, SymInt a, SymInt b) {
  return any_node(a, b)->decide(op, a, b, __builtin_return_address(0));
}
void SymNode::refuse_stale() {
  fail("a symbolic number was used after its ShapeEnv had gone: keep the ShapeEnv, a fake tensor or a graph of its");
}

SymInt operator/(SymInt a, SymInt b) {
  return SymInt::plain(a, b) ? SymInt(floor_divide(a.data_, b.data_)) : SymInt::slow(SymOp::FloorDiv, a, b);
}

SymInt operator%(SymInt a, SymInt b) {
  if (!SymInt::plain(a, b)) return SymInt::slow(SymOp::Mod, a, b);
  if (b.data_ == 0) fail_zero();
  int64_t rest = a.data_ % b.data_;
  return rest != 0 && (rest < 0) != (b.data_ < 0) ? rest + b.data_ : rest;
}

namespace {
template <class T> bool plain_compare(SymOp op, T x, T y) {
  switch (op) {
    case SymOp::Eq: return x == y;
    case SymOp::Ne: return x != y;
    case SymOp::Lt: return x < y;
    case SymOp::Le: return x <= y;
    case SymOp::Gt: return x > y;
    default: return x >= y;
  }
}
}  // namespace

/// `asker` is the code that has the answer; where that is the user's, it may be handed on without being asked.
static SymBool compare_for(const void* asker, SymOp op, SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return plain_compare(op, a.value(), b.value());
  SymBool answer = any_node(a, b)->compare(op, a, b);
  return answer.is_symbolic() || !is_user_code(asker) ? answer : hold_comparison(op, a, b);
}

SymBool sym_compare(SymOp op, SymInt a, SymInt b) { return compare_for(__builtin_return_address(0), op, a, b); }
SymBool sym_eq(SymInt a, SymInt b) {
  return a.same(b) ? SymBool(true) : compare_for(__builtin_return_address(0), SymOp::Eq, a, b);
}
SymBool sym_ne(SymInt a, SymInt b) {
  return a.same(b) ? SymBool(false) : compare_for(__builtin_return_address(0), SymOp::Ne, a, b);
}
SymBool sym_lt(SymInt a, SymInt b) { return compare_for(__builtin_return_address(0), SymOp::Lt, a, b); }
SymBool sym_le(SymInt a, SymInt b) { return compare_for(__builtin_return_address(0), SymOp::Le, a, b); }
SymBool sym_gt(SymInt a, SymInt b) { return compare_for(__builtin_return_address(0), SymOp::Gt, a, b); }
SymBool sym_ge(SymInt a, SymInt b) { return compare_for(__builtin_return_address(0), SymOp::Ge, a, b); }

SymBool sym_and(SymBool a, SymBool b) {
  if (!a.is_symbolic()) return a.value() ? b : a;
  if (!b.is_symbolic()) return b.value() ? a : b;
  return a.node()->bool_binary(SymOp::And, a, b);
}

SymBool sym_or(SymBool a, SymBool b) {
  if (!a.is_symbolic()) return a.value() ? a : b;
  if (!b.is_symbolic()) return b.value() ? b : a;
  return a.node()->bool_binary(SymOp::Or, a, b);
}

SymBool sym_not(SymBool a) { return a.is_symbolic() ? a.node()->bool_not() : SymBool(!a.value()); }

SymInt sym_min(SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->int_binary(SymOp::Min, a, b);
  return std::min(a.value(), b.value());
}

SymInt sym_max(SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->int_binary(SymOp::Max, a, b);
  return std::max(a.value(), b.value());
}

SymInt sym_pow(SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->int_binary(SymOp::Pow, a, b);
  return integer_power(a, b.value());
}

SymInt sym_bitwise(SymOp op, SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->int_binary(op, a, b);
  int64_t x = a.value(), y = b.value();
  return op == SymOp::BitAnd ? x & y : op == SymOp::BitOr ? x | y : x ^ y;
}

SymInt sym_shift_left(SymInt a, SymInt b) {
  check<ValueError>(b >= 0, "negative shift count");
  return a.same(0) ? SymInt(0) : a * sym_pow(2, b);
}

SymInt sym_shift_right(SymInt a, SymInt b) {
  check<ValueError>(b >= 0, "negative shift count");
  if (a.is_symbolic() || b.is_symbolic()) return a / sym_pow(2, b);
  return a.value() >> std::min<int64_t>(b.value(), 63);
}

SymFloat sym_float(SymInt a) {
  return a.is_symbolic() ? a.node()->to_float(a) : SymFloat(static_cast<double>(a.value()));
}

SymFloat sym_true_divide(SymInt a, SymInt b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->true_divide(a, b);
  check<ZeroDivisionError>(b.value() != 0, "division by zero");
  return true_quotient(a.value(), b.value());
}

namespace {
/// Python's remainder of floats, which has the sign of the divisor.
double float_remainder(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

/// Python's floor division goes by the remainder, which is exact: 5 // 0.1 is 49, although 5 / 0.1 rounds to 50.
double float_floor_quotient(double x, double y) {
  double quotient = (x - float_remainder(x, y)) / y;
  if (quotient == 0) return std::copysign(0.0, x / y);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double float_power(double x, double y) {
  check<ZeroDivisionError>(x != 0 || !(y < 0), "0.0 cannot be raised to a negative power");
  double result = std::pow(x, y);
  check<ValueError>(!std::isnan(result) || std::isnan(x) || std::isnan(y),
                    "a negative number to a fractional power is complex, which no symbolic number is");
  return result;
}
}  // namespace

SymFloat sym_float_binary(SymOp op, SymFloat a, SymFloat b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->float_binary(op, a, b);
  double x = a.value(), y = b.value();
  switch (op) {
    case SymOp::Add: return x + y;
    case SymOp::Sub: return x - y;
    case SymOp::Mul: return x * y;
    case SymOp::TrueDiv: check<ZeroDivisionError>(y != 0, "float division by zero"); return x / y;
    case SymOp::FloorDiv:
      check<ZeroDivisionError>(y != 0, "float floor division by zero");
      return float_floor_quotient(x, y);
    case SymOp::Mod: check<ZeroDivisionError>(y != 0, "float modulo"); return float_remainder(x, y);
    case SymOp::Pow: return float_power(x, y);
    case SymOp::Min: return std::min(x, y);
    case SymOp::Max: return std::max(x, y);
    default: fail<Error>("not an operation on two floats");
  }
}

SymBool sym_float_compare(SymOp op, SymFloat a, SymFloat b) {
  if (a.is_symbolic() || b.is_symbolic()) return any_node(a, b)->float_compare(op, a, b);
  return plain_compare(op, a.value(), b.value());
}

SymFloat sym_sqrt(SymFloat a) {
  return a.is_symbolic() ? a.node()->float_unary(SymOp::Sqrt, a) : SymFloat(std::sqrt(a.value()));
}

SymInt sym_round(SymOp op, SymFloat a) {
  if (a.is_symbolic()) return a.node()->round_to_int(op, a);
  double value = op == SymOp::Floor  ? std::floor(a.value())
                 : op == SymOp::Ceil ? std::ceil(a.value())
                                     : std::trunc(a.value());
  check<ValueError>(value > -4.6e18 && value < 9.2e18, "cannot convert float ", a.value(), " to integer");
  return static_cast<int64_t>(value);
}

std::string to_string(SymInt value) {
  return value.is_symbolic() ? value.node()->to_string() : std::to_string(value.value());
}

std::string to_string(const SymFloat& value) {
  if (value.is_symbolic()) return value.node()->to_string();
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value.value());
  std::string text(buffer, end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string to_string(const SymBool& value) {
  if (value.is_symbolic()) return value.node()->to_string();
  return value.value() ? "True" : "False";
}

std::vector<int64_t> guard_ints(SymIntArrayRef values) {
  std::vector<int64_t> out;
  out.reserve(values.size());
  for (SymInt value : values) out.push_back(value.guard_int());
  return out;
}

bool any_symbolic(SymIntArrayRef values) {
  for (SymInt value : values)
    if (value.is_symbolic()) return true;
  return false;
}

}  // namespace umbra
