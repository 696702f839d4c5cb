// Pointwise kernels made of functors.
//
// A functor stands in kernels/functors/<family>.h and is scalar maths, written once for every number-like type:
//
//     struct Silu {
//       static constexpr const char* name = "silu_cpu";      // what messages call it
//       static constexpr int arity = 1;
//       using types = FloatingComplex;                       // what it is defined for (kernels/types.h)
//       template <class T> T operator()(T x) const { return x / (T(1) + exp(-x)); }
//     };
//
// With parameters, `bind` makes the callable for a compute type, so that they are converted once and not per element:
//
//     struct LeakyRelu {
//       Scalar slope;
//       template <class T> auto bind() const {
//         return [s = constant<T>(slope)](auto x) { return select(x > 0, x, x * s); };
//       }
//     };
//
// Inputs have one type T, save those that `masks` (a set of bits, by position) declares to be bool. Where T stands for
// a narrow type, what comes from another type is rounded to the narrow one first, save numbers at the positions in
// `exact_numbers`; parameters are rounded by `round_parameters(dtype)`, if there is one. The result is T, bool
// (comparisons) or T's real type (abs of complex numbers). `scalar_only` says that it has no vector form,
// `full_width_only` that the narrow types are refused, as PyTorch refuses them. One line in
// kernels/vector/functors_<family>.cpp instantiates it for each instruction set; then `pointwise(Silu{}, out, {&self})`
// runs it. Of the sets' types those that are only stored (complex32, 8-bit floats) are computed in a wider one.
#pragma once

#include "kernels/isa.h"
#include "kernels/types.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Results into data[0] from inputs data[1...], n elements each, all contiguous and of the entry's types.
using PointwiseLoop = void (*)(const void* functor, char* const* data, int64_t n);

struct PointwiseLoops {
  PointwiseLoop all = nullptr;
  PointwiseLoop with_number[2] = {};  // of two inputs the first, or the second, is one number; null where there is none
};

/// What a functor has for one element type.
struct PointwiseEntry {
  PointwiseLoops loops;               // of `compute`; null: not defined for this type
  PointwiseLoops narrow;              // of elements stored as float16 or bfloat16; numbers are of `compute` here, too
  DType compute = DType::Undefined;   // what the loop reads
  DType computed = DType::Undefined;  // what the loop writes
  DType result = DType::Undefined;    // the type of the operator's result: `computed`, or its narrow original
};

/// All that the driver needs to know of a functor.
struct PointwiseTable {
  const char* name;
  int arity;
  unsigned masks;
  unsigned exact_numbers;
  PointwiseEntry entries[kDTypeCount];
};

UMBRA_DECLARE_VECTOR(template <class Functor> const PointwiseTable&, pointwise_table, ())

/// The functor's kernels for the instruction set in use.
template <class Functor> const PointwiseTable& pointwise_table() {
  static const PointwiseTable& table = UMBRA_VECTOR(template pointwise_table<Functor>)();
  return table;
}

/// Fills `out` with the functor's values. Inputs broadcast to out's sizes. They are converted as they are read if
/// their types differ from `compute` (by default the first input's that is no mask), and so are results if out's does.
/// Where that is float16 or bfloat16, an input of another type is rounded to it, though the computation is in float.
/// `out` may be one of the inputs, but must not overlap one in another way.
void run_pointwise(const PointwiseTable& table, const void* functor, const Tensor& out, ArrayRef<const Tensor*> inputs,
                   DType compute = DType::Undefined);

template <class Functor>
void pointwise(Functor functor, const Tensor& out, ArrayRef<const Tensor*> inputs, DType compute = DType::Undefined) {
  if constexpr (requires { functor.round_parameters(compute); })
    functor.round_parameters(compute == DType::Undefined ? inputs[0]->dtype() : compute);
  run_pointwise(pointwise_table<Functor>(), &functor, out, inputs, compute);
}

/// The type of the functor's result on inputs of type `dtype`; an error where it is not defined for it.
DType pointwise_result(const PointwiseTable& table, DType dtype);
template <class Functor> DType pointwise_result(DType dtype) {
  return pointwise_result(pointwise_table<Functor>(), dtype);
}

}  // namespace umbra::kernels
