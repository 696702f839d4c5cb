// Small tensors for the kernels' tests: made of values, read back as values.
#pragma once

#include <gmock/gmock.h>

#include <vector>

#include "kernels/copy.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

inline Tensor empty_tensor(IntArrayRef sizes, DType dtype = DType::Float32) {
  return allocate_tensor(as_sym(sizes), contiguous_strides(as_sym(sizes)), dtype, Device());
}

/// A contiguous tensor of the values, in row-major order.
template <class T> Tensor tensor_of(IntArrayRef sizes, const std::vector<T>& values) {
  Tensor t = empty_tensor(sizes, dtype_of<T>);
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
  return t;
}
template <class T> Tensor row_of(const std::vector<T>& values) {
  return tensor_of<T>({static_cast<int64_t>(values.size())}, values);
}
inline Tensor bools(IntArrayRef sizes, const std::vector<int>& values) {
  Tensor t = empty_tensor(sizes, DType::Bool);
  for (size_t i = 0; i < values.size(); ++i) t.data<bool>()[i] = values[i] != 0;
  return t;
}
inline Tensor floats(IntArrayRef sizes, const std::vector<float>& values) { return tensor_of<float>(sizes, values); }
inline Tensor longs(IntArrayRef sizes, const std::vector<int64_t>& values) { return tensor_of<int64_t>(sizes, values); }

/// Holds for floats that are nearly these.
inline auto near(std::vector<float> expected) {
  return testing::Pointwise(testing::FloatNear(1e-4), std::move(expected));
}

/// 0, 1, 2, ... times a step: distinct values without a source of randomness.
template <class T = float> Tensor counting(IntArrayRef sizes, double step = 1) {
  Tensor t = empty_tensor(sizes, dtype_of<T>);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<T>()[i] = static_cast<T>(static_cast<float>(step * static_cast<double>(i)));
  return t;
}

inline Tensor transposed(const Tensor& t, int64_t a = 0, int64_t b = 1) {
  SymShape sizes(t.sym_sizes()), strides(t.sym_strides());
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

/// Another geometry over the same memory.
inline Tensor strided(const Tensor& source, IntArrayRef sizes, IntArrayRef strides, int64_t offset = 0) {
  return alias_tensor(source, as_sym(sizes), as_sym(strides), offset);
}

/// The elements in row-major order, whatever the strides.
template <class T = float> std::vector<T> values(const Tensor& t) {
  std::vector<T> result;
  std::vector<int64_t> index(t.dim(), 0);
  for (int64_t n = 0; n < t.numel(); ++n) {
    int64_t at = 0;
    for (int64_t d = 0; d < t.dim(); ++d) at += index[d] * t.stride(d);
    result.push_back(t.data<T>()[at]);
    for (int64_t d = t.dim() - 1; d >= 0 && ++index[d] == t.size(d); --d) index[d] = 0;
  }
  return result;
}

/// The same, converted to T.
template <class T> std::vector<T> values_of(const Tensor& t) { return values<T>(cast(t, dtype_of<T>)); }

}  // namespace umbra::kernels
