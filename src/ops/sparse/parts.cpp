#include "ops/sparse/parts.h"

namespace umbra::ops::sparse {

Tensor make_coo(Tensor indices, Tensor values, SymIntArrayRef sizes, bool coalesced) {
  bool ordered = coalesced || (!values.sym_sizes()[0].is_symbolic() && values.size(0) < 2);
  return make_sparse(Layout::SparseCoo, sizes,
                     {.indices = std::move(indices), .values = std::move(values), .coalesced = ordered});
}

Tensor flat_positions(const Tensor& indices, IntArrayRef sizes) {
  double count = 1;
  for (int64_t d = 0; d < indices.size(0); ++d) count *= static_cast<double>(sizes[d]);
  check<NotImplementedError>(count < 9.2e18, "a sparse tensor of sizes ", to_string(sizes),
                             " has more places than 64 bits can number, which is not in Umbra yet");
  Tensor position = zeros({indices.size(1)}, {.dtype = DType::Int64, .device = indices.device()});
  for (int64_t d = 0; d < indices.size(0); ++d) position = position * Scalar(sizes[d]) + indices.select(0, d);
  return position;
}

Tensor flat_positions(const Tensor& coo) { return flat_positions(sparse_parts(coo).indices, coo.sizes()); }

Tensor coalesced(const Tensor& coo) {
  const SparseParts& parts = sparse_parts(coo);
  if (parts.coalesced) return coo;
  auto [sorted, order] = flat_positions(coo).sort(true, 0, false);
  auto [places, group, counts] = unique_consecutive(sorted, true, true);
  Tensor first = order.index_select(0, counts.cumsum(0) - counts);
  SymShape sizes(parts.values.sym_sizes());
  sizes[0] = places.sym_numel();
  Tensor values = zeros(sizes, {.dtype = coo.dtype(), .device = coo.device()});
  values = values.index_add(0, group, parts.values.index_select(0, order));
  return make_coo(parts.indices.index_select(1, first), values, coo.sym_sizes(), true);
}

// ---- other layouts ----

namespace {

Tensor coo_to_strided(const Tensor& self) {
  const SparseParts& parts = sparse_parts(self);
  int64_t sparse_dim = parts.indices.size(0);
  std::vector<int64_t> flat{1};
  for (int64_t d = 0; d < sparse_dim; ++d) flat[0] *= self.sizes()[d];
  for (int64_t d = sparse_dim; d < self.dim(); ++d) flat.push_back(self.sizes()[d]);
  Tensor out = zeros(as_sym(flat), {.dtype = self.dtype(), .device = self.device()});
  return out.index_add(0, flat_positions(self), parts.values).reshape(self.sym_sizes());
}

/// Rows and columns of each element or block of a compressed tensor.
Tensor compressed_places(const Tensor& self) {
  const SparseParts& parts = sparse_parts(self);
  return _convert_indices_from_csr_to_coo(parts.compressed.to(DType::Int64), parts.indices.to(DType::Int64), false,
                                          !by_rows(self.layout()));
}

Tensor compressed_to_strided(const Tensor& self) {
  const SparseParts& parts = sparse_parts(self);
  Tensor places = compressed_places(self);
  int64_t block_rows = in_blocks(self.layout()) ? parts.values.size(1) : 1;
  int64_t block_columns = in_blocks(self.layout()) ? parts.values.size(2) : 1;
  int64_t down = self.size(0) / block_rows, across = self.size(1) / block_columns;
  Tensor out = zeros({down * across, block_rows, block_columns}, {.dtype = self.dtype(), .device = self.device()});
  out = out.index_add(0, places.select(0, 0) * Scalar(across) + places.select(0, 1),
                      parts.values.reshape({-1, block_rows, block_columns}));
  return out.reshape({down, across, block_rows, block_columns}).permute({0, 2, 1, 3}).reshape(self.sym_sizes());
}

/// The places of the elements of blocks, from the places of the blocks.
Tensor places_in_blocks(const Tensor& blocks, const Tensor& values) {
  int64_t count = values.size(0), height = values.size(1), width = values.size(2);
  Tensor rows = (blocks.select(0, 0) * Scalar(height)).view({count, 1, 1}) + counting(height, blocks).view({1, -1, 1});
  Tensor columns = (blocks.select(0, 1) * Scalar(width)).view({count, 1, 1}) + counting(width, blocks).view({1, 1, -1});
  return stack(
      {rows.expand({count, height, width}).reshape({-1}), columns.expand({count, height, width}).reshape({-1})}, 0);
}

}  // namespace

Tensor strided(const Tensor& sparse) {
  if (is_coo(sparse)) return coo_to_strided(sparse);
  return is_compressed(sparse.layout()) ? compressed_to_strided(sparse) : sparse;
}

Tensor as_coo(const Tensor& sparse) {
  if (is_coo(sparse)) return coalesced(sparse);
  const SparseParts& parts = sparse_parts(sparse);
  Tensor places = compressed_places(sparse);
  if (sparse.layout() == Layout::SparseCsr) return make_coo(places, parts.values, sparse.sym_sizes(), true);
  if (!in_blocks(sparse.layout())) return coalesced(make_coo(places, parts.values, sparse.sym_sizes()));
  return coalesced(make_coo(places_in_blocks(places, parts.values), parts.values.reshape({-1}), sparse.sym_sizes()));
}

Tensor as_compressed(const Tensor& coo, Layout layout) {
  const SparseParts& parts = sparse_parts(coo);
  if (layout == Layout::SparseCsr) {
    Tensor starts = _convert_indices_from_coo_to_csr(parts.indices.select(0, 0), coo.size(0));
    return make_sparse(
        layout, coo.sym_sizes(),
        {.indices = parts.indices.select(0, 1).contiguous(), .compressed = starts, .values = parts.values});
  }
  Tensor turned = coalesced(make_coo(parts.indices.flip({0}), parts.values, {coo.size(1), coo.size(0)}));
  return make_sparse(layout, coo.sym_sizes(), sparse_parts(as_compressed(turned, Layout::SparseCsr)));
}

// ---- places ----

Tensor counting(int64_t count, const Tensor& like) {
  return arange(Scalar(count), {.dtype = DType::Int64, .device = like.device()});
}

Tensor beside(const Tensor& per_element, const Tensor& values) {
  SymShape sizes(static_cast<size_t>(values.dim()), 1);
  sizes[0] = per_element.sym_size(0);
  return per_element.reshape(sizes);
}

Places find(const Tensor& sorted, const Tensor& wanted) {
  if (sorted.numel() == 0) return {zeros_like(wanted), zeros_like(wanted, DType::Bool)};
  Tensor at = searchsorted(sorted, wanted).clamp_max(Scalar(sorted.numel() - 1));
  return {at, sorted.index_select(0, at).eq(wanted)};
}

Tensor values_at(const Tensor& values, const Places& places) {
  SymShape sizes(values.sym_sizes());
  sizes[0] = places.at.sym_numel();
  if (values.size(0) == 0) return zeros(sizes, {.dtype = values.dtype(), .device = values.device()});
  return values.index_select(0, places.at).masked_fill(beside(places.found, values).logical_not(), Scalar(0));
}

Ranges ranges(const Tensor& starts, const Tensor& lengths) {
  Tensor group = repeat_interleave(lengths);
  Tensor before = lengths.cumsum(0) - lengths;  // how many elements the groups before this one have
  Tensor element = counting(group.numel(), group) + (starts - before).index_select(0, group);
  return {group, element};
}

// ---- refusals ----

void expect_sparse(const Tensor& self, const char* op) {
  check<NotImplementedError>(!is_strided(self), "Could not run 'aten::", op,
                             "' with arguments from the 'CPU' backend: it is defined for sparse tensors only");
}

void require_data(const Tensor& self, const char* op) {
  check<NotImplementedError>(!self.is_fake() && !self.is_meta(), op,
                             " of sparse tensors without data is not in Umbra yet");
}

}  // namespace umbra::ops::sparse
