// Sparse tensors made of their parts.
#include "ops/common/factory_arguments.h"
#include "ops/common/may_read.h"
#include "ops/sparse/parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace {

using sparse::by_rows, sparse::in_blocks;

// ---- checks ----

/// Whether indices can be looked at; where they cannot, nobody asks whether they fit, as in PyTorch.
bool has_data(const Tensor& tensor) { return may_read(tensor) && tensor.numel() > 0; }

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

bool in_order(const Tensor& indices, IntArrayRef size) {
  Tensor places = sparse::flat_positions(indices.to(DType::Int64), size);
  return places.slice(0, 1).gt(places.slice(0, 0, -1)).all().item().to_bool();
}

Tensor checked_coo(const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalBool coalesced) {
  check_coo_shapes(indices, values, size.size());
  if (has_data(indices)) check_coo_bounds(indices, values, guard_ints(size));
  check(!coalesced.value_or(false) || !has_data(indices) || in_order(indices, guard_ints(size)),
        "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
  return _sparse_coo_tensor_unsafe(indices, values, size, {.dtype = values.dtype()}, coalesced);
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

// What captures record: parts in, a sparse tensor out, nothing asked.
UMBRA_OPERATOR(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor "
    "values, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? "
    "is_coalesced=None) -> Tensor")
    .all_backends([](int64_t, int64_t, SymIntArrayRef size, const Tensor& indices, const Tensor& values,
                     OptionalDType dtype, OptionalLayout, OptionalDevice, OptionalBool, OptionalBool coalesced) {
      // Whoever has the parts may resize them, and must not change this tensor by that.
      return sparse::make_coo(indices.to(DType::Int64).detach(), converted(values, dtype).detach(), size,
                              coalesced.value_or(false));
    })
    .gradient("values", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return _values(grad.sparse_mask(result)); });

UMBRA_OPERATOR(
    "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalDType dtype, OptionalLayout,
                  OptionalDevice, OptionalBool, OptionalBool coalesced) {
      check_coo_shapes(indices, values, size.size());
      TensorOptions options{.dtype = dtype.value_or(values.dtype()),
                            .layout = Layout::SparseCoo,
                            .device = values.device(),
                            .pin_memory = std::nullopt};
      return _sparse_coo_tensor_with_dims_and_tensors(indices.size(0), values.dim() - 1, size, indices, values, options,
                                                      coalesced);
    });

UMBRA_OPERATOR(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, "
    "*, "
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .all_backends([](const Tensor& compressed, const Tensor& plain, const Tensor& values, SymIntArrayRef size,
                     OptionalDType dtype, OptionalLayout layout, OptionalDevice, OptionalBool) {
      check(layout && is_compressed(*layout), "expected a sparse compressed tensor layout");
      return make_sparse(
          *layout, size,
          {.indices = plain.detach(), .compressed = compressed.detach(), .values = converted(values, dtype).detach()});
    })
    .gradient("values", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.sparse_mask(result).values(); });

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalDType dtype,
                  OptionalLayout layout, OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      indices.sym_size(0);  // a number is an IndexError
      check_options(Layout::SparseCoo, layout, device, values, pin);
      return checked_coo(indices, converted(values, dtype), size, coalesced);
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      check_options(Layout::SparseCoo, layout, device, values, pin);
      check_coo_shapes(indices, values,
                       static_cast<size_t>(indices.dim() == 2 ? indices.size(0) + values.dim() - 1 : 0));
      return checked_coo(indices, converted(values, dtype), as_sym(size_of(indices, values)), coalesced);
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
      return checked_coo(indices, zeros({0}, options), size, true);
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
      check_compressed(*layout, compressed, plain, values, guard_ints(size));
      return _sparse_compressed_tensor_unsafe(compressed, plain, converted(values, dtype), size,
                                              {.dtype = dtype, .layout = layout});
    });

UMBRA_OPERATOR(
    "_validate_sparse_compressed_tensor_args(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[] "
    "size, "
    "Layout layout, bool? check_pinning=None) -> ()")
    .composite([](const Tensor& compressed, const Tensor& plain, const Tensor& values, const std::vector<int64_t>& size,
                  Layout layout, OptionalBool) {
      check(is_compressed(layout), "expected a sparse compressed tensor layout, but got ", short_name(layout));
      check_compressed(layout, compressed, plain, values, size);
      return std::tuple<>();
    });

}  // namespace
}  // namespace umbra::ops
