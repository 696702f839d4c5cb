// Indices of sparse layouts, turned from one into another and checked.
#include <algorithm>

#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "kernels/sparse_indices.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

DType index_type(bool narrow) { return narrow ? DType::Int32 : DType::Int64; }

/// Plain memory of 64-bit indices.
Tensor plain_indices(const Tensor& indices, const char* name) {
  check<NotImplementedError>(is_integral(indices.dtype(), false), "\"", name, "\" not implemented for '",
                             kernel_name(indices.dtype()), "'");
  return kernels::cast(indices, DType::Int64).contiguous();
}

UMBRA_OPERATOR("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor")
    .out("_convert_indices_from_coo_to_csr.out")
    .meta([](const Tensor& self, int64_t size, bool narrow) {
      check(self.dim() <= 1, "Input is supposed to be a vector, but got ", self.dim(), " dimensional tensor.");
      check(size >= 0, "Trying to create tensor with negative dimension ", size + 1, ": [", size + 1, "]");
      return TensorSpec({SymInt(size + 1)}, index_type(narrow), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t, bool) {
      kernels::row_starts(out, plain_indices(self, "convert_indices_from_coo_to_csr_cpu"));
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool "
    "transpose=False) -> Tensor")
    .out("_convert_indices_from_csr_to_coo.out")
    .use(out_asks("_convert_indices_from_csr_to_coo.out",
                  [](const Tensor& crow, const Tensor&, bool narrow, bool, const Tensor& out) {
                    check_out_dtype(index_type(narrow), out.dtype());
                  }))
    .meta([](const Tensor& crow, const Tensor& column, bool narrow, bool) {
      check(crow.dim() == column.dim(),
            "crow_indices and col_indices are supposed to have the same number of dimensions, but got ", crow.dim(),
            " and ", column.dim());
      check_kernel_type(is_integral(crow.dtype(), false), "convert_indices_from_csr_to_coo_cpu", crow);
      crow.sym_size(-1);  // a number is an IndexError
      check(crow.sym_sizes().drop_back() == column.sym_sizes().drop_back(),
            "crow_indices and col_indices are supposed to have the same batch, but got ", crow.sym_sizes(), " and ",
            column.sym_sizes());
      return TensorSpec({SymInt(crow.dim() + 1), column.sym_numel()}, index_type(narrow), crow.device());
    })
    .cpu([](const Tensor& out, const Tensor& crow, const Tensor& column, bool, bool transpose) {
      if (column.numel() == 0) return;
      const char* name = "convert_indices_from_csr_to_coo_cpu";
      Tensor starts = plain_indices(crow, name), columns = plain_indices(column, name),
             places = kernels::scratch({out.size(0), out.size(1)}, DType::Int64);
      int64_t groups = crow.size(-1), each = column.size(-1), count = out.size(1), rank = out.size(0);
      int64_t* place = places.data<int64_t>();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t* start = starts.data<int64_t>() + i / each * groups;
        int64_t row = std::upper_bound(start, start + groups, i % each) - start - 1;
        check(row >= 0 && row + 1 < groups, "crow_indices do not say which row element ", i % each, " belongs to");
        // The batch, its dimensions from the last to the first, then rows and columns.
        for (int64_t d = rank - 3, rest = i / each; d >= 0; --d) {
          place[d * count + i] = rest % crow.size(d);
          rest /= crow.size(d);
        }
        place[(rank - (transpose ? 1 : 2)) * count + i] = row;
        place[(rank - (transpose ? 2 : 1)) * count + i] = columns.data<int64_t>()[i];
      }
      kernels::copy(out, places);
    })
    .not_differentiable();

UMBRA_OPERATOR(
    "_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, bool? is_coalesced=None, bool? "
    "check_pinning=None) -> ()")
    .composite([](const Tensor& indices, const Tensor& values, std::vector<int64_t> size, std::optional<bool> coalesced,
                  std::optional<bool> check_pinning) {
      if (check_pinning.value_or(true))
        check(is_pinned(indices) == is_pinned(values), "memory pinning of indices and values must match");
      check(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sym_sizes());
      int64_t sparse_dim = indices.size(0), dense_dim = std::max<int64_t>(values.dim() - 1, 0);
      check(static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
            ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
      check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
      if (indices.numel() == 0) return;
      Tensor least = std::get<0>(min(indices, 1)), most = std::get<0>(max(indices, 1));
      check(least.storage()->has_data(), "_validate_sparse_coo_tensor_args looks at indices, which have no data here");
      for (int64_t d = 0; d < sparse_dim; ++d) {
        int64_t low = least.contiguous().data<int64_t>()[d], high = most.contiguous().data<int64_t>()[d];
        check(low >= 0, "found negative index ", low, " for dim ", d);
        check(high < size[d], "size is inconsistent with indices: for dim ", d, ", size is ", size[d],
              " but found index ", high);
      }
      if (!coalesced.value_or(false)) return;
      auto precedes = [&, places = plain_indices(indices, "validate")](int64_t i) {
        const int64_t* data = places.data<int64_t>();
        int64_t count = indices.size(1);
        for (int64_t d = 0; d < sparse_dim; ++d)
          if (data[d * count + i] != data[d * count + i + 1]) return data[d * count + i] < data[d * count + i + 1];
        return false;
      };
      for (int64_t i = 0; i + 1 < indices.size(1); ++i)
        check(precedes(i), "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
    });

}  // namespace
}  // namespace umbra::ops
