#include "ops/sparse/structure.h"

#include <algorithm>
#include <numeric>

#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "ops/sparse/parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace sparse {
namespace {

/// CSR and CSC, BSR and BSC are each other's transposes, with the same indices.
Layout turned(Layout layout) {
  switch (layout) {
    case Layout::SparseCsr: return Layout::SparseCsc;
    case Layout::SparseCsc: return Layout::SparseCsr;
    case Layout::SparseBsr: return Layout::SparseBsc;
    default: return Layout::SparseBsr;
  }
}

/// Dimensions of a batch can be exchanged with each other, and the two of the matrices.
Tensor transpose_compressed(const Tensor& self, int64_t a, int64_t b) {
  int64_t batch = batch_dims(self);
  check(inner_dims(self) == 0, "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported");
  auto kind = [&](int64_t d) { return d < batch ? "(Batch)" : "(Sparse)"; };
  check((a < batch) == (b < batch),
        "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got ", a, kind(a), " and ",
        b, kind(b));
  SparseParts parts = sparse_parts(self);
  SymShape sizes(self.sym_sizes());
  std::swap(sizes[a], sizes[b]);
  if (b < batch) {
    for (Tensor* part : {&parts.indices, &parts.compressed, &parts.values}) *part = part->transpose(a, b);
    return make_sparse(self.layout(), sizes, std::move(parts));
  }
  if (in_blocks(self.layout())) parts.values = parts.values.transpose(batch + 1, batch + 2);
  return make_sparse(turned(self.layout()), sizes, std::move(parts));
}

}  // namespace

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  if (a == b) return self.detach();
  if (!is_coo(self)) return transpose_compressed(self, a, b);
  int64_t sparse_dim = sparse_dims(self);
  check(a < sparse_dim && b < sparse_dim,
        "sparse transpose: transposed dimensions must be sparse Got sparse_dim: ", sparse_dim, ", d0: ", a,
        ", d1: ", b);
  std::vector<int64_t> rows(static_cast<size_t>(sparse_dim));
  std::iota(rows.begin(), rows.end(), 0);
  std::swap(rows[static_cast<size_t>(a)], rows[static_cast<size_t>(b)]);
  SymShape sizes(self.sym_sizes());
  std::swap(sizes[a], sizes[b]);
  return make_coo(sparse_parts(self).indices.index_select(0, tensor(rows)), sparse_parts(self).values.clone(), sizes);
}

namespace {

void check_order(const std::vector<int64_t>& dims, int64_t rank, int64_t sparse_dim) {
  check(static_cast<int64_t>(dims.size()) == rank,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ",
        "ordering of dimensions i.e. input.dim() = ", rank, " is not equal to len(dims) = ", dims.size());
  std::vector<bool> seen(dims.size());
  for (int64_t d = 0; d < rank; ++d) {
    int64_t from = wrap_dim(dims[static_cast<size_t>(d)], rank);
    check(!seen[static_cast<size_t>(from)], "permute(): duplicate dims are not allowed.");
    seen[static_cast<size_t>(from)] = true;
    check(
        (from < sparse_dim) == (d < sparse_dim),
        "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions ",
        "within sparse and dense dimensions are supported.");
  }
}

}  // namespace

Tensor permute(const Tensor& self, const std::vector<int64_t>& dims) {
  check<NotImplementedError>(is_coo(self), "permute of a tensor of layout ", to_string(self.layout()),
                             " is not in Umbra yet");
  int64_t sparse_dim = sparse_dims(self);
  check_order(dims, self.dim(), sparse_dim);
  std::vector<int64_t> rows, inner{0};
  SymShape sizes;
  for (int64_t d : dims) {
    int64_t from = wrap_dim(d, self.dim());
    (from < sparse_dim ? rows : inner).push_back(from < sparse_dim ? from : from - sparse_dim + 1);
    sizes.push_back(self.sym_sizes()[from]);
  }
  bool same_rows = std::is_sorted(rows.begin(), rows.end());
  if (same_rows && std::is_sorted(inner.begin(), inner.end())) return self.detach();
  const SparseParts& parts = sparse_parts(self);
  return make_sparse(Layout::SparseCoo, sizes,
                     {.indices = rows.empty() ? parts.indices : parts.indices.index_select(0, tensor(rows)),
                      .values = parts.values.permute(inner),
                      .coalesced = same_rows && parts.coalesced});
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  check<NotImplementedError>(is_coo(self), "unsqueeze of a tensor of layout ", to_string(self.layout()),
                             " is not in Umbra yet");
  int64_t at = wrap_dim(dim, self.dim() + 1), sparse_dim = sparse_dims(self);
  const SparseParts& parts = sparse_parts(self);
  SymShape sizes(self.sym_sizes());
  sizes.insert(at, 1);
  if (at > sparse_dim) return make_coo(parts.indices, parts.values.unsqueeze(at - sparse_dim + 1), sizes);
  Tensor row = zeros({1, parts.indices.size(1)}, {.dtype = DType::Int64, .device = self.device()});
  Tensor indices = umbra::cat({parts.indices.slice(0, 0, at), row, parts.indices.slice(0, at)}, 0);
  return make_coo(indices, parts.values, sizes);
}

namespace {

/// The rows of indices without one of them.
Tensor without_row(const Tensor& indices, int64_t row) {
  return umbra::cat({indices.slice(0, 0, row), indices.slice(0, row + 1)}, 0);
}

/// One matrix of a batch, or one place of the dense dimensions.
Tensor select_matrices(const Tensor& self, int64_t at, int64_t index) {
  SparseParts parts = sparse_parts(self);
  SymShape sizes(self.sym_sizes());
  sizes.erase(at);
  bool inner = at >= batch_dims(self);
  parts.values = parts.values.select(inner ? at - self.dim() : at, index);
  if (inner) return make_sparse(self.layout(), sizes, std::move(parts));
  parts.indices = parts.indices.select(at, index);
  parts.compressed = parts.compressed.select(at, index);
  return make_sparse(self.layout(), sizes, std::move(parts));
}

}  // namespace

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  int64_t at = wrap_dim(dim, self.dim()), size = self.size(at);
  check<IndexError>(index >= -size && index < size, "select(): index ", index, " out of range for tensor of size ",
                    to_string(self.sizes()), " at dimension ", at);
  if (index < 0) index += size;
  require_data(self, "select");
  if (is_compressed(self.layout()) && (at < batch_dims(self) || at > batch_dims(self) + 1))
    return select_matrices(self, at, index);
  check(is_coo(self) || batch_dims(self) == 0,
        "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.");
  Tensor elements = is_coo(self) ? self : as_coo(self);
  const SparseParts& parts = sparse_parts(elements);
  SymShape sizes(self.sym_sizes());
  sizes.erase(at);
  if (int64_t inner = at - sparse_dims(elements); inner >= 0)
    return make_coo(parts.indices, parts.values.select(inner + 1, index), sizes);
  Tensor chosen = parts.indices.select(0, at).eq(Scalar(index)).nonzero().reshape({-1});
  Tensor values = parts.values.index_select(0, chosen);
  if (sparse_dims(elements) == 1) return values.sum(IntArrayRef{0}, false, values.dtype());
  return make_coo(without_row(parts.indices, at).index_select(1, chosen), values, sizes, !is_coo(self));
}

Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check<NotImplementedError>(is_coo(self), "narrow_copy of a tensor of layout ", to_string(self.layout()),
                             " is not in Umbra yet");
  int64_t at = wrap_dim(dim, self.dim());
  check(length >= 0, "narrow(): length must be non-negative.");
  check(start >= 0 && start + length <= self.size(at), "Invalid range to narrow. range(start, start+length) must be a ",
        "subset of range(0, ", self.size(at), ").");
  require_data(self, "narrow_copy");
  const SparseParts& parts = sparse_parts(self);
  SymShape sizes(self.sym_sizes());
  sizes[at] = length;
  if (int64_t inner = at - sparse_dims(self); inner >= 0)
    return make_sparse(Layout::SparseCoo, sizes,
                       {.indices = parts.indices.clone(),
                        .values = parts.values.narrow(inner + 1, start, length).clone(),
                        .coalesced = parts.coalesced});
  Tensor row = parts.indices.select(0, at);
  Tensor chosen = row.ge(Scalar(start)).logical_and(row.lt(Scalar(start + length))).nonzero().reshape({-1});
  Tensor indices = parts.indices.index_select(1, chosen);
  indices.select(0, at).sub_(Scalar(start));
  return make_sparse(
      Layout::SparseCoo, sizes,
      {.indices = indices, .values = parts.values.index_select(0, chosen), .coalesced = parts.coalesced});
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check<NotImplementedError>(is_coo(self), "Could not run 'aten::index_select' with arguments from the 'SparseCsrCPU' ",
                             "backend: it is not defined for tensors of layout ", to_string(self.layout()),
                             " in Umbra yet");
  check<IndexError>(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  check<IndexError>(index.dim() == 1 && (index.dtype() == DType::Int64 || index.dtype() == DType::Int32),
                    "index_select() argument index must be 1-D long-tensor or int-tensor.");
  require_data(self, "index_select");
  int64_t at = wrap_dim(dim, self.dim()), size = self.size(at);
  Tensor wanted = index.to(DType::Int64);
  for (int64_t i : {int64_t{0}, int64_t{1}}) {
    if (wanted.numel() == 0) break;
    int64_t extreme = (i ? wanted.amax() : wanted.amin()).item().to_int();
    check<IndexError>(extreme >= -size && extreme < size, "index_select(): index contains ", extreme,
                      " that is out of range for tensor of size ", to_string(self.sizes()), " at dimension ", at);
  }
  wanted = where(wanted.lt(Scalar(0)), wanted + Scalar(size), wanted);
  const SparseParts& parts = sparse_parts(self);
  SymShape sizes(self.sym_sizes());
  sizes[at] = wanted.numel();
  if (int64_t inner = at - sparse_dims(self); inner >= 0)
    return make_sparse(Layout::SparseCoo, sizes,
                       {.indices = parts.indices,
                        .values = parts.values.index_select(inner + 1, wanted),
                        .coalesced = parts.coalesced});
  auto [sorted, order] = parts.indices.select(0, at).contiguous().sort(true, 0, false);
  Tensor first = searchsorted(sorted, wanted), last = searchsorted(sorted, wanted, false, true);
  Ranges chosen = ranges(first, last - first);
  Tensor elements = order.index_select(0, chosen.element);
  Tensor indices = parts.indices.index_select(1, elements);
  indices.select(0, at).copy_(chosen.group);
  return make_coo(indices, parts.values.index_select(0, elements), sizes);
}

namespace {

/// What tensors that are put one behind the other along `at` have to have in common.
void check_joinable(ArrayRef<Tensor> tensors, int64_t at) {
  const Tensor& first = tensors[0];
  int64_t sparse_dim = sparse_dims(first);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    bool fits = t.dim() == first.dim();
    for (int64_t d = 0; fits && d < first.dim(); ++d) fits &= d == at || t.size(d) == first.size(d);
    check(fits, "All tensors must have the same shape: ", to_string(first.sizes()),
          " (except in the concatenating dimension), but found shape: ", to_string(t.sizes()), " at position ", i, ".");
    check(sparse_dims(t) == sparse_dim, "All tensors must have the same sparse_dim and dense_dim: ", sparse_dim, ", ",
          first.dim() - sparse_dim, ", but tensor at position ", i, " has ", sparse_dims(t), ", ",
          t.dim() - sparse_dims(t), ".");
  }
}

/// Values with zeros where the tensors before and behind have theirs.
Tensor with_gaps(const Tensor& values, int64_t dim, int64_t before, int64_t behind) {
  auto gap = [&](int64_t size) {
    SymShape sizes(values.sym_sizes());
    sizes[dim] = size;
    return zeros(sizes, {.dtype = values.dtype(), .device = values.device()});
  };
  return umbra::cat({gap(before), values, gap(behind)}, dim);
}

}  // namespace

Tensor cat(ArrayRef<Tensor> tensors, int64_t dim) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(!is_strided(tensors[i]), "Concatenating sparse tensors, but a dense tensor was found at position ", i, ".");
    check<NotImplementedError>(is_coo(tensors[i]), "cat of tensors of layout ", to_string(tensors[i].layout()),
                               " is not in Umbra yet");
  }
  const Tensor& first = tensors[0];
  int64_t at = wrap_dim(dim, first.dim()), sparse_dim = sparse_dims(first), total = 0, before = 0;
  check_joinable(tensors, at);
  for (const Tensor& t : tensors) total += t.size(at);
  std::vector<Tensor> indices, values;
  for (const Tensor& t : tensors) {
    const SparseParts& parts = sparse_parts(t);
    indices.push_back(at < sparse_dim ? parts.indices.clone() : parts.indices);
    if (at < sparse_dim) indices.back().select(0, at).add_(Scalar(before));
    values.push_back(at < sparse_dim
                         ? parts.values
                         : with_gaps(parts.values, at - sparse_dim + 1, before, total - before - t.size(at)));
    before += t.size(at);
  }
  SymShape sizes(first.sym_sizes());
  sizes[at] = total;
  return make_coo(umbra::cat(indices, 1), umbra::cat(values, 0), sizes);
}

// ---- without elements ----

Tensor without_elements(Layout layout, SymIntArrayRef sizes, DType dtype, Device device, int64_t sparse_dim) {
  TensorOptions values{.dtype = dtype, .device = device}, integers{.dtype = DType::Int64, .device = device};
  for (SymInt s : sizes)
    check(s.is_symbolic() || s.value() >= 0, "Trying to create tensor with negative dimension ", s, ": ",
          to_string(sizes));
  if (layout == Layout::SparseCoo) {
    SymShape dense{0};
    for (size_t d = static_cast<size_t>(sparse_dim); d < sizes.size(); ++d) dense.push_back(sizes[d]);
    return make_coo(zeros({sparse_dim, 0}, integers), zeros(dense, values), sizes, true);
  }
  check<NotImplementedError>(is_compressed(layout) && !in_blocks(layout) && sizes.size() >= 2, "a tensor of layout ",
                             to_string(layout), " and sizes ", to_string(sizes),
                             " without elements is not in Umbra yet");
  SymShape none(sizes.drop_back().drop_back()), starts(none);
  starts.push_back(sizes[sizes.size() - (by_rows(layout) ? 2 : 1)] + 1);
  none.push_back(0);
  return make_sparse(
      layout, sizes,
      {.indices = zeros(none, integers), .compressed = zeros(starts, integers), .values = zeros(none, values)});
}

Tensor without_elements_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device) {
  DType type = dtype.value_or(self.dtype());
  Device where = device.value_or(self.device());
  if (is_coo(self)) return without_elements(Layout::SparseCoo, self.sym_sizes(), type, where, sparse_dims(self));
  const SparseParts& parts = sparse_parts(self);
  SymShape values(parts.values.sym_sizes()), plain(parts.indices.sym_sizes());
  values[batch_dims(self)] = plain[batch_dims(self)] = 0;
  TensorOptions integers{.dtype = parts.indices.dtype(), .device = where};
  return make_sparse(self.layout(), self.sym_sizes(),
                     {.indices = zeros(plain, integers),
                      .compressed = zeros(parts.compressed.sym_sizes(), integers),
                      .values = zeros(values, {.dtype = type, .device = where})});
}

}  // namespace sparse

namespace {

using namespace sparse;

// ---- matrices of diagonals ----

void check_diagonals(const Tensor& diagonals, const Tensor& offsets, IntArrayRef shape, Layout layout) {
  check(diagonals.dim() == 2, "Diagonals must be vector or matrix");
  check(shape.size() == 2, "Output shape must be 2d");
  check(layout == Layout::SparseCoo || layout == Layout::SparseCsr || layout == Layout::SparseCsc,
        "Only output layouts (", "Sparse, SparseCsc, SparseCsr) are supported, got ", short_name(layout));
  check(offsets.dim() == 1, "Offsets must be scalar or vector");
  check(diagonals.size(0) == offsets.size(0), "Number of diagonals (", diagonals.size(0),
        ") does not match the number of offsets (", offsets.size(0), ")");
  check(offsets.dtype() == DType::Int64, "Offset Tensor must have dtype Long but got ", kernel_name(offsets.dtype()));
  Tensor sorted = std::get<0>(offsets.sort());
  check(std::get<0>(unique_consecutive(sorted)).numel() == offsets.numel(), "Offset tensor contains duplicate values");
}

Tensor from_diagonals(const Tensor& given, const Tensor& given_offsets, const std::vector<int64_t>& shape,
                      std::optional<Layout> layout) {
  Tensor diagonals = given.dim() == 1 ? given.unsqueeze(0) : given;
  Tensor offsets = given_offsets.dim() == 0 ? given_offsets.unsqueeze(0) : given_offsets;
  check_diagonals(diagonals, offsets, shape, layout.value_or(Layout::SparseCoo));
  // An element's column is its place on the diagonal; rows go along with the offset.
  Tensor columns = counting(diagonals.size(1), diagonals).unsqueeze(0).expand(diagonals.sym_sizes());
  Tensor rows = columns - offsets.unsqueeze(1);
  Tensor inside = rows.ge(Scalar(0)).logical_and(rows.lt(Scalar(shape[0]))).logical_and(columns.lt(Scalar(shape[1])));
  Tensor chosen = inside.reshape({-1}).nonzero().reshape({-1});
  auto taken = [&](const Tensor& t) { return t.reshape({-1}).index_select(0, chosen); };
  Tensor out = make_coo(stack({taken(rows), taken(columns)}, 0), taken(diagonals), as_sym(shape));
  return layout.value_or(Layout::SparseCoo) == Layout::SparseCoo ? out : as_compressed(coalesced(out), *layout);
}

UMBRA_OPERATOR("_spdiags(Tensor diagonals, Tensor offsets, int[] shape, Layout? layout=None) -> Tensor")
    .all_backends(from_diagonals)
    .use(NeedsData{});

// ---- other sizes ----

void resize_sparse(const Tensor& self, const std::vector<int64_t>& size, int64_t sparse_dim, int64_t dense_dim,
                   bool clear) {
  check(is_coo(self), "sparse_resize_ expected sparse coordinate tensor layout but got ", short_name(self.layout()));
  check(static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
        ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
  bool empty = clear || element_count(self) == 0;
  if (empty) {
    Tensor fresh = without_elements(Layout::SparseCoo, as_sym(size), self.dtype(), self.device(), sparse_dim);
    return set_sparse(self, as_sym(size), sparse_parts(fresh));
  }
  bool grows = sparse_dim == sparse_dims(self) && dense_dim == self.dim() - sparse_dim;
  check(grows, "changing the number of sparse or dense dimensions of a non-empty sparse tensor is not supported");
  for (int64_t d = 0; d < self.dim(); ++d) grows &= size[static_cast<size_t>(d)] >= self.size(d);
  check(grows, "shrinking the size of ", "dimensions of a non-empty sparse tensor is not supported");
  check<NotImplementedError>(
      dense_dim == 0 || std::equal(size.begin() + sparse_dim, size.end(), self.sizes().begin() + sparse_dim),
      "sparse_resize_ of dense dimensions is not in Umbra yet");
  SparseParts parts = sparse_parts(self);
  set_sparse(self, as_sym(size), std::move(parts));
}

UMBRA_OPERATOR("sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)")
    .sparse([](const Tensor& self, const std::vector<int64_t>& size, int64_t sparse_dim, int64_t dense_dim) {
      resize_sparse(self, size, sparse_dim, dense_dim, false);
      return self;
    })
    .all_backends([](const Tensor& self, const std::vector<int64_t>&, int64_t, int64_t) -> Tensor {
      refuse_strided(self, "sparse_resize_");
    })
    .use(NothingOnMeta{});
UMBRA_OPERATOR("sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)")
    .sparse([](const Tensor& self, const std::vector<int64_t>& size, int64_t sparse_dim, int64_t dense_dim) {
      resize_sparse(self, size, sparse_dim, dense_dim, true);
      return self;
    })
    .all_backends([](const Tensor& self, const std::vector<int64_t>&, int64_t, int64_t) -> Tensor {
      refuse_strided(self, "sparse_resize_and_clear_");
    })
    .use(NothingOnMeta{});

/// Another compressed tensor's sizes and places; the elements are kept where the places are as many as before.
void resize_compressed_like(const Tensor& self, const Tensor& other) {
  for (const auto& [name, t] : {std::pair("self ", &self), {"src ", &other}})
    check(is_compressed(t->layout()), "resize_as_sparse_compressed_: ", name,
          " expected sparse compressed tensor layout but got ", short_name(t->layout()));
  check(self.layout() == other.layout(),
        "resize_as_sparse_compressed_: self and src must have the same layout, but got ", short_name(self.layout()),
        " and ", short_name(other.layout()));
  if (self.sizes() == other.sizes() && element_count(self) == element_count(other)) return;
  const SparseParts& of = sparse_parts(other);
  set_sparse(self, other.sym_sizes(),
             {.indices = of.indices.clone(),
              .compressed = of.compressed.clone(),
              .values = zeros_like(of.values, self.dtype())});
}

Tensor resize_as_sparse(const Tensor& self, const Tensor& other) {
  if (is_coo(self))
    resize_sparse(self, {other.sizes().begin(), other.sizes().end()}, other.sparse_dim(), other.dense_dim(), false);
  else resize_compressed_like(self, other);
  return self;
}

UMBRA_OPERATOR("resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)")
    .sparse(resize_as_sparse)
    .all_backends(resize_as_sparse)
    .use(NothingOnMeta{});

}  // namespace
}  // namespace umbra::ops
