// Arithmetic and comparisons of tensors as C++ operators: `(x + 1) * y`, `2 / x`, `x > 0`,
// `(x > 0) & ~mask`, `x[1] += y`. Comparisons are by element.
#pragma once

#include "umbra/core/tensor.h"
#include "umbra/generated/functions.h"

namespace UMBRA_API umbra {

namespace detail {
// Numbers, symbolic ones too, take part as 0-d tensors that promote as numbers do, which is also how they stand in
// graphs.
inline Tensor operand(const Scalar& number) { return wrapped_number(number); }
}  // namespace detail

#define UMBRA_ARITHMETIC(symbol, name)                                                                               \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return umbra::name(a, b); }                      \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return umbra::name(a, detail::operand(b)); }     \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return umbra::name(detail::operand(a), b); }     \
  inline Tensor& operator symbol##=(Tensor& a, const Tensor& b) { return umbra::name##_(a, b), a; }                  \
  inline Tensor& operator symbol##=(Tensor& a, const Scalar& b) { return umbra::name##_(a, detail::operand(b)), a; } \
  inline Tensor operator symbol##=(Tensor&& a, const Tensor& b) { return umbra::name##_(a, b); }                     \
  inline Tensor operator symbol##=(Tensor&& a, const Scalar& b) { return umbra::name##_(a, detail::operand(b)); }
UMBRA_ARITHMETIC(+, add)
UMBRA_ARITHMETIC(-, sub)
UMBRA_ARITHMETIC(*, mul)
UMBRA_ARITHMETIC(/, div)
UMBRA_ARITHMETIC(%, remainder)
UMBRA_ARITHMETIC(&, bitwise_and)
UMBRA_ARITHMETIC(|, bitwise_or)
UMBRA_ARITHMETIC(^, bitwise_xor)
#undef UMBRA_ARITHMETIC

#define UMBRA_COMPARISON(symbol, name, turned)                                                  \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return umbra::name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return umbra::name(a, b); } \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return umbra::turned(b, a); }
UMBRA_COMPARISON(==, eq, eq)
UMBRA_COMPARISON(!=, ne, ne)
UMBRA_COMPARISON(<, lt, gt)
UMBRA_COMPARISON(<=, le, ge)
UMBRA_COMPARISON(>, gt, lt)
UMBRA_COMPARISON(>=, ge, le)
#undef UMBRA_COMPARISON

inline Tensor Tensor::operator-() const { return umbra::neg(*this); }
inline Tensor Tensor::operator~() const { return umbra::bitwise_not(*this); }
inline Tensor Tensor::operator!() const { return umbra::logical_not(*this); }

}  // namespace umbra
