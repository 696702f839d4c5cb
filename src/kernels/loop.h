// How to walk several strided tensors of one shape together: the fewest loops, in the order memory likes best.
#pragma once

#include <cstdint>

#include "kernels/parallel.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The loops over `out` and inputs that broadcast to out's sizes. Dimensions of size 1 are gone, the rest ordered so
/// that the first varies fastest, and those that can be walked as one are one.
///
///     LoopGeometry loop(out, {&a, &b});
///     loop.for_each_inner([](char* const* data, const int64_t* strides, int64_t n) { ... });
class LoopGeometry {
 public:
  static constexpr int kMaxDims = 64, kMaxOperands = 6;

  explicit LoopGeometry(const Tensor& out, ArrayRef<const Tensor*> inputs = {});
  /// Operands all of exactly these sizes, given by address and byte strides.
  LoopGeometry(IntArrayRef sizes, int operands, char* const* data, const int64_t* const* byte_strides);

  int operands() const { return operands_; }
  int dims() const { return dims_; }
  int64_t numel() const { return numel_; }
  int64_t size(int dim) const { return sizes_[dim]; }
  /// In bytes.
  int64_t stride(int dim, int operand) const { return strides_[dim][operand]; }
  char* data(int operand) const { return data_[operand]; }
  /// Whether the two innermost dimensions of an operand are one run.
  bool inner_joins(int operand) const { return strides_[1][operand] == sizes_[0] * strides_[0][operand]; }
  /// Puts a copy that is one run in the place of an operand's two innermost dimensions.
  void replace_inner(int operand, char* data, int64_t item) {
    data_[operand] = data;
    strides_[0][operand] = item;
    strides_[1][operand] = sizes_[0] * item;
  }
  /// Makes two dimensions of the second and last one: `inner` of its steps, which divide it, and how often those come.
  void split_outer(int64_t inner) {
    sizes_[2] = sizes_[1] / inner;
    sizes_[1] = inner;
    for (int k = 0; k < operands_; ++k) strides_[2][k] = strides_[1][k] * inner;
    dims_ = 3;
  }
  /// Joins dimensions that every operand passes through as one.
  void coalesce();

  /// Calls `fn(data, strides, n)` for each innermost run, on several threads where there is work enough.
  /// `data` has the address of each operand's first element (the caller may change the array), `strides` the byte
  /// steps between elements.
  template <class Fn> void for_each_inner(const Fn& fn, int64_t grain = kGrain) const {
    if (numel_ == 0) return;
    if (dims_ == 1 && numel_ <= grain) {
      char* data[kMaxOperands];
      for (int k = 0; k < operands_; ++k) data[k] = data_[k];
      return fn(data, strides_[0], numel_);
    }
    parallel_for(0, numel_, grain, [&](int64_t from, int64_t to) { walk(from, to, fn); });
  }

 private:
  bool one_run(const Tensor& out, ArrayRef<const Tensor*> inputs);
  void simplify();
  bool inner_first(int a, int b) const;
  void swap_dims(int a, int b);
  /// The runs that make up elements [from, to).
  template <class Fn> void walk(int64_t from, int64_t to, const Fn& fn) const {
    int64_t index[kMaxDims];
    char *row[kMaxOperands], *data[kMaxOperands];
    seek(from, index, row);
    while (true) {
      int64_t n = std::min(sizes_[0] - index[0], to - from);
      for (int k = 0; k < operands_; ++k) {
        char* pointer = row[k];
        asm("" : "+r"(pointer));  // else the compiler calls memcpy for these few
        data[k] = pointer;
      }
      fn(data, strides_[0], n);
      from += n;
      if (from >= to) return;
      for (int k = 0; k < operands_; ++k) row[k] += strides_[1][k] - index[0] * strides_[0][k];
      index[0] = 0;
      if (dims_ > 2 && ++index[1] == sizes_[1]) next_plane(index, row);
    }
  }
  void seek(int64_t at, int64_t* index, char** row) const;
  /// From behind the last row of a plane to the start of the next.
  void next_plane(int64_t* index, char** row) const;

  int operands_ = 0, dims_ = 0;
  int64_t numel_ = 1;
  char* data_[kMaxOperands];
  int64_t sizes_[kMaxDims];
  int64_t strides_[kMaxDims][kMaxOperands];
};

}  // namespace umbra::kernels
