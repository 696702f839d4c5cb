// Products of vectors, matrices and batches beyond mm: outer, inner, cross, tensordot, kron.
#include "ops/sparse/products.h"

#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/functors/functor.h"
#include "kernels/matmul.h"
#include "kernels/vector/rows.h"
#include "ops/common/batching.h"
#include "ops/common/expand_rank.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/common/promotion.h"
#include "ops/common/unbacked.h"
#include "ops/linalg/linalg.h"
#include "ops/pointwise/family.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/writes.h"

namespace umbra::ops {
namespace {

// ---- a sum and a product ----

UMBRA_OPERATOR("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .inplace("addmv_")
    .out("addmv.out")
    .meta([](const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar&, const Scalar&) {
      check(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(),
            ", ", mat.dim(), ", ", vec.dim());
      SymInt n = mat.sym_size(0), own = self.dim() ? self.sym_size(0) : SymInt(1);
      bool fits = mat.sym_size(1) == vec.sym_size(0) && (own == n || own == 1);
      if (!fits) self.sym_size(0);  // a 0-d tensor is told by this dimension
      check(fits, "size mismatch, got input (", own, "), mat (", n, "x", mat.sym_size(1), "), vec (", vec.sym_size(0),
            ")");
      check(self.dtype() == mat.dtype() && mat.dtype() == vec.dtype(),
            "addmv input tensors must have the same dtype, but got ", kernel_name(self.dtype()), ", ",
            kernel_name(mat.dtype()), ", and ", kernel_name(vec.dtype()));
      return TensorSpec({n}, vec.dtype(), common_device({&self, &mat, &vec}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
            const Scalar& alpha) {
      bool computes = out.numel() != 0 && (vec.numel() != 0 || !beta.equals(0));
      check<NotImplementedError>(self.dtype() != DType::Bool || !computes,
                                 "\"addmv_impl_cpu\" not implemented for 'Bool'");
      kernels::addmv(out, self, mat, vec, beta, alpha);
    })
    .sparse(sparse::add_matrix_vector_product)
    .gradient("self", {"grad", "beta"}, scaled)
    .gradient("mat", {"grad", "vec", "alpha"},
              [](const Tensor& grad, const Tensor& vec, const Scalar& alpha) {
                return scaled(grad.unsqueeze(1).mul(vec.conj().unsqueeze(0)), alpha);
              })
    .gradient("vec", {"grad", "mat", "alpha"},
              [](const Tensor& grad, const Tensor& mat, const Scalar& alpha) {
                return scaled(mat.t().conj().mv(grad), alpha);
              })
    .use(batch_through([](const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                          const Scalar& alpha) {
      Tensor column = self.dim() == 0 ? self : self.unsqueeze(1);
      return addmm(column, mat, vec.unsqueeze(1), beta, alpha).squeeze(1);
    }));

/// beta * self + alpha * outer(vec1, vec2) of plain numbers in order, row by row; undefined where they are not.
Tensor addr_rows(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  if ((self.dtype() != DType::Float32 && self.dtype() != DType::Float64) || beta.equals(0)) return {};
  for (const Tensor* t : {&self, &vec1, &vec2})
    if (!may_read(*t) || t->dtype() != self.dtype() || !t->is_contiguous() || t->is_neg()) return {};
  if (self.dim() != 2 || self.size(0) != vec1.size(0) || self.size(1) != vec2.size(0)) return {};
  Tensor out = kernels::scratch(self.sizes(), self.dtype());
  if (out.numel() == 0) return out;
  auto run = [&](auto tag) {
    using T = decltype(tag);
    const T *from = self.data<T>(), *left = vec1.data<T>(), *right = vec2.data<T>();
    T *to = out.data<T>(), b = static_cast<T>(beta.to_double()), a = static_cast<T>(alpha.to_double());
    for (int64_t i = 0, n = vec2.size(0); i < vec1.size(0); ++i)
      kernels::row_functions<T>().combine(to + i * n, from + i * n, right, b, a * left[i], T(0), n);
  };
  if (self.dtype() == DType::Float32) run(float());
  else run(double());
  return out;
}

/// beta * self + alpha * outer(vec1, vec2) by other operators, as types allow.
Tensor addr_parts(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  check(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  check(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  DType type = ResultType().add(self).add(vec1).add(vec2).get();
  auto fits = [&](const Scalar& s, const char* name) {
    check(type == DType::Bool || s.dtype() != DType::Bool, "Boolean ", name, " only supported for Boolean results.");
    check(type == DType::Bool || is_floating(type) || is_complex(type) || is_integral(s.dtype(), true),
          "For integral input tensors, argument ", name, " must not be a floating point number.");
    check(type != DType::Bool || s.dtype() == DType::Bool || is_integral(s.dtype(), true),
          "For integral input tensors, argument ", name, " must not be a floating point number.");
    check(is_complex(type) || !is_complex(s.dtype()), "For non-complex input tensors, argument ", name,
          " must not be a complex number.");
    if (!is_reduced_floating(type) && type != DType::Bool && !self.is_meta()) kernels::check_fits(s, type);
  };
  fits(beta, "beta");
  fits(alpha, "alpha");
  check_kernel_type(type != DType::Complex32, "addr_cpu", self);
  SymShape shape{vec1.sym_size(0), vec2.sym_size(0)};
  Tensor wide = self.expand(shape);
  if (type == DType::Bool) {
    bool b = !beta.equals(0), a = !alpha.equals(0);
    Tensor product = outer(vec1, vec2);
    if (!a) product = zeros_like(product);
    return b ? wide.logical_or(product) : product;
  }
  if (is_reduced_floating(type)) {  // each step is rounded, and so are the factors
    Tensor first = alpha.equals(1) ? vec1 : vec1.mul(functors::rounded(alpha, type));
    Tensor product = outer(first, vec2).to(type);
    return beta.equals(0) ? product : wide.mul(functors::rounded(beta, type)).add(product);
  }
  if (auto rows = addr_rows(self, vec1, vec2, beta, alpha); rows.defined()) return rows;
  Tensor product = outer(vec1, vec2);
  if (!alpha.equals(1)) product = product.mul(alpha);
  // What is multiplied by 0 does not count, not even where it is no number.
  if (beta.equals(0)) return product.to(type);
  return (beta.equals(1) ? wide : wide.mul(beta)).add(product);
}

UMBRA_OPERATOR("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .inplace("addr_")
    .out("addr.out")
    .all_backends(addr_parts)
    .gradient("self", {"grad", "beta", "self.sym_sizes"},
              [](const Tensor& grad, const Scalar& beta, SymIntArrayRef sizes) {
                return ops::sum_to_size(scaled(grad, beta), sizes);
              })
    .gradient("vec1", {"grad", "vec2", "alpha"},
              [](const Tensor& grad, const Tensor& vec2, const Scalar& alpha) {
                return scaled(grad.mv(vec2.conj()), alpha);
              })
    .gradient("vec2", {"grad", "vec1", "alpha"},
              [](const Tensor& grad, const Tensor& vec1, const Scalar& alpha) {
                return scaled(grad.t().mv(vec1.conj()), alpha);
              })
    .use(batch_through(addr_parts));

/// The sum of a batch of products as one product: the batch joins the inner dimension.
std::pair<Tensor, Tensor> joined_batches(const Tensor& batch1, const Tensor& batch2) {
  SymInt n = batch1.sym_size(1), k = batch1.sym_size(0) * batch1.sym_size(2), p = batch2.sym_size(2);
  return {batch1.transpose(0, 1).reshape({n, k}), batch2.reshape({k, p})};
}

TensorSpec addbmm_spec(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&, const Scalar&) {
  SymShape sizes{batch1.sym_size(1), batch2.sym_size(2)};
  check(batch1.dim() == 3, "batch1 must be a 3D tensor");
  check(batch2.dim() == 3, "batch2 must be a 3D tensor");
  check(expect_equal(batch1.sym_size(0), batch2.sym_size(0)),
        "batch1 and batch2 must have same number of batches, got ", batch1.sym_size(0), " and ", batch2.sym_size(0));
  check(expect_equal(batch1.sym_size(2), batch2.sym_size(1)), "Incompatible matrix sizes for bmm (", batch1.sym_size(1),
        "x", batch1.sym_size(2), " and ", batch2.sym_size(1), "x", batch2.sym_size(2), ")");
  check_expands(self, sizes);
  check(self.dtype() == batch1.dtype() || batch1.dtype() != batch2.dtype(),
        "self and mat2 must have the same dtype, but got ", kernel_name(self.dtype()), " and ",
        kernel_name(batch2.dtype()));
  check(batch1.dtype() == batch2.dtype(), "mat1 and mat2 must have the same dtype, but got ",
        kernel_name(batch1.dtype()), " and ", kernel_name(batch2.dtype()));
  return TensorSpec(sizes, self.dtype(), common_device({&self, &batch1, &batch2}));
}

UMBRA_OPERATOR("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .inplace("addbmm_")
    .out("addbmm.out")
    .meta(addbmm_spec)
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
            const Scalar& alpha) {
      auto [a, b] = joined_batches(batch1, batch2);
      kernels::addmm(out, self, a, b, beta, alpha);
    })
    .gradient("self", {"grad", "beta", "self.sym_sizes"},
              [](const Tensor& grad, const Scalar& beta, SymIntArrayRef sizes) {
                return ops::sum_to_size(scaled(grad, beta), sizes);
              })
    .gradient("batch1", {"grad", "batch2", "alpha"},
              [](const Tensor& grad, const Tensor& batch2, const Scalar& alpha) {
                return scaled(grad.unsqueeze(0).expand({batch2.sym_size(0), -1, -1}).bmm(adjoint_of(batch2)), alpha);
              })
    .gradient("batch2", {"grad", "batch1", "alpha"},
              [](const Tensor& grad, const Tensor& batch1, const Scalar& alpha) {
                return scaled(adjoint_of(batch1).bmm(grad.unsqueeze(0).expand({batch1.sym_size(0), -1, -1})), alpha);
              })
    .use(batch_through([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                          const Scalar& alpha) {
      auto [a, b] = joined_batches(batch1, batch2);
      return addmm(self, a, b, beta, alpha);
    }));

UMBRA_OPERATOR(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) "
    "-> Tensor")
    .out("_addmm_activation.out")
    .all_backends([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha, bool use_gelu) {
      Tensor sum = addmm(self, mat1, mat2, beta, alpha);
      return use_gelu ? gelu(sum) : relu(sum);
    })
    .use(batch_through([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha, bool use_gelu) {
      Tensor sum = addmm(self, mat1, mat2, beta, alpha);
      return use_gelu ? gelu(sum) : relu(sum);
    }));

UMBRA_OPERATOR("_int_mm(Tensor self, Tensor mat2) -> Tensor")
    .out("_int_mm.out")
    .use(out_asks("_int_mm.out",
                  [](const Tensor& self, const Tensor& mat2, const Tensor&) {
                    check(self.dim() == 2, "_int_mm: self must be a matrix, got ", self.dim(), "-D tensor");
                    check(mat2.dim() == 2, "_int_mm: mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
                  }))
    .meta([](const Tensor& self, const Tensor& mat2) {
      if (!only_metadata_is_asked()) self.sym_size(0), mat2.sym_size(1);  // too few dimensions are an IndexError
      check(self.dim() == 2, "Expected self to be of dimension 2 but got ", self.dim());
      check(mat2.dim() == 2, "Expected mat2 to be of dimension 2 but got ", mat2.dim());
      check(self.sym_size(1) == mat2.sym_size(0), "self.size(1) needs to match mat2.size(0) but got ", self.sym_size(1),
            " and ", mat2.sym_size(0));
      check(self.dtype() == DType::Int8 || self.dtype() == DType::UInt8,
            "Expected self dtype to be of type int8 or uint8 but got ", cpp_name(self.dtype()));
      check(mat2.dtype() == DType::Int8, "Expected mat2 dtype to be of type int8 but got ", cpp_name(mat2.dtype()));
      return TensorSpec({self.sym_size(0), mat2.sym_size(1)}, DType::Int32, common_device({&self, &mat2}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& mat2) { kernels::multiply_bytes(out, self, mat2); })
    .not_differentiable();

// ---- vectors ----

UMBRA_OPERATOR("vdot(Tensor self, Tensor other) -> Tensor")
    .out("vdot.out")
    .meta([](const Tensor& self, const Tensor& other) {
      check(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
            "D tensors");
      check(self.dtype() == other.dtype(), "dot : expected both vectors to have same dtype, but found ",
            kernel_name(self.dtype()), " and ", kernel_name(other.dtype()));
      check(expect_equal(self.sym_numel(), other.sym_numel()), "inconsistent tensor size, expected tensor [",
            self.sym_numel(), "] and src [", other.sym_numel(), "] to have the same number of elements, but got ",
            self.sym_numel(), " and ", other.sym_numel(), " elements respectively");
      return TensorSpec({}, self.dtype(), common_device({&self, &other}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& other) {
      kernels::dot(out, self.is_complex() ? self.conj().resolve_conj() : self, other);
    })
    .gradient("self", {"grad", "other"}, [](const Tensor& grad, const Tensor& other) { return grad.conj().mul(other); })
    .gradient("other", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.mul(self); })
    .use(batch_through([](const Tensor& self, const Tensor& other) { return self.conj().dot(other); }));

/// The first vector as a column, which the other one is multiplied with.
Tensor outer_column(const Tensor& self, const Tensor& vec2) {
  check(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  check(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return self.reshape({self.sym_size(0), 1});
}
Tensor outer_parts(const Tensor& self, const Tensor& vec2) { return outer_column(self, vec2).mul(vec2); }
Tensor outer_out_parts(const Tensor& self, const Tensor& vec2, const Tensor& out) {
  return mul_out(out, outer_column(self, vec2), vec2);
}
UMBRA_OPERATOR("outer(Tensor self, Tensor vec2) -> Tensor")
    .out("outer.out")
    .composite(outer_parts)
    .use(out_parts(outer_out_parts));
UMBRA_OPERATOR("ger(Tensor self, Tensor vec2) -> Tensor")
    .out("ger.out")
    .composite(outer_parts)
    .use(out_parts(outer_out_parts));

UMBRA_OPERATOR("inner(Tensor self, Tensor other) -> Tensor")
    .out("inner.out")
    .composite([](const Tensor& self, const Tensor& other) {
      if (self.dim() == 0 || other.dim() == 0) return self.mul(other);
      check(self.sym_size(-1) == other.sym_size(-1),
            "inner() the last dimension must match on both input tensors but got shapes ", self.sym_sizes(), " and ",
            other.sym_sizes());
      return tensordot(self, other, {-1}, {-1});
    })
    .use(out_parts([](const Tensor& self, const Tensor& other, const Tensor& out) {
      bool numbers = self.dim() == 0 || other.dim() == 0;
      if (numbers) return mul_out(out, self, other);
      Tensor result = inner(self, other);
      check(result.dtype() == out.dtype(), "tensordot: Expected the output tensor to have dtype ",
            kernel_name(result.dtype()), ", but got an output tensor with dtype ", kernel_name(out.dtype()));
      return copied_out(out, result);
    }));

void check_vecdot(const Tensor& x, const Tensor& y) {
  check_floating_matrix(x, "linalg.vecdot");
  check(x.dtype() == y.dtype(), "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
        kernel_name(x.dtype()), " and y of type ", kernel_name(y.dtype()), " instead");
}
/// The products that are summed.
Tensor vecdot_products(const Tensor& x, const Tensor& y) { return x.conj().resolve_conj().mul(y); }

UMBRA_OPERATOR("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
    .out("linalg_vecdot.out")
    .composite([](const Tensor& x, const Tensor& y, int64_t dim) {
      check_vecdot(x, y);
      return x.dim() == 1 && y.dim() == 1 ? vdot(x, y) : vecdot_products(x, y).sum(IntArrayRef{dim});
    })
    .use(out_parts([](const Tensor& x, const Tensor& y, int64_t dim, const Tensor& out) {
      check_vecdot(x, y);
      DType type = ResultType().add(x).add(y).get();
      check(out.dtype() == type, "linalg.vecdot: Expected out of dtype", kernel_name(type), " but found ",
            kernel_name(out.dtype()));
      if (x.dim() == 1 && y.dim() == 1) return vdot_out(resized_out(out, {}), x, y);
      return sum_out(out, vecdot_products(x, y), IntArrayRef{dim});
    }));

// ---- cross product ----

Tensor cross_parts(const Tensor& self, const Tensor& other, int64_t dim) {
  // (a2 b3 - a3 b2, ...): each factor turned by one place.
  SymShape sizes = broadcast_shapes(self.sym_sizes(), other.sym_sizes());
  Tensor a = self.expand(sizes), b = other.expand(sizes);
  Tensor index = arange(3, {.device = self.device()});
  Tensor next = index.add(1).remainder(3), last = index.add(2).remainder(3);
  return a.index_select(dim, next)
      .mul(b.index_select(dim, last))
      .sub(a.index_select(dim, last).mul(b.index_select(dim, next)));
}

UMBRA_OPERATOR("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
    .out("linalg_cross.out")
    .meta([](const Tensor& self, const Tensor& other, int64_t dim) {
      check(self.dim() == other.dim(), "linalg.cross: inputs must have the same number of dimensions.");
      SymInt a = self.sym_size(dim), b = other.sym_size(dim);
      check(a == 3 && b == 3, "linalg.cross: inputs dimension ", dim, " must have length 3. Got ", a, " and ", b);
      SymShape sizes = broadcast_shapes(self.sym_sizes(), other.sym_sizes());
      check_kernel_type(self.dtype() != DType::Complex32 && !is_float8(self.dtype()) && !is_wide_unsigned(self.dtype()),
                        "cross", self);
      check(self.dtype() == other.dtype(), "expected scalar type ", kernel_name(self.dtype()), " but found ",
            kernel_name(other.dtype()));
      return TensorSpec(sizes, self.dtype(), common_device({&self, &other}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& other, int64_t dim) {
      check<NotImplementedError>(self.dtype() != DType::Bool, "\"cross\" not implemented for 'Bool'");
      kernels::copy(out, cross_parts(self, other, dim));
    })
    .decomposition(cross_parts)
    .gradient("self", {"grad", "other", "dim", "self.sym_sizes"},
              [](const Tensor& grad, const Tensor& other, int64_t dim, SymIntArrayRef sizes) {
                Tensor wide = other.conj().expand(grad.sym_sizes());
                return ops::sum_to_size(linalg_cross(wide, grad, dim), sizes);
              })
    .gradient("other", {"grad", "self", "dim", "other.sym_sizes"},
              [](const Tensor& grad, const Tensor& self, int64_t dim, SymIntArrayRef sizes) {
                Tensor wide = self.conj().expand(grad.sym_sizes());
                return ops::sum_to_size(linalg_cross(grad, wide, dim), sizes);
              })
    .tangent(TangentRule::Multilinear)
    .batch([](const Batched& self, const Batched& other, int64_t dim) {
      int64_t d = wrap_dim(dim, self.rank()) + 1;
      return Batched(linalg_cross(batch_all(self), batch_all(other), d), 0);
    });

/// The dimension that was asked for, or the first of size 3.
int64_t cross_dim(const Tensor& self, std::optional<int64_t> dim) {
  if (dim) return *dim;
  static std::atomic<bool> warned = false;
  if (tells_once(warned))
    warn(
        "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or ",
        "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a ",
        "future release.");
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sym_size(d) == 3) return d;
  fail("no dimension of size 3 in input");
}
UMBRA_OPERATOR("cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
    .out("cross.out")
    .composite([](const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
      return linalg_cross(self, other, cross_dim(self, dim));
    })
    .use(out_parts([](const Tensor& self, const Tensor& other, std::optional<int64_t> dim, const Tensor& out) {
      return linalg_cross_out(out, self, other, cross_dim(self, dim));
    }));

// ---- tensors ----

/// One side of a contraction: its dimensions as a product of matrices wants them, those that are kept and those that
/// are summed over.
struct ContractedSide {
  Tensor tensor;
  std::vector<int64_t> summed, kept;
  SymInt elements = 1;  // of the kept dimensions

  void find_kept(SymShape& result) {
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      if (std::find(summed.begin(), summed.end(), d) != summed.end()) continue;
      kept.push_back(d);
      elements = elements * tensor.sym_size(d);
      result.push_back(tensor.sym_size(d));
    }
  }
  Tensor kept_first() const { return permuted(kept, summed); }
  Tensor summed_first() const { return permuted(summed, kept); }

 private:
  Tensor permuted(std::vector<int64_t> order, const std::vector<int64_t>& rest) const {
    order.insert(order.end(), rest.begin(), rest.end());
    return tensor.permute(order);
  }
};

/// Pairs the dimensions that are summed over, and gives how many pairs of elements each result has.
SymInt pair_dims(ContractedSide& a, ContractedSide& b, const std::vector<int64_t>& first,
                 const std::vector<int64_t>& second) {
  const Tensor self = a.tensor, other = b.tensor;
  SymInt inner = 1;
  for (size_t i = 0; i < first.size(); ++i) {
    int64_t d = wrap_dim(first[i], self.dim()), e = wrap_dim(second[i], other.dim());
    SymInt s = self.sym_size(first[i]), t = other.sym_size(second[i]);
    // Where one side has a single element, the other is summed.
    if (t == 1) {
      if (s != 1) a.tensor = a.tensor.sum(IntArrayRef{d}, true, a.tensor.dtype());
    } else if (s == 1) {
      b.tensor = b.tensor.sum(IntArrayRef{e}, true, b.tensor.dtype());
    } else {
      check(s == t, "contracted dimensions need to match, but first has size ", s, " in dim ", first[i],
            " and second has size ", t, " in dim ", second[i]);
      inner = inner * s;
    }
    a.summed.push_back(d);
    b.summed.push_back(e);
  }
  dim_mask(a.summed, self.dim(), false);
  dim_mask(b.summed, other.dim(), false);
  return inner;
}

/// The single number of two sides that are summed over whole.
Tensor contracted_whole(const Tensor& a, const Tensor& b, SymInt inner) {
  // Where the elements do not lie one after another, to copy them costs more than to add up the products.
  if (!a.is_contiguous() || !b.is_contiguous()) return a.squeeze().mul(b.squeeze()).sum(a.dtype());
  auto flat = [&](const Tensor& t) { return t.dim() == 1 ? t : t.view({inner}); };
  Tensor right = flat(b);
  return dot(flat(a), right);
}

UMBRA_OPERATOR("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor")
    .out("tensordot.out")
    .composite([](const Tensor& self, const Tensor& other, std::vector<int64_t> first, std::vector<int64_t> second) {
      check(first.size() == second.size(), "both dimension lists should have same length");
      check(self.dtype() == other.dtype(), "both inputs should have same dtype");
      ContractedSide a{self}, b{other};
      SymInt inner = pair_dims(a, b, first, second);
      SymShape result;
      a.find_kept(result);
      b.find_kept(result);
      bool one_number = !a.tensor.is_symbolic() && !b.tensor.is_symbolic() && a.elements == 1 && b.elements == 1;
      if (one_number) {
        Tensor left = a.kept_first();
        return contracted_whole(left, b.summed_first(), inner).view(result);
      }
      Tensor left = a.kept_first().reshape({a.elements, inner});
      return left.mm(b.summed_first().reshape({inner, b.elements})).view(result);
    })
    .use(OutCopied{});

/// The factors with twice the dimensions, so that their product has every pair of elements; and what it is folded to.
struct KroneckerFactors {
  Tensor left, right;
  SymShape product, result;

  /// A tensor of which only the elements are at hand may have to be copied.
  KroneckerFactors(const Tensor& self, const Tensor& other, bool may_copy = false) {
    int64_t rank = std::max(self.dim(), other.dim());
    auto at = [rank](const Tensor& t, int64_t d) {
      int64_t own = d - (rank - t.dim());
      return own < 0 ? SymInt(1) : t.sym_size(own);
    };
    SymShape left_sizes, right_sizes;
    for (int64_t d = 0; d < rank; ++d) {
      SymInt a = at(self, d), b = at(other, d);
      for (SymInt s : {a, SymInt(1)}) left_sizes.push_back(s);
      for (SymInt s : {SymInt(1), b}) right_sizes.push_back(s);
      for (SymInt s : {a, b}) product.push_back(s);
      result.push_back(a * b);
    }
    left = may_copy ? self.reshape(left_sizes) : _unsafe_view(self, left_sizes);
    right = may_copy ? other.reshape(right_sizes) : _unsafe_view(other, right_sizes);
  }
};

UMBRA_OPERATOR("kron(Tensor self, Tensor other) -> Tensor")
    .out("kron.out")
    .composite([](const Tensor& self, const Tensor& other) {
      KroneckerFactors f(self, other);
      return _unsafe_view(f.left.mul(f.right), f.result);
    })
    .use(batch_through([](const Tensor& self, const Tensor& other) {
      KroneckerFactors f(self, other, true);
      return f.left.mul(f.right).reshape(f.result);
    }))
    .use(out_parts([](const Tensor& self, const Tensor& other, const Tensor& out) {
      KroneckerFactors f(self.contiguous(), other.contiguous());
      warn_of_resize(out, f.result);
      mul_out(resized_out(out, f.result).view(f.product), f.left, f.right);
      return out;
    }));

UMBRA_OPERATOR("linalg_matmul(Tensor self, Tensor other) -> Tensor")
    .out("linalg_matmul.out")
    .composite([](const Tensor& self, const Tensor& other) { return matmul(self, other); })
    .use(out_parts([](const Tensor& self, const Tensor& other, const Tensor& out) {
      return matmul_out(out, self, other);
    }));

}  // namespace
}  // namespace umbra::ops
