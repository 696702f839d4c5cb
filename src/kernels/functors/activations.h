// Activation functions and their derivatives. A backward functor takes the incoming gradient first.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/functors/functor.h"
#include "kernels/functors/series.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Sigmoid, "sigmoid_cpu", FloatingComplex, divide(T(1), T(1) + exp(-x)));
UMBRA_FUNCTOR_BINARY(SigmoidBackward, "sigmoid_backward_cpu", FloatingComplex,
                     multiply(a, conj(multiply(T(1) - b, b))));  // b: the result

UMBRA_FUNCTOR_UNARY(Relu, "clamp_min_scalar_cpu", NumericAndUnsigned, maximum(x, T(0)));

/// What is positive, up to `most`; zero of the rest.
struct PositivePart : Unary {
  static constexpr const char* name = "add_clamp_cpu";
  static constexpr bool full_width_only = true;
  using types = Numeric;
  double most = std::numeric_limits<double>::max();
  bool keeps_nan = false;  // else what is no number is zero
  template <class T> auto bind() const {
    if constexpr (std::is_integral_v<T>) {
      constexpr T kLargest = std::numeric_limits<T>::max();
      T end = most < static_cast<double>(kLargest) ? static_cast<T>(most) : kLargest;
      return [end](T x) { return std::min(std::max(x, T(0)), end); };
    } else
      return [most = static_cast<T>(std::min<double>(most, std::numeric_limits<T>::max())),
              kept = static_cast<T>(keeps_nan)](auto x) {
        using V = decltype(x);
        V positive = select(x > V(0), minimum(x, V(most)), V(0));
        return select((x != x) & (V(kept) > V(0)), x, positive);
      };
  }
};

struct Threshold : Unary {  // x where it exceeds the threshold, else value
  static constexpr const char* name = "threshold_cpu";
  using types = Numeric;
  Scalar threshold, value;
  template <class T> auto bind() const {
    return [threshold = constant<T>(threshold), value = constant<T>(value)](auto x) {
      return select(x <= threshold, decltype(x)(value), x);
    };
  }
};
struct ThresholdBackward : Binary {
  static constexpr const char* name = "threshold_cpu";
  using types = Numeric;
  Scalar threshold = 0;
  template <class T> auto bind() const {
    return [threshold = constant<T>(threshold)](auto grad, auto x) {
      return select(x <= threshold, decltype(x)(0), grad);
    };
  }
};

inline constexpr double kGeluScale = M_SQRT2 * M_2_SQRTPI * 0.5;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

// The normal distribution and x times it; vectors of floats have a shorter way (kernels/vector/vec_math.h).
template <class T> T normal_cdf(T x) { return T(0.5) * (T(1) + erf(x * T(M_SQRT1_2))); }
template <class T> T gelu(T x) { return x * normal_cdf(x); }

struct Gelu : Unary {
  static constexpr const char* name = "GeluKernelImpl";
  using types = Floating;
  template <class T> T operator()(T x) const { return gelu(x); }
  template <class V> V rough(V x) const { return rough_gelu(x); }
};
struct GeluTanh : Unary {
  static constexpr const char* name = "GeluKernelImpl";
  using types = Floating;
  template <class T> T operator()(T x) const {
    T inner = T(kGeluScale) * (x + T(kGeluCubic) * x * x * x);
    return T(0.5) * x * (T(1) + tanh(inner));
  }
};
struct GeluBackward : Binary {
  static constexpr const char* name = "GeluBackwardKernelImpl";
  using types = Floating;
  template <class T> T operator()(T grad, T x) const {
    T distribution = normal_cdf(x);
    T density = T(kGeluScale * 0.5) * exp(T(-0.5) * x * x);
    return grad * (distribution + x * density);
  }
};
struct GeluTanhBackward : Binary {
  static constexpr const char* name = "GeluBackwardKernelImpl";
  using types = Floating;
  template <class T> T operator()(T grad, T x) const {
    T square = x * x;
    T inner = tanh(T(kGeluScale) * (x + T(kGeluCubic) * square * x));
    T inner_slope = (T(1) - inner * inner) * T(kGeluScale) * (T(1) + T(3 * kGeluCubic) * square);
    return grad * (T(0.5) * (T(1) + inner) + T(0.5) * x * inner_slope);
  }
};

UMBRA_FUNCTOR_UNARY(Silu, "silu_cpu", FloatingComplex, divide(x, T(1) + exp(-x)));
struct SiluBackward : Binary {
  static constexpr const char* name = "silu_backward_cpu";
  using types = FloatingComplex;
  template <class T> T operator()(T grad, T x) const {
    T sigmoid = divide(T(1), T(1) + exp(-x));
    return multiply(multiply(grad, sigmoid), T(1) + multiply(x, T(1) - sigmoid));
  }
};

struct LeakyRelu : Unary {
  static constexpr const char* name = "leaky_relu_cpu";
  using types = Floating;
  Scalar slope = 0.01;
  template <class T> auto bind() const {
    return [slope = constant<T>(slope)](auto x) { return select(x > 0, x, x * slope); };
  }
};
struct LeakyReluBackward : Binary {
  static constexpr const char* name = "leaky_relu_backward_cpu";
  using types = Floating;
  Scalar slope = 0.01;
  template <class T> auto bind() const {
    return [slope = constant<T>(slope)](auto grad, auto x) { return select(x > 0, grad, grad * slope); };
  }
};

struct Elu : Unary {  // scale * x, or scale * alpha * (exp(input_scale * x) - 1) below 0
  static constexpr const char* name = "elu_cpu";
  using types = Floating;
  Scalar alpha = 1, scale = 1, input_scale = 1;
  template <class T> auto bind() const {
    return [below = constant<T>(alpha) * constant<T>(scale), above = constant<T>(scale),
            inner = constant<T>(input_scale)](auto x) {
      auto negative = x < 0;  // of none, nothing needs an exponential
      return any(negative) ? select(negative, expm1(x * inner) * below, x * above) : x * above;
    };
  }
};
struct EluBackward : Binary {  // is_result: the second input is what Elu gave, else what it was given
  static constexpr const char* name = "elu_backward_cpu";
  using types = Floating;
  Scalar alpha = 1, scale = 1, input_scale = 1;
  bool is_result = false;
  template <class T> auto bind() const {
    return [below = constant<T>(alpha) * constant<T>(scale), above = constant<T>(scale),
            inner = constant<T>(input_scale), is_result = is_result](auto grad, auto x) {
      auto slope = is_result ? x + below : exp(x * inner) * below;
      return select(x <= 0, grad * inner * slope, grad * above);
    };
  }
};

struct Softplus : Unary {  // log(1 + exp(beta * x)) / beta; x itself where that makes no difference any more
  static constexpr const char* name = "softplus_cpu";
  using types = Floating;
  Scalar beta = 1, threshold = 20;
  template <class T> auto bind() const {
    return [beta = constant<T>(beta), threshold = constant<T>(threshold)](auto x) {
      return select(x * beta > threshold, x, log1p(exp(x * beta)) / beta);
    };
  }
};
struct SoftplusBackward : Binary {
  static constexpr const char* name = "softplus_backward_cpu";
  using types = Floating;
  Scalar beta = 1, threshold = 20;
  template <class T> auto bind() const {
    return [beta = constant<T>(beta), threshold = constant<T>(threshold)](auto grad, auto x) {
      auto power = exp(x * beta);
      return select(x * beta > threshold, grad, grad * power / (power + 1));
    };
  }
};

struct HardtanhBackward : Binary {
  static constexpr const char* name = "hardshrink_backward_cpu";
  using types = Floating;
  Scalar low = -1, high = 1;
  template <class T> auto bind() const {
    return [low = constant<T>(low), high = constant<T>(high)](auto grad, auto x) {
      return select((x <= low) | (x >= high), decltype(x)(0), grad);
    };
  }
};

// x * tanh(softplus(x)), and its slope.
UMBRA_FUNCTOR_UNARY(Mish, "mish_cpu", Floating, x* tanh(log1p(exp(x))));
struct MishBackward : Binary {
  static constexpr const char* name = "mish_backward_cpu";
  using types = Floating;
  template <class T> T operator()(T grad, T x) const {
    T sigmoid = T(1) / (T(1) + exp(-x)), inner = tanh(log1p(exp(x)));
    return grad * (inner + x * sigmoid * (T(1) - inner * inner));
  }
};

/// A sixth of x + 3, kept between 0 and 1.
template <class T> T hard_gate(T x) { return minimum(maximum(x + T(3), T(0)), T(6)) / T(6); }
UMBRA_FUNCTOR_UNARY(Hardsigmoid, "hardsigmoid_cpu", Floating, hard_gate(x));
UMBRA_FUNCTOR_BINARY(HardsigmoidBackward, "hardsigmoid_backward", Floating,
                     select((b > T(-3)) & (b < T(3)), a / T(6), T(0)));
UMBRA_FUNCTOR_UNARY(Hardswish, "hardswish_cpu", Floating, x* minimum(maximum(x + T(3), T(0)), T(6)) / T(6));
UMBRA_FUNCTOR_BINARY(HardswishBackward, "hardswish_backward_cpu", Floating,
                     select(b <= T(-3), T(0), select(b < T(3), a*(b / T(3) + T(0.5)), a)));

// log(sigmoid(x)) from exp(-|x|), which never overflows.
UMBRA_FUNCTOR_UNARY(LogSigmoidBuffer, "log_sigmoid_cpu", Floating, exp(-abs(x)));
UMBRA_FUNCTOR_UNARY(LogSigmoid, "log_sigmoid_cpu", Floating, minimum(x, T(0)) - log1p(exp(-abs(x))));
struct LogSigmoidBackward : Ternary {
  static constexpr const char* name = "log_sigmoid_backward_cpu";
  using types = Floating;
  template <class T> T operator()(T grad, T x, T buffer) const {
    T part = buffer / (T(1) + buffer);
    return grad * select(x < T(0), T(1) - part, part);
  }
};

UMBRA_FUNCTOR_BINARY(Prelu, "prelu_cpu", Floating, select(a > T(0), a, b* a));
struct PreluBackward : Ternary {
  static constexpr const char* name = "prelu_backward_cpu";
  using types = Floating;
  template <class T> T operator()(T grad, T x, T weight) const { return select(x > T(0), grad, weight * grad); }
};
UMBRA_FUNCTOR_BINARY(PreluWeightBackward, "prelu_backward_cpu", Floating, select(b > T(0), T(0), b* a));

struct Hardshrink : Unary {  // 0 within the bound
  static constexpr const char* name = "hardshrink_cpu";
  using types = Floating;
  Scalar bound = 0.5;
  void round_parameters(DType dtype) {  // of integers the type is refused, not the bound
    if (is_floating(dtype)) bound = rounded(bound, dtype);
  }
  template <class T> auto bind() const {
    return [bound = constant<T>(bound)](auto x) {
      using V = decltype(x);
      return select((x >= V(-bound)) & (x <= V(bound)), V(0), x);
    };
  }
};
struct Softshrink : Unary {  // towards 0 by the bound
  static constexpr const char* name = "softshrink_check";
  using types = Floating;
  Scalar bound = 0.5;
  void round_parameters(DType dtype) { bound = rounded(bound, dtype); }
  template <class T> auto bind() const {
    return [bound = constant<T>(bound)](auto x) {
      using V = decltype(x);
      return select(x > V(bound), x - V(bound), select(x < V(-bound), x + V(bound), x * V(0)));
    };
  }
};
struct ShrinkBackward : Binary {
  static constexpr const char* name = "shrink_backward_cpu";
  using types = Floating;
  Scalar bound = 0.5;
  void round_parameters(DType dtype) {  // of integers the type is refused, not the bound
    if (is_floating(dtype)) bound = rounded(bound, dtype);
  }
  template <class T> auto bind() const {
    return [bound = constant<T>(bound)](auto grad, auto x) {
      using V = decltype(x);
      return select((x >= V(-bound)) & (x <= V(bound)), V(0), grad);
    };
  }
};

}  // namespace umbra::functors
