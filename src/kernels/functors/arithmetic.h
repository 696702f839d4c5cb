// Sums, products, quotients, remainders, powers, and what combines them.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/functors/functor.h"

namespace umbra::functors {

/// scale * x. Of complex numbers it is their product, also by a real scale: an infinite part leaves the other a NaN.
template <class T, class X> X scaled(T scale, X x) { return multiply(X(scale), x); }

/// The factor of a sum's second term. complex32 rounds it, and the product before it is added.
struct SumFactor {
  Scalar alpha = 1;
  bool rounds = false;
  void round_to(DType dtype) {
    rounds = dtype == DType::Complex32;
    if (rounds) alpha = std::complex<double>(std::complex<float>(ComplexHalf(std::complex<float>(alpha.to_complex()))));
    else alpha = rounded(alpha, dtype);
  }
  /// The callable that gives alpha * b.
  template <class T> auto bind() const {
    if constexpr (std::is_same_v<T, std::complex<float>>)
      return [alpha = constant<T>(alpha), rounds = rounds](T b) {
        T product = scaled(alpha, b);
        return rounds ? T(ComplexHalf(product)) : product;
      };
    else return [alpha = constant<T>(alpha)](auto b) { return scaled(alpha, b); };
  }
};

struct Add : Binary {  // a + alpha * b
  static constexpr const char* name = "add_stub";
  using types = AllAndHalfComplex;
  SumFactor factor;
  void round_parameters(DType dtype) { factor.round_to(dtype); }
  template <class T> auto bind() const {
    return [times = factor.bind<T>()](auto a, auto b) { return add(a, times(b)); };
  }
};

struct Subtract : Binary {  // a - alpha * b
  static constexpr const char* name = "add_stub";
  using types = NumericComplexAndHalf;
  SumFactor factor;
  void round_parameters(DType dtype) { factor.round_to(dtype); }
  template <class T> auto bind() const {
    return [times = factor.bind<T>()](auto a, auto b) { return subtract(a, times(b)); };
  }
};

struct Multiply : Binary {
  static constexpr const char* name = "mul_cpu";
  static constexpr unsigned exact_numbers = 2;
  using types = EveryType;
  template <class T> auto operator()(T a, T b) const { return multiply(a, b); }
};
struct Divide : Binary {
  static constexpr const char* name = "div_cpu";
  static constexpr unsigned exact_numbers = 2;
  using types = FloatingComplex;
  template <class T> auto operator()(T a, T b) const { return divide(a, b); }
};

inline void check_divisor(bool not_zero) { check(not_zero, "ZeroDivisionError"); }

/// Integer quotient towards zero. The least integer divided by -1 wraps around instead of trapping.
template <class T> T truncated_quotient(T a, T b) {
  check_divisor(b != 0);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return subtract(T(0), a);
  }
  return static_cast<T>(a / b);
}
/// What is left of that quotient; it has a's sign.
template <class T> T truncated_remainder(T a, T b) {
  check_divisor(b != 0);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

struct DivideTrunc : Binary {
  static constexpr const char* name = "div_trunc_cpu";
  static constexpr unsigned exact_numbers = 2;
  using types = Numeric;
  template <class T> T operator()(T a, T b) const {
    if constexpr (is_integer<T>) return truncated_quotient(a, b);
    else return trunc(a / b);
  }
};

/// The whole number below a quotient (a - remainder) / b, as Python divides: from the exact remainder, so that the two
/// agree; then to the nearest integer, from which rounding may have taken it.
template <class T> T floor_of_quotient(T quotient, T remainder, T b) {
  T sign = copysign(T(1), remainder) * copysign(T(1), b);  // a and its remainder have one sign
  quotient = select((remainder != 0) & ((b < 0) ^ (remainder < 0)), quotient - T(1), quotient);
  T whole = floor(quotient);
  whole = select(quotient - whole > T(0.5), whole + T(1), whole);
  return select(quotient == 0, copysign(T(0), sign), whole);
}

struct DivideFloor : Binary {
  static constexpr const char* name = "div_floor_cpu";
  static constexpr unsigned exact_numbers = 2;
  using types = Numeric;
  template <class T> T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      T quotient = truncated_quotient(a, b);
      if constexpr (std::is_signed_v<T>) {
        if ((a < 0) != (b < 0) && truncated_remainder(a, b) != 0) --quotient;
      }
      return quotient;
    } else {
      T remainder = fmod(a, b);
      return select(b == 0, a / b, floor_of_quotient((a - remainder) / b, remainder, b));
    }
  }
};

// The steps of that division, where what each gives is rounded to a narrow type.
struct Divisible : Binary {  // what of a is a multiple of b; all of it where b is 0
  static constexpr const char* name = "div_floor_cpu";
  using types = Floating;
  template <class T> T operator()(T a, T b) const { return select(b == 0, a, a - fmod(a, b)); }
};
struct FloorOfQuotient : Ternary {
  static constexpr const char* name = "div_floor_cpu";
  using types = Floating;
  template <class T> T operator()(T quotient, T remainder, T b) const {
    return select(b == 0, quotient, floor_of_quotient(quotient, remainder, b));
  }
};

struct Remainder : Binary {  // has b's sign
  static constexpr const char* name = "remainder_cpu";
  using types = Numeric;
  template <class T> T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      T rest = truncated_remainder(a, b);
      if constexpr (std::is_signed_v<T>) {
        if (rest != 0 && (rest < 0) != (b < 0)) rest = static_cast<T>(rest + b);
      }
      return rest;
    } else {
      T rest = fmod(a, b);
      return select((rest != 0) & ((b < 0) ^ (rest < 0)), rest + b, rest);
    }
  }
};

struct Fmod : Binary {  // has a's sign
  static constexpr const char* name = "fmod_cpu";
  using types = Numeric;
  template <class T> T operator()(T a, T b) const {
    if constexpr (is_integer<T>) return truncated_remainder(a, b);
    else return fmod(a, b);
  }
};

UMBRA_FUNCTOR_BINARY(Power, "pow", NumericComplex, pow(a, b));
UMBRA_FUNCTOR_UNARY(Square, "pow", NumericComplex, multiply(x, x));
UMBRA_FUNCTOR_UNARY(Cube, "pow", NumericComplex, multiply(multiply(x, x), x));
UMBRA_FUNCTOR_UNARY(InverseSquare, "pow", FloatingComplex, divide(T(1), multiply(x, x)));
UMBRA_FUNCTOR_UNARY(Reciprocal, "reciprocal_cpu", FloatingComplex, divide(T(1), x));
UMBRA_FUNCTOR_BINARY(Maximum, "maximum_cpu", AllNoComplexAndUnsigned, maximum(a, b));
UMBRA_FUNCTOR_BINARY(Minimum, "minimum_cpu", AllNoComplexAndUnsigned, minimum(a, b));

struct Negative : Unary {
  static constexpr const char* name = "neg_cpu";
  using types = NumericComplexAndHalf;
  template <class T> T operator()(T x) const {
    if constexpr (is_integer<T>) return subtract(T(0), x);
    else return -x;
  }
};

using AbsoluteTypes = kernels::detail::Join<NumericComplexAndHalf, SignedFloat8>;
UMBRA_FUNCTOR_UNARY(Absolute, "abs_cpu", AbsoluteTypes, abs(x));

struct Sign : Unary {
  static constexpr const char* name = "sign_cpu";
  using types = AllNoComplex;
  template <class T> T operator()(T x) const {
    if constexpr (is_bool<T>) return x;
    else if constexpr (is_integer<T>) return static_cast<T>((x > 0) - (x < 0));
    else return select(x > 0, T(1), T(0)) - select(x < 0, T(1), T(0));
  }
};

// The larger and the smaller, where NaN counts as nothing.
struct Fmax : Binary {
  static constexpr const char* name = "fmax_cpu";
  using types = AllNoComplexAndUnsigned;
  template <class T> T operator()(T a, T b) const { return select(isnan(a), b, select(isnan(b), a, maximum(a, b))); }
};
struct Fmin : Binary {
  static constexpr const char* name = "fmin_cpu";
  using types = AllNoComplexAndUnsigned;
  template <class T> T operator()(T a, T b) const { return select(isnan(a), b, select(isnan(b), a, minimum(a, b))); }
};

UMBRA_FUNCTOR_BINARY(Copysign, "copysign_cpu", Floating, copysign(a, b));
UMBRA_FUNCTOR_BINARY(Hypot, "hypot_cpu", Floating, hypot(a, b));

struct ScaleByPower : Binary {  // a * 2^b for whole b, exact where 2^b itself is out of range
  static constexpr const char* name = "ldexp_cpu";
  static constexpr bool scalar_only = true;
  using types = Floating;
  template <class T> T operator()(T a, T b) const {
    constexpr T far = 100000;  // beyond all exponents
    return std::ldexp(a, static_cast<int>(std::clamp(b, -far, far)));
  }
};

struct Heaviside : Binary {  // 0 below 0, 1 above, b at 0
  static constexpr const char* name = "heaviside_cpu";
  using types = AllNoComplex;
  template <class T> T operator()(T a, T b) const { return select(a == T(0), b, select(a > T(0), T(1), T(0))); }
};

struct Gcd : Binary {
  static constexpr const char* name = "gcd_cpu";
  using types = Integral;
  template <class T> T operator()(T a, T b) const {
    while (b != 0) {
      T rest = truncated_remainder(a, b);
      a = b;
      b = rest;
    }
    return abs(a);
  }
};
struct Lcm : Binary {
  static constexpr const char* name = "lcm_cpu";
  using types = Integral;
  template <class T> T operator()(T a, T b) const {
    T common = Gcd()(a, b);
    return common == 0 ? T(0) : abs(multiply(truncated_quotient(a, common), b));
  }
};

UMBRA_FUNCTOR_UNARY(SignBit, "signbit_cpu", AllNoComplexAndUnsigned, signbit(x));

struct Angle : Unary {  // of a complex number; of a real one, 0 or pi
  static constexpr const char* name = "angle_cpu";
  using types = FloatingComplex;
  template <class T> auto operator()(T x) const {
    if constexpr (is_complex<T>) return std::arg(x);
    else return select(isnan(x), x, select(x < T(0), T(M_PI), T(0)));
  }
};

struct Sgn : Unary {  // the sign; of a complex number, the number of length 1 in its direction
  static constexpr const char* name = "sgn_cpu";
  using types = AllAndHalfComplex;
  template <class T> T operator()(T x) const {
    if constexpr (is_complex<T>) return x == T(0) ? T(0) : x / std::abs(x);
    else return Sign()(x);
  }
};

struct Addcmul : Ternary {  // a + value * b * c
  static constexpr const char* name = "addcmul_cpu_out";
  using types = NumericComplexAndHalf;
  Scalar value = 1;
  template <class T> auto bind() const {
    return [value = constant<T>(value)](auto a, auto b, auto c) { return add(a, multiply(scaled(value, b), c)); };
  }
};

struct Addcdiv : Ternary {  // a + value * b / c
  static constexpr const char* name = "addcdiv_cpu_out";
  using types = FloatingComplex;
  Scalar value = 1;
  template <class T> auto bind() const {
    return [value = constant<T>(value)](auto a, auto b, auto c) { return add(a, divide(scaled(value, b), c)); };
  }
};

/// From a to b by weight. Counted from the nearer end: exact at both.
template <class T> T interpolate(T a, T b, T weight) {
  T difference = b - a;
  if constexpr (is_complex<T>) {
    return std::norm(weight) < 0.25 ? a + multiply(weight, difference) : b - multiply(T(1) - weight, difference);
  } else {
    return select(abs(weight) < T(0.5), a + weight * difference, b - difference * (T(1) - weight));
  }
}

struct Lerp : Ternary {
  static constexpr const char* name = "lerp_kernel_tensor";
  using types = FloatingComplex;
  template <class T> T operator()(T a, T b, T weight) const { return interpolate(a, b, weight); }
};

struct LerpScalar : Binary {
  static constexpr const char* name = "lerp_kernel_scalar";
  using types = FloatingComplex;
  Scalar weight;
  template <class T> auto bind() const {
    return [weight = constant<T>(weight)](auto a, auto b) { return interpolate(a, b, decltype(a)(weight)); };
  }
};

/// A bound as a T: one beyond what T holds is as good as the last number that it does.
template <class T> T bound(const Scalar& value) {
  if constexpr (is_integer<T>) {
    if (value.kind() == Scalar::Kind::UInt) {
      if constexpr (std::is_same_v<T, uint64_t>) return value.to_uint();
      else return std::numeric_limits<T>::max();
    }
    int64_t whole =
        value.is_integral(true) ? value.to_int() : static_cast<int64_t>(std::clamp(value.to_double(), -0x1p62, 0x1p62));
    if (whole < 0 && std::is_unsigned_v<T>) return 0;
    if constexpr (sizeof(T) < 8)
      return static_cast<T>(std::clamp<int64_t>(whole, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    else return static_cast<T>(whole);
  } else {
    return constant<T>(value);
  }
}

struct Clamp : Unary {  // between two numbers; NaN stays
  static constexpr const char* name = "clamp_scalar_cpu";
  using types = NumericAndUnsigned;
  Scalar low, high;
  template <class T> auto bind() const {
    return [low = bound<T>(low), high = bound<T>(high)](auto x) {
      using V = decltype(x);
      return minimum(maximum(x, V(low)), V(high));
    };
  }
};

struct ClampMin : Unary {
  static constexpr const char* name = "clamp_min_scalar_cpu";
  using types = NumericAndUnsigned;
  Scalar low;
  template <class T> auto bind() const {
    return [low = bound<T>(low)](auto x) { return maximum(x, decltype(x)(low)); };
  }
};

struct ClampMax : Unary {
  static constexpr const char* name = "clamp_max_scalar_cpu";
  using types = NumericAndUnsigned;
  Scalar high;
  template <class T> auto bind() const {
    return [high = bound<T>(high)](auto x) { return minimum(x, decltype(x)(high)); };
  }
};

struct ClampTensor : Ternary {
  static constexpr const char* name = "clamp_cpu";
  using types = NumericAndUnsigned;
  template <class T> T operator()(T x, T low, T high) const { return minimum(maximum(x, low), high); }
};

}  // namespace umbra::functors
