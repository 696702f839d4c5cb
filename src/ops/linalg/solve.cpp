// Systems of equations: solve, inverse, triangular, Cholesky and LDL.
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/common/warn_once.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

using Specs2 = std::tuple<TensorSpec, TensorSpec>;

// ---- solve ----

using Specs4 = std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec>;

Specs4 solve_specs(const Tensor& a, const Tensor& b, bool left, bool) {
  check_floating_matrix(a, "linalg.solve");
  check(a.dtype() == b.dtype(), "linalg.solve: Expected A and B to have the same dtype, but found A of type ",
        kernel_name(a.dtype()), " and B of type ", kernel_name(b.dtype()), " instead");
  // A vector is only told from a matrix by A's sizes, so those are looked at first.
  check_square(a, "linalg.solve");
  bool vector = is_vector_side(a, b);
  Tensor sides = vector ? alias_tensor(b, matrix_sizes(b.sym_sizes().drop_back(1), b.sym_sizes().back(), 1),
                                       matrix_sizes(b.sym_strides().drop_back(1), b.sym_strides().back(), 1),
                                       b.sym_storage_offset())
                        : b;
  check_system(a, sides, left, "linalg.solve");
  check(left || !vector,
        "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
        "linalg.solve is equivalent to B / A.squeeze(-1)");
  SymShape sizes = matrix_sizes(common_batch(sides, a), sides.sym_size(-2), sides.sym_size(-1));
  if (vector) sizes.pop_back();
  Device device = common_device({&a, &b});
  bool by_columns = left && sizes.size() >= 2;
  return {by_columns ? column_major_spec(sizes, b.dtype(), device) : TensorSpec(sizes, b.dtype(), device),
          column_major_spec(a.sym_sizes(), a.dtype(), device), vector_spec(a, a.sym_size(-1), DType::Int32),
          scalar_spec(a, DType::Int32)};
}

void solve_cpu(const Tensor& result, const Tensor& lu, const Tensor& pivots, const Tensor& info, const Tensor& a,
               const Tensor& b, bool left, bool check_errors) {
  kernels::lu_factor(lu, pivots, info, a);
  if (check_errors) check_infos(info, "torch.linalg.solve_ex", a.dim() == 2);
  if (!is_vector_side(a, b)) return kernels::lu_solve(result, lu, pivots, b, left, false);
  // The solution as matrices of one column, column after column, is the vectors one after another.
  Tensor columns = empty(result.sym_sizes(), {.dtype = result.dtype()});
  Tensor sides = columns.unsqueeze(-1);
  kernels::lu_solve(sides, lu, pivots, b.unsqueeze(-1), true, false);
  kernels::copy(result, columns);
}

Tensor solve_adjoint(const Tensor& grad, const Tensor& a, const Tensor& lu, const Tensor& pivots, bool left,
                     bool vector) {
  Tensor g = vector ? grad.unsqueeze(-1) : grad;
  // Where the derivative is differentiated again, it has to be a function of A.
  if (is_grad_enabled()) return std::get<0>(linalg_solve_ex(adjoint_of(a), g, left));
  return linalg_lu_solve(lu, pivots, g, left, true);
}

UMBRA_OPERATOR(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
    "Tensor pivots, Tensor info)")
    .out("_linalg_solve_ex.result", {"result", "LU", "pivots", "info"})
    .meta(solve_specs)
    .cpu<4>(solve_cpu)
    .gradient("A, B", {"grad", "result", "A", "B", "LU", "pivots", "left", "needs"},
              [](const Tensor& grad, const Tensor& result, const Tensor& a, const Tensor& b, const Tensor& lu,
                 const Tensor& pivots, bool left, std::vector<bool> needs) {
                bool vector = is_vector_side(a, b);
                Tensor grad_b = solve_adjoint(grad, a, lu, pivots, left, vector), grad_a;
                if (needs[0]) {
                  Tensor x = vector ? result.unsqueeze(-1) : result;
                  grad_a = (left ? grad_b.matmul(adjoint_of(x)) : adjoint_of(x).matmul(grad_b)).neg();
                  grad_a = ops::sum_to_size(grad_a, a.sym_sizes());
                }
                Tensor shaped = vector ? grad_b.squeeze(-1) : grad_b;
                return std::make_tuple(grad_a, needs[1] ? ops::sum_to_size(shaped, b.sym_sizes()) : Tensor());
              })
    .differentiable_outputs({true, false, false, false})
    .batch([](const Batched& a, const Batched& b, bool left, bool check_errors) {
      check(a.rank() >= 2, "linalg.solve: The input tensor A must have at least 2 dimensions.");
      // One column each, so that vectors stay vectors whatever the ranks become.
      Tensor first = batch_all(a), second = batch_all(b);
      bool vector = b.rank() == 1 || (a.rank() - 1 == b.rank() &&
                                      second.sym_sizes().drop_front(1) == first.sym_sizes().drop_back(1).drop_front(1));
      if (vector) second = second.unsqueeze(-1);
      int64_t rank = std::max(first.dim(), second.dim()) - 1;
      auto [x, lu, pivots, info] =
          _linalg_solve_ex(batch_first({first, 0}, rank), batch_first({second, 0}, rank), left, check_errors);
      auto lead = [&](Tensor t) {  // the dimensions that A was given go again
        for (int64_t i = first.dim() - 1; i < rank; ++i) t = t.squeeze(1);
        return Batched(t, 0);
      };
      return std::make_tuple(Batched(vector ? x.squeeze(-1) : x, 0), lead(lu), lead(pivots), lead(info));
    });

UMBRA_OPERATOR(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)")
    .out("linalg_solve_ex.out", {"result", "info"})
    .composite([](const Tensor& a, const Tensor& b, bool left, bool check_errors) {
      auto [result, lu, pivots, info] = _linalg_solve_ex(a, b, left, check_errors);
      return std::make_tuple(result, info);
    })
    .use(out_parts([](const Tensor& a, const Tensor& b, bool left, bool check_errors, const Tensor& result,
                      const Tensor& info) {
      Tensor lu = b.new_empty({0}), pivots = b.new_empty({0}, {.dtype = DType::Int32});
      _linalg_solve_ex_out(result, lu, pivots, info, a, b, left, check_errors);
      return std::make_tuple(result, info);
    }));
UMBRA_OPERATOR("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
    .out("linalg_solve.out")
    .composite([](const Tensor& a, const Tensor& b, bool left) {
      auto [result, info] = linalg_solve_ex(a, b, left, false);
      _linalg_check_errors(info, "torch.linalg.solve", a.dim() == 2);
      return result;
    })
    .use(out_parts([](const Tensor& a, const Tensor& b, bool left, const Tensor& out) {
      Tensor info = b.new_empty({0}, {.dtype = DType::Int32});
      linalg_solve_ex_out(out, info, a, b, left, false);
      _linalg_check_errors(info, "torch.linalg.solve", a.dim() == 2);
      return out;
    }));

// ---- inverse ----

UMBRA_OPERATOR("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
    .out("linalg_inv_ex.inverse", {"inverse", "info"})
    .meta([](const Tensor& a, bool) -> Specs2 {
      check_square(a, "linalg.inv");
      check_floating_matrix(a, "linalg.inv", false);
      return {column_major_spec(a.sym_sizes(), a.dtype(), a.device()), scalar_spec(a, DType::Int32)};
    })
    .cpu<2>([](const Tensor& inverse, const Tensor& info, const Tensor& a, bool check_errors) {
      auto [lu, pivots, status] = linalg_lu_factor_ex(a);
      kernels::copy(info, status);
      kernels::lu_solve(inverse, lu, pivots, eye(a.size(-1), {.dtype = a.dtype()}), true, false);
      if (check_errors) check_infos(info, "linalg.inv_ex", a.dim() == 2);
    })
    .gradient("A", {"grad", "inverse"},
              [](const Tensor& grad, const Tensor& inverse) {
                Tensor y = adjoint_of(inverse);
                return y.matmul(grad.matmul(y)).neg();
              })
    .differentiable_outputs({true, false})
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_inv(Tensor A) -> Tensor")
    .out("linalg_inv.out")
    .composite([](const Tensor& a) {
      auto [inverse, info] = linalg_inv_ex(a);
      _linalg_check_errors(info, "linalg.inv", a.dim() == 2);
      return inverse;
    })
    .use(out_parts([](const Tensor& a, const Tensor& out) {
      Tensor info = unwanted_out(a, DType::Int32);
      linalg_inv_ex_out(out, info, a);
      _linalg_check_errors(info, "linalg.inv", a.dim() == 2);
      return out;
    }));
UMBRA_OPERATOR("inverse(Tensor self) -> Tensor")
    .out("inverse.out")
    .composite([](const Tensor& self) { return linalg_inv(self); })
    .use(out_parts([](const Tensor& self, const Tensor& out) { return linalg_inv_out(out, self); }));

// ---- over several dimensions ----

UMBRA_OPERATOR("linalg_tensorinv(Tensor self, int ind=2) -> Tensor")
    .out("linalg_tensorinv.out")
    .use(out_asks("linalg_tensorinv.out",
                  [](const Tensor& self, int64_t, const Tensor& out) { check_result_fits("tensorinv", self, out); }))
    .composite([](const Tensor& self, int64_t ind) {
      check(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
      check(ind <= self.dim(), "ArrayRef: invalid slice, N = ", ind, "; size = ", self.dim());
      SymShape front(self.sym_sizes().slice(0, ind)), back(self.sym_sizes().drop_front(ind));
      SymInt rows = product(front), columns = product(back);
      check(rows == columns,
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
            columns, " != ", rows);
      SymShape shape(back);
      for (SymInt s : front) shape.push_back(s);
      auto [inverse, info] = linalg_inv_ex(self.reshape({rows, columns}), false);
      _linalg_check_errors(info, "inverse", true);
      return inverse.reshape(shape);
    })
    .use(OutCopied{});

UMBRA_OPERATOR("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor")
    .out("linalg_tensorsolve.out")
    .use(out_asks("linalg_tensorsolve.out", [](const Tensor& self, const Tensor&, std::optional<std::vector<int64_t>>,
                                               const Tensor& out) { check_result_fits("tensorsolve", self, out); }))
    .composite([](const Tensor& self, const Tensor& other, std::optional<std::vector<int64_t>> dims) {
      int64_t rank = self.dim();
      Tensor moved = self;
      if (dims) {
        std::vector<int64_t> last;
        for (size_t i = 0; i < dims->size(); ++i) last.push_back(rank - static_cast<int64_t>(dims->size() - i));
        moved = self.movedim(*dims, last);
      }
      check(other.dim() <= moved.dim(), "linalg.tensorsolve: other has more dimensions than self");
      SymShape shape(moved.sym_sizes().drop_front(other.dim()));
      SymInt columns = product(shape), rows = product(SymShape(moved.sym_sizes().slice(0, other.dim())));
      check(columns == rows,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            "but got ",
            columns, " != ", rows);
      Tensor matrix = moved.reshape({columns, columns});
      return linalg_solve(matrix, other.reshape({columns})).reshape(shape);
    })
    .use(OutCopied{});

// ---- triangular ----

Tensor triangle(const Tensor& a, bool upper, bool unit) { return upper ? a.triu(unit ? 1 : 0) : a.tril(unit ? -1 : 0); }

UMBRA_OPERATOR(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor")
    .out("linalg_solve_triangular.out")
    .meta([](const Tensor& a, const Tensor& b, bool, bool left, bool) {
      check_system(a, b, left, "linalg.solve_triangular");
      // PyTorch computes in A's type whatever B's is. Where that would lose imaginary parts, it is refused here.
      check(is_complex(a.dtype()) || !is_complex(b.dtype()),
            "linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type ",
            kernel_name(a.dtype()), " and B of type ", kernel_name(b.dtype()), " instead");
      SymShape sizes = matrix_sizes(common_batch(b, a), b.sym_size(-2), b.sym_size(-1));
      // A conjugated transposed triangle is taken as it lies, and so is what is solved for.
      SymShape by_columns = column_major_spec(a.sym_sizes(), a.dtype(), a.device()).strides;
      bool as_it_lies = a.is_conj() && SymIntArrayRef(by_columns) == a.sym_strides() &&
                        SymIntArrayRef(sizes).drop_back(2) == a.sym_sizes().drop_back(2);
      Device device = common_device({&a, &b});
      return as_it_lies ? TensorSpec(sizes, a.dtype(), device) : column_major_spec(sizes, a.dtype(), device);
    })
    .cpu([](const Tensor& out, const Tensor& a, const Tensor& other, bool upper, bool left, bool unit) {
      Tensor b = other.to(a.dtype());
      Tensor columns =
          column_major_spec(out.sym_sizes(), out.dtype(), out.device()).strides == SymShape(out.sym_strides())
              ? out
              : empty(matrix_sizes(batch_part(out), out.sym_size(-1), out.sym_size(-2)), {.dtype = out.dtype()})
                    .transpose(-2, -1);
      kernels::triangular_solve(columns, a, b, upper, left, kernels::Form::Plain, unit);
      if (!columns.is_same(out)) kernels::copy(out, columns);
    })
    .gradient("self, B",
              {"grad", "self", "result", "B.sym_sizes", "B.dtype", "upper", "left", "unitriangular", "needs"},
              [](const Tensor& grad, const Tensor& a, const Tensor& x, SymIntArrayRef sizes, DType type, bool upper,
                 bool left, bool unit, std::vector<bool> needs) {
                Tensor grad_b = linalg_solve_triangular(adjoint_of(a), grad, !upper, left, unit), grad_a;
                if (needs[0]) {
                  grad_a = (left ? grad_b.matmul(adjoint_of(x)) : adjoint_of(x).matmul(grad_b)).neg();
                  grad_a = ops::sum_to_size(triangle(grad_a, upper, unit), a.sym_sizes());
                }
                return std::make_tuple(grad_a, needs[1] ? ops::sum_to_size(grad_b, sizes).to(type) : Tensor());
              })
    .batch([](const Batched& a, const Batched& b, bool upper, bool left, bool unit) {
      int64_t rank = std::max(a.rank(), b.rank());
      check(a.rank() >= 2 && b.rank() >= 2, "linalg.solve_triangular: The input tensor ", a.rank() >= 2 ? "B" : "A",
            " must have at least 2 dimensions.");
      return Batched(linalg_solve_triangular(batch_first({batch_all(a), 0}, rank), batch_first({batch_all(b), 0}, rank),
                                             upper, left, unit),
                     0);
    });

UMBRA_OPERATOR(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)")
    .out("triangular_solve.X", {"X", "M"})
    .meta([](const Tensor& self, const Tensor& a, bool, bool, bool) -> Specs2 {
      static std::atomic<bool> told = false;
      warn_once(told, "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be ",
                "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and ",
                "does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, A).solution\n",
                "should be replaced with\nX = torch.linalg.solve_triangular(A, B).");
      check(self.dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ",
            self.dim(), " dimensions instead");
      check(a.dim() >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ", a.dim(),
            " dimensions instead");
      check_older_system(self, a, "triangular_solve");
      SymShape batch = common_batch(self, a);
      return {column_major_spec(matrix_sizes(batch, self.sym_size(-2), self.sym_size(-1)), self.dtype(), self.device()),
              column_major_spec(matrix_sizes(batch, a.sym_size(-2), a.sym_size(-1)), a.dtype(), a.device())};
    })
    .cpu<2>([](const Tensor& x, const Tensor& copy, const Tensor& self, const Tensor& a, bool upper, bool transpose,
               bool unit) {
      kernels::copy(copy, a);
      kernels::triangular_solve(x, a, self, upper, true, transpose ? kernels::Form::Transposed : kernels::Form::Plain,
                                unit);
    })
    .gradient("self, A",
              {"grad0", "grad1", "A", "solution", "self.sym_sizes", "upper", "transpose", "unitriangular", "needs"},
              [](const Tensor& grad, const Tensor& grad_copy, const Tensor& a, const Tensor& x, SymIntArrayRef sizes,
                 bool upper, bool transpose, bool unit, std::vector<bool> needs) {
                Tensor grad_b, grad_a;
                if (grad.defined()) {
                  grad_b = std::get<0>(triangular_solve(grad, a.conj(), upper, !transpose, unit));
                  if (needs[1]) {
                    grad_a = transpose ? x.conj().matmul(grad_b.transpose(-2, -1)) : grad_b.matmul(adjoint_of(x));
                    grad_a = triangle(grad_a.neg(), upper, unit);
                  }
                  grad_b = ops::sum_to_size(grad_b, sizes);
                }
                if (needs[1] && grad_copy.defined()) grad_a = grad_a.defined() ? grad_a.add(grad_copy) : grad_copy;
                return std::make_tuple(grad_b, grad_a.defined() ? ops::sum_to_size(grad_a, a.sym_sizes()) : grad_a);
              })
    .batch([](const Batched& self, const Batched& a, bool upper, bool transpose, bool unit) {
      int64_t rank = std::max(a.rank(), self.rank());
      check(a.rank() >= 2 && self.rank() >= 2, "torch.triangular_solve: Expected ", a.rank() >= 2 ? "b" : "A",
            " to have at least 2 dimensions, but it has ", std::min(a.rank(), self.rank()), " dimensions instead");
      auto [x, copy] = triangular_solve(batch_first({batch_all(self), 0}, rank), batch_first({batch_all(a), 0}, rank),
                                        upper, transpose, unit);
      return std::make_tuple(Batched(x, 0), Batched(copy, 0));
    });

// ---- Cholesky ----

Tensor cholesky_gradient(const Tensor& grad, const Tensor& factor, bool upper) {
  Tensor l = upper ? adjoint_of(factor) : factor, g = upper ? adjoint_of(grad) : grad;
  Tensor product = adjoint_of(l).matmul(g);
  Tensor inner = product.tril().add(adjoint_of(product.tril(-1))).mul(0.5);
  Tensor left = linalg_solve_triangular(adjoint_of(l), inner, true);
  return linalg_solve_triangular(l, left, false, false);
}

UMBRA_OPERATOR(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)")
    .out("linalg_cholesky_ex.L", {"L", "info"})
    .meta([](const Tensor& self, bool, bool) -> Specs2 {
      check_square(self, "linalg.cholesky");
      check_floating_matrix(self, "linalg.cholesky");
      return {column_major_spec(self.sym_sizes(), self.dtype(), self.device()), scalar_spec(self, DType::Int32)};
    })
    .cpu<2>([](const Tensor& l, const Tensor& info, const Tensor& self, bool upper, bool check_errors) {
      kernels::cholesky(l, info, self, upper);
      if (check_errors) check_infos(info, "linalg.cholesky_ex", self.dim() == 2);
    })
    .gradient("self", {"grad", "L", "upper"}, cholesky_gradient)
    .differentiable_outputs({true, false})
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor")
    .out("linalg_cholesky.out")
    .composite([](const Tensor& self, bool upper) {
      auto [l, info] = linalg_cholesky_ex(self, upper, false);
      _linalg_check_errors(info, "linalg.cholesky", self.dim() == 2);
      return l;
    })
    .use(out_parts([](const Tensor& self, bool upper, const Tensor& out) {
      Tensor info = unwanted_out(self, DType::Int32);
      linalg_cholesky_ex_out(out, info, self, upper, false);
      _linalg_check_errors(info, "linalg.cholesky", self.dim() == 2);
      return out;
    }));

/// The gradient of a factor from that of L L^H (or U^H U).
Tensor factor_gradient(const Tensor& grad_a, const Tensor& factor, bool upper) {
  Tensor both = grad_a.add(adjoint_of(grad_a));
  return upper ? factor.matmul(both) : both.matmul(factor);
}

UMBRA_OPERATOR("cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
    .out("cholesky_inverse.out")
    .use(out_asks("cholesky_inverse.out",
                  [](const Tensor& self, bool, const Tensor& out) {
                    check_square(self, "cholesky_inverse");
                    check_result_fits("cholesky_inverse", self, out);
                  }))
    .meta([](const Tensor& self, bool) {
      check_square(self, "cholesky_inverse");
      return column_major_spec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, bool upper) {
      Tensor info = empty(batch_part(self), {.dtype = DType::Int32});
      kernels::cholesky_inverse(out, info, self, upper);
      check_infos(info, "cholesky_inverse", self.dim() == 2);
    })
    .gradient("self", {"grad", "self", "result", "upper"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result, bool upper) {
                return factor_gradient(result.matmul(grad).matmul(result).neg(), self, upper);
              })
    .tags({Tag::CastsToOut})
    .use(BatchInFront{});

UMBRA_OPERATOR("_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor")
    .out("_cholesky_solve_helper.out")
    .meta([](const Tensor& self, const Tensor& a, bool) {
      for (const Tensor* t : {&self, &a}) {
        check(t->dim() != 1, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
        t->sym_size(-2);  // a number is an IndexError
      }
      check_kernel_type(is_differentiable(self.dtype()) && !is_reduced_floating(self.dtype()), "cholesky_solve_cpu",
                        self);
      check(self.dtype() == a.dtype() && self.device() == a.device() && a.sym_size(-2) == self.sym_size(-2) &&
                a.sym_size(-1) >= a.sym_size(-2),
            "_cholesky_solve_helper: factors of sizes ", a.sym_sizes(), " and type ", kernel_name(a.dtype()),
            " do not fit right-hand sides of sizes ", self.sym_sizes(), " and type ", kernel_name(self.dtype()));
      check(self.sym_sizes().drop_back(2) == a.sym_sizes().drop_back(2),
            "_cholesky_solve_helper: self and A have different batch dimensions: ", self.sym_sizes(), " and ",
            a.sym_sizes());
      return column_major_spec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& a, bool upper) {
      kernels::cholesky_solve(out, self, a, upper);
    })
    .use(BatchInFront{});

UMBRA_OPERATOR("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
    .out("cholesky_solve.out")
    .use(out_asks("cholesky_solve.out", [](const Tensor& self, const Tensor&, bool,
                                           const Tensor& out) { check_result_fits("cholesky_solve", self, out); }))
    .use(OutCopied{})
    .all_backends([](const Tensor& self, const Tensor& factor, bool upper) {
      check(self.dim() >= 2, "b should have at least 2 dimensions, but has ", self.dim(), " dimensions instead");
      check(factor.dim() >= 2, "u should have at least 2 dimensions, but has ", factor.dim(), " dimensions instead");
      check_older_system(self, factor, "cholesky_solve");
      SymShape batch = common_batch(self, factor);
      auto expanded = [&](const Tensor& t) {
        SymShape sizes = matrix_sizes(batch, t.sym_size(-2), t.sym_size(-1));
        return SymIntArrayRef(sizes) == t.sym_sizes() ? t : t.expand(sizes);
      };
      return _cholesky_solve_helper(expanded(self), expanded(factor), upper);
    })
    .gradient("self, input2", {"grad", "self.sym_sizes", "input2", "result", "upper", "needs"},
              [](const Tensor& grad, SymIntArrayRef sizes, const Tensor& factor, const Tensor& x, bool upper,
                 std::vector<bool> needs) {
                Tensor grad_b = cholesky_solve(grad, factor, upper), grad_factor;
                if (needs[1]) {
                  Tensor grad_a = grad_b.matmul(adjoint_of(x)).neg();
                  grad_factor = ops::sum_to_size(factor_gradient(grad_a, factor, upper), factor.sym_sizes());
                }
                return std::make_tuple(ops::sum_to_size(grad_b, sizes), grad_factor);
              })
    .tags({Tag::CastsToOut});

// ---- LDL ----

UMBRA_OPERATOR(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, "
    "Tensor info)")
    .out("linalg_ldl_factor_ex.out", {"LD", "pivots", "info"})
    .meta([](const Tensor& self, bool, bool) -> std::tuple<TensorSpec, TensorSpec, TensorSpec> {
      check_square(self, "torch.linalg.ldl_factor_ex");
      check_floating_matrix(self, "torch.linalg.ldl_factor_ex");
      return {column_major_spec(self.sym_sizes(), self.dtype(), self.device()),
              vector_spec(self, self.sym_size(-1), DType::Int32), scalar_spec(self, DType::Int32)};
    })
    .cpu<3>([](const Tensor& ld, const Tensor& pivots, const Tensor& info, const Tensor& self, bool hermitian,
               bool check_errors) {
      kernels::ldl_factor(ld, pivots, info, self, hermitian);
      if (check_errors) check_infos(info, "torch.linalg.ldl_factor_ex", self.dim() == 2);
    })
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
    .out("linalg_ldl_factor.out", {"LD", "pivots"})
    .composite([](const Tensor& self, bool hermitian) {
      auto [ld, pivots, info] = linalg_ldl_factor_ex(self, hermitian, false);
      _linalg_check_errors(info, "torch.linalg.ldl_factor", self.dim() == 2);
      return std::make_tuple(ld, pivots);
    })
    .use(out_parts([](const Tensor& self, bool hermitian, const Tensor& ld, const Tensor& pivots) {
      Tensor info = unwanted_out(self, DType::Int32);
      linalg_ldl_factor_ex_out(ld, pivots, info, self, hermitian, false);
      _linalg_check_errors(info, "torch.linalg.ldl_factor", self.dim() == 2);
      return std::make_tuple(ld, pivots);
    }));

UMBRA_OPERATOR("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor")
    .out("linalg_ldl_solve.out")
    .meta([](const Tensor& ld, const Tensor& pivots, const Tensor& b, bool) {
      check_square(ld, "torch.linalg.ldl_solve");
      check_floating_matrix(ld, "torch.linalg.ldl_solve");
      check(b.dim() >= 2, "torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has ", b.dim(),
            " dimensions instead");
      check_older_system(b, ld, "torch.linalg.ldl_solve");
      check(
          ld.sym_sizes().drop_back(1) == pivots.sym_sizes(),
          "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ",
          pivots.sym_sizes(), " instead");
      check(is_integral(pivots.dtype(), false), "torch.linalg.ldl_solve: Expected pivots to be integers. Got ",
            kernel_name(pivots.dtype()));
      SymShape sizes = matrix_sizes(common_batch(b, ld), b.sym_size(-2), b.sym_size(-1));
      return column_major_spec(sizes, b.dtype(), b.device());
    })
    .cpu([](const Tensor& out, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
      kernels::ldl_solve(out, ld, pivots, b, hermitian);
    })
    .batch([](const Batched& ld, const Batched& pivots, const Batched& b, bool hermitian) {
      int64_t rank = std::max(ld.rank(), b.rank());
      return Batched(
          linalg_ldl_solve(batch_first({batch_all(ld), 0}, rank), batch_first({batch_all(pivots), 0}, rank - 1),
                           batch_first({batch_all(b), 0}, rank), hermitian),
          0);
    });

}  // namespace
}  // namespace umbra::ops
