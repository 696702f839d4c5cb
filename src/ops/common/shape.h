// Shapes over SymInt: broadcasting, inferred sizes, dimension lists. Shared by the metadata functions of all families.
#pragma once

#include <optional>

#include "umbra/core/tensor.h"
#include "umbra/dispatch/operator.h"

namespace umbra::ops {

/// The shape that two shapes broadcast to, in PyTorch's words where they do not.
SymShape broadcast_shapes(SymIntArrayRef a, SymIntArrayRef b);
/// Whether the numbers of elements, multiplied as 64 bits, make none: PyTorch takes such sizes where a tensor is
/// resized, though some be negative.
bool make_nothing(SymIntArrayRef sizes);
/// Whether PyTorch can tell how many elements tensors of the sizes have; negative ones count as large.
bool can_be_counted(SymIntArrayRef sizes);
/// Strides of `tensor` seen at a larger shape: 0 where it is expanded.
SymShape expanded_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef target);
/// Replaces a -1 by what `numel` leaves; "shape '[2, 4]' is invalid for input of size 6" where nothing fits.
SymShape infer_size(SymIntArrayRef shape, SymInt numel);
/// Strides for `shape` over the same memory as (sizes, strides), or nothing where that takes a copy.
std::optional<SymShape> view_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef shape);
/// The strides that an elementwise result takes from its inputs, given theirs at the result's shape: memory order is
/// kept, the first input with an opinion deciding, and gaps are closed.
SymShape dense_strides_like(SymIntArrayRef sizes, ArrayRef<SymShape> layouts);
/// A set of dimensions as a bit mask; an empty list means all. "dim 0 appears multiple times in the list of dims".
uint64_t dim_mask(ArrayRef<int64_t> dims, int64_t rank, bool empty_is_all = true);
/// Shape after reducing the dimensions of the mask.
SymShape reduced_shape(SymIntArrayRef sizes, uint64_t mask, bool keepdim);

/// Strides for a copy of `self` in the given format (Preserve keeps the layout of dense tensors).
SymShape strides_in_format(const Tensor& self, MemoryFormat format);
/// Strides for a copy that takes the place of `self`: its own, gaps and all, unless elements share memory.
SymShape strides_with_gaps(const Tensor& self);
/// The metadata of a copy of `self`.
TensorSpec spec_like(const Tensor& self, std::optional<DType> dtype = {}, std::optional<Device> device = {},
                     MemoryFormat format = MemoryFormat::Preserve);

/// All on one device; 0-d CPU tensors may join any. PyTorch's error otherwise.
Device common_device(ArrayRef<const Tensor*> tensors);

/// Sums a gradient down to the shape of the input that was broadcast.
Tensor sum_to_size(const Tensor& grad, SymIntArrayRef sizes);

}  // namespace umbra::ops
