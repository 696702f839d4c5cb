// What PyTorch's kernels say of types they are not made for.
#pragma once

#include "dispatch/layers.h"
#include "kernels/types.h"
#include "umbra/core/tensor.h"

namespace umbra::ops {

/// Whether a call reads the tensor's elements: fake tensors and those of the meta device have none, and where one
/// argument has none, none is read.
inline bool has_elements(const Tensor& t) { return !t.is_fake() && !t.is_meta() && !only_metadata_is_asked(); }

/// Refuses a type that the kernel of that name does not have. Where PyTorch's kernel comes before its checks of sizes,
/// this stands before ours; runs without data meet no kernel.
inline void check_kernel_type(bool fits, const char* kernel, const Tensor& t) {
  if (!fits && has_elements(t)) kernels::unsupported_dtype(kernel, t.dtype());
}

/// Refuses a tensor whose elements a kernel would read as another type.
inline void check_read_as(DType expected, const Tensor& t) {
  if (has_elements(t) && t.dtype() != expected)
    fail("expected scalar type ", kernel_name(expected), " but found ", kernel_name(t.dtype()));
}

}  // namespace umbra::ops
