// Variances, deviations, products, norms, logsumexp, running sums.
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "ops/common/batching.h"
#include "ops/reduce/reduce.h"

namespace umbra::ops {
namespace {

using OptionalScalar = std::optional<Scalar>;

double correction_of(const OptionalScalar& c) { return c ? c->to_double() : 1.0; }

void check_variance_type(const char* name, const Tensor& self) {
  check<NotImplementedError>(self.is_floating_point() || self.is_complex(), name,
                             " only support floating point and complex dtypes");
}

// d var / dx = 2 (x - mean) / (n - correction)
Tensor variance_gradient(const Tensor& grad, const Tensor& self, const OptionalDims& dims,
                         const OptionalScalar& correction, bool keepdim) {
  Scalar degrees = Scalar(sym_float_binary(SymOp::Sub, sym_float(reduced_count(self.sym_sizes(), dims)),
                                           SymFloat(correction_of(correction))));
  Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim);
  Tensor mean = dims && !dims->empty() ? self.mean(IntArrayRef(*dims), true) : self.mean();
  // The factor goes to the elements: of no elements, there is then no derivative that an infinite factor could spoil.
  return g.mul(self.sub(mean).mul(2.0).div(degrees));
}

UMBRA_OPERATOR(
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
    .out("var.correction_out")
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      check_variance_type("std and var", self);
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(self.dtype()));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, const OptionalScalar& correction, bool) {
      kernels::var_mean(out, {}, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), false);
    })
    .gradient("self", {"grad", "self", "dim", "correction", "keepdim"}, variance_gradient)
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR(
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
    .out("std.correction_out")
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) {
      check_variance_type("std and var", self);
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(self.dtype()));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, const OptionalScalar& correction, bool) {
      kernels::var_mean(out, {}, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), true);
    })
    .gradient("self", {"grad", "self", "result", "dim", "correction", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, OptionalDims dims,
                 const OptionalScalar& correction, bool keepdim) {
                Tensor slope = grad.div(result.mul(2.0)).masked_fill(result.eq(0), 0);
                return variance_gradient(slope, self, dims, correction, keepdim);
              })
    .tags({Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

using Pair = std::tuple<TensorSpec, TensorSpec>;

UMBRA_OPERATOR(
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
    "Tensor)")
    .meta([](const Tensor& self, OptionalDims dims, const OptionalScalar&, bool keepdim) -> Pair {
      check_variance_type("var_mean", self);
      uint64_t mask = reduced_dims(self, dims);
      return {reduced_spec(self, mask, keepdim, real_type(self.dtype())),
              reduced_spec(self, mask, keepdim, self.dtype())};
    })
    .cpu<2>([](const Tensor& variance, const Tensor& mean, const Tensor& self, OptionalDims dims,
               const OptionalScalar& correction, bool) {
      kernels::var_mean(variance, mean, self, masked_dims(reduced_dims(self, dims)), correction_of(correction), false);
    })
    .gradient("self", {"grad0", "grad1", "self", "dim", "correction", "keepdim"},
              [](const Tensor& grad_variance, const Tensor& grad_mean, const Tensor& self, OptionalDims dims,
                 const OptionalScalar& correction, bool keepdim) {
                Tensor out;
                if (grad_variance.defined()) out = variance_gradient(grad_variance, self, dims, correction, keepdim);
                if (!grad_mean.defined()) return out;
                Tensor share = restore_dims(grad_mean.div(Scalar(reduced_count(self.sym_sizes(), dims))),
                                            self.sym_sizes(), dims, keepdim)
                                   .expand(self.sym_sizes());
                return out.defined() ? out.add(share) : share;
              })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

OptionalScalar bias(bool unbiased) { return Scalar(unbiased ? 1 : 0); }
UMBRA_OPERATOR("var(Tensor self, bool unbiased=True) -> Tensor")
    .composite([](const Tensor& self, bool unbiased) { return var(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("std(Tensor self, bool unbiased=True) -> Tensor")
    .composite([](const Tensor& self, bool unbiased) { return std(self, std::nullopt, bias(unbiased)); })
    .tags({Tag::Reduction});
UMBRA_OPERATOR("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      return var(self, dims ? std::optional<IntArrayRef>(*dims) : std::nullopt, bias(unbiased), keepdim);
    })
    .tags({Tag::Core, Tag::Reduction});
UMBRA_OPERATOR("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .composite([](const Tensor& self, OptionalDims dims, bool unbiased, bool keepdim) {
      return std(self, dims ? std::optional<IntArrayRef>(*dims) : std::nullopt, bias(unbiased), keepdim);
    })
    .tags({Tag::Reduction});

// ---- products, running sums ----

DType accumulated_dtype(const Tensor& self, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
}

// Without zeros the product over each element; with one zero, only that one has a slope; with more, none has. No look
// at the data is needed.
Tensor product_gradient(const Tensor& grad, const Tensor& self, const OptionalDims& dims, bool keepdim) {
  if (self.dim() == 0) return grad;
  auto over = [&](const Tensor& t) { return dims ? t.sum(IntArrayRef(*dims), true) : t.sum(); };
  Tensor zero = self.eq(0), rest = self.masked_fill(zero, 1);
  Tensor whole = dims ? rest.prod((*dims)[0], true) : rest.prod(), zeros = over(zero);
  Tensor slope = where(zeros.eq(0), whole.div(rest), where(zero.logical_and(zeros.eq(1)), whole, zeros_like(rest)));
  return restore_dims(grad, self.sym_sizes(), dims, keepdim).mul(slope.conj());
}

UMBRA_OPERATOR("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
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
    .meta([](const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
      return reduced_spec(self, dim_mask({&dim, 1}, self.dim(), false), keepdim, accumulated_dtype(self, dtype));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool, std::optional<DType>) {
      kernels::prod(out, kernels::cast(self, out.dtype()),
                    self.dim() ? masked_dims(dim_mask({&dim, 1}, self.dim(), false)) : std::vector<int64_t>());
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
    .tags({Tag::Core, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

// ---- norms ----

// Of no elements, only norms that begin at 0 have a value.
void check_norm_exists(const Tensor& self, const Scalar& ord, const OptionalDims& dims) {
  if (ord.is_symbolic() || (ord.to_double() >= 0 && !std::isinf(ord.to_double()))) return;
  if (dims && !dims->empty()) {
    for (int64_t d : *dims)
      check(self.dim() == 0 || self.sym_size(d) != 0, "linalg.vector_norm cannot compute the ", ord.to_double(),
            " norm on the dimension ", d,
            " because this dimension is empty and the operation does not have an identity");
    return;
  }
  check(self.sym_numel() != 0, "linalg.vector_norm cannot compute the ", ord.to_double(),
        " norm on an empty tensor because the operation does not have an identity");
}

UMBRA_OPERATOR(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .out("linalg_vector_norm.out")
    .meta([](const Tensor& self, const Scalar& ord, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      check_norm_exists(self, ord, dims);
      check<NotImplementedError>(self.is_floating_point() || self.is_complex(),
                                 "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
                                 kernel_name(self.dtype()));
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(dtype.value_or(self.dtype())));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& ord, OptionalDims dims, bool,
            std::optional<DType> dtype) {
      kernels::norm(out, dtype ? kernels::cast(self, *dtype) : self, ord.to_double(),
                    masked_dims(reduced_dims(self, dims)));
    })
    .gradient("self", {"grad", "self", "result", "ord", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord, OptionalDims dims,
                 bool keepdim) {
                Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim),
                       r = restore_dims(result, self.sym_sizes(), dims, keepdim);
                double p = ord.to_double();
                if (p == 0) return zeros_like(self);
                if (p == 1) return g.mul(self.sgn());
                if (std::isinf(p)) {
                  Tensor size = self.abs(), attained = size.eq(r).logical_or(size.isnan().logical_and(r.isnan()));
                  Tensor count = dims && !dims->empty() ? attained.sum(IntArrayRef(*dims), true) : attained.sum();
                  return self.sgn().mul(g.div(count).mul(attained));
                }
                // A norm of 0 is flat by convention; the division must not meet it, or its derivative is no number.
                Tensor zero = r.eq(0), length = r.masked_fill(zero, 1);
                if (p == 2) return self.mul(g.div(length).masked_fill(zero, 0));
                Tensor slope = self.sgn().mul(self.abs().pow(p - 1));
                if (p < 1) slope = slope.masked_fill(self.eq(0), 0);
                return slope.mul(g.div(length.pow(p - 1)).masked_fill(zero, 0));
              })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    .out("logsumexp.out")
    .meta([](const Tensor& self, std::vector<int64_t> dims, bool keepdim) {
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
