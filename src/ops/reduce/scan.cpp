// Running products and extremes along a dimension.
#include "kernels/scan.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/reduce/scan.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {

void check_scanned_in_place(const Tensor& self, std::optional<DType> dtype) {
  check(!dtype || *dtype == self.dtype(), "Bad in-place call: input tensor dtype ", kernel_name(self.dtype()),
        " and output tensor dtype ", kernel_name(dtype.value_or(DType::Undefined)), " should match");
}

namespace {

// ---- cumprod ----

DType product_dtype(const Tensor& self, std::optional<DType> dtype) {
  return dtype ? *dtype : is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
}

Tensor reversed_cumsum(const Tensor& t, int64_t dim) {
  return t.flip(IntArrayRef{dim}).cumsum(dim).flip(IntArrayRef{dim});
}

/// Element by element: the sum of all later products without this one. All of it can be differentiated again.
Tensor cumprod_gradient_by_elements(const Tensor& grad, const Tensor& input, int64_t dim) {
  std::vector<Tensor> parts;
  for (int64_t k = 0, n = input.sym_size(dim).guard_int(); k < n; ++k) {
    Tensor own = grad.select(dim, k), before;
    if (k > 0) {
      before = input.slice(dim, 0, k).cumprod(dim).slice(dim, k - 1, k);
      own = own.mul(before.squeeze(dim).conj());
    }
    if (k + 1 < n) {
      Tensor behind = input.slice(dim, k + 1).cumprod(dim);
      if (k > 0) behind = before.expand(behind.sym_sizes()).mul(behind);
      own = own.add(grad.slice(dim, k + 1).mul(behind.conj()).sum(IntArrayRef{dim}));
    }
    parts.push_back(own);
  }
  return stack(parts, dim);
}

/// With zeros by themselves: before the first one products are divided; at it they are computed with a one in its
/// place; behind it they stay zero, whatever changes.
Tensor cumprod_gradient_by_masks(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output) {
  Tensor zeros_so_far = input.eq(0).cumsum(dim), first = zeros_so_far.eq(1).logical_and(input.eq(0));
  Tensor none_yet = zeros_so_far.eq(0), weighted = grad.mul(output.conj());
  Tensor safe = input.masked_fill(input.eq(0), 1);
  Tensor before = reversed_cumsum(weighted, dim).div(safe.conj()).masked_fill(none_yet.logical_not(), 0);
  Tensor filled = input.masked_fill(first, 1).cumprod(dim);
  Tensor from_first = grad.mul(filled.conj()).masked_fill(none_yet, 0).sum(IntArrayRef{dim}, true);
  return where(first, from_first, before);
}

UMBRA_OPERATOR("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output) {
      if (input.sym_numel() <= 1) return grad;
      int64_t at = wrap_dim(dim, input.dim());
      if (input.sym_size(at) == 1) return grad;
      // Without zeros, which can be asked only where there is data and nobody is watching, one division does it.
      if (may_read(input) && !input.eq(0).any().item().to_bool())
        return reversed_cumsum(grad.mul(output.conj()), at).div(input.conj());
      bool again = is_grad_enabled() && !input.sym_size(at).is_symbolic();
      return again ? cumprod_gradient_by_elements(grad, input, at) : cumprod_gradient_by_masks(grad, input, at, output);
    });

UMBRA_OPERATOR("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .inplace("cumprod_")
    .out("cumprod.out")
    .use(OutDecidesType{"cumprod.out"})
    .meta([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      wrap_dim(dim, self.dim());
      return TensorSpec(self.sym_sizes(), product_dtype(self, dtype), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
      kernels::cumprod(out, kernels::cast(self, out.dtype()), wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "self", "dim", "result"},
              [](const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result) {
                Tensor input = self.dtype() == grad.dtype() ? self : self.to(grad.dtype());
                return cumprod_backward(grad, input, dim, result);
              })
    .on_inplace([](OperatorBuilder& variant) {
      variant.meta([](const Tensor& self, int64_t, std::optional<DType> dtype) {
        check<NotImplementedError>(self.dtype() != DType::Bool || dtype,
                                   "\"cumprod_out_cpu\" not implemented for 'Bool'");
        check_scanned_in_place(self, dtype);
        return spec_like(self);
      });
    })
    .tags({Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- cummax, cummin ----

using Specs = std::tuple<TensorSpec, TensorSpec>;

template <auto scan> void run_extreme(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  if (is_trivial_scan(self)) return kernels::copy(values, self), kernels::fill(indices, 0);
  scan(values, indices, self, wrap_dim(dim, self.dim()));
}
Specs extreme_specs(const char* kernel, const Tensor& self, int64_t dim) {
  bool looked_at = self.dim() > 0 && !self.sym_numel().same(0);
  if (looked_at || !only_metadata_is_asked()) wrap_dim(dim, self.dim());
  check_kernel_type((!self.is_complex() && !is_float8(self.dtype())) || is_trivial_scan(self), kernel, self);
  return {TensorSpec(self.sym_sizes(), self.dtype(), self.device()),
          TensorSpec(self.sym_sizes(), DType::Int64, self.device())};
}
void check_scanned_type(const Tensor& out, DType expected) {
  check(out.dtype() == expected, "expected scalar_type ", kernel_name(expected), " but found ",
        kernel_name(out.dtype()));
}
void check_extreme_outputs(const Tensor& self, int64_t, const Tensor& values, const Tensor& indices) {
  check_scanned_type(values, self.dtype());
  check_scanned_type(indices, DType::Int64);
}
Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& indices, int64_t dim) {
  return cummaxmin_backward(grad, self, indices, dim);
}

UMBRA_OPERATOR("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim) {
      if (input.sym_numel() == 0) return input;
      return input.new_zeros(input.sym_sizes()).scatter_add(dim, indices, grad);
    });

UMBRA_OPERATOR("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    .out("cummax.out", {"values", "indices"})
    .use(out_asks("cummax.out", check_extreme_outputs))
    .meta([](const Tensor& self, int64_t dim) { return extreme_specs("cummax_cpu", self, dim); })
    .cpu<2>(run_extreme<kernels::cummax>)
    .gradient("self", {"grad", "self", "indices", "dim"}, extreme_backward)
    .differentiable_outputs({true, false})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});
UMBRA_OPERATOR("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    .out("cummin.out", {"values", "indices"})
    .use(out_asks("cummin.out", check_extreme_outputs))
    .meta([](const Tensor& self, int64_t dim) { return extreme_specs("cummin_cpu", self, dim); })
    .cpu<2>(run_extreme<kernels::cummin>)
    .gradient("self", {"grad", "self", "indices", "dim"}, extreme_backward)
    .differentiable_outputs({true, false})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

TensorSpec helper_spec(const char* kernel, const Tensor& self, const Tensor& values, const Tensor& indices,
                       int64_t dim) {
  check_kernel_type(!self.is_complex(), kernel, self);
  check(values.dtype() == self.dtype(), "expected scalar type ", kernel_name(self.dtype()), " but found ",
        kernel_name(values.dtype()));
  check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
  wrap_dim(dim, self.dim());
  check(values.sym_sizes() == self.sym_sizes() && indices.sym_sizes() == self.sym_sizes(),
        "values and indices must have the sizes of the input, ", self.sym_sizes());
  return spec_like(values);
}

UMBRA_OPERATOR("_cummax_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()")
    .meta([](const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
      return helper_spec("cummax_cpu", self, values, indices, dim);
    })
    .mutate([](const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
      kernels::cummax(values, indices, self, wrap_dim(dim, self.dim()));
    })
    .not_differentiable()
    .use(NeedsData{});
UMBRA_OPERATOR("_cummin_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()")
    .meta([](const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
      return helper_spec("cummin_cpu", self, values, indices, dim);
    })
    .mutate([](const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
      kernels::cummin(values, indices, self, wrap_dim(dim, self.dim()));
    })
    .not_differentiable()
    .use(NeedsData{});

// ---- logcumsumexp ----

TensorSpec log_spec(const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim());
  check<NotImplementedError>(is_differentiable(self.dtype()) || only_metadata_is_asked(),
                             "\"logcumsumexp_out_cpu\" not implemented for '", kernel_name(self.dtype()), "'");
  return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
}
void run_log(const Tensor& out, const Tensor& self, int64_t dim) {
  kernels::logcumsumexp(out, self, wrap_dim(dim, self.dim()));
}

/// exp(self) times the sum of later grad / exp(result), by logarithms; signs are kept apart.
Tensor log_gradient(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (grad.dim() == 0 || grad.sym_numel() == 0) return grad;
  auto from_behind = [&](const Tensor& t) { return t.flip(IntArrayRef{dim}).logcumsumexp(dim).flip(IntArrayRef{dim}); };
  if (self.is_complex()) {
    Tensor logs = grad.conj().log().sub(result);
    return from_behind(logs).add(self).exp().conj();
  }
  Tensor logs = grad.abs().log();
  // The logarithm of nothing is finite here: differences of infinities would have no slope.
  Scalar none(self.dtype() == DType::Float64   ? std::numeric_limits<double>::lowest()
              : self.dtype() == DType::Float16 ? -65504.0
                                               : static_cast<double>(std::numeric_limits<float>::lowest()));
  Tensor positive = where(grad.gt(0), logs, none), negative = where(grad.lt(0), logs, none);
  Tensor up = from_behind(positive.sub(result)).add(self).exp(),
         down = from_behind(negative.sub(result)).add(self).exp();
  return up.sub(down);
}

UMBRA_OPERATOR("_logcumsumexp(Tensor self, int dim) -> Tensor")
    .out("_logcumsumexp.out")
    .meta(log_spec)
    .cpu(run_log)
    .use(BatchInFront{.dims = {"dim"}, .scalars = true})
    .use(NeedsData{});
UMBRA_OPERATOR("logcumsumexp(Tensor self, int dim) -> Tensor")
    .out("logcumsumexp.out")
    .use(out_asks("logcumsumexp.out",
                  [](const Tensor& self, int64_t, const Tensor& out) { check_scanned_type(out, self.dtype()); }))
    .meta(log_spec)
    .cpu(run_log)
    .gradient("self", {"grad", "self", "result", "dim"}, log_gradient)
    .tangents_through([](const Tensor& self, int64_t dim) {
      if (self.sym_numel() == 0) return self.clone();
      Tensor values = self.detach(), high = (self.is_complex() ? real(values) : values).amax({dim}, true);
      return self.sub(high).exp().cumsum(dim).log().add(high);
    })
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

}  // namespace
}  // namespace umbra::ops
