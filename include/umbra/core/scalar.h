// One number of any kind, as Python would pass it.
#pragma once

#include <complex>
#include <concepts>
#include <string>

#include "umbra/core/dtype.h"
#include "umbra/core/sym_int.h"

namespace UMBRA_API umbra {

/// An int, float, bool or complex number, or a symbolic int, float or bool. `add(x, 2)`, `full({3}, 1.5)`.
class Scalar {
 public:
  /// UInt: an integer from 2^63 to 2^64 - 1, which no Int holds.
  enum class Kind : uint8_t { Bool, Int, UInt, Double, Complex, SymInt, SymFloat, SymBool };
  Scalar() : Scalar(int64_t{0}) {}
  template <std::same_as<bool> T> Scalar(T v) : kind_(Kind::Bool), int_(v) {}  // no pointer, which would be true
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Scalar(T v)
      : kind_(v > 0 && static_cast<int64_t>(v) < 0 ? Kind::UInt : Kind::Int), int_(static_cast<int64_t>(v)) {}
  Scalar(double v) : kind_(Kind::Double), double_(v) {}
  Scalar(float v) : Scalar(static_cast<double>(v)) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), double_(v.real()), imag_(v.imag()) {}
  Scalar(umbra::SymInt v) : kind_(v.is_symbolic() ? Kind::SymInt : Kind::Int), int_(v.raw()) {}
  Scalar(const umbra::SymFloat& v) : kind_(v.is_symbolic() ? Kind::SymFloat : Kind::Double) {
    if (v.is_symbolic()) node_ = v.node();
    else double_ = v.value();
  }
  Scalar(const umbra::SymBool& v) : kind_(v.is_symbolic() ? Kind::SymBool : Kind::Bool) {
    if (v.is_symbolic()) node_ = v.node();
    else int_ = v.value();
  }

  Kind kind() const { return kind_; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_floating() const { return kind_ == Kind::Double || kind_ == Kind::SymFloat; }
  bool is_bool() const { return kind_ == Kind::Bool || kind_ == Kind::SymBool; }
  bool is_integral(bool include_bool) const {
    return kind_ == Kind::Int || kind_ == Kind::UInt || kind_ == Kind::SymInt || (include_bool && is_bool());
  }
  bool is_symbolic() const { return kind_ >= Kind::SymInt; }
  /// The dtype of a tensor made of it: int64 (uint64 where it takes that), the default float, its complex, bool.
  DType dtype() const;

  // Conversions. A symbol is specialised by a guard; a complex number with an imaginary part refuses to be real.
  int64_t to_int() const;
  uint64_t to_uint() const;  // of a negative one its bits
  double to_double() const;
  bool to_bool() const;
  std::complex<double> to_complex() const;
  umbra::SymInt to_sym_int() const;
  umbra::SymFloat to_sym_float() const;
  umbra::SymBool to_sym_bool() const;
  template <class T> T to() const;
  bool equals(double v) const { return !is_symbolic() && to_complex() == std::complex<double>(v); }
  Scalar operator-() const;

 private:
  Kind kind_;
  union {
    int64_t int_;
    double double_;
    const SymNode* node_;
  };
  double imag_ = 0;
};

template <class T> T Scalar::to() const {
  if constexpr (std::is_same_v<T, bool>) return to_bool();
  else if constexpr (std::is_same_v<T, uint64_t>) return to_uint();
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(to_int());
  else if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, std::complex<float>>)
    return T(to_complex());
  else return static_cast<T>(static_cast<float>(to_double()));
}
template <> inline double Scalar::to<double>() const { return to_double(); }

std::string to_string(const Scalar& value);

namespace detail {
[[noreturn]] void fail_overflow(const char* type);
/// The number as a T; what is out of an integer type's range is refused.
template <class T> T number_of(const Scalar& scalar) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (scalar.kind() == Scalar::Kind::UInt && !std::is_same_v<T, uint64_t>) fail_overflow(name(dtype_of<T>));
    if (scalar.kind() == Scalar::Kind::UInt) return scalar.to<T>();
    int64_t value = scalar.to_int();
    bool same_sign = std::is_signed_v<T> || value >= 0;
    if (!same_sign || static_cast<int64_t>(static_cast<T>(value)) != value) fail_overflow(name(dtype_of<T>));
  }
  return scalar.to<T>();
}
}  // namespace detail

}  // namespace umbra
