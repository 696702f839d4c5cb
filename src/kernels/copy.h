// Copies, casts and fills, of any element types and strides.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The elements of `in`, broadcast to out's sizes and converted to its type.
void copy(const Tensor& out, const Tensor& in);
/// The same into a complex tensor, with imaginary parts of the other sign.
void copy_conjugated(const Tensor& out, const Tensor& in);
void fill(const Tensor& out, const Scalar& value);
/// start, start + step, ...: as many as `out` has elements.
void arange(const Tensor& out, const Scalar& start, const Scalar& step);

/// The tensor itself if it is contiguous, else a contiguous copy.
Tensor contiguous(const Tensor& tensor);
/// The tensor itself if it has the type already, else a contiguous copy of that type.
Tensor cast(const Tensor& tensor, DType dtype);
/// A new contiguous tensor on the CPU: for intermediate results of kernels.
Tensor scratch(IntArrayRef sizes, DType dtype);

/// Writes the number as one element of that type. `element` has room for 16 bytes.
void write_element(void* element, DType dtype, const Scalar& value);

}  // namespace umbra::kernels
