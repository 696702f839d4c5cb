// Variances, deviations, products, logsumexp, running sums.
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "kernels/reductions.h"
#include "kernels/scan.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/reduce/scan.h"
#include "umbra/core/warning.h"

namespace umbra::ops {
namespace {

using OptionalScalar = std::optional<Scalar>;

double correction_of(const OptionalScalar& c) { return c ? c->to_double() : 1.0; }

void check_variance_type(const char* name, const Tensor& self, const OptionalDims& dims) {
  if (only_metadata_is_asked()) reduced_dims(self, dims);  // a dimension that is not there comes first
  // On the meta device a mean is asked for as well, and first.
  check(!self.is_meta() || self.is_floating_point() || self.is_complex() || !std::string_view(name).ends_with("_mean"),
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
        self.dtype());
  check<NotImplementedError>(self.is_floating_point() || self.is_complex() || only_metadata_is_asked(), name,
                             " only support floating point and complex dtypes");
}

// d var / dx = 2 (x - mean) / (n - correction)
Tensor variance_gradient(const Tensor& grad, const Tensor& self, const OptionalDims& dims,
                         const OptionalScalar& correction, bool keepdim) {
  Scalar degrees = Scalar(sym_float_binary(SymOp::Sub, sym_float(reduced_count(self.sym_sizes(), dims)),
                                           SymFloat(correction_of(correction))));
  Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim);
  Tensor mean = dims && !dims->empty() ? self.mean(IntArrayRef(*dims), true) : self.mean();
  // Of all elements without a degree of freedom the variance is infinite, or none.
  bool of_all = !dims || self.dim() == 0;
  if (of_all && !degrees.is_symbolic() && degrees.to_double() <= 0 && !self.is_complex())
    return g.mul(where(self.eq(mean), std::numeric_limits<double>::quiet_NaN(), HUGE_VAL)).to(self.dtype());
  // The factor goes to the elements: of no elements, there is then no derivative that an infinite factor could spoil.
  return g.mul(self.sub(mean).mul(2.0).div(degrees));
}

/// The gradient of a variance by that of its root: none where there is no deviation.
Tensor half_over(const Tensor& grad, const Tensor& deviation) {
  // What is divided by is no zero either: forward mode divides its tangent by it.
  Tensor none = deviation.eq(0);
  return grad.div(deviation.mul(2.0).masked_fill(none, 1)).masked_fill(none, 0);
}

void warn_of_degrees(const char* name, const Tensor& self, const OptionalDims& dims, const OptionalScalar& correction) {
  if (static_cast<double>(reduced_count(self.sym_sizes(), dims).guard_int()) <= correction_of(correction))
    warn(name, "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input ",
         "numel divided by output numel).");
}

UMBRA_OPERATOR(
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
    .out("var.correction_out")
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      check_variance_type("std and var", self, dims);
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(self.dtype()));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, const OptionalScalar& correction, bool) {
      warn_of_degrees("var", self, dims, correction);
      kernels::var_mean(out, {}, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), false);
    })
    .gradient("self", {"grad", "self", "dim", "correction", "keepdim"}, variance_gradient)
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR(
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
    .out("std.correction_out")
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      check_variance_type("std and var", self, dims);
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(self.dtype()));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, const OptionalScalar& correction, bool) {
      warn_of_degrees("std", self, dims, correction);
      kernels::var_mean(out, {}, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), true);
    })
    .gradient("self", {"grad", "self", "result", "dim", "correction", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, OptionalDims dims,
                 const OptionalScalar& correction,
                 bool keepdim) { return variance_gradient(half_over(grad, result), self, dims, correction, keepdim); })
    .tags({Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

using Pair = std::tuple<TensorSpec, TensorSpec>;

Pair spread_and_mean_specs(const char* name, const Tensor& self, const OptionalDims& dims, bool keepdim) {
  check_variance_type(name, self, dims);
  uint64_t mask = reduced_dims(self, dims);
  return {reduced_spec(self, mask, keepdim, real_type(self.dtype())), reduced_spec(self, mask, keepdim, self.dtype())};
}

/// The gradient of the input from those of its variance and its mean, either of which may be missing.
Tensor variance_mean_gradient(const Tensor& grad_variance, const Tensor& grad_mean, const Tensor& self,
                              const OptionalDims& dims, const OptionalScalar& correction, bool keepdim) {
  Tensor out;
  if (grad_variance.defined()) out = variance_gradient(grad_variance, self, dims, correction, keepdim);
  if (!grad_mean.defined()) return out;
  Tensor share =
      restore_dims(grad_mean.div(Scalar(reduced_count(self.sym_sizes(), dims))), self.sym_sizes(), dims, keepdim)
          .expand(self.sym_sizes());
  return out.defined() ? out.add(share) : share;
}

UMBRA_OPERATOR(
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
    "Tensor)")
    .generated_out("var_mean.correction_out", {"out0", "out1"})
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      return spread_and_mean_specs("var_mean", self, dims, keepdim);
    })
    .cpu<2>([](const Tensor& variance, const Tensor& mean, const Tensor& self, OptionalDims dims,
               const OptionalScalar& correction, bool) {
      warn_of_degrees("var_mean", self, dims, correction);
      kernels::var_mean(variance, mean, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), false);
    })
    .gradient("self", {"grad0", "grad1", "self", "dim", "correction", "keepdim"}, variance_mean_gradient)
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR(
    "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
    "Tensor)")
    .generated_out("std_mean.correction_out", {"out0", "out1"})
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      return spread_and_mean_specs("std_mean", self, dims, keepdim);
    })
    .cpu<2>([](const Tensor& deviation, const Tensor& mean, const Tensor& self, OptionalDims dims,
               const OptionalScalar& correction, bool) {
      warn_of_degrees("std_mean", self, dims, correction);
      kernels::var_mean(deviation, mean, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), true);
    })
    .gradient("self", {"grad0", "grad1", "self", "result0", "dim", "correction", "keepdim"},
              [](const Tensor& grad_deviation, const Tensor& grad_mean, const Tensor& self, const Tensor& deviation,
                 OptionalDims dims, const OptionalScalar& correction, bool keepdim) {
                Tensor slope;
                if (grad_deviation.defined()) slope = half_over(grad_deviation, deviation);
                return variance_mean_gradient(slope, grad_mean, self, dims, correction, keepdim);
              })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

// ---- by whether the estimate is unbiased ----

OptionalScalar bias(bool unbiased) { return Scalar(unbiased ? 1 : 0); }
std::optional<IntArrayRef> given(const OptionalDims& dims) {
  return dims ? std::optional<IntArrayRef>(*dims) : std::nullopt;
}

UMBRA_OPERATOR("var(Tensor self, bool unbiased=True) -> Tensor")
    .composite([](const Tensor& self, bool unbiased) { return var(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("std(Tensor self, bool unbiased=True) -> Tensor")
    .composite([](const Tensor& self, bool unbiased) { return std(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .out("var.out")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      if (self.is_floating_point() || self.is_complex()) dim_mask(dims.value_or(std::vector<int64_t>()), self.dim());
      return var(self, given(dims), bias(unbiased), keepdim);
    })
    .use(out_parts([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim, const Tensor& out) {
      return var_out(out, self, given(dims), bias(unbiased), keepdim);
    }))
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut});
UMBRA_OPERATOR("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .out("std.out")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      if (self.is_floating_point() || self.is_complex()) dim_mask(dims.value_or(std::vector<int64_t>()), self.dim());
      return std(self, given(dims), bias(unbiased), keepdim);
    })
    .use(out_parts([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim, const Tensor& out) {
      return std_out(out, self, given(dims), bias(unbiased), keepdim);
    }))
    .tags({Tag::Reduction, Tag::CastsToOut});
UMBRA_OPERATOR("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
    .composite([](const Tensor& self, bool unbiased) { return var_mean(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
    .composite([](const Tensor& self, bool unbiased) { return std_mean(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      if (self.is_floating_point() || self.is_complex()) dim_mask(dims.value_or(std::vector<int64_t>()), self.dim());
      return var_mean(self, given(dims), bias(unbiased), keepdim);
    })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      if (self.is_floating_point() || self.is_complex()) dim_mask(dims.value_or(std::vector<int64_t>()), self.dim());
      return std_mean(self, given(dims), bias(unbiased), keepdim);
    })
    .tags({Tag::Reduction});

// ---- products, running sums ----

/// The product of all others along a dimension, from both ends: nothing is divided, so that it can be differentiated
/// again whatever is zero.
Tensor others_product(const Tensor& self, int64_t dim) {
  SymInt last = self.sym_size(dim) - 1;
  Tensor one = ones_like(self.slice(dim, SymInt(0), SymInt(1)));
  auto before = [&](const Tensor& t) { return cat({one, t.slice(dim, SymInt(0), last)}, dim).cumprod(dim); };
  return before(self).mul(before(self.flip(IntArrayRef{dim})).flip(IntArrayRef{dim}));
}

// Without zeros the product over each element; with one zero, only that one has a slope; with more, none has. No look
// at the data is needed.
Tensor product_gradient(const Tensor& grad, const Tensor& self, const OptionalDims& dims, bool keepdim) {
  if (self.dim() == 0) return grad;
  if (is_grad_enabled() && self.sym_numel() != 0) {
    Tensor others =
        dims ? others_product(self, (*dims)[0]) : others_product(self.reshape({-1}), 0).reshape(self.sym_sizes());
    return restore_dims(grad, self.sym_sizes(), dims, keepdim).mul(others.conj());
  }
  auto over = [&](const Tensor& t) { return dims ? t.sum(IntArrayRef(*dims), true) : t.sum(); };
  Tensor zero = self.eq(0), rest = self.masked_fill(zero, 1);
  Tensor whole = dims ? rest.prod((*dims)[0], true) : rest.prod(), zeros = over(zero);
  Tensor nothing = zeros_like(rest), at_zero = where(zero.logical_and(zeros.eq(1)), whole, nothing);
  Tensor over_rest = whole.div(rest), slope = where(zeros.eq(0), over_rest, at_zero);
  return restore_dims(grad, self.sym_sizes(), dims, keepdim).mul(slope.conj());
}

UMBRA_OPERATOR("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .generated_out("prod.out")
    .meta([](const Tensor& self, std::optional<DType> dtype) {
      return TensorSpec({}, accumulated_dtype(self, dtype), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::optional<DType>) {
      kernels::prod(out, kernels::cast(self, out.dtype()), masked_dims(all_dims(self)));
    })
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return product_gradient(grad, self, {}, false); })
    .tags({Tag::Core, Tag::Reduction})
    .batch([](const Batched& self, std::optional<DType> dtype) {
      return Batched(batch_flat(self).prod(1, false, dtype), 0);
    });

UMBRA_OPERATOR("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .out("prod.int_out")
    .use(OutDecidesType{"prod.int_out"})
    .meta([](const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
      return reduced_spec(self, dim_mask({&dim, 1}, self.dim(), false), keepdim, accumulated_dtype(self, dtype));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool, std::optional<DType>) {
      kernels::prod(out, kernels::cast(self, out.dtype()),
                    self.dim() ? masked_dims(dim_mask({&dim, 1}, self.dim(), false)) : SmallVector<int64_t>());
    })
    .gradient("self", {"grad", "self", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim) {
                return product_gradient(grad, self, std::vector<int64_t>{dim}, keepdim);
              })
    .node("ProdBackward1")
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .inplace("cumsum_")
    .out("cumsum.out")
    .use(OutDecidesType{"cumsum.out"})
    .meta([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      wrap_dim(dim, self.dim());
      return TensorSpec(self.sym_sizes(), accumulated_dtype(self, dtype), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, std::optional<DType>) {
      kernels::cumsum(out, kernels::cast(self, out.dtype()), wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "dim"},
              [](const Tensor& grad, int64_t dim) {
                if (grad.dim() == 0) return grad;
                return grad.flip(IntArrayRef{dim}).cumsum(dim).flip(IntArrayRef{dim});
              })
    .linear()
    .on_inplace([](OperatorBuilder& variant) {
      variant.meta([](const Tensor& self, int64_t, std::optional<DType> dtype) {
        check_kernel_type(self.dtype() != DType::Bool || dtype, "cumsum_out_cpu", self);
        check_scanned_in_place(self, dtype);
        return spec_like(self);
      });
    })
    .tags({Tag::Core, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- logarithms of sums ----

UMBRA_OPERATOR("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    .out("logsumexp.out")
    .use(out_reads("logsumexp.out", "self",
                   [](const Tensor& self, std::vector<int64_t>, bool, const Tensor& out) {
                     check(is_floating(out.dtype()) || out.is_complex(),
                           "logsumexp(): Expected floating point type for result tensor, but got: ",
                           kernel_name(out.dtype()));
                     // The sum has the output's type: a wider one is not rounded to the input's.
                     DType common = promote_types(self.dtype(), out.dtype());
                     return common == out.dtype() ? self.to(common) : self;
                   }))
    .meta([](const Tensor& self, std::vector<int64_t> dims, bool keepdim) {
      for (int64_t dim : dims) wrap_dim(dim, self.dim());  // all of them before one is found twice
      // PyTorch's kernel keeps the dimensions where it was told none, and has no place for them.
      bool lost = dims.empty() && !keepdim && self.dim() > 0 && has_elements(self) && self.sym_numel() != 0;
      check(!lost, "output with shape [] doesn't match the broadcast shape ",
            to_string(SymIntArrayRef(SymShape(static_cast<size_t>(self.dim()), SymInt(1)))));
      DType dtype = is_integral(self.dtype(), true) ? default_dtype() : self.dtype();
      return reduced_spec(self, dim_mask(dims, self.dim()), keepdim, dtype);
    })
    .cpu([](const Tensor& out, const Tensor& self, std::vector<int64_t> dims, bool) {
      kernels::logsumexp(out, kernels::cast(self, out.dtype()), masked_dims(dim_mask(dims, self.dim())));
    })
    .gradient("self", {"grad", "self", "result", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, std::vector<int64_t> dims,
                 bool keepdim) {
                Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim),
                       r = restore_dims(result, self.sym_sizes(), dims, keepdim);
                return g.mul(self.sub(r).exp().conj());
              })
    .tags({Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

}  // namespace
}  // namespace umbra::ops
