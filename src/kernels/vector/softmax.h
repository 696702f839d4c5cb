// The vectorised parts of kernels/softmax.cpp.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels {

enum class SoftmaxOp { Forward, LogForward, Backward, LogBackward };

/// One softmax over n contiguous elements of type `compute` (float32 or float64). data: the result, then the input, or
/// the gradient and the forward's result. The result may be any of the others.
UMBRA_DECLARE_VECTOR(void, softmax_row, (SoftmaxOp op, DType compute, char* const* data, int64_t n))
/// As many as there are rows, `strides` (bytes, for each operand) apart, each as above. False, and nothing is done,
/// where rows are too long for registers or for the derivatives.
UMBRA_DECLARE_VECTOR(bool, softmax_short_rows,
                     (SoftmaxOp op, DType compute, char* const* data, const int64_t* strides, int64_t count, int64_t n))
/// As many as there are columns, at once: each over n rows that lie `steps` (bytes, for each operand) apart.
UMBRA_DECLARE_VECTOR(void, softmax_columns,
                     (SoftmaxOp op, DType compute, char* const* data, const int64_t* steps, int64_t n, int64_t columns))

}  // namespace umbra::kernels
