// LU factorisations, what is solved with them, and determinants.
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_variant.h"
#include "ops/common/warn_once.h"
#include "ops/linalg/linalg.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {
namespace {

using Specs3 = std::tuple<TensorSpec, TensorSpec, TensorSpec>;

bool has_factors(DType dtype) { return is_differentiable(dtype) && !is_reduced_floating(dtype); }
void check_pivoting(bool pivot) { check(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU"); }

Tensor strictly_lower(const Tensor& a) { return a.tril(-1); }

// ---- gradients ----

// A = P L U. With M = P^T A the three factors give M's gradient block by block: the square block that both triangles
// share, and what stands below or to the right of it.
Tensor permuted_gradient(const Tensor& grad_l, const Tensor& grad_u, const Tensor& l, const Tensor& u) {
  SymInt m = l.sym_size(-2), n = u.sym_size(-1), k = l.sym_size(-1);
  bool tall = m > n, wide = m < n;
  Tensor l1 = tall ? l.narrow(-2, 0, k) : l, u1 = wide ? u.narrow(-1, 0, k) : u;
  Tensor core, extra;
  if (grad_l.defined()) {
    Tensor part = tall ? grad_l.narrow(-2, 0, k) : grad_l;
    core = strictly_lower(adjoint_of(l1).matmul(strictly_lower(part)));
  }
  if (grad_u.defined()) {
    Tensor part = (wide ? grad_u.narrow(-1, 0, k) : grad_u).triu();
    Tensor upper = part.matmul(adjoint_of(u1)).triu();
    core = core.defined() ? core.add(upper) : upper;
  }
  if (wide && grad_u.defined()) {
    Tensor rest = grad_u.narrow(-1, k, n - k), u2 = u.narrow(-1, k, n - k);
    core = core.sub(strictly_lower(rest.matmul(adjoint_of(u2))));
    extra = linalg_solve_triangular(adjoint_of(l1), rest, true, true, true);
  } else if (wide) {
    extra = zeros_like(u.narrow(-1, k, n - k));
  }
  if (tall && grad_l.defined()) {
    Tensor rest = grad_l.narrow(-2, k, m - k), l2 = l.narrow(-2, k, m - k);
    core = core.sub(adjoint_of(l2).matmul(rest).triu());
    extra = linalg_solve_triangular(adjoint_of(u1), rest, false, false);
  } else if (tall) {
    extra = zeros_like(l.narrow(-2, k, m - k));
  }
  Tensor square = linalg_solve_triangular(adjoint_of(u1), core, false, false);
  square = linalg_solve_triangular(adjoint_of(l1), square, true, true, true);
  return extra.defined() ? cat({square, extra}, tall ? -2 : -1) : square;
}

Tensor lu_gradient(const Tensor& grad_l, const Tensor& grad_u, const Tensor& p, const Tensor& l, const Tensor& u) {
  if (!grad_l.defined() && !grad_u.defined()) return {};
  return p.matmul(permuted_gradient(grad_l, grad_u, l, u));
}

/// The parts of a packed factor's gradient: L's below the diagonal, U's on and above it.
Tensor lu_factor_gradient(const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
  auto [p, l, u] = lu_unpack(lu, pivots);
  SymInt k = l.sym_size(-1);
  Tensor grad_l = grad.narrow(-1, 0, k), grad_u = grad.narrow(-2, 0, k);
  return lu_gradient(grad_l, grad_u, p, l, u);
}

/// The gradient of the packed factors from the gradient of P L U.
Tensor packed_gradient(const Tensor& grad_a, const Tensor& lu, const Tensor& pivots) {
  auto [p, l, u] = lu_unpack(lu, pivots);
  Tensor grad_m = adjoint_of(p).matmul(grad_a);
  return strictly_lower(grad_m.matmul(adjoint_of(u))).add(adjoint_of(l).matmul(grad_m).triu());
}

// ---- factorisation ----

UMBRA_OPERATOR(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor "
    "info)")
    .out("linalg_lu_factor_ex.out", {"LU", "pivots", "info"})
    .meta([](const Tensor& a, bool, bool) -> Specs3 {
      check(a.dim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", a.sym_sizes(),
            " instead");
      SymInt k = sym_min(a.sym_size(-2), a.sym_size(-1));
      return {column_major_spec(a.sym_sizes(), a.dtype(), a.device()), vector_spec(a, k, DType::Int32),
              scalar_spec(a, DType::Int32)};
    })
    .cpu<3>([](const Tensor& lu, const Tensor& pivots, const Tensor& info, const Tensor& a, bool pivot,
               bool check_errors) {
      if (a.numel() == 0) return kernels::fill(info, 0);  // of any type
      check_kernel_type(has_factors(a.dtype()), "lu_cpu", a);
      check_pivoting(pivot);
      kernels::lu_factor(lu, pivots, info, a);
      if (check_errors) check_infos(info, "torch.linalg.lu_factor_ex", a.dim() == 2);
    })
    .gradient("A", {"grad", "LU", "pivots"}, lu_factor_gradient)
    .differentiable_outputs({true, false, false})
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
    .out("linalg_lu_factor.out", {"LU", "pivots"})
    .composite([](const Tensor& a, bool pivot) {
      auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot, false);
      _linalg_check_errors(info, "torch.linalg.lu_factor", a.dim() == 2);
      return std::make_tuple(lu, pivots);
    })
    .use(out_parts([](const Tensor& a, bool pivot, const Tensor& lu, const Tensor& pivots) {
      Tensor info = unwanted_out(a, DType::Int32);
      linalg_lu_factor_ex_out(lu, pivots, info, a, pivot, false);
      _linalg_check_errors(info, "torch.linalg.lu_factor", a.dim() == 2);
      return std::make_tuple(lu, pivots);
    }))
    .tags({Tag::ExactOut});

UMBRA_OPERATOR(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)")
    .composite([](const Tensor& self, bool pivot, bool) {  // as in PyTorch errors are told by `info` alone
      static std::atomic<bool> told = false;
      warn_once(told, "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and ",
                "will be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\n",
                "should be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n",
                "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n",
                "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)");
      return linalg_lu_factor_ex(self, pivot, false);
    });

UMBRA_OPERATOR("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
    .out("linalg_lu.out", {"P", "L", "U"})
    .meta([](const Tensor& a, bool pivot) -> Specs3 {
      check(a.dim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: ", a.sym_sizes(),
            " instead");
      SymShape batch = batch_part(a);
      SymInt m = a.sym_size(-2), n = a.sym_size(-1), k = sym_min(m, n);
      auto spec = [&](SymInt rows, SymInt columns) {
        return TensorSpec(matrix_sizes(batch, rows, columns), a.dtype(), a.device());
      };
      return {pivot ? spec(m, m) : absent_spec(a), spec(m, k), spec(k, n)};
    })
    .cpu<3>([](const Tensor& p, const Tensor& l, const Tensor& u, const Tensor& a, bool pivot) {
      check_kernel_type(has_factors(a.dtype()) || a.numel() == 0, "lu_cpu", a);
      if (a.numel() != 0) check_pivoting(pivot);
      auto [lu, pivots, info] = linalg_lu_factor_ex(a, true, false);
      kernels::lu_unpack(pivot ? p : Tensor(), l, u, lu, pivots);
    })
    .gradient("A", {"grad1", "grad2", "P", "L", "U"}, lu_gradient)
    .differentiable_outputs({false, true, true})
    .use(BatchInFront{});

UMBRA_OPERATOR(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor "
    "L, Tensor U)")
    .out("lu_unpack.out", {"P", "L", "U"})
    .meta([](const Tensor& lu, const Tensor& pivots, bool unpack_data, bool unpack_pivots) -> Specs3 {
      check(lu.dim() >= 2, "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: ", lu.sym_sizes(),
            " instead");
      SymShape batch = batch_part(lu);
      SymInt m = lu.sym_size(-2), n = lu.sym_size(-1), k = sym_min(m, n);
      if (unpack_pivots) {
        check(pivots.dtype() == DType::Int32,
              "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
              "function is intended to be used with the output produced by torch.linalg.lu_factor");
        SymShape wanted(batch);
        wanted.push_back(k);
        if (!(pivots.sym_sizes() == SymIntArrayRef(wanted)))
          fail<ValueError>("Expected LU_pivots to have shape ", wanted, " but got ", pivots.sym_sizes(), " instead.");
      }
      auto spec = [&](bool wanted, SymInt rows, SymInt columns) {
        return wanted ? TensorSpec(matrix_sizes(batch, rows, columns), lu.dtype(), lu.device()) : absent_spec(lu);
      };
      return {spec(unpack_pivots, m, m), spec(unpack_data, m, k), spec(unpack_data, k, n)};
    })
    .cpu<3>([](const Tensor& p, const Tensor& l, const Tensor& u, const Tensor& lu, const Tensor& pivots,
               bool unpack_data, bool unpack_pivots) {
      kernels::lu_unpack(unpack_pivots ? p : Tensor(), unpack_data ? l : Tensor(), unpack_data ? u : Tensor(), lu,
                         pivots);
    })
    .gradient("LU_data", {"grad1", "grad2", "LU_data.sym_sizes"},
              [](const Tensor& grad_l, const Tensor& grad_u, SymIntArrayRef sizes) {
                SymInt m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1], k = sym_min(m, n);
                Tensor out;
                if (grad_l.defined()) {
                  Tensor part = strictly_lower(grad_l);
                  out = n > k ? cat({part, part.new_zeros(matrix_sizes(batch_part(part), m, n - k))}, -1) : part;
                }
                if (!grad_u.defined()) return out;
                Tensor part = grad_u.triu();
                if (m > k) part = cat({part, part.new_zeros(matrix_sizes(batch_part(part), m - k, n))}, -2);
                return out.defined() ? out.add(part) : part;
              })
    .differentiable_outputs({false, true, true})
    .batch([](const Batched& lu, const Batched& pivots, bool unpack_data, bool unpack_pivots) {
      auto [p, l, u] = lu_unpack(batch_all(lu), batch_all(pivots), unpack_data, unpack_pivots);
      auto part = [](const Tensor& t, bool wanted) { return Batched(t, wanted ? 0 : -1); };
      return std::make_tuple(part(p, unpack_pivots), part(l, unpack_data), part(u, unpack_data));
    });

// ---- solving ----

UMBRA_OPERATOR("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
    .out("linalg_lu_solve.out")
    .meta([](const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool) {
      check_floating_matrix(lu, "torch.linalg.lu_solve");
      check(lu.dtype() == b.dtype(), "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type ",
            kernel_name(lu.dtype()), " and B of type ", kernel_name(b.dtype()), " instead");
      check(pivots.dtype() == DType::Int32, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
      check_square(lu, "torch.linalg.lu_solve");
      check_system(lu, b, left, "linalg.lu_solve");
      check(lu.sym_size(-1) == pivots.sym_size(-1),
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
      check(lu.sym_sizes().drop_back(1) == pivots.sym_sizes(),
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape ",
            pivots.sym_sizes(), " instead");
      SymShape sizes = matrix_sizes(common_batch(b, lu), b.sym_size(-2), b.sym_size(-1));
      Device device = common_device({&lu, &b});
      return left ? column_major_spec(sizes, b.dtype(), device) : TensorSpec(sizes, b.dtype(), device);
    })
    .cpu([](const Tensor& out, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
      kernels::lu_solve(out, lu, pivots, b, left, adjoint);
    })
    .gradient("LU", {"grad", "LU", "pivots", "result", "left", "adjoint"},
              [](const Tensor& grad, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool left, bool adjoint) {
                Tensor grad_b = linalg_lu_solve(lu, pivots, grad, left, !adjoint);
                Tensor product = left ? grad_b.matmul(adjoint_of(x)) : adjoint_of(x).matmul(grad_b);
                Tensor grad_a = (adjoint ? adjoint_of(product) : product).neg();
                return ops::sum_to_size(packed_gradient(grad_a, lu, pivots), lu.sym_sizes());
              })
    .gradient("B", {"grad", "LU", "pivots", "B.sym_sizes", "left", "adjoint"},
              [](const Tensor& grad, const Tensor& lu, const Tensor& pivots, SymIntArrayRef sizes, bool left,
                 bool adjoint) { return ops::sum_to_size(linalg_lu_solve(lu, pivots, grad, left, !adjoint), sizes); })
    .batch([](const Batched& lu, const Batched& pivots, const Batched& b, bool left, bool adjoint) {
      int64_t rank = std::max(lu.rank(), b.rank());
      // Pivots go with the factors: both get the same leading dimensions.
      Tensor factors = batch_first(lu.is_batched() ? lu : Batched{batch_all(lu), 0}, rank);
      Tensor exchanges = batch_first(pivots.is_batched() ? pivots : Batched{batch_all(pivots), 0}, rank - 1);
      return Batched(linalg_lu_solve(factors, exchanges, batch_first(Batched{batch_all(b), 0}, rank), left, adjoint),
                     0);
    });

void warn_of_lu_solve() {
  static std::atomic<bool> told = false;
  warn_once(told, "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future ",
            "PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\n",
            "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n", "X = torch.linalg.lu_solve(LU, pivots, B)");
}

UMBRA_OPERATOR("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor")
    .out("lu_solve.out")
    .composite([](const Tensor& self, const Tensor& lu, const Tensor& pivots) {
      warn_of_lu_solve();
      return linalg_lu_solve(lu, pivots, self);
    })
    .use(out_parts([](const Tensor& self, const Tensor& lu, const Tensor& pivots, const Tensor& out) {
      warn_of_lu_solve();
      return linalg_lu_solve_out(out, lu, pivots, self);
    }));

// ---- determinants ----

/// Determinants are those of the transpose too: of a real row-major matrix the transpose is factored, as it lies.
bool factors_transposed(const Tensor& a) { return !a.is_complex() && a.is_contiguous(); }

/// What the transform of a gradient g A^{-H} needs: the diagonal d in a solve with A's adjoint.
Tensor solve_adjoint_diagonal(const Tensor& diagonal, const Tensor& a, const Tensor& lu, const Tensor& pivots) {
  SymShape sizes(diagonal.sym_sizes());
  sizes.push_back(a.sym_size(-1));
  Tensor right = diagonal_matrix(diagonal.unsqueeze(-1).expand(sizes));
  // Where the derivative is differentiated again, it has to be a function of A.
  if (is_grad_enabled()) return std::get<0>(linalg_solve_ex(adjoint_of(a), right));
  return linalg_lu_solve(lu, pivots, right, true, !factors_transposed(a));
}

/// The product of all other elements along the last dimension, zeros or not.
Tensor products_without_each(const Tensor& s) {
  SymInt n = s.sym_size(-1);
  SymShape sizes(s.sym_sizes());
  sizes.push_back(n);
  Tensor others = s.unsqueeze(-2).expand(sizes);
  Tensor mask = eye(n, {.dtype = DType::Bool, .device = s.device()});
  return where(mask, ones_like(others), others).prod(-1);
}

/// The adjugate from the singular values, which it takes where A has no inverse. Its derivative is none where two of
/// them are equal.
Tensor adjugate_by_svd(const Tensor& grad, const Tensor& a) {
  auto [u, s, vh] = linalg_svd(a);
  Tensor phase = linalg_det(u).mul(linalg_det(vh)).conj().mul(grad).unsqueeze(-1);
  Tensor weights = phase.mul(products_without_each(s));
  return u.mul(weights.unsqueeze(-2)).matmul(vh);
}

/// The adjugate of matrices that have an inverse, by a solve; `weight` is the gradient times the determinant.
Tensor adjugate_by_solve(const Tensor& weight, const Tensor& a) {
  SymShape sizes(weight.sym_sizes());
  sizes.push_back(a.sym_size(-1));
  return std::get<0>(linalg_solve_ex(adjoint_of(a), diagonal_matrix(weight.unsqueeze(-1).expand(sizes))));
}

/// Both ways where the data cannot be asked: each takes matrices in place of the other's for which it has a derivative.
Tensor adjugate_both_ways(const Tensor& grad, const Tensor& weight, const Tensor& singular, const Tensor& a) {
  Tensor of_matrix = singular.unsqueeze(-1).unsqueeze(-1);
  Tensor ones = ones_like(a.diagonal(0, -2, -1));
  Tensor by_svd = adjugate_by_svd(grad, where(of_matrix, a, diagonal_matrix(ones.cumsum(-1))));
  return where(of_matrix, by_svd, adjugate_by_solve(weight, where(of_matrix, diagonal_matrix(ones), a)));
}

/// The same as a function of A that can be differentiated: by a solve for the matrices that have an inverse.
Tensor differentiable_adjugate(const Tensor& grad, const Tensor& det, const Tensor& a, double epsilon) {
  bool captured = active_mode(DispatchKey::Proxy) || active_mode(DispatchKey::Functionalize);
  Tensor singular = det.detach().abs().lt(100 * epsilon);
  Tensor weight = grad.mul(det.conj());
  if (captured || !has_plain_data(a)) return adjugate_both_ways(grad, weight, singular, a);
  bool any = singular.any().item().to_bool();
  if (any && singular.all().item().to_bool()) return adjugate_by_svd(grad, a);
  if (!any) return adjugate_by_solve(weight, a);
  Tensor regular = singular.logical_not();
  auto part = [](const Tensor& t, const Tensor& mask) { return index(t, {mask}); };
  Tensor out = index_put(zeros_like(a), {singular}, adjugate_by_svd(part(grad, singular), part(a, singular)));
  return index_put(out, {regular}, adjugate_by_solve(part(weight, regular), part(a, regular)));
}

// The derivative of a determinant is the adjugate. With LU a zero on the diagonal stands for the smallest number that
// can be divided by.
Tensor determinant_gradient(const Tensor& grad, const Tensor& det, const Tensor& a, const Tensor& lu,
                            const Tensor& pivots) {
  if (a.sym_numel().same(0)) return zeros_like(a);
  double epsilon = real_type(a.dtype()) == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  if (is_grad_enabled()) return differentiable_adjugate(grad, det, a, epsilon);
  Tensor diagonal = lu.diagonal(0, -2, -1);
  Tensor repaired = lu.add(diagonal_matrix(diagonal.eq(0).to(lu.dtype()).mul(epsilon)));
  return solve_adjoint_diagonal(grad.mul(det.conj()), a, repaired, pivots);
}

UMBRA_OPERATOR("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
    .out("_linalg_det.result", {"result", "LU", "pivots"})
    .meta([](const Tensor& a) -> Specs3 {
      check_square(a, "linalg.det");
      check_floating_matrix(a, "linalg.det");
      return {scalar_spec(a, a.dtype()), column_major_spec(a.sym_sizes(), a.dtype(), a.device()),
              vector_spec(a, a.sym_size(-1), DType::Int32)};
    })
    .cpu<3>([](const Tensor& result, const Tensor& lu, const Tensor& pivots, const Tensor& a) {
      Tensor info = empty(batch_part(a), {.dtype = DType::Int32});
      kernels::lu_factor(lu, pivots, info, factors_transposed(a) ? a.transpose(-2, -1) : a);
      kernels::determinant(result, lu, pivots);
    })
    .gradient("A", {"grad", "result", "A", "LU", "pivots"}, determinant_gradient)
    .differentiable_outputs({true, false, false})
    .use(BatchInFront{});

UMBRA_OPERATOR("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
    .out("_linalg_slogdet.sign", {"sign", "logabsdet", "LU", "pivots"})
    .meta([](const Tensor& a) -> std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec> {
      check_square(a, "linalg.slogdet");
      check_floating_matrix(a, "linalg.slogdet", false);
      return {scalar_spec(a, a.dtype()), scalar_spec(a, real_type(a.dtype())),
              column_major_spec(a.sym_sizes(), a.dtype(), a.device()), vector_spec(a, a.sym_size(-1), DType::Int32)};
    })
    .cpu<4>([](const Tensor& sign, const Tensor& logarithm, const Tensor& lu, const Tensor& pivots, const Tensor& a) {
      Tensor info = empty(batch_part(a), {.dtype = DType::Int32});
      kernels::lu_factor(lu, pivots, info, factors_transposed(a) ? a.transpose(-2, -1) : a);
      kernels::log_determinant(sign, logarithm, lu, pivots);
    })
    .gradient("A", {"grad0", "grad1", "A", "sign", "LU", "pivots"},
              [](const Tensor& grad_sign, const Tensor& grad_log, const Tensor& a, const Tensor& sign, const Tensor& lu,
                 const Tensor& pivots) {
                Tensor weight = grad_log;
                // A real sign is constant; a complex one turns with the imaginary part of log det A.
                if (a.is_complex() && grad_sign.defined()) {
                  Tensor turn = grad_sign.conj().mul(sign);
                  Tensor along = turn.sub(turn.conj()).mul(-0.5);
                  weight = weight.defined() ? along.add(weight) : along;
                }
                if (!weight.defined()) return zeros_like(a);
                return solve_adjoint_diagonal(weight.to(a.dtype()), a, lu, pivots);
              })
    .differentiable_outputs({true, true, false, false})
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_det(Tensor A) -> Tensor")
    .out("linalg_det.out")
    .composite([](const Tensor& a) { return std::get<0>(_linalg_det(a)); })
    .use(out_parts([](const Tensor& a, const Tensor& out) {
      Tensor lu = unwanted_out(a, a.dtype()), pivots = unwanted_out(a, DType::Int32);
      return std::get<0>(_linalg_det_out(out, lu, pivots, a));
    }));
UMBRA_OPERATOR("det(Tensor self) -> Tensor").composite([](const Tensor& self) {
  return std::get<0>(_linalg_det(self));
});
UMBRA_OPERATOR("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)")
    .out("linalg_slogdet.out", {"sign", "logabsdet"})
    .composite([](const Tensor& a) {
      auto [sign, logarithm, lu, pivots] = _linalg_slogdet(a);
      return std::make_tuple(sign, logarithm);
    })
    .use(out_parts([](const Tensor& a, const Tensor& sign, const Tensor& logarithm) {
      Tensor lu = unwanted_out(a, a.dtype()), pivots = unwanted_out(a, DType::Int32);
      _linalg_slogdet_out(sign, logarithm, lu, pivots, a);
      return std::make_tuple(sign, logarithm);
    }));
UMBRA_OPERATOR("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)")
    .out("slogdet.out", {"sign", "logabsdet"})
    .composite([](const Tensor& self) { return linalg_slogdet(self); })
    .use(out_parts([](const Tensor& self, const Tensor& sign, const Tensor& logarithm) {
      return linalg_slogdet_out(sign, logarithm, self);
    }));
UMBRA_OPERATOR("logdet(Tensor self) -> Tensor").composite([](const Tensor& self) {
  check_square(self, "logdet");
  check_floating_matrix(self, "logdet", false);
  auto [sign, logarithm] = linalg_slogdet(self);
  if (self.is_complex()) return sign.log().add(logarithm);
  return where(sign.eq(-1), std::numeric_limits<double>::quiet_NaN(), logarithm);
});

}  // namespace
}  // namespace umbra::ops
