// The core table by subject. Each function adds its entries: what operators of PyTorch's core table are recorded as,
// call for call as PyTorch 2.15 records them.
#pragma once

#include "umbra/capture/decomposition.h"
#include "umbra/core/tensor.h"

namespace umbra::core_table {

void add_factories(DecompositionTable& table);
void add_shapes(DecompositionTable& table);
void add_pointwise(DecompositionTable& table);
void add_activations(DecompositionTable& table);
void add_reductions(DecompositionTable& table);
void add_indexing(DecompositionTable& table);
void add_layers(DecompositionTable& table);
void add_losses(DecompositionTable& table);

/// A number as a tensor of that type, which is how numbers stand in a `where`.
Tensor number_like(const Tensor& like, const Scalar& number);
/// where(condition, number, other): the condition's calls come before the number's.
Tensor number_where(const Tensor& condition, const Scalar& number, const Tensor& other);

}  // namespace umbra::core_table
