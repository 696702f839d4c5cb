// Sparse tensors: made of their parts, taken apart again, and turned into strided ones and back. What else is done with
// them is refused by name.
#include "umbra/core/sparse.h"

#include "ops/common/factory_arguments.h"
#include "ops/common/needs_data.h"
#include "umbra/core/grad_mode.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace {

using OptionalInt = std::optional<int64_t>;

// ---- checks ----

/// Captures know tensors by identity and would keep the parts as constants; derivatives would stop here.
void check_plain(const Tensor& part) {
  constexpr DispatchKeySet kPlain = kBackendKeys | DispatchKey::Sparse | DispatchKey::Autograd | DispatchKey::UserMode;
  bool plain = (part.keys() - kPlain).empty() && (dispatch_state().include - kPlain).empty();
  check<NotImplementedError>(plain,
                             "making a sparse tensor inside a capture, a transform or FakeMode is not in Umbra yet");
  check<NotImplementedError>(!part.requires_grad() || !is_grad_enabled(),
                             "a sparse tensor of values that require gradients is not in Umbra yet");
}

bool has_data(const Tensor& tensor) { return !tensor.is_meta() && tensor.numel() > 0; }

void check_coo_shapes(const Tensor& indices, const Tensor& values, size_t rank) {
  check(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sym_sizes());
  check(!is_floating(indices.dtype()) && !is_complex(indices.dtype()), "indices must be an int64 tensor");
  check(values.dim() > 0 && indices.size(1) == values.size(0),
        "indices and values must have same nnz, but got nnz from indices: ", indices.size(1),
        ", nnz from values: ", values.dim() > 0 ? values.size(0) : 0);
  int64_t sparse_dim = indices.size(0), dense_dim = values.dim() - 1;
  check(static_cast<int64_t>(rank) == sparse_dim + dense_dim,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", rank, ", sparse_dim = ", sparse_dim,
        ", dense_dim = ", dense_dim);
}

void check_coo_bounds(const Tensor& indices, const Tensor& values, IntArrayRef size) {
  int64_t sparse_dim = indices.size(0);
  for (int64_t d = 0; d < sparse_dim && has_data(indices); ++d) {
    Tensor row = indices.select(0, d).to(DType::Int64);
    int64_t least = row.amin().item().to_int(), most = row.amax().item().to_int();
    check(least >= 0, "found negative index ", least, " for dim ", d);
    check(most < size[d], "size is inconsistent with indices: for dim ", d, ", size is ", size[d], " but found index ",
          most);
  }
  for (int64_t d = 1; d < values.dim(); ++d)
    check(values.size(d) == size[sparse_dim + d - 1], "values has incorrect size, expected ",
          to_string(size.slice(static_cast<size_t>(sparse_dim), size.size() - static_cast<size_t>(sparse_dim))),
          ", got ", to_string(values.sizes().slice(1, values.sizes().size() - 1)));
}

/// Which of the last two dimensions the compressed indices run over: rows or columns.
bool by_rows(Layout layout) { return layout == Layout::SparseCsr || layout == Layout::SparseBsr; }
bool in_blocks(Layout layout) { return layout == Layout::SparseBsr || layout == Layout::SparseBsc; }

void check_compressed(Layout layout, const Tensor& compressed, const Tensor& plain, const Tensor& values,
                      IntArrayRef size) {
  const char* compressed_name = by_rows(layout) ? "crow_indices" : "ccol_indices";
  const char* plain_name = by_rows(layout) ? "col_indices" : "row_indices";
  check<NotImplementedError>(size.size() == 2 && compressed.dim() == 1 && values.dim() == (in_blocks(layout) ? 3 : 1),
                             "batched tensors of layout ", to_string(layout),
                             " and ones with dense dimensions are not in Umbra yet");
  check(plain.dim() == 1 && plain.size(0) == values.size(0), plain_name,
        " and values must have the same number of elements, but got ", plain.sym_sizes(), " and ", values.sym_sizes());
  int64_t block_rows = in_blocks(layout) ? values.size(1) : 1, block_columns = in_blocks(layout) ? values.size(2) : 1;
  check(block_rows > 0 && block_columns > 0, "expected a blocksize of positive numbers, but got (", block_rows, ", ",
        block_columns, ")");
  int64_t rows = size[0] / block_rows, columns = size[1] / block_columns;
  check(rows * block_rows == size[0] && columns * block_columns == size[1], "tensor size ", to_string(size),
        " must be divisible by the blocksize (", block_rows, ", ", block_columns, ")");
  int64_t groups = by_rows(layout) ? rows : columns, places = by_rows(layout) ? columns : rows;
  check(compressed.size(0) == groups + 1, compressed_name, ".shape[-1] must be equal to the number of ",
        by_rows(layout) ? "rows" : "columns", " + 1 (=", groups + 1, "), but got ", compressed.size(0));
  if (!has_data(compressed)) return;
  check(compressed.select(0, 0).item().to_int() == 0, "`", compressed_name, "[..., 0] == 0` is not satisfied.");
  check(compressed.select(0, -1).item().to_int() == values.size(0), "`", compressed_name,
        "[..., -1] == nnz` is not satisfied.");
  Tensor lengths = compressed.slice(0, 1) - compressed.slice(0, 0, -1);
  check(lengths.numel() == 0 || lengths.amin().item().to_int() >= 0, "`", compressed_name,
        "` must not fall from one entry to the next");
  if (!has_data(plain)) return;
  check(plain.amin().item().to_int() >= 0 && plain.amax().item().to_int() < places, "`0 <= ", plain_name, " < ", places,
        "` is not satisfied.");
}

// ---- making them ----

Tensor make_coo(const Tensor& indices, const Tensor& values, IntArrayRef size, OptionalBool coalesced) {
  check_plain(values);
  check_coo_shapes(indices, values, size.size());
  check_coo_bounds(indices, values, size);
  return make_sparse(Layout::SparseCoo, as_sym(size),
                     {.indices = indices.to(DType::Int64), .values = values, .coalesced = coalesced.value_or(false)});
}

/// Options that a tensor made of parts follows from its parts.
void check_options(Layout made, OptionalLayout layout, OptionalDevice device, const Tensor& values, OptionalBool pin) {
  check(!layout || *layout == made, "expected layout ", to_string(made), ", but got ",
        to_string(layout.value_or(made)));
  check(!device || device->type == values.device().type, "expected the device of the values, ",
        to_string(values.device()), ", but got ", to_string(device.value_or(Device())));
  check(!pin.value_or(false), "Cannot access accelerator device when none is available.");
}

Tensor converted(const Tensor& values, OptionalDType dtype) { return dtype ? values.to(*dtype) : values; }

std::vector<int64_t> size_of(const Tensor& indices, const Tensor& values) {
  check(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sym_sizes());
  std::vector<int64_t> size;
  for (int64_t d = 0; d < indices.size(0); ++d)
    size.push_back(has_data(indices) ? indices.select(0, d).to(DType::Int64).amax().item().to_int() + 1 : 0);
  for (int64_t d = 1; d < values.dim(); ++d) size.push_back(values.size(d));
  return size;
}

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalDType dtype,
                  OptionalLayout layout, OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      indices.sym_size(0);  // a number is an IndexError
      check_options(Layout::SparseCoo, layout, device, values, pin);
      return make_coo(indices, converted(values, dtype), guard_ints(size), coalesced);
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      check_options(Layout::SparseCoo, layout, device, values, pin);
      check_coo_shapes(indices, values,
                       static_cast<size_t>(indices.dim() == 2 ? indices.size(0) + values.dim() - 1 : 0));
      return make_coo(indices, converted(values, dtype), size_of(indices, values), coalesced);
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=False) -> Tensor")
    .composite([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout, OptionalDevice device, OptionalBool) {
      for (SymInt s : size)
        check(s.is_symbolic() || s.value() >= 0, "Trying to create tensor with negative dimension ", s, ": ",
              to_string(size));
      TensorOptions options{.dtype = DType::Int64, .device = device};
      Tensor indices = zeros({static_cast<int64_t>(size.size()), 0}, options);
      options.dtype = dtype;
      return make_coo(indices, zeros({0}, options), guard_ints(size), true);
    });

UMBRA_OPERATOR(
    "sparse_compressed_tensor.comp_plain_value_size(Tensor compressed_indices, Tensor plain_indices, Tensor values, "
    "SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> "
    "Tensor")
    .composite([](const Tensor& compressed, const Tensor& plain, const Tensor& values, SymIntArrayRef size,
                  OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
      check(layout && is_compressed(*layout),
            "sparse_compressed_tensor expected sparse compressed tensor layout but got ",
            short_name(layout.value_or(Layout::Strided)));
      check_options(*layout, layout, device, values, pin);
      check_plain(values);
      check_compressed(*layout, compressed, plain, values, guard_ints(size));
      return make_sparse(*layout, size,
                         {.indices = plain, .compressed = compressed, .values = converted(values, dtype)});
    });

// ---- taking them apart ----

void expect_layout(const Tensor& self, const char* what, bool holds, const char* kind) {
  check(holds, what, " expected ", kind, " but got ", short_name(self.layout()));
}
/// An operator that strided tensors have no kernel of.
void expect_no_strided(const Tensor& self, const char* op) {
  check<NotImplementedError>(self.layout() != Layout::Strided, "Could not run 'aten::", op,
                             "' with arguments from the 'CPU' backend: it is defined for sparse tensors only");
}
void expect_coo(const Tensor& self, const char* what) {
  expect_layout(self, what, self.layout() == Layout::SparseCoo, "sparse coordinate tensor layout");
}
void expect_rows(const Tensor& self, const char* what) {
  expect_layout(self, what, is_compressed(self.layout()) && by_rows(self.layout()),
                "sparse row compressed tensor layout");
}
void expect_columns(const Tensor& self, const char* what) {
  expect_layout(self, what, is_compressed(self.layout()) && !by_rows(self.layout()),
                "sparse column compressed tensor layout");
}
const SparseParts& coalesced_parts(const Tensor& self, const char* what) {
  const SparseParts& parts = sparse_parts(self);
  check(parts.coalesced, "Cannot get ", what, " on an uncoalesced tensor, please call .coalesce() first");
  return parts;
}

/// The part shares memory with the tensor, and not its history.
Tensor part_of(const Tensor& part) { return part.detach(); }

/// One function for tensors of any layout: it looks by itself.
template <class F> struct AnyLayout {
  F function;
  void operator()(OperatorBuilder& builder) const {
    builder.all_backends(function).sparse(function).not_differentiable();
  }
};
template <class F> AnyLayout(F) -> AnyLayout<F>;

UMBRA_OPERATOR("_nnz(Tensor self) -> int")
    .use(AnyLayout{[](const Tensor& self) {
      expect_no_strided(self, "_nnz");
      expect_layout(self, "_nnz", is_sparse(self.layout()), "sparse tensor layout");
      return sparse_parts(self).values.size(0);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("_indices(Tensor(a) self) -> Tensor(a)")
    .use(AnyLayout{[](const Tensor& self) {
      expect_no_strided(self, "_indices");
      expect_coo(self, "_indices");
      return part_of(sparse_parts(self).indices);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("_values(Tensor(a) self) -> Tensor(a)")
    .use(AnyLayout{[](const Tensor& self) {
      expect_no_strided(self, "_values");
      expect_coo(self, "_values");
      return part_of(sparse_parts(self).values);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_coo(self, "indices");
  return part_of(coalesced_parts(self, "indices").indices);
}});
UMBRA_OPERATOR("values(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_layout(self, "values", is_sparse(self.layout()), "sparse tensor layout");
  return part_of(self.layout() == Layout::SparseCoo ? coalesced_parts(self, "values").values
                                                    : sparse_parts(self).values);
}});
UMBRA_OPERATOR("crow_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_rows(self, "crow_indices");
  return part_of(sparse_parts(self).compressed);
}});
UMBRA_OPERATOR("col_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_rows(self, "col_indices");
  return part_of(sparse_parts(self).indices);
}});
UMBRA_OPERATOR("ccol_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_columns(self, "ccol_indices");
  return part_of(sparse_parts(self).compressed);
}});
UMBRA_OPERATOR("row_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_columns(self, "row_indices");
  return part_of(sparse_parts(self).indices);
}});
UMBRA_OPERATOR("is_coalesced(Tensor self) -> bool").use(AnyLayout{[](const Tensor& self) {
  expect_coo(self, "is_coalesced");
  return sparse_parts(self).coalesced;
}});
UMBRA_OPERATOR("sparse_dim(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) -> int64_t {
  if (self.layout() == Layout::SparseCoo) return sparse_parts(self).indices.size(0);
  return is_compressed(self.layout()) ? 2 : 0;
}});
UMBRA_OPERATOR("dense_dim(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) -> int64_t {
  if (self.layout() == Layout::SparseCoo) return sparse_parts(self).values.dim() - 1;
  return is_compressed(self.layout()) ? 0 : self.dim();
}});

// ---- strided and back ----

/// Where each element of a COO tensor stands in a row-major tensor of its sparse sizes.
Tensor flat_positions(const Tensor& indices, IntArrayRef size) {
  Tensor position = zeros({indices.size(1)}, {.dtype = DType::Int64, .device = indices.device()});
  for (int64_t d = 0; d < indices.size(0); ++d) position = position * Scalar(size[d]) + indices.select(0, d);
  return position;
}

Tensor coo_to_strided(const Tensor& self) {
  const SparseParts& parts = sparse_parts(self);
  int64_t sparse_dim = parts.indices.size(0);
  std::vector<int64_t> flat{1};
  for (int64_t d = 0; d < sparse_dim; ++d) flat[0] *= self.sizes()[d];
  for (int64_t d = sparse_dim; d < self.dim(); ++d) flat.push_back(self.sizes()[d]);
  Tensor out = zeros(as_sym(flat), {.dtype = self.dtype(), .device = self.device()});
  out = out.index_add(0, flat_positions(parts.indices, self.sizes()), parts.values);
  return out.reshape(self.sym_sizes());
}

/// The row of each element of a CSR tensor, from where the rows begin; columns alike.
Tensor expanded_groups(const Tensor& compressed, int64_t count) {
  Tensor places = arange(Scalar(count), {.dtype = DType::Int64, .device = compressed.device()});
  Tensor ends = compressed.slice(0, 1).to(DType::Int64).unsqueeze(0);
  return (places.unsqueeze(1) >= ends).sum({1}, false, DType::Int64);
}

Tensor compressed_to_strided(const Tensor& self) {
  const SparseParts& parts = sparse_parts(self);
  Tensor groups = expanded_groups(parts.compressed, parts.values.size(0)), places = parts.indices.to(DType::Int64);
  Tensor rows = by_rows(self.layout()) ? groups : places, columns = by_rows(self.layout()) ? places : groups;
  int64_t block_rows = in_blocks(self.layout()) ? parts.values.size(1) : 1;
  int64_t block_columns = in_blocks(self.layout()) ? parts.values.size(2) : 1;
  int64_t down = self.size(0) / block_rows, across = self.size(1) / block_columns;
  Tensor out = zeros({down * across, block_rows, block_columns}, {.dtype = self.dtype(), .device = self.device()});
  out = out.index_add(0, rows * Scalar(across) + columns, parts.values.reshape({-1, block_rows, block_columns}));
  return out.reshape({down, across, block_rows, block_columns}).permute({0, 2, 1, 3}).reshape(self.sym_sizes());
}

Tensor strided_to_coo(const Tensor& self, int64_t sparse_dim) {
  check(sparse_dim >= 0 && sparse_dim <= self.dim(), "dense_to_sparse: sparse_dim argument must be in [0,", self.dim(),
        "] range, but ", sparse_dim, " is given");
  check(sparse_dim > 0 || self.dim() == 0, "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  check<NotImplementedError>(sparse_dim > 0, "to_sparse of a tensor without sparse dimensions is not in Umbra yet");
  check_plain(self);
  Tensor mask = self != Scalar(0);
  if (sparse_dim < self.dim()) mask = mask.flatten(sparse_dim, -1).any(-1);
  Tensor indices = mask.nonzero().t();
  Tensor values = self.flatten(0, sparse_dim - 1).index_select(0, flat_positions(indices, self.sizes()));
  return make_sparse(Layout::SparseCoo, self.sym_sizes(), {.indices = indices, .values = values, .coalesced = true});
}

Tensor strided_to_compressed(const Tensor& self, Layout layout, std::pair<int64_t, int64_t> block) {
  check<NotImplementedError>(self.dim() == 2, "a tensor of layout ", to_string(layout),
                             " of other than two dimensions is not in Umbra yet");
  check_plain(self);
  auto [height, width] = block;
  check(height > 0 && width > 0 && self.size(0) % height == 0 && self.size(1) % width == 0, "dense_to_",
        to_string(layout).substr(6), ": tensor sparse size (", self.size(0), ",", self.size(1),
        ") must be divisible by given blocksize (", height, ",", width, ")");
  int64_t down = self.size(0) / height, across = self.size(1) / width;
  Tensor blocks = self.reshape({down, height, across, width}).permute({0, 2, 1, 3});
  if (!by_rows(layout)) blocks = blocks.transpose(0, 1);
  Tensor mask = (blocks != Scalar(0)).flatten(2, 3).any(-1);
  Tensor found = mask.nonzero();
  Tensor counts = mask.sum({1}, false, DType::Int64).cumsum(0);
  Tensor compressed = cat({zeros({1}, {.dtype = DType::Int64, .device = self.device()}), counts}, 0);
  Tensor values = blocks.flatten(0, 1).index_select(0, found.select(1, 0) * Scalar(mask.size(1)) + found.select(1, 1));
  if (!in_blocks(layout)) values = values.reshape({-1});
  return make_sparse(layout, self.sym_sizes(),
                     {.indices = found.select(1, 1).contiguous(), .compressed = compressed, .values = values});
}

Tensor strided_of(const Tensor& self) {
  if (self.layout() == Layout::SparseCoo) return coo_to_strided(self);
  return is_compressed(self.layout()) ? compressed_to_strided(self) : self;
}

UMBRA_OPERATOR("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, OptionalDType dtype, OptionalBool) {
      check<NotImplementedError>(is_sparse(self.layout()),
                                 "Could not run 'aten::_to_dense' with arguments from the 'CPU' backend: it is ",
                                 "for tensors that are not strided.");
      return converted(strided_of(self), dtype);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor")
    .composite([](const Tensor& self, OptionalDType dtype, OptionalBool masked_grad) {
      return is_sparse(self.layout()) ? _to_dense(self, dtype, masked_grad) : converted(self, dtype);
    });

UMBRA_OPERATOR("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, int64_t sparse_dim) {
      bool done = self.layout() == Layout::SparseCoo && sparse_parts(self).indices.size(0) == sparse_dim;
      return done ? self : strided_to_coo(strided_of(self), sparse_dim);
    }});

/// What a strided tensor has to be, in the order in which PyTorch asks for it.
void check_compressible(const Tensor& self, Layout wanted, std::optional<SymIntArrayRef> blocksize,
                        OptionalInt dense_dim) {
  std::string name = concat("dense_to_", to_string(wanted).substr(6));  // without "torch."
  if (blocksize) {
    check(blocksize->size() == 2, name, ": blocksize needs to be a tuple of size 2, but got ", blocksize->size());
    check((*blocksize)[0] > 0 && (*blocksize)[1] > 0, name, ": blocksize needs to be positive, but got ",
          to_string(*blocksize));
    self.sym_size(-dense_dim.value_or(0) - 2);
    self.sym_size(-dense_dim.value_or(0) - 1);
    return;
  }
  check(!dense_dim || (*dense_dim >= 0 && *dense_dim <= self.dim() - 2), name, ": dense_dim argument must be in [0,",
        self.dim() - 2, "] range, but ", dense_dim.value_or(0), " is given");
  check<IndexError>(self.dim() >= 2, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
}

Tensor to_layout(const Tensor& self, OptionalLayout layout, std::optional<SymIntArrayRef> blocksize,
                 OptionalInt dense_dim) {
  Layout wanted = layout.value_or(Layout::SparseCoo);
  if (self.is_meta())
    fail<NotImplementedError>("aten::_to_", to_string(wanted).substr(6),
                              ": attempted to run this operator with Meta tensors, ",
                              "but there was no fake impl or Meta kernel registered.");
  check(is_sparse(wanted), "to_sparse: conversion from ", short_name(self.layout()), " to ", short_name(wanted),
        " is not supported");
  check(in_blocks(wanted) == blocksize.has_value(), "to_sparse: ", to_string(wanted),
        in_blocks(wanted) ? " needs a blocksize" : " takes no blocksize");
  if (self.layout() == wanted && !in_blocks(wanted)) return self;
  Tensor strided = strided_of(self);
  if (wanted == Layout::SparseCoo) return strided_to_coo(strided, strided.dim() - dense_dim.value_or(0));
  check_compressible(strided, wanted, blocksize, dense_dim);
  check<NotImplementedError>(dense_dim.value_or(0) == 0, "dense dimensions of layout ", to_string(wanted),
                             " are not in Umbra yet");
  std::pair<int64_t, int64_t> block(1, 1);
  if (blocksize) block = {(*blocksize)[0].guard_int(), (*blocksize)[1].guard_int()};
  return strided_to_compressed(strided, wanted, block);
}

UMBRA_OPERATOR("to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor")
    .use(AnyLayout{to_layout});

UMBRA_OPERATOR("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseCsr, std::nullopt, dense_dim);
    }});
UMBRA_OPERATOR("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseCsc, std::nullopt, dense_dim);
    }});
UMBRA_OPERATOR("to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseBsr, blocksize, dense_dim);
    }});
UMBRA_OPERATOR("to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .use(AnyLayout{[](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseBsc, blocksize, dense_dim);
    }});

/// Elements of one place become one, in the order of places.
UMBRA_OPERATOR("coalesce(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_coo(self, "coalesce");
  const SparseParts& parts = sparse_parts(self);
  if (parts.coalesced) return self;
  Tensor positions = flat_positions(parts.indices, self.sizes());
  auto [sorted, order] = positions.sort(0);
  std::vector<int64_t> first, group(static_cast<size_t>(sorted.numel()));
  const int64_t* place = sorted.contiguous().data<int64_t>();
  for (size_t i = 0; i < group.size(); ++i) {
    if (i == 0 || place[i] != place[i - 1]) first.push_back(static_cast<int64_t>(i));
    group[i] = static_cast<int64_t>(first.size()) - 1;
  }
  Tensor indices = parts.indices.index_select(1, order.index_select(0, tensor(first)));
  SymShape sizes(parts.values.sym_sizes());
  sizes[0] = static_cast<int64_t>(first.size());
  Tensor values =
      zeros(sizes, {.dtype = self.dtype()}).index_add(0, tensor(group), parts.values.index_select(0, order));
  return make_sparse(Layout::SparseCoo, self.sym_sizes(), {.indices = indices, .values = values, .coalesced = true});
}});

}  // namespace
}  // namespace umbra::ops
