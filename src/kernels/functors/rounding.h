// To whole numbers.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Floor, "floor_vml_cpu", Floating, floor(x));
UMBRA_FUNCTOR_UNARY(Ceil, "ceil_vml_cpu", Floating, ceil(x));
UMBRA_FUNCTOR_UNARY(Round, "round_vml_cpu", Floating, round(x));  // halves to the even one
UMBRA_FUNCTOR_UNARY(Trunc, "trunc_vml_cpu", Floating, trunc(x));

struct RoundDecimals : Unary {  // to so many digits after the point; before it, where negative
  static constexpr const char* name = "round_cpu";
  using types = Floating;
  int64_t decimals = 0;
  template <class T> auto bind() const {
    return [ten = static_cast<T>(std::pow(10.0, std::abs(static_cast<double>(decimals)))),
            negative = decimals < 0](auto x) {
      using V = decltype(x);
      return negative ? round(x / V(ten)) * V(ten) : round(x * V(ten)) / V(ten);
    };
  }
};

UMBRA_FUNCTOR_UNARY(Fraction, "frac_cpu", Floating, x - trunc(x));

struct NanToNum : Unary {
  static constexpr const char* name = "nan_to_num";
  using types = FloatingComplex;
  double nan = 0, positive = 0, negative = 0;
  template <class T> auto bind() const {
    return [nan = nan, positive = positive, negative = negative](auto x) {
      auto replace = [&](auto part) {
        using V = decltype(part);
        constexpr double infinity = std::numeric_limits<double>::infinity();
        V finite = select(part == V(infinity), V(positive), select(part == V(-infinity), V(negative), part));
        return select(isnan(part), V(nan), finite);
      };
      if constexpr (is_complex<T>) return T(replace(x.real()), replace(x.imag()));
      else return replace(x);
    };
  }
};

}  // namespace umbra::functors
