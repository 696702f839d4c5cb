// Sorting: all elements of a dimension, the first k, their places.
#include "kernels/sort.h"

#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Specs = std::tuple<TensorSpec, TensorSpec>;

Specs sorted_specs(const Tensor& self, int64_t dim) {
  if (only_metadata_is_asked()) return {spec_like(self), spec_like(self, DType::Int64)};
  wrap_dim(dim, self.dim());
  check<TypeError>(!self.is_complex(), "Sort currently does not support complex dtypes on CPU");
  return {spec_like(self), spec_like(self, DType::Int64)};
}

// The gradient of an element goes to where it was.
Tensor unsort(const Tensor& grad, int64_t dim, const Tensor& indices, SymIntArrayRef sizes) {
  return sizes.empty() ? grad : grad.new_zeros(sizes).scatter(dim, indices, grad);
}

UMBRA_OPERATOR("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
    .out("sort.values", {"values", "indices"})
    .meta([](const Tensor& self, int64_t dim, bool) { return sorted_specs(self, dim); })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending) {
      kernels::sort(values, indices, self, wrap_dim(dim, self.dim()), descending);
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes"}, unsort)
    .differentiable_outputs({true, false})
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
    .out("sort.values_stable", {"values", "indices"})
    .meta([](const Tensor& self, std::optional<bool>, int64_t dim, bool) { return sorted_specs(self, dim); })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, std::optional<bool>, int64_t dim,
               bool descending) { kernels::sort(values, indices, self, wrap_dim(dim, self.dim()), descending); })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes"}, unsort)
    .differentiable_outputs({true, false})
    .node("SortBackward1")
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
    .composite([](const Tensor& self, int64_t dim, bool descending) {
      return std::get<1>(sort(self, dim, descending));
    });
UMBRA_OPERATOR("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
    .out("argsort.stable_out")
    .composite([](const Tensor& self, bool stable, int64_t dim, bool descending) {
      return std::get<1>(sort(self, stable, dim, descending));
    })
    .use(out_parts([](const Tensor& self, bool stable, int64_t dim, bool descending, const Tensor& out) {
      return std::get<1>(sort_out(unwanted_out(self, self.dtype()), out, self, stable, dim, descending));
    }))
    .tags({Tag::ExactOut});
UMBRA_OPERATOR("msort(Tensor self) -> Tensor")
    .out("msort.out")
    .composite([](const Tensor& self) { return std::get<0>(sort(self, 0, false)); })
    .use(out_parts([](const Tensor& self, const Tensor& out) {
      return std::get<0>(sort_out(out, unwanted_out(self, DType::Int64), self, 0, false));
    }))
    .tags({Tag::ExactOut});

UMBRA_OPERATOR(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
    .out("topk.values", {"values", "indices"})
    .meta([](const Tensor& self, SymInt k, int64_t dim, bool, bool) -> Specs {
      int64_t d = wrap_dim(dim, self.dim());
      check(expect_at_most(0, k) && expect_at_most(k, self.dim() > 0 ? self.sym_sizes()[d] : SymInt(1)),
            "selected index k out of range");
      check<TypeError>(!self.is_complex() || self.is_meta(), " topk does not support complex dtypes on CPU");
      SymShape sizes(self.sym_sizes());
      if (self.dim() > 0) sizes[d] = k;
      return {TensorSpec(sizes, self.dtype(), self.device()), TensorSpec(sizes, DType::Int64, self.device())};
    })
    .cpu<2>([](const Tensor& values, const Tensor& indices, const Tensor& self, SymInt, int64_t dim, bool largest,
               bool sorted) {
      check<NotImplementedError>(self.dtype() != DType::Bool, "topk does not support bool dtypes on CPU");
      kernels::topk(values, indices, self, wrap_dim(dim, self.dim()), largest, sorted);
    })
    .gradient("self", {"grad", "dim", "indices", "self.sym_sizes"}, unsort)
    .differentiable_outputs({true, false})
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

}  // namespace
}  // namespace umbra::ops
