// Single elements of the sorted order: kthvalue, median, mode.
#include "kernels/order_statistics.h"

#include <cmath>

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/scatter_back.h"
#include "ops/common/share_evenly.h"
#include "ops/common/unbacked.h"
#include "ops/reduce/reduced_shape.h"

namespace umbra::ops {
namespace {

using Specs = std::tuple<TensorSpec, TensorSpec>;

void check_size(const char* name, const Tensor& self, int64_t at) {
  if (self.dim() > 0 && !self.sym_sizes()[at].is_symbolic() && self.sym_sizes()[at].value() == 0)
    fail<IndexError>(name, "(): Expected reduction dim ", at, " to have non-zero size.");
}
/// Outputs come before what the kernel says.
void check_dtype(const char* kernel, const Tensor& self, bool with_bool) {
  if (outputs_are_given()) return;
  check_kernel_type(!self.is_complex() && (with_bool || self.dtype() != DType::Bool), kernel, self);
}

/// A number is its own mode, and nothing has none: of any type.
bool gives_itself(const Tensor& self) {
  return self.dim() == 0 || (!self.sym_numel().is_symbolic() && self.sym_numel().value() == 0);
}

Specs reduced_specs(const Tensor& self, int64_t at, bool keepdim) {
  uint64_t mask = self.dim() == 0 ? 0 : uint64_t{1} << at;
  return {reduced_spec(self, mask, keepdim, self.dtype()), reduced_spec(self, mask, keepdim, DType::Int64)};
}

/// An output with the reduced dimension in its place again.
Tensor with_dim(const Tensor& out, const Tensor& self, int64_t at) {
  if (out.dim() == self.dim()) return out;
  SymShape sizes(out.sym_sizes()), strides(out.sym_strides());
  sizes.insert(at, 1);
  strides.insert(at, 1);
  return alias_tensor(out, sizes, strides, out.sym_storage_offset());
}

UMBRA_OPERATOR(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor")
    .composite([](const Tensor& grad, int64_t dim, const Tensor& indices, SymIntArrayRef sizes, bool keepdim) {
      if (!keepdim && !sizes.empty()) wrap_dim(dim, grad.dim() + 1), wrap_dim(dim, indices.dim() + 1);
      for (SymInt s : sizes) check(s.is_symbolic() || s.value() >= 0, "zeros: Dimension size must be non-negative.");
      wrap_dim(dim, static_cast<int64_t>(sizes.size()) + (keepdim || sizes.empty() ? 0 : 1));
      if (sizes.empty()) return grad.new_zeros(sizes).scatter(0, indices, grad);
      bool apart = !keepdim;
      Tensor g = apart ? grad.unsqueeze(dim) : grad, at = apart ? indices.unsqueeze(dim) : indices;
      return g.new_zeros(sizes).scatter(dim, at, g);
    });

UMBRA_OPERATOR("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("kthvalue.values", {"values", "indices"})
    .meta([](const Tensor& self, SymInt k, int64_t dim, bool keepdim) {
      int64_t at = wrap_dim(dim, self.dim());
      check_size("kthvalue", self, at);
      check(expect_at_most(1, k) && expect_at_most(k, self.dim() > 0 ? self.sym_sizes()[at] : SymInt(1)),
            "kthvalue(): selected number k out of range for dimension ", at);
      if (self.dim() > 0) check_dtype("kthvalue_cpu", self, false);
      return reduced_specs(self, at, keepdim);
    })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, SymInt k, int64_t dim, bool) {
      if (self.dim() == 0) {  // a number is the first of itself, whatever its type
        kernels::copy(values, self);
        return kernels::fill(indices, 0);
      }
      check_dtype("kthvalue_cpu", self, false);
      int64_t at = wrap_dim(dim, self.dim());
      kernels::kth_value(with_dim(values, self, at), with_dim(indices, self, at), self, at, k.guard_int());
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

void check_mode_output(const char* name, DType expected, const Tensor& out) {
  check(out.dtype() == expected || only_metadata_is_asked(), "expected scalar type '", kernel_name(expected),
        "' but got '", kernel_name(out.dtype()), "' for ", name, " output");
}

UMBRA_OPERATOR("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("mode.values", {"values", "indices"})
    .use(out_asks("mode.values",
                  [](const Tensor& self, int64_t, bool, const Tensor& values, const Tensor& indices) {
                    check_mode_output("values", self.dtype(), values);
                    check_mode_output("indices", DType::Int64, indices);
                  }))
    .meta([](const Tensor& self, int64_t dim, bool keepdim) {
      int64_t at = wrap_dim(dim, self.dim());
      check_size("mode", self, at);
      if (!gives_itself(self)) check_dtype("mode_cpu", self, true);
      return reduced_specs(self, at, keepdim);
    })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
      int64_t at = wrap_dim(dim, self.dim());
      if (gives_itself(self)) {
        kernels::copy(values, self.reshape(values.sym_sizes()));
        return kernels::fill(indices, 0);
      }
      check_dtype("mode_cpu", self, true);
      kernels::mode(with_dim(values, self, at), with_dim(indices, self, at), self, at);
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- medians ----

using kernels::Nans;

Specs median_specs(const Tensor& self, int64_t dim, bool keepdim) {
  int64_t at = wrap_dim(dim, self.dim());
  check_size("median", self, at);
  check_dtype("median_cpu", self, false);
  return reduced_specs(self, at, keepdim);
}
template <Nans nans>
void run_median(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  check_dtype("median_cpu", self, false);
  int64_t at = wrap_dim(dim, self.dim());
  kernels::median(with_dim(values, self, at), with_dim(indices, self, at), self, at, nans);
}

UMBRA_OPERATOR("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("median.dim_values", {"values", "indices"})
    .meta(median_specs)
    .cpu<2>(run_median<Nans::Propagate>)
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .node("MedianBackward1")
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});
UMBRA_OPERATOR("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .out("nanmedian.dim_values", {"values", "indices"})
    .meta(median_specs)
    .cpu<2>(run_median<Nans::Ignore>)
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes", "keepdim"}, scatter_back)
    .differentiable_outputs({true, false})
    .node("NanmedianBackward1")
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

TensorSpec whole_median_spec(const Tensor& self) {
  if (self.sym_numel().is_symbolic() || self.sym_numel().value() != 0) check_dtype("median_cpu", self, false);
  return TensorSpec({}, self.dtype(), self.device());
}
/// Of no elements the median is NaN, or what NaN becomes as an integer.
template <Nans nans> void run_whole_median(const Tensor& out, const Tensor& self) {
  if (self.numel() == 0) {
    kernels::fill(out, is_differentiable(out.dtype()) ? Scalar(std::nan(""))
                       : out.dtype() == DType::Int64  ? Scalar(INT64_MIN)
                       : out.dtype() == DType::Int32  ? Scalar(int64_t{INT32_MIN})
                                                      : Scalar(out.dtype() == DType::Bool));
    return;
  }
  kernels::whole_median(out, self, nans);
}
UMBRA_OPERATOR("median(Tensor self) -> Tensor")
    .generated_out("median.out")
    .meta(whole_median_spec)
    .cpu(run_whole_median<Nans::Propagate>)
    .gradient("self", {"grad", "self", "result"}, share_evenly)
    .batch([](const Batched& self) { return Batched(std::get<0>(batch_flat(self).median(1)), 0); });
UMBRA_OPERATOR("nanmedian(Tensor self) -> Tensor")
    .generated_out("nanmedian.out")
    .meta(whole_median_spec)
    .cpu(run_whole_median<Nans::Ignore>)
    .gradient("self", {"grad", "self", "result"}, share_evenly)
    .batch([](const Batched& self) { return Batched(std::get<0>(batch_flat(self).nanmedian(1)), 0); });

}  // namespace
}  // namespace umbra::ops
