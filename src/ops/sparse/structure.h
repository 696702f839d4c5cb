// Dimensions and parts of sparse tensors; the definitions of view/, index/ and factory/ name these functions.
#pragma once

#include "umbra/core/sparse.h"

namespace umbra::ops::sparse {

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& self, const std::vector<int64_t>& dims);
Tensor unsqueeze(const Tensor& self, int64_t dim);
/// Strided where no sparse dimension is left.
Tensor select(const Tensor& self, int64_t dim, int64_t index);
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);
Tensor cat(ArrayRef<Tensor> tensors, int64_t dim);
/// A tensor of this layout without elements; `sparse_dim` dimensions of a COO tensor are sparse.
Tensor without_elements(Layout layout, SymIntArrayRef sizes, DType dtype, Device device, int64_t sparse_dim);
/// The same without elements, of another type or on another device.
Tensor without_elements_like(const Tensor& self, std::optional<DType> dtype = {}, std::optional<Device> device = {});

}  // namespace umbra::ops::sparse
