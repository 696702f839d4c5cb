// Sets of element types, as a functor or a kernel states what it is defined for.
#pragma once

#include <complex>
#include <cstdint>

#include "core/stored_types.h"
#include "umbra/core/error.h"

namespace umbra::kernels {

/// Element types, given as the types that are computed in: float stands for float16 and bfloat16 as well.
template <class... T> struct Types {};

namespace detail {
template <class A, class B> struct JoinedTypes;
template <class... A, class... B> struct JoinedTypes<Types<A...>, Types<B...>> { using Result = Types<A..., B...>; };
template <class A, class B> using Join = typename JoinedTypes<A, B>::Result;
}  // namespace detail

using Bool = Types<bool>;
using Integral = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Floating = Types<float, double>;
using Complex = Types<std::complex<float>, std::complex<double>>;
using IntegralBool = detail::Join<Integral, Bool>;
using FloatingComplex = detail::Join<Floating, Complex>;
using Numeric = detail::Join<Integral, Floating>;
using NumericComplex = detail::Join<Numeric, Complex>;
using AllNoComplex = detail::Join<Numeric, Bool>;
using All = detail::Join<NumericComplex, Bool>;
/// The unsigned types that only what moves, compares or combines bits takes.
using WideUnsigned = Types<uint16_t, uint32_t, uint64_t>;
using AllAndUnsigned = detail::Join<All, WideUnsigned>;
using NumericAndUnsigned = detail::Join<Numeric, WideUnsigned>;
using AllNoComplexAndUnsigned = detail::Join<AllNoComplex, WideUnsigned>;
using IntegralBoolAndUnsigned = detail::Join<IntegralBool, WideUnsigned>;

// Types that are stored only: a functor whose set has one of them computes it in a wider type.
using HalfComplex = Types<ComplexHalf>;
using SignedFloat8 = Types<Float8E4M3, Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ>;
using Float8 = detail::Join<SignedFloat8, Types<Float8E8M0FNU>>;
using AllAndHalfComplex = detail::Join<All, HalfComplex>;
using NumericComplexAndHalf = detail::Join<NumericComplex, HalfComplex>;
using EveryType = detail::Join<detail::Join<AllAndUnsigned, HalfComplex>, Float8>;

namespace detail {
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<Half> { using type = float; };
template <> struct Accumulator<BFloat16> { using type = float; };
template <> struct Accumulator<ComplexHalf> { using type = std::complex<float>; };
template <> struct Accumulator<Float8E4M3> { using type = float; };
template <> struct Accumulator<Float8E5M2> { using type = float; };
template <> struct Accumulator<Float8E4M3FNUZ> { using type = float; };
template <> struct Accumulator<Float8E5M2FNUZ> { using type = float; };
template <> struct Accumulator<Float8E8M0FNU> { using type = float; };
}  // namespace detail
/// The type in which a kernel computes on elements of type T: float for the narrow floating types.
template <class T> using Compute = typename detail::Accumulator<T>::type;

/// A type as a value, for generic lambdas.
template <class T> struct Type { using type = T; };

[[noreturn]] inline void unsupported_dtype(const char* name, DType dtype) {
  fail<NotImplementedError>("\"", name, "\" not implemented for '", kernel_name(dtype), "'");
}

/// Calls `fn(Type<T>())` with the T of the set that is stored as `dtype`, or throws that `name` has no such kernel.
template <class... T, class Fn> void visit_dtype(const char* name, DType dtype, Types<T...>, const Fn& fn) {
  bool found = ((dtype_of<T> == dtype && (fn(Type<T>()), true)) || ...);
  if (!found) unsupported_dtype(name, dtype);
}

}  // namespace umbra::kernels
