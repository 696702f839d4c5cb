// What the core asks of an expression: each method hands over to the ShapeEnv or its table.
#include "umbra/sym/expression.h"

#include "umbra/core/error.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {

SymInt Expression::int_binary(SymOp op, SymInt a, SymInt b) const { return env_->int_binary(op, a, b); }
SymBool Expression::compare(SymOp op, SymInt a, SymInt b) const { return env_->compare(op, a, b); }
bool Expression::decide(SymOp op, SymInt a, SymInt b, const void* asker) const { return env_->decide(op, a, b, asker); }

SymFloat Expression::float_binary(SymOp op, SymFloat a, SymFloat b) const {
  ExpressionTable& table = env_->table();
  const Expression* x = env_->simplify(env_->expression(a));
  const Expression* y = env_->simplify(env_->expression(b));
  const Expression* both[] = {x, y};
  switch (op) {
    case SymOp::Add: return ShapeEnv::sym_float(table.add(x, y));
    case SymOp::Sub: return ShapeEnv::sym_float(table.subtract(x, y));
    case SymOp::Mul: return ShapeEnv::sym_float(table.multiply(x, y));
    case SymOp::TrueDiv: return ShapeEnv::sym_float(table.true_divide(x, y));
    case SymOp::FloorDiv: return ShapeEnv::sym_float(table.floor_divide(x, y));
    case SymOp::Mod: return ShapeEnv::sym_float(table.modulo(x, y));
    case SymOp::Pow: return ShapeEnv::sym_float(table.power(x, y));
    case SymOp::Min: return ShapeEnv::sym_float(table.extremum(Kind::Min, Terms(both, 2)));
    case SymOp::Max: return ShapeEnv::sym_float(table.extremum(Kind::Max, Terms(both, 2)));
    default: fail<NotImplementedError>("this operation on symbolic floats is not supported");
  }
}

SymBool Expression::float_compare(SymOp op, SymFloat a, SymFloat b) const {
  const Expression* x = env_->simplify(env_->expression(a));
  const Expression* y = env_->simplify(env_->expression(b));
  bool flipped = op == SymOp::Gt || op == SymOp::Ge;
  if (flipped) std::swap(x, y);
  Kind kind = op == SymOp::Eq                      ? Kind::Eq
              : op == SymOp::Ne                    ? Kind::Ne
              : op == SymOp::Lt || op == SymOp::Gt ? Kind::Lt
                                                   : Kind::Le;
  return ShapeEnv::sym_bool(env_->table().relation(kind, x, y, flipped));
}

SymBool Expression::bool_binary(SymOp op, SymBool a, SymBool b) const {
  const Expression* both[] = {env_->simplify(env_->expression(a)), env_->simplify(env_->expression(b))};
  switch (op) {
    case SymOp::And: return ShapeEnv::sym_bool(env_->table().logical(Kind::And, Terms(both, 2)));
    case SymOp::Or: return ShapeEnv::sym_bool(env_->table().logical(Kind::Or, Terms(both, 2)));
    case SymOp::Eq: return ShapeEnv::sym_bool(env_->table().relation(Kind::Eq, both[0], both[1]));
    case SymOp::Ne: return ShapeEnv::sym_bool(env_->table().relation(Kind::Ne, both[0], both[1]));
    default: fail<NotImplementedError>("this operation on symbolic bools is not supported");
  }
}

SymFloat Expression::to_float(SymInt a) const {
  return ShapeEnv::sym_float(env_->table().to_float(env_->simplify(env_->expression(a))));
}

SymFloat Expression::true_divide(SymInt a, SymInt b) const {
  return ShapeEnv::sym_float(
      env_->table().true_divide(env_->simplify(env_->expression(a)), env_->simplify(env_->expression(b))));
}

SymFloat Expression::float_unary(SymOp op, SymFloat a) const {
  const Expression* x = env_->simplify(env_->expression(a));
  switch (op) {
    case SymOp::Neg: return ShapeEnv::sym_float(env_->table().negate(x));
    case SymOp::Sqrt: return ShapeEnv::sym_float(env_->table().function(Kind::Sqrt, x));
    default: fail<NotImplementedError>("this operation on symbolic floats is not supported");
  }
}

SymInt Expression::round_to_int(SymOp op, SymFloat a) const {
  Kind kind = op == SymOp::Floor ? Kind::FloorToInt : op == SymOp::Ceil ? Kind::CeilToInt : Kind::TruncToInt;
  return ShapeEnv::sym_int(env_->table().round(kind, env_->simplify(env_->expression(a))));
}

SymBool Expression::bool_not() const {
  const Expression* opposite = env_->table().logical_not(env_->simplify(this));
  if (held_ != Held::No) opposite->hold();
  return ShapeEnv::sym_bool(opposite);
}

int64_t Expression::guard_int() const { return env_->guard_int(this); }
double Expression::guard_float() const { return env_->guard_float(this); }
bool Expression::guard_bool() const {
  bool answered = answer_ >= 0 && is_relation() && arg(0)->type() == Type::Int && !is_unasked();
  return answered ? answer_ == 1 : env_->guard_bool(this);
}
bool Expression::guard_or(bool fallback) const { return env_->guard_or(this, fallback); }
int Expression::statically_known() const {
  if (int answer = env_->known(this); answer >= 0) return answer;
  return env_->known(env_->simplify(this));
}
bool Expression::expect_true(const char* message) const { return env_->expect_true(this, message); }

Number Expression::hint() const {
  Number number{type_};
  if (type_ == Type::Float) number.real = hint_real_;
  else number.integer = hint_integer_;
  return number;
}

namespace {
[[noreturn]] void fail_without_hint(const Expression& a) {
  fail<Error>("the symbolic value ", a.to_string(), " has no hint: it is known only at run time");
}
}  // namespace

int64_t Expression::hint_int() const {
  if (!has_hint_) fail_without_hint(*this);  // its text is made then alone
  return type_ == Type::Float ? static_cast<int64_t>(hint_real_) : to_int64(hint_integer_);
}

double Expression::hint_float() const {
  if (!has_hint_) fail_without_hint(*this);
  return hint().as_double();
}

std::string Expression::to_string() const { return to_text(env_->simplify(this)); }

}  // namespace umbra::sym
