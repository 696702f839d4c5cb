// What the reductions share: which dimensions, what shape, and how a gradient gets its dimensions back.
#pragma once

#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

using OptionalDims = std::optional<std::vector<int64_t>>;

/// The dimensions to reduce as a mask; none given (or an empty list) means all.
uint64_t reduced_dims(const Tensor& self, const OptionalDims& dims);
uint64_t all_dims(const Tensor& self);
/// The dimensions of a mask, in order: what kernels take.
SmallVector<int64_t> masked_dims(uint64_t mask);
/// Contiguous output of the reduced shape.
TensorSpec reduced_spec(const Tensor& self, uint64_t mask, bool keepdim, DType dtype);
/// The type of sums and products: integers and bools add up in int64 unless a type is asked for.
DType accumulated_dtype(const Tensor& self, std::optional<DType> dtype);
/// The tensor in the type that the reduction computes in.
Tensor in_type(const Tensor& self, DType dtype);
/// A gradient of a reduction with its reduced dimensions back, of size 1.
Tensor restore_dims(const Tensor& grad, SymIntArrayRef sizes, const OptionalDims& dims, bool keepdim);
/// How many elements each result was made of.
SymInt reduced_count(SymIntArrayRef sizes, const OptionalDims& dims);

}  // namespace umbra::ops
