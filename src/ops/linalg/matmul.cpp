// Matrix products: mm, bmm, addmm and what is made of them (matmul, linear).
#include "kernels/matmul.h"

#include "core/cpp_name.h"
#include "ops/common/batching.h"
#include "ops/common/expand_rank.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/products.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_same_dtype(const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: ", cpp_name(a.dtype()),
        " != ", cpp_name(b.dtype()));
}

TensorSpec mm_spec(const char* name, const Tensor& a, const Tensor& b) {
  check(a.dim() == 2, name, ": self must be a matrix, got ", a.dim(), "-D tensor");
  check(b.dim() == 2, name, ": mat2 must be a matrix, got ", b.dim(), "-D tensor");
  if (!expect_equal(a.sym_sizes()[1], b.sym_sizes()[0]))
    fail(name, ": mat1 and mat2 shapes cannot be multiplied (", a.sym_sizes()[0], "x", a.sym_sizes()[1], " and ",
         b.sym_sizes()[0], "x", b.sym_sizes()[1], ")");
  check_same_dtype(a, b);
  return TensorSpec({a.sym_sizes()[0], b.sym_sizes()[1]}, a.dtype(), common_device({&a, &b}));
}

// A gradient takes the memory order of what it belongs to, so that a transposed weight's comes back as the weight lies.
bool column_major(SymIntArrayRef sizes, SymIntArrayRef strides) { return strides[0] == 1 && strides[1] == sizes[0]; }

Tensor left_gradient(const Tensor& grad, const Tensor& right, SymIntArrayRef sizes, SymIntArrayRef strides) {
  return column_major(sizes, strides) ? right.conj().mm(grad.t()).t() : grad.mm(right.t().conj());
}
Tensor right_gradient(const Tensor& grad, const Tensor& left, SymIntArrayRef sizes, SymIntArrayRef strides) {
  return column_major(sizes, strides) ? grad.t().mm(left.conj()).t() : left.t().conj().mm(grad);
}

/// addmm for each element of the batch: matrices of one side only are one large matrix.
Batched batch_addmm(const Batched& self, const Batched& mat1, const Batched& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  check(mat1.rank() == 2 && mat2.rank() == 2, "mat1 and mat2 must be matrices, got ", mat1.rank(), "-D and ",
        mat2.rank(), "-D tensors");
  check(self.rank() <= 2, "addmm: Expected a tensor of at most 2 dimensions, but got ", self.rank());
  if (mat1.is_batched() && !mat2.is_batched() && !self.is_batched() && self.rank() < 2)
    return unfold_batch(addmm(self.value, fold_batch(mat1, 0), mat2.value, beta, alpha), 0);
  return {baddbmm(batch_first(self, 2), batch_all(mat1), batch_all(mat2), beta, alpha), 0};
}

Batched batch_baddbmm(const Batched& self, const Batched& batch1, const Batched& batch2, const Scalar& beta,
                      const Scalar& alpha) {
  check(batch1.rank() == 3 && batch2.rank() == 3, "batch1 and batch2 must be 3D tensors");
  Tensor a = batch_all(batch1), b = batch_all(batch2);
  SymShape sizes{batch_scope().size, a.sym_sizes()[1], a.sym_sizes()[2], b.sym_sizes()[3]};
  Tensor term = batch_first(self, 3).expand(sizes);
  return unfold_batch(baddbmm(fold_batch({term, 0}, 0), fold_batch({a, 0}, 0), fold_batch({b, 0}, 0), beta, alpha), 0);
}

UMBRA_OPERATOR("mm(Tensor self, Tensor mat2) -> Tensor")
    .out("mm.out")
    .meta([](const Tensor& self, const Tensor& mat2) { return mm_spec("mm", self, mat2); })
    .cpu(kernels::mm)
    .sparse(sparse::matrix_product)
    .gradient("self", {"grad", "mat2", "self.sym_sizes", "self.sym_strides"}, left_gradient)
    .gradient("mat2", {"grad", "self", "mat2.sym_sizes", "mat2.sym_strides"}, right_gradient)
    .tangent(TangentRule::Multilinear)
    .tags({Tag::Core})
    .batch([](const Batched& self, const Batched& mat2) {
      check(self.rank() == 2, "self must be a matrix");
      check(mat2.rank() == 2, "mat2 must be a matrix");
      return Batched(matmul(batch_first(self), batch_first(mat2)), 0);
    });

UMBRA_OPERATOR("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .inplace("addmm_")
    .out("addmm.out")
    .meta([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&, const Scalar&) {
      check(self.dtype() == mat2.dtype(), "self and mat2 must have the same dtype, but got ", kernel_name(self.dtype()),
            " and ", kernel_name(mat2.dtype()));
      check(mat1.dtype() == mat2.dtype(), "mat1 and mat2 must have the same dtype, but got ", kernel_name(mat1.dtype()),
            " and ", kernel_name(mat2.dtype()));
      TensorSpec spec = mm_spec("addmm", mat1, mat2);
      check_expands(self, spec.sizes);
      common_device({&self, &mat1});
      return spec;
    })
    .cpu(kernels::addmm)
    .sparse(sparse::add_matrix_product)
    .gradient("self", {"grad", "beta"}, scaled)
    .gradient("mat1", {"grad", "mat2", "mat1.sym_sizes", "mat1.sym_strides", "alpha"},
              [](const Tensor& grad, const Tensor& mat2, SymIntArrayRef sizes, SymIntArrayRef strides,
                 const Scalar& alpha) { return scaled(left_gradient(grad, mat2, sizes, strides), alpha); })
    .gradient("mat2", {"grad", "mat1", "mat2.sym_sizes", "mat2.sym_strides", "alpha"},
              [](const Tensor& grad, const Tensor& mat1, SymIntArrayRef sizes, SymIntArrayRef strides,
                 const Scalar& alpha) { return scaled(right_gradient(grad, mat1, sizes, strides), alpha); })
    .tags({Tag::Core})
    .batch(batch_addmm);

TensorSpec bmm_spec(const Tensor& a, const Tensor& b) {
  check(a.dim() == 3, "batch1 must be a 3D tensor");
  check(b.dim() == 3, "batch2 must be a 3D tensor");
  if (!expect_equal(a.sym_sizes()[0], b.sym_sizes()[0]) || !expect_equal(a.sym_sizes()[2], b.sym_sizes()[1]))
    fail("Expected size for first two dimensions of batch2 tensor to be: [", a.sym_sizes()[0], ", ", a.sym_sizes()[2],
         "] but got: [", b.sym_sizes()[0], ", ", b.sym_sizes()[1], "].");
  check(a.dtype() == b.dtype(), "expected scalar type ", kernel_name(a.dtype()), " but found ", kernel_name(b.dtype()));
  return TensorSpec({a.sym_sizes()[0], a.sym_sizes()[1], b.sym_sizes()[2]}, a.dtype(), common_device({&a, &b}));
}

UMBRA_OPERATOR("bmm(Tensor self, Tensor mat2) -> Tensor")
    .out("bmm.out")
    .meta(bmm_spec)
    .cpu(kernels::bmm)
    .sparse(sparse::batched_product)
    .gradient("self", {"grad", "mat2"},
              [](const Tensor& grad, const Tensor& mat2) { return grad.bmm(mat2.transpose(1, 2).conj()); })
    .gradient("mat2", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return self.transpose(1, 2).conj().bmm(grad); })
    .tangent(TangentRule::Multilinear)
    .tags({Tag::Core})
    .batch([](const Batched& self, const Batched& mat2) {
      check(self.rank() == 3, "batch1 must be a 3D tensor");
      check(mat2.rank() == 3, "batch2 must be a 3D tensor");
      return Batched(matmul(batch_first(self), batch_first(mat2)), 0);
    });

UMBRA_OPERATOR("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .inplace("baddbmm_")
    .out("baddbmm.out")
    .meta([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&, const Scalar&) {
      SymShape sizes{batch1.sym_size(0), batch1.sym_size(1), batch2.sym_size(2)};
      check_expands(self, sizes);
      check(self.dtype() == batch1.dtype() && self.dtype() == batch2.dtype(),
            "Input dtypes must be the same, got: input ", cpp_name(self.dtype()),
            ", batch1: ", cpp_name(batch1.dtype()), ", batch2: ", cpp_name(batch2.dtype()));
      return bmm_spec(batch1, batch2);
    })
    .cpu(kernels::baddbmm)
    .gradient("self", {"grad", "beta"}, scaled)
    .gradient("batch1", {"grad", "batch2", "alpha"},
              [](const Tensor& grad, const Tensor& batch2, const Scalar& alpha) {
                return scaled(grad.bmm(batch2.transpose(1, 2).conj()), alpha);
              })
    .gradient("batch2", {"grad", "batch1", "alpha"},
              [](const Tensor& grad, const Tensor& batch1, const Scalar& alpha) {
                return scaled(batch1.transpose(1, 2).conj().bmm(grad), alpha);
              })
    .batch(batch_baddbmm);

UMBRA_OPERATOR("mv(Tensor self, Tensor vec) -> Tensor")
    .out("mv.out")
    .meta([](const Tensor& self, const Tensor& vec) {
      if (!only_metadata_is_asked()) self.sym_size(0);  // a 0-d matrix is told by this dimension
      check(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", 1, ", ", self.dim(), ", ",
            vec.dim());
      check(expect_equal(self.sym_sizes()[1], vec.sym_sizes()[0]), "size mismatch, got input (", self.sym_sizes()[0],
            "), mat (", self.sym_sizes()[0], "x", self.sym_sizes()[1], "), vec (", vec.sym_sizes()[0], ")");
      check(self.dtype() == vec.dtype(), "addmv input tensors must have the same dtype, but got ",
            kernel_name(vec.dtype()), ", ", kernel_name(self.dtype()), ", and ", kernel_name(vec.dtype()));
      return TensorSpec({self.sym_sizes()[0]}, self.dtype(), common_device({&self, &vec}));
    })
    .cpu(kernels::mv)
    .sparse(sparse::matrix_vector_product)
    .gradient("self", {"grad", "vec"},
              [](const Tensor& grad, const Tensor& vec) { return grad.unsqueeze(1).mul(vec.conj().unsqueeze(0)); })
    .gradient("vec", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return self.conj().t().mv(grad); })
    .tangent(TangentRule::Multilinear)
    .batch([](const Batched& self, const Batched& vec) {
      check(self.rank() == 2 && vec.rank() == 1, "vector + matrix @ vector expected, got ", vec.rank(), ", ",
            self.rank(), ", ", vec.rank());
      return Batched(matmul(batch_first(self), batch_first(vec).unsqueeze(-1)).squeeze(-1), 0);
    });

UMBRA_OPERATOR("dot(Tensor self, Tensor tensor) -> Tensor")
    .out("dot.out")
    .meta([](const Tensor& self, const Tensor& tensor) {
      check(self.dim() == 1 && tensor.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", tensor.dim(),
            "D tensors");
      check(self.dtype() == tensor.dtype(), "dot : expected both vectors to have same dtype, but found ",
            kernel_name(self.dtype()), " and ", kernel_name(tensor.dtype()));
      check(expect_equal(self.sym_numel(), tensor.sym_numel()), "inconsistent tensor size, expected tensor [",
            self.sym_numel(), "] and src [", tensor.sym_numel(), "] to have the same number of elements, but got ",
            self.sym_numel(), " and ", tensor.sym_numel(), " elements respectively");
      return TensorSpec({}, self.dtype(), common_device({&self, &tensor}));
    })
    .cpu(kernels::dot)
    .gradient("self", {"grad", "tensor"},
              [](const Tensor& grad, const Tensor& tensor) { return grad.mul(tensor.conj()); })
    .gradient("tensor", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.mul(self.conj()); })
    .tangent(TangentRule::Multilinear)
    .batch([](const Batched& self, const Batched& tensor) {
      check(self.rank() == 1 && tensor.rank() == 1, "1D tensors expected, but got ", self.rank(), "D and ",
            tensor.rank(), "D tensors");
      return Batched(matmul(batch_all(self).unsqueeze(1), batch_all(tensor).unsqueeze(2)).squeeze(-1).squeeze(-1), 0);
    });

// ---- composites ----

// Whether all dimensions but the last can be seen as one.
bool folds_without_copy(const Tensor& t) {
  for (int64_t d = 0; d + 2 < t.dim(); ++d) {
    SymInt wanted = t.sym_strides()[d + 1] * t.sym_sizes()[d + 1];
    if (!equal_or(t.sym_strides()[d], wanted, false)) return false;
  }
  return true;
}

// Batches against one matrix or vector are one product over all rows, where the rows lie in memory as one. They are
// brought there if the single one needs a gradient, which would have the size of the batch otherwise.
struct Fold {
  bool transposed;  // the single one stands on the left: all is transposed
  Tensor batch, single;

  Fold(const Tensor& a, const Tensor& b) : transposed(b.dim() > a.dim()) {
    batch = transposed ? b.transpose(-2, -1) : a;
    single = transposed ? a : b;
  }
  bool worth() const {
    if (batch.dim() < 3 || single.dim() > 2) return false;
    // A view that was made where nothing has a gradient has none itself, whatever it is a view of.
    bool watched = !single.is_view() || !dispatch_state().exclude.has(DispatchKey::Autograd);
    if (watched && single.requires_grad()) return true;
    return !(transposed && single.dim() == 2) && (batch.sym_numel().same(0) || folds_without_copy(batch));
  }
  Tensor product_of_rows() const {
    SymShape shape(batch.sym_sizes().drop_back());
    Tensor right = transposed && single.dim() == 2 ? single.t() : single;
    Tensor rows = batch.reshape({product(shape), batch.sym_sizes().back()});
    if (single.dim() == 1) return _unsafe_view(rows.mv(right), shape);
    shape.push_back(right.sym_sizes()[1]);
    Tensor out = _unsafe_view(rows.mm(right), shape);
    return transposed ? out.transpose(-2, -1).contiguous() : out;
  }
  Tensor product_of_rows(const Tensor& out) const {
    if (transposed && single.dim() == 2) return copied_out(out, product_of_rows());
    SymShape shape(batch.sym_sizes().drop_back());
    SymInt count = product(shape);
    Tensor rows = batch.reshape({count, batch.sym_sizes().back()});
    if (single.dim() == 2) shape.push_back(single.sym_sizes()[1]);
    resized_out(out, shape);
    if (single.dim() == 1) mv_out(out.view({count}), rows, single);
    else mm_out(out.view({count, shape.back()}), rows, single);
    return out;
  }
};

// A batch of one matrix is that matrix, next to a larger batch.
Tensor without_batch_of_one(const Tensor& t, const Tensor& other) {
  bool numbers = !t.is_symbolic() && !other.is_symbolic();
  bool single = numbers && t.dim() == 3 && other.dim() == 3 && t.size(0) == 1 && other.size(0) != 1;
  return single ? t.squeeze(0) : t;
}

// Both sides as batches of matrices, which broadcast to each other, and the sizes of their product.
struct BatchedMatrices {
  Tensor left, right;
  SymShape result;
  bool column;  // the right side is a vector

  BatchedMatrices(const Tensor& a, const Tensor& b) : column(b.dim() == 1) {
    SymInt n = a.dim() > 1 ? a.sym_size(-2) : SymInt(1), m = a.sym_size(-1);
    auto leading = [](const Tensor& t) { return t.dim() > 2 ? t.sym_sizes().drop_back(2) : SymIntArrayRef(); };
    SymShape batch = broadcast_shapes(leading(a), leading(b)), shape_a(batch), shape_b(batch);
    SymInt count = product(batch);
    result = batch;
    for (SymInt s : {n, m}) shape_a.push_back(s);
    left = a.expand(shape_a).reshape({count, n, m});
    if (a.dim() > 1) result.push_back(n);
    for (SymInt s : column ? b.sym_sizes() : b.sym_sizes().drop_front(b.dim() - 2)) shape_b.push_back(s);
    if (!column) result.push_back(b.sym_size(-1));
    right = b.expand(shape_b);
    if (column) right = right.reshape({count, b.sym_size(0)}).unsqueeze(2);
    else right = right.reshape({count, b.sym_size(-2), b.sym_size(-1)});
  }
  Tensor product_of_all() const {
    Tensor out = left.bmm(right);
    return _unsafe_view(column ? out.squeeze(-1) : out, result);
  }
  Tensor product_of_all(const Tensor& out) const {
    bmm_out(resized_out(out, result).view({left.sym_size(0), left.sym_size(1), right.sym_size(2)}), left, right);
    return out;
  }
};

void check_factors(const Tensor& a, const Tensor& b, const char* name = "matmul") {
  check(a.dim() > 0 && b.dim() > 0, "both arguments to ", name, " need to be at least 1D, but they are ", a.dim(),
        "D and ", b.dim(), "D");
}

// Batches of matrices of any rank, through one mm or mv where one side is single, and one bmm otherwise.
Tensor matmul_parts(const Tensor& left, const Tensor& right) {
  check_factors(left, right);
  Tensor a = without_batch_of_one(left, right), b = without_batch_of_one(right, left);
  if (a.dim() == 1 && b.dim() == 1) return a.dot(b);
  if (a.dim() == 2 && b.dim() == 1) return a.mv(b);
  if (a.dim() == 1 && b.dim() == 2) return a.unsqueeze(0).mm(b).squeeze_(0);
  if (a.dim() == 2 && b.dim() == 2) return a.mm(b);
  if (Fold fold(a, b); fold.worth()) return fold.product_of_rows();
  return BatchedMatrices(a, b).product_of_all();
}

// Some of the parts below copy into the output, which would take their history.
void refuse_history(const Tensor& left, const Tensor& right, const Tensor& out) {
  for (const Tensor* t : {&left, &right, &out})
    check(
        !is_grad_enabled() || !t->requires_grad(),
        "matmul(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
}

Tensor matmul_out_parts(const Tensor& left, const Tensor& right, const Tensor& out) {
  refuse_history(left, right, out);
  check_factors(left, right);
  Tensor a = without_batch_of_one(left, right), b = without_batch_of_one(right, left);
  if (a.dim() == 1 && b.dim() == 1) return dot_out(out, a, b);
  if (a.dim() == 2 && b.dim() == 1) return mv_out(out, a, b);
  if (a.dim() == 1 && b.dim() == 2) return mm_out(out, a.unsqueeze(0), b).squeeze_(0);
  if (a.dim() == 2 && b.dim() == 2) return mm_out(out, a, b);
  if (Fold fold(a, b); fold.worth()) return fold.product_of_rows(out);
  return BatchedMatrices(a, b).product_of_all(out);
}

UMBRA_OPERATOR("matmul(Tensor self, Tensor other) -> Tensor")
    .out("matmul.out")
    .composite(matmul_parts)
    .use(out_parts(matmul_out_parts));

/// One product over all rows, the bias added in the same pass.
Tensor linear_by_rows(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  SymShape shape(input.sym_sizes().drop_back());
  Tensor flat = input.view({product(shape), input.sym_sizes().back()});
  Tensor rows = addmm(bias, flat, weight.t());
  shape.push_back(rows.sym_sizes()[1]);
  return _unsafe_view(rows, shape);
}

UMBRA_OPERATOR("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
    .out("linear.out")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias) {
      check_factors(input, weight, "linear");
      if (!bias.defined()) return matmul(input, weight.t());
      if (input.dim() == 2) return addmm(bias, input, weight.t());
      bool one_row = (bias.dim() == 1 || bias.squeeze().dim() == 1) && weight.layout() != Layout::SparseCoo;
      if (one_row && input.dim() > 0 && input.is_contiguous()) return linear_by_rows(input, weight, bias);
      return matmul(input, weight.t()).add(bias);
    });

}  // namespace
}  // namespace umbra::ops
