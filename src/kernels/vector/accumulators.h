// The vectorised parts of a reduction; the walk over memory is kernels/reductions.cpp's.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels {

enum class ReduceOp { Sum, Mean, NanSum, Prod, Max, Min, Any, All, Norm, Variance, LogSumExp };

/// What may come with an operation: the exponent of a norm, the correction of a variance.
struct ReduceParameters {
  double exponent = 2, correction = 1;
  bool root = false;  // the standard deviation instead of the variance
};

/// How one operation reduces elements of one type. A state is what is known of the elements seen so far.
struct ReduceKernel {
  DType compute;    // what `run` and `strip` read
  DType result[2];  // what `finish` writes; variance has the mean as its second result
  int64_t state_bytes;
  void (*start)(void* states, int64_t count);
  /// Takes n contiguous elements into one state.
  void (*run)(void* state, const void* values, int64_t n, const ReduceParameters& parameters);
  /// Takes some rows, element by element, into the states of their columns.
  void (*strip)(void* states, const void* const* rows, int row_count, int64_t columns,
                const ReduceParameters& parameters);
  /// Takes other states into states.
  void (*merge)(void* states, const void* others, int64_t count, const ReduceParameters& parameters);
  /// The results of states that have seen n elements each.
  void (*finish)(void* results, const void* states, int64_t count, int64_t n, int which,
                 const ReduceParameters& parameters);
};

/// The kernel, or null where the operation is not defined for the type. `compute` is one of float32, float64, int64,
/// bool (any and all), complex64 and complex128; some kernels read float16 and bfloat16 as they are, too.
UMBRA_DECLARE_VECTOR(const ReduceKernel*, reduce_kernel,
                     (ReduceOp op, DType compute, const ReduceParameters& parameters))

}  // namespace umbra::kernels
