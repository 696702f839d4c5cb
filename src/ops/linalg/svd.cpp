// Singular values, and what is made of them: pseudo-inverse, rank, condition number, polar decomposition.
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

using OptionalText = std::optional<std::string>;
using OptionalNumber = std::optional<double>;

// ---- decomposition ----

Tensor skew(const Tensor& a) { return a.sub(adjoint_of(a)); }

/// A pair of singular vectors is one up to a common phase: a loss that depends on the phase has no derivative.
void check_phase(const Tensor& left, const Tensor& right) {
  if (!left.is_complex() || !has_plain_data(left) || left.numel() == 0) return;
  Tensor phase = imag(left.add(right).diagonal(0, -2, -1).detach().resolve_conj());
  check(phase.abs().amax().item().to_double() <= 2e-2,
        "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
        "specified loss function depends on this phase term, making it ill-defined.");
}

/// The gradient of A = U S V^H, all of them reduced. `grad_v` is V's, not that of its adjoint.
Tensor svd_gradient(const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_v, const Tensor& u, const Tensor& s,
                    const Tensor& vh) {
  if (!grad_u.defined() && !grad_v.defined()) return u.mul(grad_s.unsqueeze(-2)).matmul(vh);
  SymInt m = u.sym_size(-2), n = vh.sym_size(-1), k = s.sym_size(-1);
  Tensor left = grad_u.defined() ? adjoint_of(u).matmul(grad_u) : Tensor();
  Tensor right = grad_v.defined() ? vh.matmul(grad_v) : Tensor();
  check_phase(left.defined() ? left : zeros_like(right), right.defined() ? right : zeros_like(left));
  Tensor squares = s.mul(s), mask = eye(k, {.dtype = DType::Bool, .device = s.device()});
  Tensor gaps = squares.unsqueeze(-2).sub(squares.unsqueeze(-1)).masked_fill(mask, 1);
  Tensor inner;
  if (left.defined()) inner = skew(left).div(gaps).mul(s.unsqueeze(-2));
  if (right.defined()) {
    Tensor part = s.unsqueeze(-1).mul(skew(right).div(gaps));
    inner = inner.defined() ? inner.add(part) : part;
  }
  if (u.is_complex() && left.defined()) {
    // The diagonals are imaginary, and divided by S instead.
    Tensor along = skew(left).diagonal(0, -2, -1).div(s.mul(2));
    inner = where(mask, along.unsqueeze(-1), inner);
  }
  if (grad_s.defined()) inner = inner.add(diagonal_matrix(grad_s));
  Tensor out = u.matmul(inner).matmul(vh);
  // What leaves the spaces that U and V span.
  if (m > k && grad_u.defined()) {
    Tensor outside = grad_u.sub(u.matmul(left)).div(s.unsqueeze(-2));
    out = out.add(outside.matmul(vh));
  }
  if (n > k && grad_v.defined()) {
    Tensor grad_vh = adjoint_of(grad_v);
    Tensor outside = grad_vh.sub(adjoint_of(right).matmul(vh)).div(s.unsqueeze(-1));
    out = out.add(u.matmul(outside));
  }
  return out;
}

UMBRA_OPERATOR(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor "
    "S, Tensor Vh)")
    .out("_linalg_svd.U", {"U", "S", "Vh"})
    .meta([](const Tensor& a, bool full, bool compute_uv,
             const OptionalText&) -> std::tuple<TensorSpec, TensorSpec, TensorSpec> {
      check_matrix(a, "linalg.svd");
      check_floating_matrix(a, "linalg.svd");
      SymShape batch = batch_part(a);
      SymInt m = a.sym_size(-2), n = a.sym_size(-1), k = sym_min(m, n);
      TensorSpec s = vector_spec(a, k, real_type(a.dtype()));
      if (!compute_uv) return {absent_spec(a), s, absent_spec(a)};
      auto spec = [&](SymInt rows, SymInt columns) {
        return column_major_spec(matrix_sizes(batch, rows, columns), a.dtype(), a.device());
      };
      TensorSpec vh = spec(full ? n : k, n);
      if (a.device().type != DeviceType::CPU)  // there it is V that the kernel has in columns
        vh = TensorSpec(matrix_sizes(batch, full ? n : k, n), a.dtype(), a.device());
      return {spec(m, full ? m : k), s, vh};
    })
    .cpu<3>([](const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, bool, bool compute_uv,
               const OptionalText& driver) {
      check(!driver || a.numel() == 0,
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
            "backend.");
      // Of no elements, of any type, there is nothing to decompose; whole bases are still asked for.
      if (a.numel() == 0) {
        for (const Tensor* basis : {&u, &vh})
          if (basis->numel() != 0) basis->fill_(0), basis->diagonal(0, -2, -1).fill_(1);
        return;
      }
      Tensor info = empty(batch_part(a), {.dtype = DType::Int32});
      kernels::svd(compute_uv ? u : Tensor(), s, compute_uv ? vh : Tensor(), info, a);
      check_infos(info, "linalg.svd", a.dim() == 2);
    })
    .gradient("A", {"grad0", "grad1", "grad2", "U", "S", "Vh", "full_matrices", "compute_uv"},
              [](const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_vh, const Tensor& u, const Tensor& s,
                 const Tensor& vh, bool full, bool compute_uv) {
                check(compute_uv,
                      "linalg_svd: the derivative depends on the singular vectors, which this call did not compute");
                if (!grad_u.defined() && !grad_s.defined() && !grad_vh.defined()) return Tensor();
                SymInt k = s.sym_size(-1);
                auto columns = [&](const Tensor& t) { return full && t.defined() ? t.narrow(-1, 0, k) : t; };
                auto rows = [&](const Tensor& t) { return full && t.defined() ? t.narrow(-2, 0, k) : t; };
                Tensor grad_v = grad_vh.defined() ? adjoint_of(rows(grad_vh)) : grad_vh;
                Tensor right = rows(vh), left = columns(u);
                return svd_gradient(columns(grad_u), grad_s, grad_v, left, s, right);
              })
    .batch([](const Batched& a, bool full, bool compute_uv, const OptionalText& driver) {
      check(a.rank() >= 2, "linalg.svd: The input tensor A must have at least 2 dimensions.");
      auto [u, s, vh] = _linalg_svd(batch_first(a), full, compute_uv, driver);
      int64_t dim = compute_uv ? 0 : -1;
      return std::make_tuple(Batched(u, dim), Batched(s, 0), Batched(vh, dim));
    });

UMBRA_OPERATOR("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
    .out("linalg_svd.U", {"U", "S", "Vh"})
    .composite([](const Tensor& a, bool full, const OptionalText& driver) {
      return _linalg_svd(a, full, true, driver);
    })
    .use(out_parts([](const Tensor& a, bool full, const OptionalText& driver, const Tensor& u, const Tensor& s,
                      const Tensor& vh) { return _linalg_svd_out(u, s, vh, a, full, true, driver); }));
UMBRA_OPERATOR("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
    .out("linalg_svdvals.out")
    .composite([](const Tensor& a, const OptionalText& driver) {
      // Values come out with other last digits where vectors are computed too: a view is taken for one that a transform
      // sees, so that norms give the same bits in both.
      bool vectors = a.keys().has(DispatchKey::Autograd) || may_be_differentiated(a);
      return std::get<1>(_linalg_svd(a, false, vectors, driver));
    })
    .use(out_parts([](const Tensor& a, const OptionalText& driver, const Tensor& out) {
      Tensor u = unwanted_out(a, a.dtype()), vh = unwanted_out(a, a.dtype());
      return std::get<1>(_linalg_svd_out(u, out, vh, a, false, false, driver));
    }))
    .tags({Tag::ExactOut});

void check_svd_input(const Tensor& self) {
  check(self.dim() >= 2, "linalg.svd: input should have at least 2 dimensions, but has ", self.dim(),
        " dimensions instead");
}
/// The older name in three outputs: V is written as its adjoint and turned in place.
std::tuple<Tensor, Tensor, Tensor> svd_out_parts(const Tensor& self, bool some, bool compute_uv, const Tensor& u,
                                                 const Tensor& s, const Tensor& v) {
  for (const Tensor* out : {&u, &v})
    check(compute_uv || out->dtype() == self.dtype(), "svd: Expected out tensor to have dtype ",
          kernel_name(self.dtype()), " but got ", kernel_name(out->dtype()), " instead");
  check_svd_input(self);
  if (compute_uv) {
    if (v.dim() >= 2) v.transpose_(-2, -1);
    linalg_svd_out(u, s, v, self, !some);
    v.transpose_(-2, -1);
    if (v.is_complex()) v.conj_physical_();
    return {u, s, v};
  }
  SymShape batch = batch_part(self);
  SymInt m = self.sym_size(-2), n = self.sym_size(-1);
  linalg_svdvals_out(s, self);
  resized_out(u, matrix_sizes(batch, m, m)).zero_();
  resized_out(v, matrix_sizes(batch, n, n)).zero_();
  return {u, s, v};
}

UMBRA_OPERATOR("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
    .out("svd.U", {"U", "S", "V"})
    .use(out_parts(svd_out_parts))
    .composite([](const Tensor& self, bool some, bool compute_uv) {
      check_svd_input(self);
      if (compute_uv) {
        auto [u, s, vh] = linalg_svd(self, !some);
        return std::make_tuple(u, s, adjoint_of(vh));
      }
      // Zeros in the place of the vectors.
      SymShape batch = batch_part(self);
      SymInt m = self.sym_size(-2), n = self.sym_size(-1);
      Tensor s = linalg_svdvals(self);
      return std::make_tuple(self.new_zeros(matrix_sizes(batch, m, m)), s,
                             self.new_zeros(matrix_sizes(batch, n, n)).transpose(-2, -1));
    });

// ---- tolerances ----

double epsilon_of(DType t) {
  DType real = real_type(t);
  check(real == DType::Float32 || real == DType::Float64,
        "This function doesn't handle types other than float and double");
  return real == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

Scalar default_rtol(const Tensor& a) {
  SymInt larger = sym_max(a.sym_size(-1), a.sym_size(-2));
  return Scalar(sym_float_binary(SymOp::Mul, sym_float(larger), SymFloat(epsilon_of(a.dtype()))));
}

struct Tolerances {
  Tensor absolute, relative;
};

TensorOptions tolerance_options(const Tensor& a) { return {.dtype = DType::Float64, .device = a.device()}; }

Tolerances tolerances(const Tensor& a, OptionalNumber atol, OptionalNumber rtol) {
  double absolute = atol.value_or(0.0);
  Scalar relative = rtol ? Scalar(*rtol) : absolute > 0 ? Scalar(0.0) : default_rtol(a);
  return {full({}, absolute, tolerance_options(a)), full({}, relative, tolerance_options(a))};
}

Tolerances tolerances(const Tensor& a, const Tensor& atol, const Tensor& rtol, const char* name) {
  for (auto [tensor, argument] : {std::pair{&atol, "atol"}, std::pair{&rtol, "rtol"}})
    if (tensor->defined())
      check(!tensor->is_complex(), name, ": ", argument, " tensor of complex type is not supported. Got ",
            kernel_name(tensor->dtype()));
  Tensor absolute = atol.defined() ? atol : zeros({}, tolerance_options(a));
  if (rtol.defined()) return {absolute, rtol};
  Tensor usual = full({}, default_rtol(a), tolerance_options(a));
  return {absolute, atol.defined() ? where(atol.gt(0), zeros({}, tolerance_options(a)), usual) : usual};
}

/// The values that count, given the largest of each matrix.
Tensor above_tolerance(const Tensor& sizes, const Tensor& largest, const Tolerances& t) {
  Tensor relative = t.relative.unsqueeze(-1).mul(largest);
  return sizes.gt(maximum(t.absolute.unsqueeze(-1), relative));
}

// ---- rank ----

const char* const kRankName = "torch.linalg.matrix_rank";

/// The ranks to be: one number a matrix.
Tensor ranks(const Tensor& a) {
  check_matrix(a, kRankName, "input");
  return empty(batch_part(a), {.dtype = DType::Int64, .device = a.device()});
}

/// Matrices without elements have rank 0, which goes to `out`; others give a tensor of their own.
Tensor rank_of(const Tensor& a, const Tolerances& t, bool hermitian, const Tensor& out) {
  if (a.sym_numel() == 0) return out.fill_(0);
  Tensor sizes, largest;
  if (hermitian) {
    sizes = linalg_eigvalsh(a).abs();
    largest = sizes.amax({-1}, true);
  } else {
    sizes = linalg_svdvals(a);
    largest = sizes.narrow(-1, 0, 1);
  }
  return above_tolerance(sizes, largest, t).sum(IntArrayRef{-1});
}

Tensor rank_by_numbers(const Tensor& a, OptionalNumber atol, OptionalNumber rtol, bool hermitian) {
  Tensor out = ranks(a);
  bool known = real_type(a.dtype()) == DType::Float32 || real_type(a.dtype()) == DType::Float64;
  check(rtol || known, "This function doesn't handle types other than float and double");
  return rank_of(a, tolerances(a, atol, rtol), hermitian, out);
}

UMBRA_OPERATOR(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor")
    .out("linalg_matrix_rank.atol_rtol_tensor_out")
    .composite([](const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
      Tensor out = ranks(a);
      return rank_of(a, tolerances(a, atol, rtol, kRankName), hermitian, out);
    });
UMBRA_OPERATOR(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> "
    "Tensor")
    .out("linalg_matrix_rank.atol_rtol_float_out")
    .use(out_asks("linalg_matrix_rank.atol_rtol_float_out",
                  [](const Tensor& self, OptionalNumber, OptionalNumber rtol, bool, const Tensor&) {
                    if (!rtol) self.sym_size(-2);  // which the usual tolerance depends on
                  }))
    .composite(rank_by_numbers);
UMBRA_OPERATOR("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor")
    .out("linalg_matrix_rank.out")
    .composite([](const Tensor& a, double tol, bool hermitian) { return rank_by_numbers(a, tol, 0.0, hermitian); });
UMBRA_OPERATOR("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor")
    .out("linalg_matrix_rank.out_tol_tensor")
    .composite([](const Tensor& a, const Tensor& tol, bool hermitian) {
      Tensor out = ranks(a), relative = zeros({}, tolerance_options(a));
      return rank_of(a, tolerances(a, tol, relative, kRankName), hermitian, out);
    });

// ---- pseudo-inverse ----

void check_pinv(const Tensor& a) {
  bool known = a.dtype() == DType::Float32 || a.dtype() == DType::Float64 || a.is_complex();
  check(known && a.dim() >= 2, "linalg.pinv(", kernel_name(a.dtype()), "{", a.sym_sizes(),
        "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
}

Tensor pinv_parts(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_pinv(a);
  Tolerances t = tolerances(a, atol, rtol, "torch.linalg.pinv");
  if (a.sym_numel() == 0) return a.new_empty(matrix_sizes(batch_part(a), a.sym_size(-1), a.sym_size(-2)));
  Tensor zero = zeros({}, {.dtype = real_type(a.dtype()), .device = a.device()});
  if (hermitian) {
    auto [values, v] = linalg_eigh(a);
    Tensor sizes = values.abs();
    Tensor inverse = where(above_tolerance(sizes, sizes.amax({-1}, true), t), values.reciprocal(), zero);
    return v.mul(inverse.unsqueeze(-2)).matmul(adjoint_of(v));
  }
  auto [u, s, vh] = linalg_svd(a, false);
  Tensor inverse = where(above_tolerance(s, s.narrow(-1, 0, 1), t), s.reciprocal(), zero);
  return adjoint_of(vh).mul(inverse.unsqueeze(-2)).matmul(adjoint_of(u));
}

// dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
Tensor pinv_gradient(const Tensor& grad, const Tensor& p, const Tensor& a) {
  Tensor ph = adjoint_of(p), gh = adjoint_of(grad);
  Tensor outer = gh.matmul(p), inner = p.matmul(gh);
  Tensor first = outer.matmul(ph), second = ph.matmul(inner);
  Tensor out = ph.matmul(grad).matmul(ph).neg();
  out = out.add(first.sub(a.matmul(p.matmul(first))));
  return out.add(second.sub(second.matmul(p).matmul(a)));
}

UMBRA_OPERATOR(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
    "Tensor")
    .out("linalg_pinv.atol_rtol_tensor_out")
    .use(out_asks("linalg_pinv.atol_rtol_tensor_out",
                  [](const Tensor& a, const Tensor&, const Tensor&, bool, const Tensor& out) {
                    check_result_fits("linalg.pinv", a, out);
                  }))
    .all_backends(pinv_parts)
    .gradient("self", {"grad", "result", "self"}, pinv_gradient);

Tensor pinv_by_numbers(const Tensor& a, OptionalNumber atol, OptionalNumber rtol, bool hermitian) {
  check_pinv(a);
  Tolerances t = tolerances(a, atol, rtol);
  return linalg_pinv(a, t.absolute, t.relative, hermitian);
}

UMBRA_OPERATOR(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor")
    .out("linalg_pinv.atol_rtol_float_out")
    .use(out_asks("linalg_pinv.atol_rtol_float_out",
                  [](const Tensor& a, OptionalNumber, OptionalNumber, bool, const Tensor& out) {
                    check_result_fits("linalg.pinv", a, out);
                  }))
    .composite([](const Tensor& a, OptionalNumber atol, OptionalNumber rtol, bool hermitian) {
      if (!rtol) a.sym_size(-2);  // it follows from the sizes; too few dimensions are an IndexError
      return pinv_by_numbers(a, atol, rtol, hermitian);
    })
    .use(OutCopied{});
UMBRA_OPERATOR("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor")
    .out("linalg_pinv.out")
    .use(out_asks("linalg_pinv.out",
                  [](const Tensor& a, double, bool, const Tensor& out) { check_result_fits("linalg.pinv", a, out); }))
    .composite([](const Tensor& a, double rcond, bool hermitian) { return pinv_by_numbers(a, 0.0, rcond, hermitian); })
    .use(OutCopied{});
UMBRA_OPERATOR("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor")
    .out("linalg_pinv.out_rcond_tensor")
    .use(out_asks("linalg_pinv.out_rcond_tensor", [](const Tensor& a, const Tensor&, bool,
                                                     const Tensor& out) { check_result_fits("linalg.pinv", a, out); }))
    .composite([](const Tensor& a, const Tensor& rcond, bool hermitian) {
      check_pinv(a);
      return linalg_pinv(a, zeros({}, tolerance_options(a)), rcond, hermitian);
    })
    .use(OutCopied{});
UMBRA_OPERATOR("pinverse(Tensor self, float rcond=1e-15) -> Tensor").composite([](const Tensor& a, double rcond) {
  return pinv_by_numbers(a, 0.0, rcond, false);
});

// ---- condition number ----

Tensor empty_condition(const Tensor& a) {
  return zeros(batch_part(a), {.dtype = real_type(a.dtype()), .device = a.device()});
}

/// ||A|| ||A^-1||, infinite where A has no inverse.
template <class Order> Tensor condition_by_inverse(const Tensor& a, const Order& order) {
  auto [inverse, info] = linalg_inv_ex(a, false);
  Tensor singular = info.unsqueeze_(-1).unsqueeze_(-1).gt(0);
  // The derivative of the inverse needs it as it was.
  Tensor filled =
      inverse.requires_grad() ? inverse.masked_fill(singular, INFINITY) : inverse.masked_fill_(singular, INFINITY);
  Tensor size = linalg_matrix_norm(a, order, {-2, -1});
  return size.mul(linalg_matrix_norm(filled, order, {-2, -1})).nan_to_num_(INFINITY, INFINITY, -INFINITY);
}

/// What the number is written to, before anything is said of the matrix.
void check_condition_out(const Tensor& self, const Tensor& out) {
  DType type = real_type(self.dtype());
  check(can_cast(type, out.dtype()), "linalg.cond: Expected result to be safely castable from ", kernel_name(type),
        " dtype, but got result with dtype ", kernel_name(out.dtype()));
}

UMBRA_OPERATOR("linalg_cond(Tensor self, Scalar? p=None) -> Tensor")
    .out("linalg_cond.out")
    .use(out_asks("linalg_cond.out",
                  [](const Tensor& self, std::optional<Scalar>, const Tensor& out) { check_condition_out(self, out); }))
    .composite([](const Tensor& self, std::optional<Scalar> p) {
      check(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
      if (p && p->is_complex()) fail<ValueError>("linalg.cond: Expected a non-complex scalar as the order of norm.");
      double order = p ? p->to_double() : 2.0;
      bool known = std::abs(order) == 1 || std::abs(order) == 2 || std::isinf(order);
      if (!known) fail<ValueError>("linalg.cond got an invalid norm type: ", *p);
      if (self.sym_numel() == 0) return empty_condition(self);
      if (std::abs(order) == 2) {
        Tensor s = linalg_svdvals(self), first = s.narrow(-1, 0, 1), last = s.narrow(-1, s.sym_size(-1) - 1, 1);
        return (order > 0 ? first.div(last) : last.div(first)).squeeze(-1);
      }
      check_square(self, concat("linalg.cond(ord=", *p, ")"));
      return condition_by_inverse(self, *p);
    })
    .use(OutCopied{});

UMBRA_OPERATOR("linalg_cond.p_str(Tensor self, str p) -> Tensor")
    .out("linalg_cond.p_str_out")
    .use(out_asks("linalg_cond.p_str_out",
                  [](const Tensor& self, const std::string&, const Tensor& out) { check_condition_out(self, out); }))
    .composite([](const Tensor& self, const std::string& p) {
      check_square(self, concat("linalg.cond(ord=", p, ")"));
      check<ValueError>(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
      if (self.sym_numel() == 0) return empty_condition(self);
      if (p == "fro") return condition_by_inverse(self, p);
      Tensor s = linalg_svdvals(self);
      Tensor inverse = s.reciprocal().sum(IntArrayRef{-1});
      return s.sum(IntArrayRef{-1}).mul(inverse);
    })
    .use(OutCopied{});

// ---- polar decomposition ----

UMBRA_OPERATOR("linalg_polar(Tensor A) -> (Tensor U, Tensor H)")
    .out("linalg_polar.out", {"U", "H"})
    .meta([](const Tensor& a) -> std::tuple<TensorSpec, TensorSpec> {
      check_matrix(a, "linalg.polar");
      check_floating_matrix(a, "linalg.polar");
      SymInt m = a.sym_size(-2), n = a.sym_size(-1);
      check(m >= n, "linalg.polar: input must have at least as many rows as columns, but got ", m, " by ", n,
            " matrices");
      return {TensorSpec(a.sym_sizes(), a.dtype(), a.device()),
              TensorSpec(matrix_sizes(batch_part(a), n, n), a.dtype(), a.device())};
    })
    .cpu<2>([](const Tensor& u, const Tensor& h, const Tensor& a) {
      auto [w, s, vh] = _linalg_svd(a, false, true);
      kernels::copy(u, w.matmul(vh));
      Tensor half = adjoint_of(vh).mul(s.unsqueeze(-2)).matmul(vh);
      kernels::copy(h, half.add(adjoint_of(half)).mul(0.5));
    })
    .gradient("A", {"grad0", "grad1", "U", "H"},
              [](const Tensor& grad_u, const Tensor& grad_h, const Tensor& u, const Tensor& h) {
                if (!grad_u.defined() && !grad_h.defined()) return Tensor();
                auto [s, v] = linalg_eigh(h);
                Tensor inner = grad_u.defined() ? adjoint_of(u).matmul(grad_u) : zeros_like(h);
                if (grad_h.defined()) inner = inner.sub(grad_h.matmul(h));
                // The turn W of U solves W H + H W = U^H dA - dA^H U, in the basis where H is diagonal.
                Tensor sums = s.unsqueeze(-1).add(s.unsqueeze(-2));
                Tensor turn = adjoint_of(v).matmul(inner).matmul(v).div(sums);
                turn = v.matmul(turn).matmul(adjoint_of(v));
                Tensor out = u.matmul(skew(turn));
                if (grad_h.defined()) out = out.add(u.matmul(grad_h));
                if (grad_u.defined() && u.sym_size(-2) != u.sym_size(-1)) {
                  Tensor outside = grad_u.sub(u.matmul(adjoint_of(u).matmul(grad_u)));
                  Tensor scaled = outside.matmul(v).div(s.unsqueeze(-2)).matmul(adjoint_of(v));
                  out = out.add(scaled);
                }
                return out;
              })
    .use(BatchInFront{});

}  // namespace
}  // namespace umbra::ops
