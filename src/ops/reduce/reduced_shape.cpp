#include "ops/reduce/reduced_shape.h"

#include <bit>

#include "kernels/copy.h"

namespace umbra::ops {

uint64_t reduced_dims(const Tensor& self, const OptionalDims& dims) {
  if (!dims) return all_dims(self);
  for (int64_t d : *dims) wrap_dim(d, self.dim());  // all of them before one is found twice
  return dim_mask(*dims, self.dim());
}

uint64_t all_dims(const Tensor& self) { return dim_mask({}, self.dim()); }

SmallVector<int64_t> masked_dims(uint64_t mask) {
  SmallVector<int64_t> out;
  for (; mask != 0; mask &= mask - 1) out.push_back(std::countr_zero(mask));
  return out;
}

TensorSpec reduced_spec(const Tensor& self, uint64_t mask, bool keepdim, DType dtype) {
  return TensorSpec(reduced_shape(self.sym_sizes(), mask, keepdim), dtype, self.device());
}

DType accumulated_dtype(const Tensor& self, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
}

Tensor in_type(const Tensor& self, DType dtype) {
  // Narrow floats and integers are summed in a wider type by the kernel itself; only a change of category needs a cast
  // first.
  if (self.dtype() == dtype || is_integral(self.dtype(), true))
    return is_floating(dtype) || is_complex(dtype) ? kernels::cast(self, dtype) : self;
  return kernels::cast(self, dtype);
}

Tensor restore_dims(const Tensor& grad, SymIntArrayRef sizes, const OptionalDims& dims, bool keepdim) {
  if (keepdim || sizes.empty()) return grad;
  uint64_t mask = dim_mask(dims.value_or(std::vector<int64_t>()), static_cast<int64_t>(sizes.size()));
  Tensor out = grad;
  for (int64_t d : masked_dims(mask)) out = out.unsqueeze(d);
  return out;
}

SymInt reduced_count(SymIntArrayRef sizes, const OptionalDims& dims) {
  uint64_t mask = dim_mask(dims.value_or(std::vector<int64_t>()), static_cast<int64_t>(sizes.size()));
  SymInt count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count *= sizes[d];
  return count;
}

}  // namespace umbra::ops
