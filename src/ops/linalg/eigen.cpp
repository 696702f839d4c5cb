// Eigenvalues, and functions of Hermitian matrices by them.
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

using Specs2 = std::tuple<TensorSpec, TensorSpec>;

bool is_upper(const std::string& uplo) {
  bool known = uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u";
  check(known, "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return uplo == "U" || uplo == "u";
}

/// The differences l_j - l_i, 1 on the diagonal, where nothing is divided.
Tensor differences(const Tensor& values) {
  Tensor out = values.unsqueeze(-2).sub(values.unsqueeze(-1));
  Tensor mask = eye(values.sym_size(-1), {.dtype = DType::Bool, .device = values.device()});
  return out.masked_fill(mask, 1);
}

/// An eigenvector of a complex matrix is one up to a phase: a loss that depends on the phase has no derivative.
void check_phase(const Tensor& diagonal, const char* name) {
  if (!diagonal.is_complex() || !has_plain_data(diagonal)) return;
  Tensor phase = imag(diagonal.detach().resolve_conj());
  if (phase.numel() == 0) return;
  check(
      phase.abs().amax().item().to_double() <= 2e-2, name,
      "_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified "
      "loss function depends on this quantity, so it is ill-defined.");
}

// ---- Hermitian ----

Tensor eigh_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values, const Tensor& v) {
  if (!grad_values.defined() && !grad_vectors.defined()) return {};
  if (!grad_vectors.defined()) return v.mul(grad_values.unsqueeze(-2)).matmul(adjoint_of(v));
  Tensor turn = adjoint_of(v).matmul(grad_vectors);
  check_phase(turn.diagonal(0, -2, -1), "linalg_eigh");
  Tensor mask = eye(values.sym_size(-1), {.dtype = DType::Bool, .device = values.device()});
  Tensor inner = turn.div(differences(values)).masked_fill(mask, 0);
  if (grad_values.defined()) inner = inner.add(diagonal_matrix(grad_values));
  return v.matmul(inner).matmul(adjoint_of(v));
}

UMBRA_OPERATOR(
    "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
    .out("_linalg_eigh.eigenvalues", {"eigenvalues", "eigenvectors"})
    .meta([](const Tensor& a, const std::string& uplo, bool compute_v) -> Specs2 {
      check_square(a, "linalg.eigh");
      is_upper(uplo);
      return {vector_spec(a, a.sym_size(-1), real_type(a.dtype())),
              compute_v ? column_major_spec(a.sym_sizes(), a.dtype(), a.device()) : absent_spec(a)};
    })
    .cpu<2>([](const Tensor& values, const Tensor& vectors, const Tensor& a, const std::string& uplo, bool compute_v) {
      Tensor info = empty(batch_part(a), {.dtype = DType::Int32});
      kernels::eigh(values, compute_v ? vectors : Tensor(), info, a, is_upper(uplo));
      check_infos(info, "linalg.eigh", a.dim() == 2);
    })
    .gradient("A", {"grad0", "grad1", "eigenvalues", "eigenvectors", "compute_v"},
              [](const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values, const Tensor& vectors,
                 bool compute_v) {
                check(compute_v,
                      "linalg_eigh: the derivative depends on the eigenvectors, which this call did not compute");
                return eigh_gradient(grad_values, grad_vectors, values, vectors);
              })
    .batch([](const Batched& a, const std::string& uplo, bool compute_v) {
      check(a.rank() >= 2, "linalg.eigh: The input tensor A must have at least 2 dimensions.");
      auto [values, vectors] = _linalg_eigh(batch_first(a), uplo, compute_v);
      return std::make_tuple(Batched(values, 0), compute_v ? Batched(vectors, 0) : Batched(vectors, -1));
    });

UMBRA_OPERATOR("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)")
    .out("linalg_eigh.eigvals", {"eigvals", "eigvecs"})
    .composite([](const Tensor& self, const std::string& uplo) { return _linalg_eigh(self, uplo, true); })
    .use(out_parts([](const Tensor& self, const std::string& uplo, const Tensor& values, const Tensor& vectors) {
      return _linalg_eigh_out(values, vectors, self, uplo, true);
    }));
UMBRA_OPERATOR("linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor")
    .out("linalg_eigvalsh.out")
    .composite([](const Tensor& self, const std::string& uplo) {
      return std::get<0>(_linalg_eigh(self, uplo, may_be_differentiated(self)));
    })
    .use(out_parts([](const Tensor& self, const std::string& uplo, const Tensor& out) {
      return std::get<0>(_linalg_eigh_out(out, unwanted_out(self, self.dtype()), self, uplo, false));
    }));

// ---- any square matrix ----

DType eigen_type(DType t) {
  check(is_complex(t) || is_floating(t), "Unknown Complex ScalarType for ", kernel_name(t));
  return complex_type(t);
}

void check_finite(const Tensor& a) {
  check(a.isfinite().all().item().to_bool(), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
}

Tensor eig_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values, const Tensor& v) {
  if (!grad_values.defined() && !grad_vectors.defined()) return {};
  Tensor inner;
  if (grad_vectors.defined()) {
    Tensor turn = adjoint_of(v).matmul(grad_vectors), diagonal = turn.diagonal(0, -2, -1);
    check_phase(diagonal, "linalg_eig");
    // Vectors have length 1: what would change the length is taken away.
    Tensor along = adjoint_of(v).matmul(v).mul(real(diagonal).unsqueeze(-2));
    inner = turn.sub(along).div(differences(values).conj());
    Tensor mask = eye(values.sym_size(-1), {.dtype = DType::Bool, .device = values.device()});
    inner = inner.masked_fill(mask, 0);
    if (grad_values.defined()) inner = inner.add(diagonal_matrix(grad_values));
  } else {
    inner = diagonal_matrix(grad_values);
  }
  Tensor product = inner.matmul(adjoint_of(v));
  return std::get<0>(linalg_solve_ex(adjoint_of(v), product));
}

UMBRA_OPERATOR("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)")
    .out("linalg_eig.out", {"eigenvalues", "eigenvectors"})
    .use(out_asks("linalg_eig.out",
                  [](const Tensor& self, const Tensor& values, const Tensor& vectors) {
                    check_square(self, "linalg.eig");
                    check_result_fits("torch.linalg.eig", self, values, "eigenvalues", eigen_type(self.dtype()));
                    check_result_fits("torch.linalg.eig", self, vectors, "eigenvectors", eigen_type(self.dtype()));
                  }))
    .meta([](const Tensor& self) -> Specs2 {
      check_square(self, "linalg.eig");
      DType type = eigen_type(self.dtype());
      TensorSpec vectors = column_major_spec(self.sym_sizes(), type, self.device());
      if (self.device().type != DeviceType::CPU) vectors = TensorSpec(self.sym_sizes(), type, self.device());
      return {vector_spec(self, self.sym_size(-1), type), vectors};
    })
    .cpu<2>([](const Tensor& values, const Tensor& vectors, const Tensor& self) {
      Tensor info = empty(batch_part(self), {.dtype = DType::Int32});
      check<NotImplementedError>(!is_reduced_floating(self.dtype()) && self.dtype() != DType::Complex32,
                                 "\"linalg_eig_out_cpu\" not implemented for '", kernel_name(self.dtype()), "'");
      check_finite(self);
      kernels::eig(values, vectors, info, self);
      check_infos(info, "torch.linalg.eig", self.dim() == 2);
    })
    .gradient("self", {"grad0", "grad1", "eigenvalues", "eigenvectors", "self.dtype"},
              [](const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values, const Tensor& vectors,
                 DType type) {
                Tensor out = eig_gradient(grad_values, grad_vectors, values, vectors);
                return out.defined() && !is_complex(type) ? real(out) : out;
              })
    .tags({Tag::CastsToOut})
    .use(BatchInFront{});

UMBRA_OPERATOR("_linalg_eigvals(Tensor self) -> Tensor")
    .meta([](const Tensor& self) {
      check_square(self, "linalg.eigvals");
      return vector_spec(self, self.sym_size(-1), eigen_type(self.dtype()));
    })
    .cpu([](const Tensor& values, const Tensor& self) {
      Tensor info = empty(batch_part(self), {.dtype = DType::Int32});
      check_finite(self);
      kernels::eig(values, {}, info, self);
      check_infos(info, "torch.linalg.eigvals", self.dim() == 2);
    })
    .use(BatchInFront{});

UMBRA_OPERATOR("linalg_eigvals(Tensor self) -> Tensor")
    .out("linalg_eigvals.out")
    .use(out_asks("linalg_eigvals.out",
                  [](const Tensor& self, const Tensor& out) {
                    check_square(self, "linalg.eigvals");
                    check_result_fits("torch.linalg.eigvals", self, out, "eigenvalues", eigen_type(self.dtype()));
                  }))
    .composite([](const Tensor& self) {
      check_square(self, "linalg.eigvals");
      return may_be_differentiated(self) ? std::get<0>(linalg_eig(self)) : _linalg_eigvals(self);
    });

// ---- the square root of a Hermitian matrix ----

UMBRA_OPERATOR("linalg_matrix_sqrth(Tensor self) -> Tensor")
    .out("linalg_matrix_sqrth.out")
    .meta([](const Tensor& self) {
      check_square(self, "linalg.matrix_sqrth");
      check_floating_matrix(self, "linalg.matrix_sqrth", false);
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self) {
      auto [values, v] = _linalg_eigh(self);
      // Rounding may have made a zero negative.
      kernels::copy(out, v.mul(values.clamp_min(0).sqrt().unsqueeze(-2)).matmul(adjoint_of(v)));
    })
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) {
                // X dX + dX X = dA, in the basis where X is diagonal.
                auto [values, v] = _linalg_eigh(result);
                Tensor sums = values.unsqueeze(-2).add(values.unsqueeze(-1));
                Tensor inner = adjoint_of(v).matmul(grad).matmul(v).div(sums);
                Tensor out = v.matmul(inner).matmul(adjoint_of(v));
                return out.add(adjoint_of(out)).mul(0.5);
              })
    .use(BatchInFront{});

}  // namespace
}  // namespace umbra::ops
