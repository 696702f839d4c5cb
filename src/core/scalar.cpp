#include "umbra/core/scalar.h"

#include <cmath>

#include "umbra/core/error.h"

namespace umbra {

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool:
    case Kind::SymBool: return DType::Bool;
    case Kind::Int:
    case Kind::SymInt: return DType::Int64;
    case Kind::UInt: return DType::UInt64;
    case Kind::Complex: return DType::Complex128;
    default: return DType::Float64;
  }
}

namespace {
int64_t whole(double value) {
  check(value >= -0x1p63 && value < 0x1p63, "value cannot be converted to type int64_t without overflow");
  return static_cast<int64_t>(value);
}
}  // namespace

int64_t Scalar::to_int() const {
  switch (kind_) {
    case Kind::Bool:
    case Kind::Int: return int_;
    case Kind::UInt: detail::fail_overflow("int64_t");
    case Kind::Complex:
      check(imag_ == 0, "value cannot be converted to type int64_t without overflow");
      [[fallthrough]];
    case Kind::Double: return whole(double_);
    case Kind::SymInt: return umbra::SymInt::from_raw(int_).guard_int();
    case Kind::SymFloat: return whole(node_->guard_float());
    case Kind::SymBool: return node_->guard_bool();
  }
  return 0;
}

uint64_t Scalar::to_uint() const {
  if (kind_ == Kind::UInt) return static_cast<uint64_t>(int_);
  if (kind_ == Kind::Double && double_ >= 0x1p63 && double_ < 0x1p64) return static_cast<uint64_t>(double_);
  return static_cast<uint64_t>(to_int());
}

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::UInt: return static_cast<double>(to_uint());
    case Kind::Double: return double_;
    case Kind::Complex: check(imag_ == 0, "value cannot be converted to type double without overflow"); return double_;
    case Kind::SymFloat: return node_->guard_float();
    default: return static_cast<double>(to_int());
  }
}

bool Scalar::to_bool() const {
  if (kind_ == Kind::Double) return double_ != 0;
  if (kind_ == Kind::Complex) return double_ != 0 || imag_ != 0;
  if (kind_ == Kind::SymFloat) return node_->guard_float() != 0;
  return to_uint() != 0;
}

std::complex<double> Scalar::to_complex() const {
  return kind_ == Kind::Complex ? std::complex<double>(double_, imag_) : std::complex<double>(to_double(), 0);
}

umbra::SymInt Scalar::to_sym_int() const {
  if (kind_ != Kind::SymInt) return to_int();
  return umbra::SymInt::from_raw(int_);
}

umbra::SymFloat Scalar::to_sym_float() const {
  if (kind_ == Kind::SymFloat) return umbra::SymFloat(node_);
  if (kind_ == Kind::SymInt) return sym_float(to_sym_int());
  return to_double();
}

umbra::SymBool Scalar::to_sym_bool() const {
  return kind_ == Kind::SymBool ? umbra::SymBool(node_) : umbra::SymBool(to_bool());
}

Scalar Scalar::operator-() const {
  if (is_bool()) fail("Boolean negation of a scalar is not supported");
  if (kind_ == Kind::Int) return Scalar(-int_);
  if (kind_ == Kind::UInt) return Scalar(static_cast<int64_t>(0 - to_uint()));  // modulo 2^64
  if (kind_ == Kind::Double) return Scalar(-double_);
  if (kind_ == Kind::Complex) return Scalar(-to_complex());
  if (kind_ == Kind::SymInt) return Scalar(-to_sym_int());
  return Scalar(sym_float_binary(SymOp::Sub, umbra::SymFloat(0.0), to_sym_float()));
}

std::string to_string(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::Bool: return value.to_bool() ? "True" : "False";
    case Scalar::Kind::Int: return std::to_string(value.to_int());
    case Scalar::Kind::UInt: return std::to_string(value.to_uint());
    case Scalar::Kind::Double: return concat(value.to_double());
    case Scalar::Kind::SymInt: return to_string(value.to_sym_int());
    case Scalar::Kind::SymFloat: return to_string(value.to_sym_float());
    case Scalar::Kind::SymBool: return to_string(value.to_sym_bool());
    case Scalar::Kind::Complex: break;
  }
  // As Python writes complex numbers: (1+2j), 2j.
  auto number = [](double v) {
    std::string text = concat(v);
    if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  };
  std::complex<double> c = value.to_complex();
  if (c.real() == 0 && !std::signbit(c.real())) return number(c.imag()) + "j";
  return "(" + number(c.real()) + (std::signbit(c.imag()) ? "" : "+") + number(c.imag()) + "j)";
}

void detail::fail_overflow(const char* type) { fail("value cannot be converted to type ", type, " without overflow"); }

}  // namespace umbra
