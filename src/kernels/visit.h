// From a dtype known at run time to a C++ type: the kernels' way into their templates.
//
//     visit<FloatingTypes>(out.dtype(), "nll_loss", [&](auto tag) {
//       using T = typename decltype(tag)::type;
//       ...
//     });
#pragma once

#include <complex>
#include <cstdint>

#include "umbra/core/dtype.h"
#include "umbra/core/error.h"

namespace umbra::kernels {

template <class T> struct TypeTag {
  using type = T;
};

template <class... Ts> struct TypeList {};
namespace detail {
template <class A, class B> struct Joined;
template <class... As, class... Bs> struct Joined<TypeList<As...>, TypeList<Bs...>> {
  using type = TypeList<As..., Bs...>;
};
}  // namespace detail
template <class A, class B> using Join = typename detail::Joined<A, B>::type;

using IntegerTypes = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using WideFloatTypes = TypeList<float, double>;
using FloatingTypes = TypeList<float, double, BFloat16, Half>;
using ComplexTypes = TypeList<std::complex<float>, std::complex<double>>;
using DifferentiableTypes = Join<FloatingTypes, ComplexTypes>;
using RealTypes = Join<FloatingTypes, IntegerTypes>;
using NumberTypes = Join<RealTypes, ComplexTypes>;
using AllTypes = Join<NumberTypes, TypeList<bool>>;

/// The error of a kernel that has no version for a type.
[[noreturn]] inline void not_implemented(const char* kernel, DType dtype) {
  fail<NotImplementedError>("\"", kernel, "\" not implemented for '", kernel_name(dtype), "'");
}

namespace detail {
template <class F, class... Ts> void visit_list(DType dtype, const char* kernel, F& f, TypeList<Ts...>) {
  bool found = ((dtype == dtype_of<Ts> && (f(TypeTag<Ts>()), true)) || ...);
  if (!found) not_implemented(kernel, dtype);
}
}  // namespace detail

/// Calls `f` with the tag of the type that `dtype` names; an error naming the kernel where the list does not have it.
template <class List, class F> void visit(DType dtype, const char* kernel, F&& f) {
  detail::visit_list(dtype, kernel, f, List());
}

/// Sixteen bytes without arithmetic: complex128 as a thing to be moved.
struct alignas(8) Bytes16 {
  uint64_t words[2];
};

/// Calls `f` with an unsigned type of that many bytes: kernels that only move elements need no more than their size.
template <class F> void visit_item_size(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(TypeTag<uint8_t>());
    case 2: return f(TypeTag<uint16_t>());
    case 4: return f(TypeTag<uint32_t>());
    case 8: return f(TypeTag<uint64_t>());
    default: return f(TypeTag<Bytes16>());
  }
}

namespace detail {
template <class T> struct Accumulator {
  using type = T;
};
template <> struct Accumulator<Half> {
  using type = float;
};
template <> struct Accumulator<BFloat16> {
  using type = float;
};
}  // namespace detail
/// The type in which a kernel computes on elements of type T: float for the narrow floating types.
template <class T> using Compute = typename detail::Accumulator<T>::type;

}  // namespace umbra::kernels
