// The core table by subject. Each function adds its entries: what operators of PyTorch's core table are recorded as,
// call for call as PyTorch 2.15 records them.
#pragma once

#include "umbra/capture/decomposition.h"
#include "umbra/core/tensor.h"
#include "umbra/generated/functions.h"

namespace umbra::core_table {

void add_factories(DecompositionTable& table);
void add_shapes(DecompositionTable& table);
void add_pointwise(DecompositionTable& table);
void add_activations(DecompositionTable& table);
void add_reductions(DecompositionTable& table);
void add_indexing(DecompositionTable& table);
void add_layers(DecompositionTable& table);
void add_resampling(DecompositionTable& table);
void add_losses(DecompositionTable& table);
void add_recurrent(DecompositionTable& table);

/// `compute` of a half or bfloat16 as of a float, and the result as it was given.
template <class F> Tensor in_full_precision(const Tensor& self, F&& compute) {
  if (self.dtype() != DType::Float16 && self.dtype() != DType::BFloat16) return compute(self);
  return compute(self._to_copy({.dtype = DType::Float32}))._to_copy({.dtype = self.dtype()});
}
/// Whole numbers and truth values as floats, which functions of reals are computed in.
inline Tensor as_real(const Tensor& self) {
  return is_integral(self.dtype(), true) ? self._to_copy({.dtype = default_dtype()}) : self;
}
/// Equal steps from one end to the other, counted from the nearer end.
Tensor steps_between(const Scalar& from, const Scalar& to, SymInt count, DType dtype, Device device);

/// A number as a tensor of that type, which is how numbers stand in a `where`.
Tensor number_like(const Tensor& like, const Scalar& number);
/// where(condition, number, other): the condition's calls come before the number's.
Tensor number_where(const Tensor& condition, const Scalar& number, const Tensor& other);

}  // namespace umbra::core_table
