// From a dtype known at run time to the C++ type its elements are stored in: the kernels' way into their templates.
//
//     visit<FloatingTypes>(out.dtype(), "nll_loss", [&](auto tag) {
//       using T = typename decltype(tag)::type;
//       ...
//     });
#pragma once

#include "kernels/types.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

// Sets of stored types: unlike those of types.h, they have the narrow floating types by name.
using FloatingTypes = detail::Join<Floating, Types<BFloat16, Half>>;
using DifferentiableTypes = detail::Join<FloatingTypes, Complex>;
using RealTypes = detail::Join<FloatingTypes, Integral>;
using NumberTypes = detail::Join<RealTypes, Complex>;
using RealOrBool = detail::Join<RealTypes, Bool>;
using AllTypes = detail::Join<NumberTypes, Bool>;
using AllTypesAndUnsigned = detail::Join<AllTypes, WideUnsigned>;
using AllOrHalfComplex = detail::Join<AllTypes, HalfComplex>;
using IndexTypes = Types<int64_t, int32_t>;

/// Calls `fn` with the tag of the type that `dtype` names; an error naming the kernel where the set does not have it.
template <class Set, class Fn> void visit(DType dtype, const char* kernel, const Fn& fn) {
  visit_dtype(kernel, dtype, Set(), fn);
}

/// Refuses what is not of the set: kernels that only move elements take what PyTorch's take.
template <class Set> void check_type(DType dtype, const char* kernel) {
  visit<Set>(dtype, kernel, [](auto) {});
}

/// Sixteen bytes without arithmetic: complex128 as a thing to be moved.
struct alignas(8) Bytes16 {
  uint64_t words[2];
};

/// A tensor's elements as words of the same size, to be moved and nothing else.
template <class T> T* words(const Tensor& tensor) { return static_cast<T*>(tensor.raw_data()); }

/// Calls `f` with an unsigned type of that many bytes: kernels that only move elements need no more than their size.
template <class Fn> void visit_item_size(int64_t bytes, const Fn& fn) {
  switch (bytes) {
    case 1: return fn(Type<uint8_t>());
    case 2: return fn(Type<uint16_t>());
    case 4: return fn(Type<uint32_t>());
    case 8: return fn(Type<uint64_t>());
    default: return fn(Type<Bytes16>());
  }
}

}  // namespace umbra::kernels
