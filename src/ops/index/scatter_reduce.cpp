// Scatter and index writes whose elements combine with what is there: sums, products, means, extremes.
#include <atomic>

#include "kernels/copy.h"
#include "kernels/gather.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "ops/common/warn_once.h"
#include "ops/index/scatter_spec.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using kernels::ScatterReduce;

// ---- scatter with a reduction, the old way: add and multiply ----

ScatterReduce old_reduction(const std::string& name) {
  check(name == "add" || name == "multiply", "reduce argument must be either add or multiply.");
  return name == "add" ? ScatterReduce::Sum : ScatterReduce::Product;
}

UMBRA_OPERATOR("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
    .inplace("scatter_.reduce")
    .out("scatter.reduce_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce) {
      TensorSpec spec = scatter_spec(self, dim, index, src);
      old_reduction(reduce);
      return spec;
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
            const std::string& reduce) {
      static std::atomic<bool> warned = false;
      if (tells_once(warned))
        warn("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future ",
             "PyTorch release. Use torch.scatter_reduce instead for more reduction options.");
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::scatter(out, wrap_dim(dim, out.dim()), index, src, old_reduction(reduce));
    })
    .writes_straight()
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor")
    .inplace("scatter_.value_reduce")
    .out("scatter.value_reduce_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar&, const std::string& reduce) {
      check_scatter(self, dim, index);
      old_reduction(reduce);
      return TensorSpec(self.sym_sizes(), self.dtype(), common_device({&self, &index}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
            const std::string& reduce) {
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::scatter(out, wrap_dim(dim, out.dim()), index, value, old_reduction(reduce));
    })
    .writes_straight()
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- scatter_reduce ----

using Pair = std::tuple<Tensor, Tensor>;

/// A source element's share of a product: the product of all others. Where exactly one of them is zero it is computed
/// with a one in its place; where several are, it is zero.
Pair product_gradient(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      bool include_self, const Tensor& result) {
  Tensor nonzero_self = self.masked_fill(self.eq(0), 1);
  Tensor others = scatter_reduce(nonzero_self, dim, index, src, "prod", include_self);
  Tensor grad_self = grad.mul(others).div(nonzero_self);
  Tensor zero = src.eq(0);
  Tensor zeros_there = zeros_like(self).scatter_add(dim, index, zero.to(self.dtype())).gather(dim, index);
  Tensor only_zero = zero.logical_and(zeros_there.eq(1));
  // PyTorch refuses a second derivative here, wherever it can see the zeros.
  if (is_grad_enabled() && may_read(src) && may_read(self))
    check(!zero.logical_and(zeros_there.gt(1)).any().item().to_bool(),
          "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the same "
          "position in self");
  Tensor without = scatter_reduce(self, dim, index, src.masked_fill(only_zero, 1), "prod", include_self);
  Tensor plain = grad.mul(result).gather(dim, index).div(src.masked_fill(zero, 1));
  Tensor share = where(only_zero, grad.mul(without).gather(dim, index), plain);
  if (!is_grad_enabled()) return {grad_self, share};
  // Of two zeros each one's share is the other times the rest: nothing, and not so its derivative. Of three it is the
  // product of the others, which sums of powers tell.
  Tensor rest = scatter_reduce(self, dim, index, src.masked_fill(zero, 1), "prod", include_self);
  Tensor only_zeros = src.masked_fill(zero.logical_not(), 0);
  auto sum_of_others = [&](const Tensor& powers) {
    return zeros_like(self).scatter_add(dim, index, powers).gather(dim, index).sub(powers);
  };
  Tensor sum = sum_of_others(only_zeros), squares = sum_of_others(only_zeros.mul(only_zeros));
  Tensor factor = where(zeros_there.eq(2), sum, sum.mul(sum).sub(squares).div(2));
  Tensor several = zero.logical_and(zeros_there.eq(2).logical_or(zeros_there.eq(3)));
  return {grad_self, where(several, grad.mul(rest).gather(dim, index).mul(factor), share)};
}

Pair mean_gradient(const Tensor& grad, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
  Tensor count = include_self ? ones_like(grad) : zeros_like(grad);
  count = count.scatter_add(dim, index, ones_like(src));
  count = count.masked_fill(count.eq(0), 1);
  return {grad.div(count), grad.gather(dim, index).div(count.gather(dim, index))};
}

/// Equal parts for all that attain the extreme.
Pair extreme_gradient(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& result) {
  Tensor self_attains = self.eq(result).to(self.dtype());
  Tensor src_attains = src.eq(result.gather(dim, index)).to(src.dtype());
  Tensor part = grad.div(self_attains.scatter_add(dim, index, src_attains));
  return {self_attains.mul(part), src_attains.mul(part.gather(dim, index))};
}

Pair reduce_gradient(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     const std::string& reduce, bool include_self, const Tensor& result) {
  Pair out;
  if (reduce == "sum") out = {grad, grad.gather(dim, index)};
  else if (reduce == "prod") out = product_gradient(grad, self, dim, index, src, include_self, result);
  else if (reduce == "mean") out = mean_gradient(grad, dim, index, src, include_self);
  else out = extreme_gradient(grad, self, dim, index, src, result);
  if (!include_self) std::get<0>(out) = std::get<0>(out).scatter(dim, index, Scalar(0));
  return out;
}

UMBRA_OPERATOR(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
    "Tensor")
    .inplace("scatter_reduce_.two")
    .out("scatter_reduce.two_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce, bool) {
      TensorSpec spec = scatter_spec(self, dim, index, src);
      bool known = reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin";
      check(known, "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
      return spec;
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
            const std::string& reduce, bool include_self) {
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::scatter(out, wrap_dim(dim, out.dim()), index, src, kernels::scatter_reduce_from_name(reduce),
                       include_self);
    })
    .writes_straight()
    .gradient("self, src", {"grad", "self", "dim", "index", "src", "reduce", "include_self", "result"},
              [](const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 const std::string& reduce, bool include_self, const Tensor& result) {
                return reduce_gradient(grad, self, dim, index, src, reduce, include_self, result);
              })
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- index_reduce: whole slices ----

void check_index_reduce(const Tensor& self, int64_t given, const Tensor& index, const Tensor& source,
                        const std::string& reduce) {
  if (only_metadata_is_asked()) return;
  check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  int64_t dim = wrap_dim(given, self.dim());
  check<IndexError>(index.dim() <= 1, "index_reduce_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", kernel_name(index.dtype()), " and size: ", index.sym_sizes());
  check(index.dtype() == DType::Int32 || index.dtype() == DType::Int64,
        "index_reduce_(): Expected dtype int32/int64 for index but got: ", kernel_name(index.dtype()));
  check(self.dtype() == source.dtype(), "index_reduce_(): self (", kernel_name(self.dtype()), ") and source (",
        kernel_name(source.dtype()), ") must have the same scalar type");
  check(dim == 0 || dim < source.dim(), "index_reduce_(): Indexing dim ", dim,
        " is out of bounds of the source tensor with dim ", source.dim());
  SymInt count = index.sym_numel(), slices = self.dim() == 0 && source.dim() == 0 ? SymInt(1) : source.sym_size(dim);
  check(count == slices, "index_reduce_(): Number of indices (", count, ") should be equal to source.size(dim): (",
        slices, "), for dim: ", dim);
  bool fits = self.dim() == source.dim();
  for (int64_t d = 0; fits && d < self.dim(); ++d) fits = d == dim || self.sym_sizes()[d] == source.sym_sizes()[d];
  check(fits, "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        self.sym_sizes(), " source.shape = ", source.sym_sizes());
  check<NotImplementedError>(!self.is_complex() && self.dtype() != DType::Bool, "\"index_func_\" not implemented for '",
                             kernel_name(self.dtype()), "'");
}

/// The vector of positions at every place of the source: what scatter takes.
Tensor spread(const Tensor& index, const Tensor& source, int64_t dim) {
  if (source.dim() == 0) return index.reshape({});
  SymShape ones(source.sym_sizes().size(), 1);
  ones[dim] = index.sym_numel();
  return index.reshape(ones).expand(source.sym_sizes());
}

UMBRA_OPERATOR(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
    .inplace("index_reduce_")
    .use(NothingOnMeta{})
    .out("index_reduce.out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const std::string& reduce,
             bool) {
      check_index_reduce(self, dim, index, source, reduce);
      Device device = only_metadata_is_asked() ? self.device() : common_device({&self, &index, &source});
      return TensorSpec(self.sym_sizes(), self.dtype(), device);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
            const std::string& reduce, bool include_self) {
      static std::atomic<bool> told = false;
      warn_once(told, "index_reduce() is in beta and the API may change at any time.");
      if (!out.is_same(self)) kernels::copy(out, self);
      int64_t at = wrap_dim(dim, out.dim()), size = self.dim() == 0 ? 1 : self.size(at);
      Tensor places = kernels::contiguous(kernels::cast(index, DType::Int64));
      for (int64_t place : ArrayRef<int64_t>(places.data<int64_t>(), static_cast<size_t>(places.numel())))
        check<IndexError>(place >= 0 && place < size, "index out of range in self");
      SymShape sizes(source.sym_sizes()), strides(source.sym_sizes().size(), 0);
      if (source.dim() > 0) strides[at] = 1;
      kernels::scatter(out, at, alias_tensor(places, sizes, strides, places.sym_storage_offset()), source,
                       kernels::scatter_reduce_from_name(reduce), include_self);
    })
    .writes_straight()
    .gradient("self, source", {"grad", "self", "dim", "index", "source", "reduce", "include_self", "result"},
              [](const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const std::string& reduce, bool include_self, const Tensor& result) {
                Tensor places = spread(index.to(DType::Int64), source, wrap_dim(dim, self.dim()));
                return reduce_gradient(grad, self, dim, places, source, reduce, include_self, result);
              })
    .use(batch_through([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                          const std::string& reduce, bool include_self) {
      Tensor places = spread(index.to(DType::Int64), source, wrap_dim(dim, self.dim()));
      return scatter_reduce(self, dim, places, source, reduce, include_self);
    }));

}  // namespace
}  // namespace umbra::ops
