// Products of sparse matrices: with strided ones, with each other, and sampled at the places of a third.
#include "ops/sparse/products.h"

#include "kernels/sparse.h"
#include "ops/common/needs_data.h"
#include "ops/sparse/any_layout.h"
#include "ops/sparse/parts.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace sparse {
namespace {

void check_types(const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "expected scalar type ", kernel_name(a.dtype()), " but found ", kernel_name(b.dtype()));
}

void check_shapes(const char* name, const Tensor& a, const Tensor& b) {
  check(a.size(1) == b.size(0), name, ": mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1),
        " and ", b.size(0), "x", b.size(1), ")");
}

[[noreturn]] void refuse_layouts(const Tensor& a, const Tensor& b) {
  fail("addmm: computation on CPU is not implemented for ", short_name(a.layout()), " + ", short_name(a.layout()),
       " @ ", short_name(b.layout()));
}

/// Adds factor * (sparse @ dense) to `out`.
void add_product(const Tensor& out, const Tensor& sparse, const Tensor& dense, const Scalar& factor) {
  if (sparse.is_fake() || sparse.is_meta()) return;  // there is nothing to add, and `out` has the right metadata
  Tensor elements = is_coo(sparse) ? sparse : as_coo(sparse);
  check<NotImplementedError>(sparse_dims(elements) == 2, "products of COO tensors with ", sparse_dims(elements),
                             " sparse dimensions are not in Umbra yet");
  Tensor values = sparse_parts(elements).values;
  if (!factor.equals(1)) values = values.mul(factor);
  kernels::add_sparse_product(out, sparse_parts(elements).indices, values, dense);
}

Tensor times_strided(const Tensor& sparse, const Tensor& dense) {
  Tensor out = zeros({sparse.size(0), dense.size(1)}, {.dtype = dense.dtype(), .device = dense.device()});
  add_product(out, sparse, dense, 1);
  return out;
}

void check_matrices(const Tensor& a, const Tensor& b) {
  check(a.dim() == 2 && b.dim() == 2, "addmm: matrices expected, got ", a.dim(), "D and ", b.dim(), "D tensors");
}

/// Each element of the left matrix meets the row of the right one that its column names.
Tensor multiply_elements(const Tensor& self, const Tensor& other) {
  require_data(self, "a matrix product");
  Tensor left = coalesced(self), right = coalesced(other);
  const SparseParts &a = sparse_parts(left), &b = sparse_parts(right);
  Tensor starts = _convert_indices_from_coo_to_csr(b.indices.select(0, 0), right.size(0));
  Tensor inner = a.indices.select(0, 1), first = starts.index_select(0, inner);
  Ranges pairs = ranges(first, starts.index_select(0, inner + 1) - first);
  Tensor indices = stack(
      {a.indices.select(0, 0).index_select(0, pairs.group), b.indices.select(0, 1).index_select(0, pairs.element)}, 0);
  Tensor values = a.values.index_select(0, pairs.group).mul(b.values.index_select(0, pairs.element));
  return coalesced(make_coo(indices, values, {left.size(0), right.size(1)}));
}

Tensor sparse_times_sparse(const Tensor& self, const Tensor& other) {
  check(is_coo(self) && is_coo(other), "_sparse_sparse_matmul: expected COO tensors, but got layouts ",
        to_string(self.layout()), " and ", to_string(other.layout()));
  check_matrices(self, other);
  check_shapes("_sparse_sparse_matmul", self, other);
  check(self.dtype() == other.dtype(), "mat1 dtype ", kernel_name(self.dtype()), " does not match mat2 dtype ",
        kernel_name(other.dtype()));
  return multiply_elements(self, other);
}

}  // namespace

Tensor matrix_product(const Tensor& self, const Tensor& mat2) {
  if (is_coo(self) && is_coo(mat2)) return _sparse_sparse_matmul(self, mat2);
  check_matrices(self, mat2);
  if (is_strided(mat2)) {
    if (is_coo(self))
      check(self.size(1) == mat2.size(0), "addmm: Argument #3 (dense): Expected dim 0 size ", self.size(1), ", got ",
            mat2.size(0));
    check_shapes("addmm", self, mat2);
    check_types(self, mat2);
    return times_strided(self, mat2);
  }
  if (is_strided(self)) {
    if (is_coo(mat2))
      check(self.size(1) == mat2.size(0), "addmm: Argument #3 (dense): Expected dim 0 size ", mat2.size(0), ", got ",
            self.size(1));
    check_shapes("addmm", self, mat2);
    check_types(mat2, self);
    Tensor turned = times_strided(mat2.transpose(0, 1), self.t()).t();
    return is_coo(mat2) ? turned : turned.contiguous();
  }
  bool by_elements = !is_coo(self) && !is_coo(mat2) && !in_blocks(self.layout()) && !in_blocks(mat2.layout());
  if (!by_elements) refuse_layouts(self, mat2);
  check_shapes("addmm", self, mat2);
  check_types(self, mat2);
  return as_compressed(multiply_elements(as_coo(self), as_coo(mat2)), Layout::SparseCsr);
}

Tensor add_matrix_product(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha) {
  check(is_strided(self) || (!is_coo(self) && !is_coo(mat1) && !is_coo(mat2)),
        "addmm_sparse_dense: expected strided result tensor, got tensor with layout ", short_name(self.layout()));
  check(!is_coo(mat2) || !is_strided(mat1),
        "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got ",
        "'mat1' with layout ", short_name(mat1.layout()), " and 'mat2' with layout ", short_name(mat2.layout()));
  Tensor product = matrix_product(mat1, mat2).mul(alpha);
  if (!is_strided(self)) return self.mul(beta).add(product);
  Tensor whole = self.expand({mat1.size(0), mat2.size(1)});
  check_types(self, mat1);
  if (!is_strided(product)) product = strided(product);
  return beta.equals(0) ? product : whole.mul(beta).add(product);
}

Tensor matrix_vector_product(const Tensor& self, const Tensor& vec) {
  check(self.dim() == 2 && vec.dim() == 1 && is_strided(vec),
        "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: ", self.dim(), "Tensor Dim: ", vec.dim());
  check(!is_coo(self) || vec.size(0) == self.size(1), "mv: expected self.size(-1) == vec.size(-1)");
  check(vec.size(0) == self.size(1), "size mismatch, got input (", self.size(0), "), mat (", self.size(0), "x",
        self.size(1), "), vec (", vec.size(0), ")");
  return matrix_product(self, vec.unsqueeze(-1)).squeeze(-1);
}

Tensor add_matrix_vector_product(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                                 const Scalar& alpha) {
  check<NotImplementedError>(!is_coo(mat) && is_strided(self) && is_strided(vec),
                             "Could not run 'aten::addmv.out' with arguments from the 'SparseCPU' backend: it is ",
                             "defined for strided vectors and compressed matrices");
  check(mat.layout() != Layout::SparseBsc, "torch.addmv: operation not supported for mat with SparseBsc layout");
  check(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(),
        ", ", mat.dim(), ", ", vec.dim());
  bool fits = mat.size(1) == vec.size(0) && (self.numel() == mat.size(0) || self.numel() == 1);
  check(fits, "size mismatch, got input (", self.numel(), "), mat (", mat.size(0), "x", mat.size(1), "), vec (",
        vec.size(0), ")");
  Tensor product = matrix_product(mat, vec.unsqueeze(-1)).squeeze(-1).mul(alpha);
  return beta.equals(0) ? product : self.mul(beta).add(product).to(mat.dtype());
}

Tensor batched_product(const Tensor& self, const Tensor& mat2) {
  check(is_coo(self) && is_strided(mat2), "bmm_sparse: expected a COO tensor and a strided one, got layouts ",
        short_name(self.layout()), " and ", short_name(mat2.layout()));
  check(self.dim() == 3 && sparse_dims(self) == 3, "bmm_sparse: Tensor 'self' must have 3 sparse dims");
  check(mat2.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims");
  check(self.size(0) == mat2.size(0), "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  check(self.size(2) == mat2.size(1), "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  check_types(self, mat2);
  // One large matrix with the batch's along its diagonal.
  const SparseParts& parts = sparse_parts(self);
  Tensor batch = parts.indices.select(0, 0);
  Tensor indices = stack({batch * Scalar(self.size(1)) + parts.indices.select(0, 1),
                          batch * Scalar(self.size(2)) + parts.indices.select(0, 2)},
                         0);
  Tensor diagonal = make_coo(indices, parts.values, {self.size(0) * self.size(1), self.size(0) * self.size(2)});
  return times_strided(diagonal, mat2.flatten(0, 1)).view({self.size(0), self.size(1), mat2.size(2)});
}

}  // namespace sparse

namespace {

using namespace sparse;

// ---- as torch.sparse.mm calls it ----

UMBRA_OPERATOR("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor")
    .composite([](const Tensor& left, const Tensor& right) {
      if (is_coo(left) && is_coo(right)) return _sparse_sparse_matmul(left, right);
      if (!is_strided(left) && !is_strided(right)) return left.mm(right);
      if (is_strided(left)) {
        Tensor start = zeros({right.sym_size(-1), left.sym_size(-2)}, {.dtype = left.dtype(), .device = left.device()});
        return _sparse_addmm(start, right.transpose(-2, -1), left.transpose(-2, -1), 0, 1).transpose(-2, -1);
      }
      Tensor start = zeros({left.sym_size(-2), right.sym_size(1)}, {.dtype = right.dtype(), .device = right.device()});
      return _sparse_addmm(start, left, right, 0, 1);
    });

// ---- rows reduced otherwise than by their sum ----

/// In each row and column of the result the first of the products that is the greatest or least; 0 where there is none.
Tensor extreme_of_rows(const Tensor& products, const Tensor& rows, SymInt height, const std::string& reduce) {
  SymShape sizes{height, products.sym_size(1)};
  Tensor at = rows.unsqueeze(1).expand(products.sym_sizes());
  Tensor start = zeros(sizes, {.dtype = products.dtype(), .device = products.device()});
  Tensor extremes = start.scatter_reduce(0, at, products.detach(), reduce, false);
  Tensor reached = products.detach().eq(extremes.index_select(0, rows));
  int64_t count = products.size(0);
  Tensor numbers = where(reached, counting(count, rows).unsqueeze(1), Scalar(count));
  Tensor none = full(sizes, Scalar(count), {.dtype = DType::Int64, .device = rows.device()});
  Tensor first = none.scatter_reduce(0, at, numbers, "amin", true);
  Tensor chosen = cat({products, zeros({1, products.sym_size(1)}, {.dtype = products.dtype()})}, 0);
  return chosen.gather(0, first);
}

void check_reduced(const Tensor& left, const Tensor& right, const std::string& reduce) {
  check<NotImplementedError>(left.layout() == Layout::SparseCsr,
                             "Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the '",
                             is_coo(left) ? "SparseCPU" : "CPU", "' backend: it is defined for CSR tensors only");
  check(is_strided(right), "sparse_mm_reduce: expected a strided matrix, got layout ", short_name(right.layout()));
  check_matrices(left, right);
  check_shapes("sparse_mm_reduce", left, right);
  check_types(left, right);
  check(reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "reduce argument must be either sum, mean, amax or amin, got ", reduce);
}

UMBRA_OPERATOR("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor")
    .composite([](const Tensor& left, const Tensor& right, const std::string& reduce) {
      check_reduced(left, right, reduce);
      Tensor places = _convert_indices_from_csr_to_coo(left.crow_indices(), left.col_indices());
      Tensor rows = places.select(0, 0), columns = places.select(0, 1);
      DType wide = left.dtype() == DType::Float16 || left.dtype() == DType::BFloat16 ? DType::Float32 : left.dtype();
      Tensor products = left.values().unsqueeze(1).to(wide) * right.index_select(0, columns).to(wide);
      if (reduce[0] == 'a') return extreme_of_rows(products, rows, left.sym_size(0), reduce).to(left.dtype());
      Tensor sums = zeros({left.sym_size(0), right.sym_size(1)}, {.dtype = wide}).index_add(0, rows, products);
      if (reduce == "mean") {
        Tensor counts = left.crow_indices().slice(0, 1) - left.crow_indices().slice(0, 0, -1);
        sums = sums / counts.clamp_min(1).unsqueeze(1).to(wide);
      }
      return sums.to(left.dtype());
    });

// ---- with gradients that have the places of the sparse matrix ----

/// The gradient of a sparse factor, at its places alone.
Tensor sparse_factor_gradient(const Tensor& grad, const Tensor& mat1, const Tensor& mat2, const Scalar& alpha) {
  if (is_strided(mat1)) return grad.mm(mat2.conj().t()).mul(alpha);
  Tensor places = is_coo(mat1) ? mat1.coalesce() : mat1;
  if (mat1.layout() == Layout::SparseCsr) return sparse_sampled_addmm(places.mul(0), grad, mat2.conj().t(), 1, alpha);
  return grad.mm(mat2.conj().t()).mul(alpha).sparse_mask(places);
}

Tensor run_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return umbra::addmm(self, mat1, mat2, beta, alpha);
}

UMBRA_OPERATOR("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .all_backends(run_addmm)
    .sparse(run_addmm)
    .gradient("self", {"grad", "beta"}, [](const Tensor& grad, const Scalar& beta) { return grad.mul(beta); })
    .gradient("mat1", {"grad", "mat1", "mat2", "alpha"}, sparse_factor_gradient)
    .gradient("mat2", {"grad", "mat1", "alpha"}, [](const Tensor& grad, const Tensor& mat1, const Scalar& alpha) {
      return mat1.transpose(0, 1).conj().mm(grad).mul(alpha);
    });

/// A product's gradient at the places that the factor has.
Tensor at_places_of(const Tensor& gradient, const Tensor& factor) {
  Tensor places = factor.detach().coalesce();
  return gradient.mul(with_values(places, ones_like(sparse_parts(places).values)));
}

UMBRA_OPERATOR("_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor")
    .sparse(sparse_times_sparse)
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return at_places_of(_sparse_sparse_matmul(grad, other.conj().t()), self);
              })
    .gradient("other", {"grad", "self", "other"}, [](const Tensor& grad, const Tensor& self, const Tensor& other) {
      return at_places_of(_sparse_sparse_matmul(self.conj().t(), grad), other);
    });

// ---- a product at the places of another matrix ----

void check_sampled(const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  check<NotImplementedError>(self.layout() == Layout::SparseCsr,
                             "Could not run 'aten::sparse_sampled_addmm' with arguments from the '",
                             is_coo(self) ? "SparseCPU" : "CPU", "' backend: it is defined for CSR tensors only");
  check(is_strided(mat1) && is_strided(mat2), "sampled_addmm: Expected mat1 and mat2 to have strided layout, but got ",
        short_name(mat1.layout()), " and ", short_name(mat2.layout()));
  check(mat1.dtype() == mat2.dtype(), "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got ",
        kernel_name(mat1.dtype()), " and ", kernel_name(mat2.dtype()));
  check(self.dtype() == mat1.dtype(), "sampled_addmm: Expected self and mat1 to have the same dtype, but got ",
        kernel_name(self.dtype()), " and ", kernel_name(mat1.dtype()));
  check(mat1.dim() == 2 && mat2.dim() == 2, "sampled_addmm: Expected mat1 and mat2 to be matrices, but got ",
        mat1.dim(), "-D and ", mat2.dim(), "-D tensors");
  check(mat1.size(1) == mat2.size(0), "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x",
        mat1.size(1), " and ", mat2.size(0), "x", mat2.size(1), ")");
  check(self.size(0) == mat1.size(0), "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
  check(self.size(1) == mat2.size(1), "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
}

Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  check_sampled(self, mat1, mat2);
  Tensor places = sparse_parts(as_coo(self)).indices;
  Tensor rows = mat1.index_select(0, places.select(0, 0));
  Tensor columns = mat2.t().index_select(0, places.select(0, 1));
  return with_values(self, rows.mul(columns).sum(IntArrayRef{1}).mul(alpha) + sparse_parts(self).values.mul(beta));
}

UMBRA_OPERATOR(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .out("sparse_sampled_addmm.out")
    .all_backends(sampled_addmm)
    .sparse(sampled_addmm)
    .gradient("self", {"grad", "beta"}, [](const Tensor& grad, const Scalar& beta) { return grad.mul(beta); })
    .gradient("mat1", {"grad", "mat2", "alpha"},
              [](const Tensor& grad, const Tensor& mat2, const Scalar& alpha) {
                return grad.mm(mat2.conj().t()).mul(alpha);
              })
    .gradient("mat2", {"grad", "mat1", "alpha"},
              [](const Tensor& grad, const Tensor& mat1, const Scalar& alpha) {
                return mat1.conj().t().mm(grad).mul(alpha);
              })
    .use(NeedsData{});

// ---- products whose rows are dense, or that stay sparse ----

Tensor product_rows(const Tensor& mat1, const Tensor& mat2, const char* name) {
  check(is_coo(mat1), name, ": expected 'mat1' to be a COO tensor, got layout ", short_name(mat1.layout()));
  check(is_strided(mat2), name, ": expected 'mat2' to have strided layout, got 'mat2' with layout ",
        short_name(mat2.layout()));
  check_matrices(mat1, mat2);
  check(mat1.size(1) == mat2.size(0), name, ": Argument #2 (mat2): Expected dim 0 size ", mat1.size(1), ", got ",
        mat2.size(0));
  check_types(mat1, mat2);
  Tensor rows = std::get<0>(unique_consecutive(sparse_parts(coalesced(mat1)).indices.select(0, 0)));
  Tensor whole = mat1.mm(mat2);
  return make_coo(rows.unsqueeze(0), whole.index_select(0, rows), whole.sym_sizes());
}

UMBRA_OPERATOR("hspmm(Tensor mat1, Tensor mat2) -> Tensor").sparse([](const Tensor& mat1, const Tensor& mat2) {
  return product_rows(mat1, mat2, "hspmm");
});

/// Of strided tensors there is no such product.
void refuse_strided_product(std::initializer_list<const Tensor*> operands) {
  bool strided = std::all_of(operands.begin(), operands.end(), [](const Tensor* t) { return is_strided(*t); });
  if (!strided) return;
  for (const Tensor* t : operands)
    check<NotImplementedError>(!t->is_meta(),
                               "aten::sspaddmm.out: attempted to run this operator with Meta tensors, "
                               "but there was no fake impl or Meta kernel registered for this operator");
  fail("tensor.sspaddmm(...) can only be called on sparse tensors");
}

UMBRA_OPERATOR("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .all_backends([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&, const Scalar&) {
      refuse_strided_product({&self, &mat1, &mat2});
      return Tensor();
    })
    .sparse([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
      check(is_coo(self), "sspaddmm: expected 'self' to be a COO tensor, got layout ", short_name(self.layout()));
      Tensor product = product_rows(mat1, mat2, "sspaddmm");
      Tensor rows = sparse_parts(product).indices.select(0, 0);
      int64_t width = mat2.size(1);
      Tensor indices = stack({rows.repeat_interleave(width), counting(width, rows).repeat({rows.size(0)})}, 0);
      Tensor values = sparse_parts(product).values.mul(alpha).reshape({-1});
      return make_coo(cat({sparse_parts(self).indices, indices}, 1),
                      cat({sparse_parts(self).values.mul(beta), values}, 0), product.sym_sizes());
    });

UMBRA_OPERATOR("smm(Tensor self, Tensor mat2) -> Tensor").composite([](const Tensor& self, const Tensor& mat2) {
  refuse_strided_product({&self, &mat2});
  Tensor indices = zeros({2, 0}, {.dtype = DType::Int64}), values = zeros({0}, {.dtype = self.dtype()});
  return sspaddmm(_sparse_coo_tensor_unsafe(indices, values, {self.sym_size(0), mat2.sym_size(1)}), self, mat2, 0, 1);
});

}  // namespace
}  // namespace umbra::ops
