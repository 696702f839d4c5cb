#include "ops/linalg/linalg.h"

#include <set>

#include "core/stored_types.h"
#include "dispatch/layers.h"
#include "ops/common/batching.h"
#include "ops/common/may_read.h"
#include "ops/common/unbacked.h"
#include "umbra/core/linalg_error.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {

/// Whether PyTorch has checks for the meta device that are written in Python; composites, and some that write
/// outputs, are checked in C++.
static bool checked_in_python(const Tensor& a, const std::string& name) {
  static const std::set<std::string> kParts{"linalg.matrix_norm",  "torch.linalg.matrix_rank", "logdet",
                                            "linalg.matrix_power", "matrix_exp_backward",      "linalg.polar",
                                            "linalg.vecdot",       "linalg.vector_norm"};
  static const std::set<std::string> kOutputs{"linalg.det", "linalg.inv", "linalg.cholesky", "linalg.svd"};
  if (outputs_are_given() && kOutputs.count(name) > 0) return false;
  return (a.is_meta() || only_metadata_is_asked()) && kParts.count(name) == 0 && !name.starts_with("linalg.cond");
}

void check_matrix(const Tensor& a, const std::string& name, const char* argument) {
  bool asserts = name != "linalg.qr" && name != "linalg.svd";
  if (checked_in_python(a, name) && asserts)
    check<AssertionError>(a.dim() >= 2, name, ": The input tensor must have at least 2 dimensions, got ", a.dim());
  check(a.dim() >= 2, name, ": The input tensor ", argument, " must have at least 2 dimensions.");
}

void check_result_fits(const char* name, const Tensor& input, const Tensor& out, const char* result, DType type) {
  check(out.device() == input.device(), name, ": Expected ", result,
        " and input tensors to be on the same device, but got ", result, " on ", out.device(), " and input on ",
        input.device());
  if (type == DType::Undefined) type = input.dtype();
  check(can_cast(type, out.dtype()), name, ": Expected ", result, " to be safely castable from ", kernel_name(type),
        " dtype, but got ", result, " with dtype ", kernel_name(out.dtype()));
}

void check_square(const Tensor& a, const std::string& name, const char* argument) {
  check_matrix(a, name, argument);
  if (a.sym_size(-1) != a.sym_size(-2))
    fail(name, ": ", argument, " must be batches of square matrices, but they are ", a.sym_size(-2), " by ",
         a.sym_size(-1), " matrices");
}

void check_floating_matrix(const Tensor& a, const std::string& name, bool narrow) {
  if (checked_in_python(a, name))
    check(a.is_floating_point() || a.is_complex(), name, ": Expected a floating point or complex tensor as input. Got ",
          a.dtype());
  check<NotImplementedError>(a.is_floating_point() || a.is_complex(), name,
                             ": Expected a floating point or complex tensor as input. Got ", kernel_name(a.dtype()));
  bool low = is_reduced_floating(a.dtype()) || is_float8(a.dtype()) || a.dtype() == DType::Complex32;
  check<NotImplementedError>(narrow || !low, name, ": Low precision dtypes not supported. Got ",
                             kernel_name(a.dtype()));
}

void check_system(const Tensor& a, const Tensor& b, bool left, const std::string& name) {
  check_square(a, name);
  check_matrix(b, name, "B");
  bool fits = left ? expect_equal(a.sym_size(-2), b.sym_size(-2)) : expect_equal(a.sym_size(-1), b.sym_size(-1));
  if (!fits)
    fail(name, ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", a.sym_size(-2),
         "x", a.sym_size(-1), " and ", b.sym_size(-2), "x", b.sym_size(-1), ")");
}

void check_older_system(const Tensor& b, const Tensor& a, const std::string& name) {
  common_device({&b, &a});
  check(b.dtype() == a.dtype(), "Expected b and A to have the same dtype, but found b of type ", kernel_name(b.dtype()),
        " and A of type ", kernel_name(a.dtype()), " instead.");
  if (a.sym_size(-1) != a.sym_size(-2))
    fail("A must be batches of square matrices, but they are ", a.sym_size(-2), " by ", a.sym_size(-1), " matrices");
  if (a.sym_size(-1) != b.sym_size(-2))
    fail("Incompatible matrix sizes for ", name, ": each A matrix is ", a.sym_size(-1), " by ", a.sym_size(-1),
         " but each b matrix is ", b.sym_size(-2), " by ", b.sym_size(-1));
}

namespace {

[[noreturn]] void fail_matrix(int info, const std::string& name, const std::string& where) {
  auto mentions = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (info < 0) {
    if (mentions("svd") && info == -4)
      fail<LinAlgError>(name, where,
                        ": The algorithm failed to converge because the input matrix contained non-finite values.");
    fail(name, where, ": Argument ", -info,
         " has illegal value. Most certainly there is a bug in the implementation calling the backend library.");
  }
  if (mentions("inv"))
    fail<LinAlgError>(name, where, ": The diagonal element ", info,
                      " is zero, the inversion could not be completed because the input matrix is singular.");
  if (mentions("solve")) fail<LinAlgError>(name, where, ": The solver failed because the input matrix is singular.");
  if (mentions("cholesky"))
    fail<LinAlgError>(name, where,
                      ": The factorization could not be completed because the input is not positive-definite (the "
                      "leading minor of order ",
                      info, " is not positive-definite).");
  if (mentions("svd"))
    fail<LinAlgError>(name, where,
                      ": The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                      "repeated singular values (error code: ",
                      info, ").");
  if (mentions("eig") || mentions("syevd"))
    fail<LinAlgError>(name, where,
                      ": The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                      "repeated eigenvalues (error code: ",
                      info, ").");
  if (mentions("lstsq"))
    fail<LinAlgError>(name, where,
                      ": The least squares solution could not be computed because the input matrix does not have full "
                      "rank (error code: ",
                      info, ").");
  if (mentions("lu_factor"))
    fail(name, where, ": U[", info, ",", info,
         "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
         "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
  fail(name, ": Unknown error code: ", info, ".");
}

}  // namespace

void check_infos(const Tensor& info, const std::string& name, bool is_matrix) {
  check(info.dtype() == DType::Int32, name, ": Expected info to have type Int, but got ", kernel_name(info.dtype()));
  Tensor plain = info.contiguous();
  const int* status = plain.data<int>();
  for (int64_t i = 0, n = plain.numel(); i < n; ++i)
    if (status[i] != 0) fail_matrix(status[i], name, is_matrix ? "" : concat(": (Batch element ", i, ")"));
}

SymShape batch_part(const Tensor& a) { return SymShape(a.sym_sizes().drop_back(2)); }

SymShape matrix_sizes(SymIntArrayRef batch, SymInt rows, SymInt columns) {
  SymShape sizes(batch);
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

SymShape common_batch(const Tensor& a, const Tensor& b) { return broadcast_shapes(batch_part(a), batch_part(b)); }

TensorSpec column_major_spec(SymIntArrayRef sizes, DType dtype, Device device) {
  SymShape turned(sizes);
  size_t last = turned.size() - 1;
  std::swap(turned[last], turned[last - 1]);
  SymShape strides = contiguous_strides(turned);
  std::swap(strides[last], strides[last - 1]);
  return TensorSpec(sizes, strides, dtype, device);
}

TensorSpec absent_spec(const Tensor& like) { return TensorSpec({0}, like.dtype(), like.device()); }

TensorSpec vector_spec(const Tensor& a, SymInt length, DType dtype) {
  SymShape sizes = batch_part(a);
  sizes.push_back(length);
  return TensorSpec(sizes, dtype, a.device());
}

TensorSpec scalar_spec(const Tensor& a, DType dtype) { return TensorSpec(batch_part(a), dtype, a.device()); }

Tensor adjoint_of(const Tensor& a) { return a.transpose(-2, -1).conj(); }

Tensor diagonal_matrix(const Tensor& diagonal) {
  Tensor mask = eye(diagonal.sym_size(-1), {.dtype = DType::Bool, .device = diagonal.device()});
  return where(mask, diagonal.unsqueeze(-1), 0);
}

bool may_be_differentiated(const Tensor& a) {
  // What a mode sees is what it would see with gradients.
  return a.keys().has(DispatchKey::Level) || autograd_may_need(a) || !dispatch_state().include.empty();
}

bool is_vector_side(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sym_sizes() == a.sym_sizes().drop_back(1));
}

bool has_plain_data(const Tensor& a) {
  return (a.keys() - (DispatchKeySet(DispatchKey::CPU) | DispatchKey::Autograd)).empty() && a.storage()->has_data();
}

std::vector<int64_t> wrap_dims(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> wrapped;
  for (int64_t d : dims) wrapped.push_back(wrap_dim(d, rank));
  return wrapped;
}

namespace {

UMBRA_OPERATOR("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()")
    .real([](const Tensor& info, const std::string& name, bool is_matrix) { check_infos(info, name, is_matrix); })
    .fake([](const Tensor& info, const std::string&, bool) {
      check(info.dtype() == DType::Int32, "_linalg_check_errors: infos must be of type Int");
    })
    .not_differentiable()
    .batch([](const Batched& info, const std::string& name, bool) {
      _linalg_check_errors(batch_first(info), name, false);
    });

}  // namespace
}  // namespace umbra::ops
