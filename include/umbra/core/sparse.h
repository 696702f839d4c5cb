// Tensors that are not strided: sizes, dtype and device as any tensor has them, no memory of their own, and the strided
// tensors that hold their elements.
//
//     Tensor x = make_sparse(Layout::SparseCoo, {2, 3}, {.indices = indices, .values = values});
//     x.layout();                     // Layout::SparseCoo
//     sparse_parts(x).values;         // strided
//
// An operator says in its definition what it does with them (`.sparse`); one that does not refuses them by name.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

/// What holds a sparse tensor's elements.
struct SparseParts {
  Tensor indices;          // COO: [sparse dimensions, elements]; else the columns (CSR, BSR) or rows (CSC, BSC)
  Tensor compressed = {};  // all but COO: where each row (CSR, BSR) or column (CSC, BSC) begins among the indices
  Tensor values;           // the elements; blocks of them for BSR and BSC
  bool coalesced = false;  // COO: indices are sorted and none is there twice
};

/// True for the layouts whose indices are compressed by rows or columns.
inline bool is_compressed(Layout layout) { return layout >= Layout::SparseCsr && layout <= Layout::SparseBsc; }
/// True for the layouts that keep their elements in SparseParts.
inline bool is_sparse(Layout layout) { return layout == Layout::SparseCoo || is_compressed(layout); }

/// A sparse tensor of these parts; nothing about them is checked. It is as fake as its values.
Tensor make_sparse(Layout layout, SymIntArrayRef sizes, SparseParts parts);
/// What an in-place operator does to a sparse tensor: it gets other parts, and its sizes may change.
void set_sparse(const Tensor& sparse, SymIntArrayRef sizes, SparseParts parts);
/// The parts of a sparse tensor; an error for any other.
const SparseParts& sparse_parts(const Tensor& tensor);
/// The same places with other values: an element each for those it had.
Tensor with_values(const Tensor& sparse, Tensor values);
/// Refuses a tensor that is not strided, in the name of what cannot carry it.
void require_strided(const Tensor& tensor, const char* who);

}  // namespace umbra
