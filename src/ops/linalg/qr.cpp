// QR and the products of Householder reflectors behind it.
#include "kernels/concatenate.h"
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/no_derivative.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

using Specs2 = std::tuple<TensorSpec, TensorSpec>;

struct QrMode {
  bool with_q, reduced;
  explicit QrMode(const std::string& mode) : with_q(mode != "r"), reduced(mode != "complete") {
    check(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
          "' but expected one of 'reduced' (default), 'r', or 'complete'");
  }
};

/// X + X^H, each diagonal element once.
Tensor hermitian_of_upper(const Tensor& upper) {
  return upper.add(adjoint_of(upper))
      .sub(diagonal_matrix(upper.diagonal(0, -2, -1).add(upper.diagonal(0, -2, -1).conj()).mul(0.5)));
}

// Of A = Q R with as many columns as R has rows, or fewer.
Tensor square_r_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& q, const Tensor& r) {
  Tensor inner;
  if (grad_r.defined()) inner = grad_r.matmul(adjoint_of(r));
  if (grad_q.defined()) {
    Tensor part = adjoint_of(q).matmul(grad_q);
    inner = inner.defined() ? inner.sub(part) : part.neg();
  }
  Tensor outer = q.matmul(hermitian_of_upper(inner.triu()));
  if (grad_q.defined()) outer = outer.add(grad_q);
  return linalg_solve_triangular(adjoint_of(r), outer, false, false);
}

Tensor qr_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& q, const Tensor& r,
                   const std::string& mode) {
  if (!grad_q.defined() && !grad_r.defined()) return {};
  check(QrMode(mode).with_q,
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
        "mode='reduced') if you are going to differentiate through linalg.qr.");
  SymInt m = q.sym_size(-2), n = r.sym_size(-1), k = sym_min(m, n);
  check(mode != "complete" || m <= n,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  if (m >= n) return square_r_gradient(grad_q, grad_r, q, r);
  // The columns to the right of the square part, Y, give R's columns Q^H Y.
  Tensor r1 = r.narrow(-1, 0, k), grad_r1, grad_y, g = grad_q;
  if (grad_r.defined()) {
    grad_r1 = grad_r.narrow(-1, 0, k);
    Tensor grad_v = grad_r.narrow(-1, k, n - k), y = q.matmul(r.narrow(-1, k, n - k));
    Tensor through_y = y.matmul(adjoint_of(grad_v));
    g = g.defined() ? g.add(through_y) : through_y;
    grad_y = q.matmul(grad_v);
  } else {
    grad_y = g.new_zeros(matrix_sizes(batch_part(q), m, n - k));
  }
  return cat({square_r_gradient(g, grad_r1, q, r1), grad_y}, -1);
}

UMBRA_OPERATOR("linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)")
    .out("linalg_qr.out", {"Q", "R"})
    .meta([](const Tensor& a, const std::string& mode_name) -> Specs2 {
      check_matrix(a, "linalg.qr");
      check_floating_matrix(a, "linalg.qr");
      QrMode mode(mode_name);
      SymShape batch = batch_part(a);
      SymInt m = a.sym_size(-2), n = a.sym_size(-1), k = sym_min(m, n), inner = mode.reduced ? k : m;
      TensorSpec r = column_major_spec(matrix_sizes(batch, inner, n), a.dtype(), a.device());
      if (!mode.with_q) return {absent_spec(a), r};
      return {column_major_spec(matrix_sizes(batch, m, inner), a.dtype(), a.device()), r};
    })
    .cpu<2>([](const Tensor& q, const Tensor& r, const Tensor& a, const std::string& mode) {
      auto [reflectors, tau] = geqrf(a);
      kernels::triu(r, reflectors.narrow(-2, 0, r.size(-2)), 0);
      if (QrMode(mode).with_q) kernels::householder_product(q, reflectors, tau);
    })
    .gradient("A", {"grad0", "grad1", "Q", "R", "mode"}, qr_gradient)
    .use(BatchInFront{});

void check_geqrf_type(const Tensor& self) {
  check_kernel_type(is_differentiable(self.dtype()) && !is_reduced_floating(self.dtype()), "geqrf_cpu", self);
}

UMBRA_OPERATOR("geqrf(Tensor self) -> (Tensor a, Tensor tau)")
    .out("geqrf.a", {"a", "tau"})
    .use(out_asks("geqrf.a",
                  [](const Tensor& self, const Tensor& a, const Tensor& tau) {
                    check(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
                    check_result_fits("torch.geqrf", self, a, "a");
                    check_result_fits("torch.geqrf", self, tau, "tau");
                  }))
    .meta([](const Tensor& self) -> Specs2 {
      check(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
      // What is written to is looked at before the kernel.
      if (!outputs_are_given()) check_geqrf_type(self);
      SymInt k = sym_min(self.sym_size(-2), self.sym_size(-1));
      return {column_major_spec(self.sym_sizes(), self.dtype(), self.device()), vector_spec(self, k, self.dtype())};
    })
    .cpu<2>([](const Tensor& a, const Tensor& tau, const Tensor& self) {
      check_geqrf_type(self);
      kernels::geqrf(a, tau, self);
    })
    .gradient("self", {"grad0", "grad1"}, [](const Tensor&, const Tensor&) { return no_derivative("geqrf"); })
    .tags({Tag::RealGradient, Tag::CastsToOut})
    .use(BatchInFront{})
    .use(NeedsData{});

// ---- reflectors ----

void check_reflectors(const Tensor& input, const Tensor& tau) {
  const char* name = "torch.linalg.householder_product";
  check(input.dim() >= 2, name, ": input must have at least 2 dimensions.");
  check(input.sym_size(-2) >= input.sym_size(-1), name,
        ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  check(input.sym_size(-1) >= tau.sym_size(-1), name,
        ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check(input.dim() - tau.dim() == 1, name,
        ": Expected tau to have one dimension less than input, but got tau.ndim "
        "equal to ",
        tau.dim(), " and input.ndim is equal to ", input.dim());
  check(tau.sym_sizes().drop_back(1) == input.sym_sizes().drop_back(2), name,
        ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau.sym_sizes().drop_back(1));
  check(tau.dtype() == input.dtype(), name, ": tau dtype ", kernel_name(tau.dtype()), " does not match input dtype ",
        kernel_name(input.dtype()));
  common_device({&input, &tau});
}

/// The vectors of reflectors: ones on the diagonal, zeros above it.
Tensor unit_vectors(const Tensor& input, SymInt count) {
  Tensor v = input.narrow(-1, 0, count).tril(-1);
  return v.add(eye(v.sym_size(-2), count, {.dtype = v.dtype(), .device = v.device()}));
}

// The product H_1 ... H_k E, H_i = I - tau_i v_i v_i^H, differentiated reflector by reflector from the left. `basis` is
// E, `grad` the product's gradient.
std::tuple<Tensor, Tensor> reflector_gradients(const Tensor& grad, const Tensor& input, const Tensor& tau,
                                               const Tensor& basis) {
  int64_t count = tau.size(-1);
  if (count == 0) return {};
  Tensor vectors = unit_vectors(input, count);
  auto column = [&](int64_t i) { return vectors.narrow(-1, i, 1); };
  auto factor = [&](int64_t i) { return tau.narrow(-1, i, 1).unsqueeze(-1); };
  auto reflect = [&](const Tensor& t, int64_t i, bool adjoint) {
    Tensor v = column(i), f = adjoint ? factor(i).conj() : factor(i);
    return t.sub(f.mul(v).matmul(adjoint_of(v).matmul(t)));
  };
  std::vector<Tensor> behind(count + 1);  // H_{i+1} ... H_k E
  behind[count] = basis;
  for (int64_t i = count; i-- > 0;) behind[i] = reflect(behind[i + 1], i, false);
  std::vector<Tensor> grad_vectors, grad_tau;
  Tensor g = grad;
  for (int64_t i = 0; i < count; ++i) {
    Tensor v = column(i), f = factor(i);
    const Tensor& rest = behind[i + 1];
    Tensor along = g.matmul(adjoint_of(rest).matmul(v)), back = rest.matmul(adjoint_of(g).matmul(v));
    grad_tau.push_back(adjoint_of(v).matmul(along).neg().squeeze(-1));
    grad_vectors.push_back(f.conj().mul(along).add(f.mul(back)).neg());
    g = reflect(g, i, true);
  }
  Tensor all = cat(grad_vectors, -1).tril(-1);
  SymInt columns = input.sym_size(-1);
  if (columns > count)
    all = cat({all, all.new_zeros(matrix_sizes(batch_part(all), all.sym_size(-2), columns - count))}, -1);
  return {all, cat(grad_tau, -1)};
}

UMBRA_OPERATOR("linalg_householder_product(Tensor input, Tensor tau) -> Tensor")
    .out("linalg_householder_product.out")
    .use(out_asks("linalg_householder_product.out",
                  [](const Tensor& input, const Tensor& tau, const Tensor& out) {
                    check_reflectors(input, tau);
                    check_result_fits("torch.linalg.householder_product", input, out);
                  }))
    .meta([](const Tensor& input, const Tensor& tau) {
      check_reflectors(input, tau);
      return column_major_spec(input.sym_sizes(), input.dtype(), input.device());
    })
    .cpu(kernels::householder_product)
    .gradient("input, tau", {"grad", "input", "tau"},
              [](const Tensor& grad, const Tensor& input, const Tensor& tau) {
                Tensor basis =
                    eye(input.sym_size(-2), input.sym_size(-1), {.dtype = input.dtype(), .device = input.device()});
                return reflector_gradients(grad, input, tau, basis);
              })
    .tags({Tag::CastsToOut})
    .use(BatchInFront{});

UMBRA_OPERATOR("orgqr(Tensor self, Tensor input2) -> Tensor")
    .out("orgqr.out")
    .composite([](const Tensor& self, const Tensor& tau) { return linalg_householder_product(self, tau); })
    .use(out_parts([](const Tensor& self, const Tensor& tau, const Tensor& out) {
      return linalg_householder_product_out(out, self, tau);
    }));

void check_ormqr(const Tensor& input, const Tensor& tau, const Tensor& other, bool left) {
  check(input.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
  check(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
  int64_t side = left ? -2 : -1;
  check(tau.dim() > 0 || other.sym_size(side) == input.sym_size(-2), "torch.ormqr: other.shape[", side,
        "] must be equal to input.shape[-2]");
  check(other.sym_size(side) >= tau.sym_size(-1), "torch.ormqr: other.shape[", side,
        "] must be greater than or equal to tau.shape[-1]");
  check(other.sym_size(side) == input.sym_size(-2), "torch.ormqr: other.shape[", side,
        "] must be equal to input.shape[-2]");
  check(tau.sym_size(-1) == sym_min(other.sym_size(side), input.sym_size(-1)),
        "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[", side, "], input.shape[-1])");
  check(input.dim() - tau.dim() == 1,
        "torch.ormqr: Expected tau to have one dimension less than input, but got "
        "tau.ndim equal to ",
        tau.dim(), " and input.ndim is equal to ", input.dim());
  check(input.dim() == other.dim(),
        "torch.ormqr: Expected other to have the same number of dimensions as input, but "
        "got other.ndim equal to ",
        other.dim(), " and input.ndim is equal to ", input.dim());
  auto batch = input.sym_sizes().drop_back(2);
  check(tau.sym_sizes().drop_back(1) == batch,
        "torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
        tau.sym_sizes().drop_back(1));
  check(other.sym_sizes().drop_back(2) == batch,
        "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
        other.sym_sizes().drop_back(2));
  auto same_type = [&](const Tensor& t, const char* name) {
    check(t.dtype() == input.dtype(), "torch.ormqr: Expected input and ", name,
          " to have the same dtype, but input has dtype", kernel_name(input.dtype()), " and ", name, " has dtype ",
          kernel_name(t.dtype()));
  };
  same_type(tau, "tau");
  same_type(other, "other");
  common_device({&input, &tau, &other});
}

UMBRA_OPERATOR("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor")
    .out("ormqr.out")
    .meta([](const Tensor& input, const Tensor& tau, const Tensor& other, bool left, bool) {
      check_ormqr(input, tau, other, left);
      return column_major_spec(other.sym_sizes(), other.dtype(), other.device());
    })
    .cpu(kernels::ormqr)
    .gradient("self, input2", {"grad", "self", "input2", "input3", "left", "transpose"},
              [](const Tensor& grad, const Tensor& input, const Tensor& tau, const Tensor& other, bool left,
                 bool transpose) {
                Tensor grad_q = left ? grad.matmul(adjoint_of(other)) : adjoint_of(other).matmul(grad);
                if (transpose) grad_q = adjoint_of(grad_q);
                Tensor basis = eye(input.sym_size(-2), {.dtype = input.dtype(), .device = input.device()});
                return reflector_gradients(grad_q, input, tau, basis);
              })
    .gradient("input3", {"grad", "self", "input2", "left", "transpose"},
              [](const Tensor& grad, const Tensor& input, const Tensor& tau, bool left, bool transpose) {
                return ormqr(input, tau, grad, left, !transpose);
              })
    .use(BatchInFront{});

}  // namespace
}  // namespace umbra::ops
