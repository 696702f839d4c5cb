// Rows of a tensor as numbers to compute with: in place where they are of that type, else by way of a buffer. For one
// thread.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Reads runs of contiguous elements as T.
template <class T> class RowReader {
 public:
  explicit RowReader(const Tensor& t) : data_(static_cast<const char*>(t.raw_data())), dtype_(t.dtype()) {}
  /// The `n` elements from `offset` on. What an earlier call gave may be overwritten.
  const T* read(int64_t offset, int64_t n) {
    const char* from = data_ + offset * item_size(dtype_);
    if (dtype_ == dtype_of<T>) return reinterpret_cast<const T*>(from);
    if (static_cast<int64_t>(buffer_.size()) < n) buffer_.resize(n);
    convert(reinterpret_cast<char*>(buffer_.data()), dtype_of<T>, from, dtype_, item_size(dtype_), n);
    return buffer_.data();
  }

 private:
  const char* data_;
  DType dtype_;
  std::vector<T> buffer_;
};

/// Gives room for runs of contiguous elements, and puts what was written there into the tensor.
template <class T> class RowWriter {
 public:
  explicit RowWriter(const Tensor& t) : data_(static_cast<char*>(t.raw_data())), dtype_(t.dtype()) {}
  T* row(int64_t offset, int64_t n) {
    if (dtype_ == dtype_of<T>) return reinterpret_cast<T*>(data_) + offset;
    if (static_cast<int64_t>(buffer_.size()) < n) buffer_.resize(n);
    return buffer_.data();
  }
  void commit(int64_t offset, int64_t n) {
    if (dtype_ == dtype_of<T>) return;
    convert(data_ + offset * item_size(dtype_), dtype_, reinterpret_cast<const char*>(buffer_.data()), dtype_of<T>,
            sizeof(T), n);
  }

 private:
  char* data_;
  DType dtype_;
  std::vector<T> buffer_;
};

/// Whether the elements lie in memory as a vector's do.
template <class T> bool lies_as(const Tensor& t) { return t.dtype() == dtype_of<T> && t.is_contiguous(); }

/// All elements in row-major order; none where the tensor is undefined.
template <class T> std::vector<T> read_vector(const Tensor& t) {
  if (!t.defined()) return {};
  auto elements = [](const Tensor& dense) {
    const T* from = dense.data<T>();
    return std::vector<T>(from, from + dense.numel());
  };
  return lies_as<T>(t) ? elements(t) : elements(kernels::contiguous(cast(t, dtype_of<T>)));
}
/// The other way round; nothing happens where the tensor is undefined or has no elements.
template <class T> void write_vector(const Tensor& t, std::vector<T>& values) {
  if (!t.defined() || t.numel() == 0) return;
  auto n = static_cast<int64_t>(values.size());
  if (lies_as<T>(t) && n == t.numel()) {
    std::copy_n(values.data(), n, t.data<T>());
    return;
  }
  Tensor whole = from_memory(values.data(), {n}, {1}, dtype_of<T>, [] {});
  kernels::copy(t, alias_tensor(whole, t.sym_sizes(), contiguous_strides(t.sym_sizes()), 0));
}

/// A tensor to write contiguous results into: `out` itself where it is contiguous. `finish` copies to where they
/// belong.
class DenseOutput {
 public:
  explicit DenseOutput(const Tensor& out) : out_(out) {
    if (out.defined()) dense_ = out.is_contiguous() ? out : scratch(out.sizes(), out.dtype());
  }
  const Tensor& tensor() const { return dense_; }
  void finish() const {
    if (out_.defined() && !dense_.is_same(out_)) kernels::copy(out_, dense_);
  }

 private:
  Tensor out_, dense_;
};

}  // namespace umbra::kernels
