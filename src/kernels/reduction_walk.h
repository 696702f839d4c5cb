// How a reduction walks memory: the dimensions that stay and those that go, each list with the fewest loops.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// A list of loops, innermost (smallest step in the input) first.
struct LoopNest {
  static constexpr int kMaxDims = 64;
  int dims = 0;
  int64_t numel = 1;
  int64_t size[kMaxDims];
  int64_t step[kMaxDims];         // in the input, in bytes
  int64_t out_step[2][kMaxDims];  // in the outputs; of dimensions that stay

  void add(int64_t size, int64_t step, int64_t out_step, int64_t second_out_step);
  /// Drops dimensions of size 1, orders and merges.
  void simplify();
};

/// `outs` have the sizes of `self` with `dims` left out or of size 1; an undefined one is ignored.
struct ReduceGeometry {
  LoopNest kept, reduced;
  const char* in = nullptr;
  char* out[2] = {};

  ReduceGeometry(const Tensor& self, IntArrayRef dims, const Tensor& out, const Tensor& second_out = {});
};

/// A position in a nest, by offsets. `reach(i)` goes to the i-th place, `next()` to the one after.
class LoopPosition {
 public:
  explicit LoopPosition(const LoopNest& nest, int first_dim = 0) : nest_(nest), first_(first_dim) {}
  void reach(int64_t place);
  void next();
  int64_t offset = 0, out_offset[2] = {};
  int64_t index(int dim) const { return index_[dim]; }

 private:
  const LoopNest& nest_;
  int first_;
  int64_t index_[LoopNest::kMaxDims];
};

}  // namespace umbra::kernels
