// Least squares. Which outputs there are depends on the driver, and on the ranks that it finds.
#include "dispatch/data_dependent.h"
#include "kernels/copy.h"
#include "kernels/linear_algebra.h"
#include "ops/common/batching.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

using kernels::LeastSquaresDriver;
using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;

const char* const kName = "torch.linalg.lstsq";

LeastSquaresDriver driver_named(const std::optional<std::string>& name) {
  if (!name || *name == "gelsy") return LeastSquaresDriver::Gelsy;
  if (*name == "gels") return LeastSquaresDriver::Gels;
  if (*name == "gelsd") return LeastSquaresDriver::Gelsd;
  check(*name == "gelss", kName, ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return LeastSquaresDriver::Gelss;
}

void check_inputs(const Tensor& a, const Tensor& b) {
  check(a.dim() >= 2, kName, ": input must have at least 2 dimensions.");
  check(b.dim() >= 1, kName, ": other must have at least 1 dimension.");
  check(a.dtype() == b.dtype(), kName, ": Expected input and other to have the same dtype, but got input's dtype ",
        kernel_name(a.dtype()), " and other's dtype ", kernel_name(b.dtype()));
  int64_t more = a.dim() - b.dim();
  check(more >= 0 && more <= 1, kName,
        ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  if (is_vector_side(a, b))
    check(a.sym_size(-2) == b.sym_size(-1), kName, ": input.size(-2) should match other.size(-1)");
  else check(a.sym_size(-2) == b.sym_size(-2), kName, ": input.size(-2) should match other.size(-2)");
}

double usual_rcond(const Tensor& a) {
  DType real = real_type(a.dtype());
  check(real == DType::Float32 || real == DType::Float64,
        "This function doesn't handle types other than float and double");
  double epsilon = real == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  return epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
}

Results solve(const Tensor& a, const Tensor& b, std::optional<double> rcond, const std::optional<std::string>& name) {
  check_inputs(a, b);
  double cutoff = rcond ? *rcond : usual_rcond(a);
  LeastSquaresDriver driver = driver_named(name);
  bool vector = is_vector_side(a, b);
  Tensor sides = vector ? b.unsqueeze(-1) : b;
  SymShape batch = common_batch(a, sides);
  int64_t m = a.size(-2), n = a.size(-1), right = sides.size(-1), rows = std::max(m, n);
  // One buffer takes the right-hand sides and gives the solutions: the larger of the two.
  Tensor buffer = zeros(matrix_sizes(batch, right, rows), {.dtype = a.dtype()}).transpose(-2, -1);
  kernels::copy(buffer.narrow(-2, 0, m), sides);
  bool with_rank = driver != LeastSquaresDriver::Gels;
  bool with_spectrum = driver == LeastSquaresDriver::Gelsd || driver == LeastSquaresDriver::Gelss;
  Tensor info = empty(batch, {.dtype = DType::Int32}), rank, spectrum;
  if (with_rank) rank = empty(batch, {.dtype = DType::Int64});
  SymShape spectrum_sizes(batch);
  spectrum_sizes.push_back(std::min(m, n));
  if (with_spectrum) spectrum = empty(spectrum_sizes, {.dtype = real_type(a.dtype())});
  if (n == 0 && !with_rank) buffer.zero_();
  kernels::least_squares(buffer, rank, spectrum, info, a, cutoff, driver);
  check_infos(info, kName, a.dim() == 2);

  DType real = real_type(a.dtype());
  bool full_rank = !with_spectrum || rank.eq(n).all().item().to_bool();
  Tensor residuals = empty({0}, {.dtype = real});
  if (m > n && driver != LeastSquaresDriver::Gelsy && full_rank)
    residuals = buffer.narrow(-2, n, m - n).abs().pow(2).sum(IntArrayRef{-2});
  Tensor solution = buffer.narrow(-2, 0, n);
  return {vector ? solution.squeeze(-1) : solution, residuals, with_rank ? rank : empty({0}, {.dtype = DType::Int64}),
          with_spectrum ? spectrum : empty({0}, {.dtype = real})};
}

// X = A^+ B; the residuals' derivative with respect to X is zero, so theirs goes to A and B directly.
std::tuple<Tensor, Tensor> gradients(const Tensor& grad_x, const Tensor& grad_residuals, const Tensor& a,
                                     const Tensor& b, const Tensor& solution) {
  bool vector = is_vector_side(a, b);
  auto columns = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  Tensor sides = columns(b), x = columns(solution), grad_a, grad_b;
  if (grad_x.defined()) {
    Tensor g = columns(grad_x), p = linalg_pinv(a), ph = adjoint_of(p);
    grad_b = ph.matmul(g);
    // The pseudo-inverse's derivative with its gradient G = g B^H; products are ordered so that none is large.
    Tensor outer = g.matmul(adjoint_of(sides)), oh = adjoint_of(outer);
    Tensor first = oh.matmul(p).matmul(ph), second = ph.matmul(p.matmul(oh));
    grad_a = ph.matmul(outer).matmul(ph).neg();
    grad_a = grad_a.add(first.sub(a.matmul(p.matmul(first))));
    grad_a = grad_a.add(second.sub(second.matmul(p).matmul(a)));
  }
  if (grad_residuals.defined() && grad_residuals.sym_numel() != 0) {
    Tensor error = a.matmul(x).sub(sides).mul(grad_residuals.unsqueeze(-2)).mul(2);
    Tensor part = error.matmul(adjoint_of(x));
    grad_a = grad_a.defined() ? grad_a.add(part) : part;
    grad_b = grad_b.defined() ? grad_b.sub(error) : error.neg();
  }
  if (!grad_a.defined()) return {};
  Tensor shaped = vector ? grad_b.squeeze(-1) : grad_b;
  return {ops::sum_to_size(grad_a, a.sym_sizes()), ops::sum_to_size(shaped, b.sym_sizes())};
}

UMBRA_OPERATOR(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, Tensor rank, Tensor singular_values)")
    .out("linalg_lstsq.out", {"solution", "residuals", "rank", "singular_values"})
    .use(out_asks("linalg_lstsq.out",
                  [](const Tensor& a, const Tensor& b, std::optional<double>, const std::optional<std::string>&,
                     const Tensor& solution, const Tensor& residuals, const Tensor&, const Tensor& singular_values) {
                    check_inputs(a, b);
                    check_result_fits("torch.linalg.lstsq", a, solution, "solution");
                    check_result_fits("torch.linalg.lstsq", a, residuals, "residuals", real_type(a.dtype()));
                    check_result_fits("torch.linalg.lstsq", a, singular_values, "singular_values",
                                      real_type(a.dtype()));
                  }))
    .real(solve)
    .fake([](const Tensor& a, const Tensor& b, std::optional<double>, const std::optional<std::string>&) -> Results {
      check_inputs(a, b);
      unknown_size("aten::linalg_lstsq", a.sym_size(-1));
      fail<UnsupportedOperatorException>("aten::linalg_lstsq");
    })
    .gradient("self, b", {"grad0", "grad1", "self", "b", "solution"}, gradients)
    .differentiable_outputs({true, true, false, false})
    .tags({Tag::DynamicOutputShape, Tag::CastsToOut})
    .use(BatchOneByOne{})
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
