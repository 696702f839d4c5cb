// Comparisons, logic, choices by a mask.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

UMBRA_FUNCTOR_BINARY(Equal, "eq_cpu", EveryType, a == b);
UMBRA_FUNCTOR_BINARY(NotEqual, "ne_cpu", EveryType, a != b);
UMBRA_FUNCTOR_BINARY(Less, "lt_cpu", AllNoComplex, a < b);
UMBRA_FUNCTOR_BINARY(LessEqual, "le_cpu", AllNoComplex, a <= b);
UMBRA_FUNCTOR_BINARY(Greater, "gt_cpu", AllNoComplex, a > b);
UMBRA_FUNCTOR_BINARY(GreaterEqual, "ge_cpu", AllNoComplex, a >= b);

// `x != T(0)` is a bool or a mask; ^ of two bools is an int, hence the comparison.
UMBRA_FUNCTOR_BINARY(LogicalAnd, "logical_and_cpu", All, !((a == T(0)) | (b == T(0))));
UMBRA_FUNCTOR_BINARY(LogicalOr, "logical_or_cpu", All, !!((a != T(0)) | (b != T(0))));
UMBRA_FUNCTOR_BINARY(LogicalXor, "logical_xor_cpu", All, !!((a != T(0)) ^ (b != T(0))));
UMBRA_FUNCTOR_UNARY(LogicalNot, "logical_not_cpu", All, x == T(0));

UMBRA_FUNCTOR_UNARY(IsNan, "isnan", EveryType, isnan(x));
UMBRA_FUNCTOR_UNARY(IsInf, "isinf", EveryType, isinf(x));
UMBRA_FUNCTOR_UNARY(IsPositiveInfinity, "isposinf_cpu", AllNoComplexAndUnsigned, !!(isinf(x) & (x > T(0))));
UMBRA_FUNCTOR_UNARY(IsNegativeInfinity, "isneginf_cpu", AllNoComplexAndUnsigned, !!(isinf(x) & (x < T(0))));
UMBRA_FUNCTOR_UNARY(IsFinite, "isfinite", EveryType, isfinite(x));

struct Where : Ternary {  // condition ? a : b
  static constexpr const char* name = "where_cpu";
  static constexpr unsigned masks = 0b001;
  using types = EveryType;
  template <class Condition, class T> T operator()(Condition condition, T a, T b) const {
    return select(condition, a, b);
  }
};

struct MaskedFill : Binary {  // mask ? value : x
  static constexpr const char* name = "masked_fill";
  static constexpr unsigned masks = 0b10;
  using types = AllAndHalfComplex;
  Scalar value;
  template <class T> auto bind() const {
    return [value = constant<T>(value)](auto x, auto mask) { return select(mask, decltype(x)(value), x); };
  }
};

}  // namespace umbra::functors
