// Exponentials, logarithms, roots, error functions.
#pragma once

#include "kernels/functors/error_function.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Exp, "exp_vml_cpu", FloatingComplex, exp(x));
struct Exp2 : Unary {
  static constexpr const char* name = "exp2";
  using types = FloatingComplex;
  template <class T> T operator()(T x) const {
    // Part by part: infinity times a complex number is none.
    if constexpr (math::is_complex<T>) {
      using Part = typename T::value_type;
      return exp(T(x.real() * static_cast<Part>(M_LN2), x.imag() * static_cast<Part>(M_LN2)));
    } else {
      return exp2(x);
    }
  }
};
UMBRA_FUNCTOR_UNARY(Expm1, "expm1_vml_cpu", FloatingComplex, expm1(x));
UMBRA_FUNCTOR_UNARY(Log, "log_vml_cpu", FloatingComplex, log(x));
UMBRA_FUNCTOR_UNARY(Log2, "log2_vml_cpu", FloatingComplex, log2(x));
UMBRA_FUNCTOR_UNARY(Log10, "log10_vml_cpu", FloatingComplex, log10(x));
UMBRA_FUNCTOR_UNARY(Log1p, "log1p_vml_cpu", FloatingComplex, log1p(x));
UMBRA_FUNCTOR_UNARY(Sqrt, "sqrt_vml_cpu", FloatingComplex, sqrt(x));
struct Rsqrt : Unary {
  static constexpr const char* name = "rsqrt_cpu";
  using types = FloatingComplex;
  template <class T> T operator()(T x) const {
    if constexpr (math::is_complex<T>) return divide(T(1), sqrt(x));
    else return rsqrt(x);
  }
};
UMBRA_FUNCTOR_UNARY(Erf, "erf_vml_cpu", Floating, erf(x));
struct Erfc : Unary {
  static constexpr const char* name = "erfc_vml_cpu";
  using types = Floating;
  template <class T> T operator()(T x) const {
    if constexpr (requires { requires std::is_same_v<typename T::Element, float>; })
      return error_function::erfc_of_float(x);
    else return erfc(x);
  }
};

struct Xlogy : Binary {  // a log(b), and 0 where a is, whatever b
  static constexpr const char* name = "xlogy_cpu";
  using types = Floating;
  template <class T> T operator()(T a, T b) const { return select(isnan(b), b, select(a == T(0), T(0), a * log(b))); }
};

struct Xlog1py : Binary {  // a log(1 + b), and 0 where a is
  static constexpr const char* name = "xlog1py_cpu";
  using types = Floating;
  template <class T> T operator()(T a, T b) const { return select(isnan(b), b, select(a == T(0), T(0), a * log1p(b))); }
};

struct Entropy : Unary {  // -x log(x); 0 at 0, and nothing below
  static constexpr const char* name = "special_entr_cpu";
  using types = Floating;
  template <class T> T operator()(T x) const {
    T below = select(isnan(x), x, T(-std::numeric_limits<float>::infinity()));
    return select(x > T(0), -x * log(x), select(x == T(0), T(0), below));
  }
};

struct LogAddExp : Binary {  // counted from the larger one (the one with the larger real part)
  static constexpr const char* name = "logaddexp_cpu";
  using types = FloatingComplex;
  template <class T> T operator()(T a, T b) const {
    if constexpr (is_complex<T>) {
      if (a.real() < b.real()) std::swap(a, b);
      return std::isinf(a.real()) && a == b ? a : a + log1p(exp(b - a));
    } else {
      return select(isinf(a) & (a == b), a, maximum(a, b) + log1p(exp(-abs(a - b))));
    }
  }
};
struct LogAddExp2 : Binary {
  static constexpr const char* name = "logaddexp2_cpu";
  using types = Floating;
  template <class T> T operator()(T a, T b) const {
    T tail = log1p(exp2(-abs(a - b))) * T(M_LOG2E);
    return select(isinf(a) & (a == b), a, maximum(a, b) + tail);
  }
};

struct WithinMargin : Unary {  // x, kept away from 0 and 1
  static constexpr const char* name = "logit_cpu";
  using types = Floating;
  double margin = -1;  // negative: none
  void round_parameters(DType dtype) { margin = rounded(margin, dtype).to_double(); }
  template <class T> auto bind() const {
    return [low = static_cast<T>(margin), high = static_cast<T>(1 - margin), bounded = margin >= 0](auto x) {
      using V = decltype(x);
      return bounded ? select(x < V(low), V(low), select(x > V(high), V(high), x)) : x;
    };
  }
};
UMBRA_FUNCTOR_UNARY(OneMinus, "logit_cpu", Floating, T(1) - x);
struct Logit : WithinMargin {  // log(x / (1 - x))
  template <class T> auto bind() const {
    return [within = WithinMargin::bind<T>()](auto x) {
      auto z = within(x);
      return log(z / (decltype(x)(1) - z));
    };
  }
};
struct LogitBackward : Binary {
  static constexpr const char* name = "logit_backward_cpu";
  using types = Floating;
  double margin = -1;
  void round_parameters(DType dtype) { margin = rounded(margin, dtype).to_double(); }
  template <class T> auto bind() const {
    T low = margin < 0 ? T(0) : static_cast<T>(margin), high = margin < 0 ? T(1) : static_cast<T>(1 - margin);
    T outside = margin < 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    return [low, high, outside](auto grad, auto x) {
      using V = decltype(x);
      return select((x < V(low)) | (x > V(high)), V(outside), grad / (x * (V(1) - x)));
    };
  }
};

}  // namespace umbra::functors
