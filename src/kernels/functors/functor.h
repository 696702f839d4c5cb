// What every family of functors starts from; kernels/run_functor.h says what a functor is.
#pragma once

#include "kernels/fits.h"
#include "kernels/math.h"
#include "kernels/types.h"
#include "umbra/core/half.h"

namespace umbra::functors {

using namespace kernels;  // the sets of types

template <int inputs> struct Functor { static constexpr int arity = inputs; };
using Unary = Functor<1>;
using Binary = Functor<2>;
using Ternary = Functor<3>;

/// A parameter as a narrow type has it; others leave it as it is. An error where the type has no such number.
inline Scalar rounded(const Scalar& value, DType dtype) {
  check_fits(value, dtype);
  if (!value.is_floating()) return value;
  auto number = static_cast<float>(value.to_double());
  if (dtype == DType::BFloat16) return static_cast<double>(static_cast<float>(BFloat16(number)));
  if (dtype == DType::Float16) return static_cast<double>(static_cast<float>(Half(number)));
  return value;
}

/// A functor of one expression: `UMBRA_FUNCTOR_UNARY(Exp, "exp_vml_cpu", FloatingComplex, exp(x));`
#define UMBRA_FUNCTOR_UNARY(Name, text, Set, ...)                         \
  struct Name : Unary {                                                   \
    static constexpr const char* name = text;                             \
    using types = Set;                                                    \
    template <class T> auto operator()(T x) const { return __VA_ARGS__; } \
  }
#define UMBRA_FUNCTOR_BINARY(Name, text, Set, ...)                             \
  struct Name : Binary {                                                       \
    static constexpr const char* name = text;                                  \
    using types = Set;                                                         \
    template <class T> auto operator()(T a, T b) const { return __VA_ARGS__; } \
  }

}  // namespace umbra::functors
