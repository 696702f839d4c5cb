// What operators on sparse tensors share: elements in order, the place of one among others, other layouts of the same
// elements.
#pragma once

#include "umbra/core/sparse.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::ops::sparse {

/// Whether the compressed indices run over rows, or over columns.
inline bool by_rows(Layout layout) { return layout == Layout::SparseCsr || layout == Layout::SparseBsr; }
inline bool in_blocks(Layout layout) { return layout == Layout::SparseBsr || layout == Layout::SparseBsc; }
inline bool is_coo(const Tensor& t) { return t.layout() == Layout::SparseCoo; }
inline bool is_strided(const Tensor& t) { return t.layout() == Layout::Strided; }

/// How many of a COO tensor's dimensions are sparse.
inline int64_t sparse_dims(const Tensor& coo) { return sparse_parts(coo).indices.size(0); }
/// How many of a compressed tensor's first dimensions are a batch of matrices; the indices of each have the same
/// length.
inline int64_t batch_dims(const Tensor& compressed) { return sparse_parts(compressed).compressed.dim() - 1; }
/// How many of a compressed tensor's last dimensions are dense: every element is a tensor of their sizes.
inline int64_t inner_dims(const Tensor& compressed) { return compressed.dim() - batch_dims(compressed) - 2; }
/// How many elements, or blocks, a sparse tensor has; of a batch, how many each matrix has.
inline int64_t element_count(const Tensor& sparse) {
  return sparse_parts(sparse).values.size(is_coo(sparse) ? 0 : batch_dims(sparse));
}

/// A COO tensor. Fewer than two elements are in order by themselves.
Tensor make_coo(Tensor indices, Tensor values, SymIntArrayRef sizes, bool coalesced = false);
/// Where each element of a COO tensor stands in a row-major tensor of its sparse sizes.
Tensor flat_positions(const Tensor& indices, IntArrayRef sizes);
Tensor flat_positions(const Tensor& coo);
/// A COO tensor with its elements in order and those of one place added up; itself where that is so.
Tensor coalesced(const Tensor& coo);

/// Rows and columns of a compressed tensor's blocks; of single elements where it has none.
std::pair<int64_t, int64_t> block_size(const Tensor& compressed);
/// Where each element or block of a compressed tensor stands: [batch..., row, column].
Tensor compressed_places(const Tensor& compressed);
/// A strided tensor as blocks of matrices: [batch..., down, across, height, width, dense...].
Tensor as_blocks(const Tensor& strided, int64_t batch, std::pair<int64_t, int64_t> block);
/// Whether no element of sorted places comes before the one before it, or twice.
bool in_order(const Tensor& indices, IntArrayRef sizes);

/// The same elements in other layouts: strided, COO in order, and compressed by rows or columns (of a COO tensor in
/// order, whose last two sparse dimensions are the matrices').
Tensor strided(const Tensor& sparse);
Tensor as_coo(const Tensor& sparse);
/// A compressed tensor's elements as a COO tensor, in the order in which they are stored.
Tensor elements_of(const Tensor& compressed);
Tensor as_compressed(const Tensor& coo, Layout layout);
/// Blocks by rows or by columns of blocks, the blocks themselves unchanged.
Tensor as_blocks_of(const Tensor& blocks, Layout layout);
/// A compressed tensor whose indices have the type that those of another have.
Tensor with_index_type_of(const Tensor& compressed, const Tensor& like);

/// Where wanted positions stand among sorted ones; `at` is some valid place where one is not `found`.
struct Places {
  Tensor at, found;
};
Places find(const Tensor& sorted, const Tensor& wanted);

/// The elements of `values` at these places, and zeros where nothing was found.
Tensor values_at(const Tensor& values, const Places& places);

/// Numbers from `starts[i]` on, `lengths[i]` of them, for each i one after the other; and the i of each.
struct Ranges {
  Tensor group, element;
};
Ranges ranges(const Tensor& starts, const Tensor& lengths);

/// 64-bit numbers from 0 to count, on the device of `like`.
Tensor counting(int64_t count, const Tensor& like);

/// A shape made to stand beside elements with dense dimensions: [n] as [n, 1, 1...].
Tensor beside(const Tensor& per_element, const Tensor& values);

/// A kernel for sparse tensors that strided ones do not have.
void expect_sparse(const Tensor& self, const char* op);
/// The same of what would write a strided tensor: a leaf that requires gradients is refused as such.
[[noreturn]] void refuse_strided(const Tensor& self, const char* op);
/// Refuses what reads indices where there are none.
void require_data(const Tensor& self, const char* op);

}  // namespace umbra::ops::sparse
