#include "ops/sparse/parts.h"

#include "umbra/core/grad_mode.h"

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
  Tensor position = zeros({indices.sym_size(1)}, {.dtype = DType::Int64, .device = indices.device()});
  for (int64_t d = 0; d < indices.size(0); ++d) position = position * Scalar(sizes[d]) + indices.select(0, d);
  return position;
}

bool in_order(const Tensor& indices, IntArrayRef sizes) {
  Tensor places = flat_positions(indices.to(DType::Int64), sizes);
  return places.slice(0, 1).gt(places.slice(0, 0, -1)).all().item().to_bool();
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

/// The elements or blocks of a compressed tensor, those of all matrices of a batch one after the other.
Tensor flat_values(const Tensor& self) { return sparse_parts(self).values.flatten(0, batch_dims(self)); }

Tensor compressed_to_strided(const Tensor& self) {
  int64_t batch = batch_dims(self);
  Tensor values = flat_values(self);
  if (!in_blocks(self.layout())) values = values.unsqueeze(1).unsqueeze(1);
  // Blocks come first: [batch..., down, across], then what is in each of them.
  std::vector<int64_t> blocks(self.sizes().begin(), self.sizes().begin() + batch + 2), inside, whole;
  blocks[static_cast<size_t>(batch)] /= values.size(1);
  blocks[static_cast<size_t>(batch) + 1] /= values.size(2);
  for (int64_t d = 1; d < values.dim(); ++d) inside.push_back(values.size(d));
  whole = blocks;
  whole.insert(whole.end(), inside.begin(), inside.end());
  Tensor out = zeros(as_sym(whole), {.dtype = self.dtype(), .device = self.device()}).flatten(0, batch + 1);
  out = out.index_add(0, flat_positions(compressed_places(self), blocks), values);
  return out.reshape(as_sym(whole)).transpose(batch + 1, batch + 2).reshape(self.sym_sizes());
}

/// The places of the elements of blocks, from the places of the blocks.
Tensor places_in_blocks(const Tensor& blocks, const Tensor& values) {
  int64_t count = values.size(0), height = values.size(1), width = values.size(2), rank = blocks.size(0);
  std::vector<Tensor> places;
  for (int64_t d = 0; d < rank; ++d) {
    Tensor place = blocks.select(0, d).view({count, 1, 1});
    if (d == rank - 2) place = place * Scalar(height) + counting(height, blocks).view({1, -1, 1});
    if (d == rank - 1) place = place * Scalar(width) + counting(width, blocks).view({1, 1, -1});
    places.push_back(place.expand({count, height, width}).reshape({-1}));
  }
  return stack(places, 0);
}

}  // namespace

std::pair<int64_t, int64_t> block_size(const Tensor& compressed) {
  if (!in_blocks(compressed.layout())) return {1, 1};
  const Tensor& values = sparse_parts(compressed).values;
  return {values.size(batch_dims(compressed) + 1), values.size(batch_dims(compressed) + 2)};
}

Tensor compressed_places(const Tensor& compressed) {
  const SparseParts& parts = sparse_parts(compressed);
  return _convert_indices_from_csr_to_coo(parts.compressed.to(DType::Int64), parts.indices.to(DType::Int64), false,
                                          !by_rows(compressed.layout()));
}

Tensor as_blocks(const Tensor& strided, int64_t batch, std::pair<int64_t, int64_t> block) {
  auto [height, width] = block;
  SymShape sizes(strided.sym_sizes());
  sizes[batch] = strided.size(batch) / height;
  sizes[batch + 1] = strided.size(batch + 1) / width;
  sizes.insert(batch + 1, height);
  sizes.insert(batch + 3, width);
  return strided.reshape(sizes).transpose(batch + 1, batch + 2);
}

Tensor strided(const Tensor& sparse) {
  if (is_coo(sparse)) return coo_to_strided(sparse);
  return is_compressed(sparse.layout()) ? compressed_to_strided(sparse) : sparse;
}

Tensor as_coo(const Tensor& sparse) { return coalesced(is_coo(sparse) ? sparse : elements_of(sparse)); }

Tensor elements_of(const Tensor& sparse) {
  Tensor places = compressed_places(sparse), values = flat_values(sparse);
  // Nobody has checked that the columns of a row are in order.
  auto ordered = [&] { return sparse.is_fake() || in_order(places, sparse.sizes()); };
  if (!in_blocks(sparse.layout()))
    return make_coo(places, values, sparse.sym_sizes(), sparse.layout() == Layout::SparseCsr && ordered());
  places = places_in_blocks(places, values);
  bool one_row = sparse.layout() == Layout::SparseBsr && block_size(sparse).first == 1 && batch_dims(sparse) == 0;
  return make_coo(places, values.flatten(0, 2), sparse.sym_sizes(), one_row && ordered());
}

Tensor as_blocks_of(const Tensor& blocks, Layout layout) {
  if (blocks.layout() == layout) return blocks;
  auto [height, width] = block_size(blocks);
  int64_t batch = batch_dims(blocks);
  Tensor values = flat_values(blocks);
  SymShape sizes(blocks.sym_sizes());
  sizes[batch] = blocks.size(batch) / height;
  sizes[batch + 1] = blocks.size(batch + 1) / width;
  sizes.insert(batch + 2, height);
  sizes.insert(batch + 3, width);
  Tensor elements = coalesced(make_coo(compressed_places(blocks), values, sizes));  // each block is an element
  Tensor compressed = as_compressed(elements, by_rows(layout) ? Layout::SparseCsr : Layout::SparseCsc);
  return make_sparse(layout, blocks.sym_sizes(), sparse_parts(compressed));
}

Tensor with_index_type_of(const Tensor& compressed, const Tensor& like) {
  if (!is_compressed(like.layout())) return compressed;
  SparseParts parts = sparse_parts(compressed);
  DType dtype = sparse_parts(like).indices.dtype();
  parts.indices = parts.indices.to(dtype);
  parts.compressed = parts.compressed.to(dtype);
  return make_sparse(compressed.layout(), compressed.sym_sizes(), std::move(parts));
}

namespace {

/// Where each row of each matrix begins among the elements of its matrix, of which all have as many.
Tensor row_starts(const Tensor& coo, int64_t matrices, int64_t count) {
  int64_t rank = sparse_dims(coo), rows = coo.size(rank - 2);
  Tensor row = flat_positions(sparse_parts(coo).indices.slice(0, 0, rank - 1), coo.sizes());
  Tensor starts = _convert_indices_from_coo_to_csr(row, matrices * rows);
  if (rank == 2) return starts;
  Tensor before = counting(matrices, row).mul(Scalar(count)).unsqueeze(1);  // elements of the matrices before
  Tensor own = rows == 0 ? zeros({matrices, 1}, {.dtype = DType::Int64}) : starts.unfold(0, rows + 1, rows) - before;
  check(matrices == 0 || count == 0 || own.select(1, 0).any().item().to_bool() == false,
        "Expect the same number of specified elements per batch.");
  return own;
}

/// The same elements with rows and columns of the matrices exchanged, in order.
Tensor with_matrices_turned(const Tensor& coo) {
  int64_t rank = sparse_dims(coo);
  Tensor indices = sparse_parts(coo).indices;
  SymShape sizes(coo.sym_sizes());
  std::swap(sizes[rank - 2], sizes[rank - 1]);
  Tensor turned = cat({indices.slice(0, 0, rank - 2), indices.slice(0, rank - 2).flip({0})}, 0);
  return coalesced(make_coo(turned, sparse_parts(coo).values, sizes));
}

}  // namespace

Tensor as_compressed(const Tensor& coo, Layout layout) {
  if (layout == Layout::SparseCsc)
    return make_sparse(layout, coo.sym_sizes(),
                       sparse_parts(as_compressed(with_matrices_turned(coo), Layout::SparseCsr)));
  const SparseParts& parts = sparse_parts(coo);
  int64_t rank = sparse_dims(coo), matrices = 1;
  check(rank >= 2, "expected a tensor with two sparse dimensions or more, but got ", rank);
  SymShape batch(coo.sym_sizes().slice(0, static_cast<size_t>(rank - 2)));
  for (int64_t d = 0; d < rank - 2; ++d) matrices *= coo.size(d);
  int64_t count = matrices == 0 ? 0 : element_count(coo) / matrices;
  check(count * matrices == element_count(coo), "Expect the same number of specified elements per batch.");
  auto batched = [&](const Tensor& flat, int64_t inner) {
    SymShape sizes(batch);
    sizes.push_back(count);
    for (int64_t d = 1; d < inner; ++d) sizes.push_back(flat.size(d));
    return flat.reshape(sizes);
  };
  SymShape starts(batch);
  starts.push_back(coo.size(rank - 2) + 1);
  return make_sparse(layout, coo.sym_sizes(),
                     {.indices = batched(parts.indices.select(0, rank - 1).contiguous(), 1),
                      .compressed = row_starts(coo, matrices, count).reshape(starts),
                      .values = batched(parts.values, parts.values.dim())});
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

void refuse_strided(const Tensor& self, const char* op) {
  check(!self.requires_grad() || !is_grad_enabled(),
        "a leaf Variable that requires grad is being used in an in-place operation.");
  fail<NotImplementedError>("Could not run 'aten::", op,
                            "' with arguments from the 'CPU' backend: it is defined for sparse tensors only");
}

void require_data(const Tensor& self, const char* op) {
  check<NotImplementedError>(!self.is_fake() && !self.is_meta(), op,
                             " of sparse tensors without data is not in Umbra yet");
}

}  // namespace umbra::ops::sparse
