// Norms of vectors and matrices, and the distance that is one.
#include <cmath>

#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "kernels/reductions.h"
#include "ops/common/batching.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/common/warn_once.h"
#include "ops/linalg/linalg.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/sparse/reduce.h"

namespace umbra::ops {
namespace {

using OptionalType = std::optional<DType>;
using OptionalScalar = std::optional<Scalar>;

// ---- vectors ----

// Of no elements, only norms that begin at 0 have a value.
void check_norm_exists(const Tensor& self, const Scalar& ord, const OptionalDims& dims) {
  if (ord.is_symbolic() || (!(ord.to_double() < 0) && !std::isinf(ord.to_double()))) return;
  if (dims && !dims->empty()) {
    for (int64_t d : *dims)
      check(self.dim() == 0 || self.sym_size(d) != 0, "linalg.vector_norm cannot compute the ",
            number_text(ord.to_double()), " norm on the dimension ", d,
            "because this dimension is empty and the operation does not have an identity");
    return;
  }
  check(self.sym_numel() != 0, "linalg.vector_norm cannot compute the ", number_text(ord.to_double()),
        " norm on an empty tensor because the operation does not have an identity");
}

void check_real_order(const Scalar& ord, const char* name) {
  check(!ord.is_complex(), name, ": Expected a non-complex scalar as the order of norm.");
}

void check_norm_type(const Tensor& self, OptionalType dtype, const char* name) {
  check_floating_matrix(self, name);
  if (!dtype) return;
  DType type = *dtype;
  check(is_floating(type) || is_complex(type), name, ": dtype should be floating point or complex, but got ",
        kernel_name(type));
  check(is_complex(type) == self.is_complex(), name, ": dtype should be ", self.is_complex() ? "complex" : "real",
        " for ", self.is_complex() ? "complex" : "real", " inputs, but got ", kernel_name(type));
  check(promote_types(self.dtype(), type) == type, name, ": the dtype of the input (", kernel_name(self.dtype()),
        ") should be convertible without narrowing to the specified dtype (", kernel_name(type), ")");
}

Tensor vector_norm_gradient(const Tensor& grad, const Tensor& self, const Tensor& result, double p,
                            const OptionalDims& dims, bool keepdim) {
  Tensor g = restore_dims(grad, self.sym_sizes(), dims, keepdim),
         r = restore_dims(result, self.sym_sizes(), dims, keepdim);
  if (p == 0) return {};  // a count: PyTorch gives no gradient, not zeros
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
}

void vector_norm_cpu(const Tensor& out, const Tensor& self, double p, const OptionalDims& dims, OptionalType dtype) {
  SmallVector<int64_t> over = masked_dims(reduced_dims(self, dims));
  if (self.numel() == 0 && std::isnan(p)) return kernels::fill(out, 0);
  // Of one element every norm but the 0th is its size, whatever its powers would do.
  bool single = std::all_of(over.begin(), over.end(), [&](int64_t d) { return self.dim() == 0 || self.size(d) == 1; });
  // In single precision so large an order is infinite, and the root that is taken is the 0th.
  bool rootless = out.dtype() != DType::Float64 && std::isfinite(p) && !std::isfinite(static_cast<float>(p));
  if (rootless && !single) return kernels::fill(out, self.numel() == 0 ? 0 : 1);
  kernels::norm(out, dtype ? kernels::cast(self, *dtype) : self, single && p != 0 ? 1.0 : p, over);
}

UMBRA_OPERATOR(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .out("linalg_vector_norm.out")
    .meta([](const Tensor& self, const Scalar& ord, OptionalDims dims, bool keepdim, OptionalType dtype) {
      check_real_order(ord, "linalg.vector_norm");
      check_norm_type(self, dtype, "linalg.vector_norm");
      check_norm_exists(self, ord, dims);
      return reduced_spec(self, reduced_dims(self, dims), keepdim, real_type(dtype.value_or(self.dtype())));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& ord, OptionalDims dims, bool, OptionalType dtype) {
      vector_norm_cpu(out, self, ord.to_double(), dims, dtype);
    })
    .sparse([](const Tensor& self, const Scalar& ord, OptionalDims dims, bool keepdim, OptionalType dtype) {
      return sparse::norm(self, ord, dims.value_or(std::vector<int64_t>()), keepdim, dtype);
    })
    .gradient("self", {"grad", "self", "result", "ord", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord, OptionalDims dims,
                 bool keepdim) { return vector_norm_gradient(grad, self, result, ord.to_double(), dims, keepdim); })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR(
    "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .all_backends([](const Tensor& self, const Scalar& ord, OptionalDims dims, bool keepdim, OptionalType dtype) {
      DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::Int64 : self.dtype());
      uint64_t mask = reduced_dims(self, dims);
      check<NotImplementedError>(!is_integral(type, true) || self.is_meta() || self.sym_numel().same(0),
                                 "\"powsum_cpu\" not implemented for '", kernel_name(type), "'");
      Tensor sizes = self.to(type);
      bool sign_counts = ord.to_double() != 2 || is_complex(type);
      if (sign_counts) sizes = sizes.abs();
      Tensor powers = ord.to_double() == 1 ? sizes : sizes.pow(ord).to(sizes.dtype());
      SmallVector<int64_t> over = masked_dims(mask);
      return over.empty() ? powers : powers.sum(IntArrayRef(over), keepdim, powers.dtype());
    })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

// ---- norm, the older name ----

double order_of(const OptionalScalar& p) { return p ? p->to_double() : 2.0; }

TensorSpec norm_spec(const Tensor& self, const OptionalScalar& p, const OptionalDims& dims, bool keepdim,
                     OptionalType dtype) {
  check(!dtype || is_differentiable(*dtype) || self.is_meta(),
        "norm(): the desired output dtype should be either floating point or complex. Got ",
        kernel_name(dtype.value_or(DType::Undefined)), " instead.");
  bool meta = self.is_meta() && !self.is_fake();
  check<NotImplementedError>(!dtype || !meta || is_differentiable(*dtype),
                             "linalg.vector_norm: dtype should be floating point or complex. Got ",
                             kernel_name(dtype.value_or(DType::Undefined)));
  if (dtype && self.is_meta()) check_norm_type(self, dtype, "linalg.vector_norm");
  uint64_t over = dtype ? reduced_dims(self, dims) : 0;
  if (dtype) check_norm_type(self, dtype, "linalg.vector_norm");
  check<NotImplementedError>(self.is_floating_point() || self.is_complex(),
                             "norm(): input dtype should be either floating point or complex. Got ",
                             kernel_name(self.dtype()), " instead.");
  check_norm_exists(self, Scalar(order_of(p)), dims);
  // PyTorch makes a result of the type that was asked for, though a norm is real.
  check(!dtype || !is_complex(*dtype) || outputs_are_given() || self.is_meta() || self.is_fake(),
        "Expected out tensor to have dtype ", cpp_name(real_type(dtype.value_or(self.dtype()))), ", but got ",
        cpp_name(dtype.value_or(self.dtype())), " instead");
  if (!dtype) over = reduced_dims(self, dims);
  return reduced_spec(self, over, keepdim, real_type(dtype.value_or(self.dtype())));
}

const BatchInFront kReduces{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true};

UMBRA_OPERATOR("norm.Scalar(Tensor self, Scalar p=2) -> Tensor")
    .generated_out("norm.Scalar_out")
    .meta([](const Tensor& self, const Scalar& p) { return norm_spec(self, p, {}, false, {}); })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& p) {
      vector_norm_cpu(out, self, p.to_double(), {}, {});
    })
    .sparse([](const Tensor& self, const Scalar& p) { return sparse::norm(self, p, {}, false, {}); })
    .gradient("self", {"grad", "self", "result", "p"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& p) {
                return vector_norm_gradient(grad, self, result, p.to_double(), {}, false);
              })
    .tags({Tag::Reduction})
    .batch([](const Batched& self, const Scalar& p) {
      return Batched(norm(batch_flat(self), p, IntArrayRef{1}, false), 0);
    });

UMBRA_OPERATOR("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
    .generated_out("norm.ScalarOpt_dtype_out")
    .meta([](const Tensor& self, const OptionalScalar& p, DType dtype) { return norm_spec(self, p, {}, false, dtype); })
    .cpu([](const Tensor& out, const Tensor& self, const OptionalScalar& p, DType dtype) {
      vector_norm_cpu(out, self, order_of(p), {}, dtype);
    })
    .gradient("self", {"grad", "self", "result", "p"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const OptionalScalar& p) {
                return vector_norm_gradient(grad, self, result, order_of(p), {}, false);
              })
    .node("NormBackward2")
    .tags({Tag::Reduction})
    .batch([](const Batched& self, const OptionalScalar& p, DType dtype) {
      return Batched(norm(batch_flat(self), p, IntArrayRef{1}, false, dtype), 0);
    });

UMBRA_OPERATOR("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
    .out("norm.out")
    .meta([](const Tensor& self, const OptionalScalar& p, std::vector<int64_t> dims, bool keepdim) {
      return norm_spec(self, p, dims, keepdim, {});
    })
    .cpu([](const Tensor& out, const Tensor& self, const OptionalScalar& p, std::vector<int64_t> dims, bool) {
      vector_norm_cpu(out, self, order_of(p), dims, {});
    })
    .sparse([](const Tensor& self, const OptionalScalar& p, std::vector<int64_t> dims, bool keepdim) {
      return sparse::norm(self, p, dims, keepdim, {});
    })
    .gradient("self", {"grad", "self", "result", "p", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const OptionalScalar& p,
                 std::vector<int64_t> dims,
                 bool keepdim) { return vector_norm_gradient(grad, self, result, order_of(p), dims, keepdim); })
    .node("NormBackward1")
    .tags({Tag::Reduction})
    .use(kReduces);

UMBRA_OPERATOR(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor")
    .out("norm.dtype_out")
    .meta([](const Tensor& self, const OptionalScalar& p, std::vector<int64_t> dims, bool keepdim, DType dtype) {
      return norm_spec(self, p, dims, keepdim, dtype);
    })
    .cpu([](const Tensor& out, const Tensor& self, const OptionalScalar& p, std::vector<int64_t> dims, bool,
            DType dtype) { vector_norm_cpu(out, self, order_of(p), dims, dtype); })
    .gradient("self", {"grad", "self", "result", "p", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, const OptionalScalar& p,
                 std::vector<int64_t> dims,
                 bool keepdim) { return vector_norm_gradient(grad, self, result, order_of(p), dims, keepdim); })
    .node("NormBackward3")
    .tags({Tag::Reduction})
    .use(kReduces);

UMBRA_OPERATOR("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    .out("frobenius_norm.out")
    .composite([](const Tensor& self, std::vector<int64_t> dims, bool keepdim) {
      check(dims.size() <= 2, "Expected at most 2 dimensions, but got ", dims.size(), " dimensions instead.");
      if (self.is_floating_point() || self.is_complex()) wrap_dims(dims, self.dim());
      return norm(self, Scalar(2.0), IntArrayRef(dims), keepdim);
    })
    .use(out_parts([](const Tensor& self, std::vector<int64_t> dims, bool keepdim, const Tensor& out) {
      check(dims.size() <= 2, "Expected at most 2 dimensions, but got ", dims.size(), " dimensions instead.");
      if (self.is_floating_point() || self.is_complex()) wrap_dims(dims, self.dim());
      if (self.is_floating_point()) check_out_dtype(self.dtype(), out.dtype());
      return norm_out(out, self, Scalar(2.0), IntArrayRef(dims), keepdim);
    }))
    .tags({Tag::ExactOut});

UMBRA_OPERATOR("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
    .composite([](const Tensor& v, int64_t pow, int64_t dim) {
      if (dim == -1) return norm(v, Scalar(pow));
      SymInt kept = v.sym_size(dim);
      SymShape sizes(v.dim(), 1);
      if (dim == 0) {
        sizes[0] = kept;
        return norm(v.reshape({kept, -1}), Scalar(pow), IntArrayRef{1}).view(sizes);
      }
      if (dim == v.dim() - 1) {
        sizes[v.dim() - 1] = kept;
        return norm(v.reshape({-1, kept}), Scalar(pow), IntArrayRef{0}).view(sizes);
      }
      return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim);
    });

UMBRA_OPERATOR("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
    .generated_out("dist.out")
    .all_backends([](const Tensor& self, const Tensor& other, const Scalar& p) { return norm(self.sub(other), p); })
    .sparse([](const Tensor& self, const Tensor& other, const Scalar& p) { return norm(self.sub(other), p); })
    .gradient("self, other", {"grad", "self", "other", "result", "p"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other, const Tensor& result, const Scalar& p) {
                Tensor g = vector_norm_gradient(grad, self.sub(other), result, p.to_double(), {}, false);
                Tensor of_other = ops::sum_to_size(g.neg(), other.sym_sizes());
                return std::make_tuple(ops::sum_to_size(g, self.sym_sizes()), of_other);
              })
    .use(batch_through([](const Tensor& self, const Tensor& other, const Scalar& p) {
      return norm(self.sub(other), p);
    }));

// ---- matrices ----

struct MatrixDims {
  int64_t rows, columns;
  /// `decomposed`: the norm is one of singular values, which small floats have none of.
  MatrixDims(const Tensor& self, const std::vector<int64_t>& dims, bool decomposed) {
    check_matrix(self, "linalg.matrix_norm");
    check_floating_matrix(self, "linalg.matrix_norm", !decomposed);
    if (dims.size() != 2) {
      std::string text;
      for (int64_t d : dims) text += (text.empty() ? "" : ", ") + std::to_string(d);
      fail("linalg.matrix_norm: dim must be a 2-tuple. Got ", text);
    }
    rows = wrap_dim(dims[0], self.dim());
    columns = wrap_dim(dims[1], self.dim());
    check(rows != columns, "linalg.matrix_norm: dims must be different. Got (", dims[0], ", ", dims[1], ")");
  }
};

/// A maximum over no elements is 0, as norms are.
Tensor extreme(const Tensor& t, int64_t dim, bool keepdim, bool largest) {
  if (!largest) return t.amin(IntArrayRef{dim}, keepdim);
  if (t.sym_size(dim) != 0) return t.amax(IntArrayRef{dim}, keepdim);
  SymShape sizes(t.sym_sizes());
  int64_t d = wrap_dim(dim, t.dim());
  if (keepdim) sizes[d] = 1;
  else sizes.erase(d);
  return zeros(sizes, t.options());
}

/// A function of the singular values of the matrices in two dimensions.
template <class F> Tensor by_singular_values(const Tensor& self, MatrixDims dims, bool keepdim, F&& reduce) {
  std::vector<int64_t> order, back(self.dim());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dims.rows && d != dims.columns) order.push_back(d);
  order.push_back(dims.rows);
  order.push_back(dims.columns);
  Tensor result = reduce(linalg_svdvals(self.permute(order)), keepdim);
  if (!keepdim) return result;
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  return result.unsqueeze(-1).permute(back);
}

UMBRA_OPERATOR(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .out("linalg_matrix_norm.out")
    .composite([](const Tensor& self, const Scalar& ord, std::vector<int64_t> dim, bool keepdim, OptionalType dtype) {
      check_real_order(ord, "linalg.matrix_norm");
      double order = ord.to_double(), size = std::abs(order);
      check(size == 2 || size == 1 || std::isinf(size), "linalg.matrix_norm: Order ", ord, " not supported.");
      MatrixDims dims(self, dim, size == 2);
      check_norm_type(self, dtype, "linalg.matrix_norm");
      Tensor a = dtype ? self.to(*dtype) : self;
      if (size == 2) {
        return by_singular_values(a, dims, keepdim,
                                  [&](const Tensor& s, bool keep) { return extreme(s, -1, keep, order > 0); });
      }
      if (std::isinf(size)) std::swap(dims.rows, dims.columns);
      Tensor sums = linalg_vector_norm(self, Scalar(1.0), {dims.rows}, keepdim, dtype);
      int64_t rest = !keepdim && dims.rows < dims.columns ? dims.columns - 1 : dims.columns;
      return extreme(sums, rest, keepdim, order > 0);
    })
    .use(OutCopied{.refuses_as = "linalg.matrix_norm"})
    .tags({Tag::ExactOut});

UMBRA_OPERATOR(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor")
    .out("linalg_matrix_norm.str_ord_out")
    .composite([](const Tensor& self, const std::string& ord, std::vector<int64_t> dim, bool keepdim,
                  OptionalType dtype) {
      check(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
      MatrixDims dims(self, dim, ord == "nuc");
      check_norm_type(self, dtype, "linalg.matrix_norm");
      if (ord == "fro") return linalg_vector_norm(self, Scalar(2), {dims.rows, dims.columns}, keepdim, dtype);
      Tensor a = dtype ? self.to(*dtype) : self;
      return by_singular_values(a, dims, keepdim,
                                [](const Tensor& s, bool keep) { return s.sum(IntArrayRef{-1}, keep); });
    })
    .use(OutCopied{.refuses_as = "linalg.matrix_norm"})
    .tags({Tag::ExactOut});

std::vector<int64_t> all_of(const Tensor& self) { return masked_dims(all_dims(self)).vec(); }

UMBRA_OPERATOR(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .out("linalg_norm.out")
    .composite([](const Tensor& self, const OptionalScalar& ord, OptionalDims dim, bool keepdim, OptionalType dtype) {
      if (dim && dim->size() != 1 && dim->size() != 2)
        fail("linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", IntArrayRef(*dim));
      if (!dim && ord)
        check(self.dim() == 1 || self.dim() == 2,
              "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
      bool matrix = ord && ((dim && dim->size() == 2) || (!dim && self.dim() == 2));
      if (matrix) return linalg_matrix_norm(self, *ord, IntArrayRef(dim ? *dim : all_of(self)), keepdim, dtype);
      Scalar order = ord ? *ord : Scalar(2.0);
      if (dim) return linalg_vector_norm(self, order, IntArrayRef(*dim), keepdim, dtype);
      return linalg_vector_norm(self, order, std::nullopt, keepdim, dtype);
    })
    .use(OutCopied{.refuses_as = "linalg.norm"})
    .tags({Tag::ExactOut});

UMBRA_OPERATOR(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor")
    .out("linalg_norm.ord_str_out")
    .composite([](const Tensor& self, const std::string& ord, OptionalDims dim, bool keepdim, OptionalType dtype) {
      if (dim && dim->size() != 1 && dim->size() != 2)
        fail("linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", IntArrayRef(*dim));
      // Without dimensions, matrices only; the other ranks have messages of their own.
      check(dim || self.dim() <= 2, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ",
            self.dim(), "D.");
      return linalg_matrix_norm(self, ord, IntArrayRef(dim ? *dim : std::vector<int64_t>{-2, -1}), keepdim, dtype);
    })
    .use(OutCopied{.refuses_as = "linalg.norm"})
    .tags({Tag::ExactOut});

/// Where the norm is written, before anything is said of the matrix.
void check_norm_out(const Tensor& self, const Tensor& out) {
  check(self.device() == out.device(),
        "linalg.matrix_norm: Expected result and input tensors to be on the same device, but got result on ",
        out.device(), " and input on ", self.device());
}

void warn_of_nuclear_norm() {
  static std::atomic<bool> told = false;
  warn_once(told, "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be removed in a ",
            "future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead");
}

UMBRA_OPERATOR("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor")
    .out("nuclear_norm.out")
    .use(out_asks("nuclear_norm.out", [](const Tensor& self, bool, const Tensor& out) { check_norm_out(self, out); }))
    .composite([](const Tensor& self, bool keepdim) {
      warn_of_nuclear_norm();
      return linalg_matrix_norm(self, std::string("nuc"), {-2, -1}, keepdim);
    })
    .use(OutCopied{.refuses_as = "linalg.matrix_norm"})
    .tags({Tag::ExactOut});
UMBRA_OPERATOR("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor")
    .out("nuclear_norm.dim_out")
    .use(out_asks("nuclear_norm.dim_out",
                  [](const Tensor& self, std::vector<int64_t>, bool, const Tensor& out) { check_norm_out(self, out); }))
    .composite([](const Tensor& self, std::vector<int64_t> dim, bool keepdim) {
      warn_of_nuclear_norm();
      return linalg_matrix_norm(self, std::string("nuc"), IntArrayRef(dim), keepdim);
    })
    .use(OutCopied{.refuses_as = "linalg.matrix_norm"})
    .tags({Tag::ExactOut});

}  // namespace
}  // namespace umbra::ops
