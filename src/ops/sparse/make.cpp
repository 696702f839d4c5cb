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

/// A number is one element.
Tensor as_elements(const Tensor& values) { return values.dim() == 0 ? values.unsqueeze(0) : values; }

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

/// The parts of a compressed tensor and how they are called.
struct CompressedParts {
  Layout layout;
  const Tensor &compressed, &plain, &values;
  IntArrayRef size;
  const char *compressed_name = by_rows(layout) ? "crow_indices" : "ccol_indices",
             *plain_name = by_rows(layout) ? "col_indices" : "row_indices",
             *groups_name = by_rows(layout) ? "nrows" : "ncols", *places_name = by_rows(layout) ? "ncols" : "nrows";
  int64_t batch = compressed.dim() - 1, block = in_blocks(layout) ? 2 : 0;
  int64_t groups = 0, places = 0;  // rows and columns, of blocks where there are blocks, of each matrix

  void check_ranks() const;
  void check_batches() const;
  void count_groups();
  void check_types() const;
  void check_indices() const;
  void check_order() const;
};

void CompressedParts::check_ranks() const {
  check(compressed.dim() >= 1, compressed_name, " must have dimensionality >= 1 but got ", compressed.dim());
  check(compressed.dim() == plain.dim(), compressed_name, " and ", plain_name,
        " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(), ", respectively");
  check(values.dim() > batch + block,
        "values must have dimensionality > sum of batch and block dimensionalities (=", batch, " + ", block,
        ") but got ", values.dim());
  int64_t inner = values.dim() - batch - block - 1;
  check(static_cast<int64_t>(size.size()) == batch + 2 + inner,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=", batch, " + 2 + ", inner,
        ") but got ", size.size());
}

void CompressedParts::check_batches() const {
  auto first = [&](IntArrayRef sizes) { return sizes.slice(0, static_cast<size_t>(batch)); };
  bool same = true;
  for (const Tensor* part : {&compressed, &plain, &values}) same &= first(part->sizes()) == first(size);
  check(same, "all batch dimensions of ", compressed_name, " (=", to_string(first(compressed.sizes())), "), ",
        plain_name, " (=", to_string(first(plain.sizes())), "), and values (=", to_string(first(values.sizes())),
        ") must be equal to tensor batch dimensions (=", to_string(first(size)), ")");
  for (int64_t d = batch + block + 1; d < values.dim(); ++d)
    check(values.size(d) == size[d - block + 1], "values' dense dimensions ", to_string(values.sizes()),
          " do not fit a tensor of size ", to_string(size));
}

void CompressedParts::count_groups() {
  int64_t counts[2];
  for (int64_t i = 0; i < 2; ++i) {
    int64_t length = block ? values.size(batch + 1 + i) : 1, whole = size[batch + i];
    check(length > 0, "expected block sizes to be strictly positive, but got ", to_string(values.sizes()));
    check(whole % length == 0, "tensor shape[", i, "] (=", whole, ") must be divisible with blocksize[", i,
          "] (=", length, ") as defined by values shape");
    counts[i] = whole / length;
  }
  groups = counts[by_rows(layout) ? 0 : 1];
  places = counts[by_rows(layout) ? 1 : 0];
  check(compressed.size(-1) == groups + 1, compressed_name, ".shape[-1] must be equal to the number of ",
        by_rows(layout) ? "row" : "column", block ? " blocks" : "s", " + 1 (=", groups + 1, "), but got ",
        compressed.size(-1));
  check(plain.size(-1) == values.size(batch), plain_name, ".shape[-1] must be equal to nnz (=", values.size(batch),
        ") as defined by values.shape[", batch, "], but got ", plain.size(-1));
}

void CompressedParts::check_types() const {
  check(compressed.dtype() == plain.dtype(), compressed_name, " and ", plain_name,
        " must have the same dtype, bot got ", kernel_name(compressed.dtype()), " and ", kernel_name(plain.dtype()),
        ", respectively");
  check(plain.dtype() == DType::Int64 || plain.dtype() == DType::Int32, compressed_name, " and ", plain_name,
        " dtype must be Int or Long, but got ", kernel_name(plain.dtype()));
}

/// Whether all numbers of a tensor lie between two others.
bool all_between(const Tensor& numbers, int64_t least, int64_t most) {
  return numbers.numel() == 0 || (numbers.amin().item().to_int() >= least && numbers.amax().item().to_int() <= most);
}

void CompressedParts::check_indices() const {
  if (!has_data(compressed)) return;
  int64_t count = values.size(batch);
  check(all_between(compressed.select(-1, 0), 0, 0), "`", compressed_name, "[..., 0] == 0` is not satisfied.");
  check(all_between(compressed.select(-1, -1), count, count), "`", compressed_name,
        "[..., -1] == nnz` is not satisfied.");
  check(all_between(compressed.slice(-1, 1) - compressed.slice(-1, 0, -1), 0, places), "`0 <= ", compressed_name,
        "[..., 1:] - ", compressed_name, "[..., :-1] <= ", places_name, "` is not satisfied.");
  if (has_data(plain))
    check(all_between(plain, 0, places - 1), "`0 <= ", plain_name, " < ", places_name, "` is not satisfied.");
}

void CompressedParts::check_order() const {
  if (!has_data(compressed) || !has_data(plain)) return;
  std::vector<int64_t> sizes(size.begin(), size.begin() + batch);
  sizes.insert(sizes.end(), {groups, places});
  check(sparse::in_order(_convert_indices_from_csr_to_coo(compressed, plain), sizes), "`", plain_name, "[..., ",
        compressed_name, "[..., i - 1]:", compressed_name, "[..., i]] for all i = 1, ..., ", groups_name,
        " are sorted and distinct along the last dimension values` is not satisfied.");
}

/// What has to hold of the parts for any answer to be right.
CompressedParts check_compressed(Layout layout, const Tensor& compressed, const Tensor& plain, const Tensor& values,
                                 IntArrayRef size) {
  CompressedParts parts{layout, compressed, plain, values, size};
  parts.check_ranks();
  parts.check_batches();
  parts.count_groups();
  parts.check_types();
  parts.check_indices();
  return parts;
}

// ---- making them ----

Tensor checked_coo(const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalBool coalesced) {
  check_coo_shapes(indices, values, size.size());
  if (has_data(indices)) check_coo_bounds(indices, values, guard_ints(size));
  check(!coalesced.value_or(false) || !has_data(indices) || sparse::in_order(indices, guard_ints(size)),
        "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
  return _sparse_coo_tensor_unsafe(indices, values, size, {.dtype = values.dtype()}, coalesced);
}

void check_not_pinned(OptionalBool pin) {
  check(!pin.value_or(false), "Cannot access accelerator device when none is available.");
}

/// Options that a tensor made of parts follows from its parts.
void check_options(Layout made, OptionalLayout layout, OptionalDevice device, const Tensor& values, OptionalBool pin) {
  check(!layout || *layout == made, "expected layout ", to_string(made), ", but got ",
        to_string(layout.value_or(made)));
  check(!device || device->type == values.device().type, "expected the device of the values, ",
        to_string(values.device()), ", but got ", to_string(device.value_or(Device())));
  check_not_pinned(pin);
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
                     OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin,
                     OptionalBool coalesced) {
      bool asked = layout == Layout::SparseCoo;
      bool meta = indices.is_meta() || values.is_meta() || (device && device->type == DeviceType::Meta);
      check(asked || !meta, "expected the layout torch.sparse_coo");
      check<NotImplementedError>(asked,
                                 "Could not run 'aten::_sparse_coo_tensor_with_dims_and_tensors' with arguments "
                                 "from the 'CPU' backend: it is defined for the sparse layout only");
      check_not_pinned(pin);
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
                  OptionalDevice, OptionalBool pin, OptionalBool coalesced) {
      indices.sym_size(0);  // too few dimensions are an IndexError
      check_coo_shapes(indices, values, size.size());
      check_not_pinned(pin);
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
    .gradient("values", {"grad", "result"}, [](const Tensor& grad, const Tensor& result) {
      // A sparse gradient may have other places.
      return (sparse::is_strided(grad) ? grad : grad.to_dense()).sparse_mask(result).values();
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& values, SymIntArrayRef size, OptionalDType dtype,
                  OptionalLayout layout, OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      indices.sym_size(0);  // a number is an IndexError
      check_options(Layout::SparseCoo, layout, device, values, pin);
      return checked_coo(indices, as_elements(converted(values, dtype)), size, coalesced);
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor")
    .composite([](const Tensor& indices, const Tensor& given, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, OptionalBool pin, OptionalBool coalesced) {
      Tensor values = as_elements(given);
      check_options(Layout::SparseCoo, layout, device, values, pin);
      check_coo_shapes(indices, values,
                       static_cast<size_t>(indices.dim() == 2 ? indices.size(0) + values.dim() - 1 : 0));
      return checked_coo(indices, converted(values, dtype), as_sym(size_of(indices, values)), coalesced);
    });

UMBRA_OPERATOR(
    "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=False) -> Tensor")
    .composite([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout, OptionalDevice device, OptionalBool pin) {
      check_not_pinned(pin);
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
      check_compressed(layout, compressed, plain, values, size).check_order();
      return std::tuple<>();
    });

}  // namespace
}  // namespace umbra::ops
