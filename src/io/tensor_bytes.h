// Between tensors and the bytes of files: building tensors over bytes whose description may lie, and packing tensors.
#pragma once

#include <string>

#include "umbra/core/tensor.h"
#include "umbra/io/file.h"

namespace umbra::io {

/// A storage over the bytes: shares their memory where it is aligned for elements of that type, else copies.
Storage storage_over(const Bytes& bytes, DType dtype);

/// Number of elements; an error for negative sizes and products beyond 63 bits.
int64_t checked_numel(IntArrayRef sizes, const std::string& what);

/// Row-major strides of sizes whose product has been checked.
std::vector<int64_t> row_major_strides(IntArrayRef sizes);

/// A CPU tensor of that geometry; an error unless every element lies inside the storage. `what` names it in errors.
Tensor tensor_over(const Storage& storage, DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                   const std::string& what);

/// A row-major tensor that fills the bytes exactly.
Tensor tensor_over(const Bytes& bytes, DType dtype, IntArrayRef sizes, const std::string& what);

/// The meta tensor of a tensor's geometry.
Tensor without_data(const Tensor& tensor);

/// A tensor of zeros of that geometry, whose memory is taken from the system only where it is touched.
Tensor zeros_of(DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset, const std::string& what);

/// An error unless the tensor has plain values in this machine's memory. `what` names it in errors.
void check_savable(const Tensor& tensor, const std::string& what);

/// The whole storage of a tensor, as bytes.
std::string_view storage_bytes_of(const Tensor& tensor);

/// The tensor's elements in row-major order: its own memory where it is contiguous, else packed into `buffer`.
std::string_view packed_bytes(const Tensor& tensor, std::string& buffer);

/// The class of typed storages of a dtype, or null: newer dtypes have none, and their tensors say the dtype themselves.
const char* storage_class(DType dtype);

}  // namespace umbra::io
