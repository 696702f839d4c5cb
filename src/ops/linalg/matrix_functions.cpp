// Functions of matrices (exponential, powers, trace) and matrices made of vectors (Vandermonde, covariance).
#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/linalg/linalg.h"
#include "umbra/core/warning.h"

namespace umbra::ops {
namespace {

// ---- exponential ----

// The quotient of polynomials of degree 13 that is the exponential up to rounding for matrices of 1-norm 5.37 or less
// (N. J. Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
constexpr double kPade[] = {64764752532480000,
                            32382376266240000,
                            7771770303897600,
                            1187353796428800,
                            129060195264000,
                            10559470521600,
                            670442572800,
                            33522128640,
                            1323241920,
                            40840800,
                            960960,
                            16380,
                            182,
                            1};
constexpr double kPadeBound = 5.371920351148152;
// The same for the derivative (A. H. Al-Mohy and N. J. Higham, Computing the Frechet derivative of the matrix
// exponential, 2009).
constexpr double kDerivativeBound = 4.74;

/// The matrices [[a, g], [0, a]]. Of a function of them, the upper right block is its derivative at a along g; a
/// product takes three products of blocks where the whole would take eight.
struct Doubled {
  Tensor a, g;
};

Tensor product(const Tensor& x, const Tensor& y) { return x.matmul(y); }
Doubled product(const Doubled& x, const Doubled& y) { return {x.a.matmul(y.a), x.a.matmul(y.g).add_(x.g.matmul(y.a))}; }

/// A multiple of the identity and multiples of three matrices.
Tensor sum(double number, double first, const Tensor& x, double second, const Tensor& y, double third,
           const Tensor& z) {
  Tensor out = x.mul(first).add_(y, second).add_(z, third);
  if (number != 0) out.diagonal(0, -2, -1).add_(number);
  return out;
}
Doubled sum(double number, double first, const Doubled& x, double second, const Doubled& y, double third,
            const Doubled& z) {
  return {sum(number, first, x.a, second, y.a, third, z.a), sum(0, first, x.g, second, y.g, third, z.g)};
}

Tensor plus(const Tensor& x, const Tensor& y, double factor = 1) { return x.add(y, factor); }
Doubled plus(const Doubled& x, const Doubled& y, double factor = 1) {
  return {x.a.add(y.a, factor), x.g.add(y.g, factor)};
}

/// What times `x` gives `y`.
Tensor quotient(const Tensor& x, const Tensor& y) { return std::get<0>(linalg_solve_ex(x, y)); }
Doubled quotient(const Doubled& x, const Doubled& y) {
  auto [factors, pivots, info] = linalg_lu_factor_ex(x.a);
  Tensor a = linalg_lu_solve(factors, pivots, y.a);
  return {a, linalg_lu_solve(factors, pivots, y.g.sub(x.g.matmul(a)))};
}

template <class Matrix> Matrix pade(const Matrix& a) {
  Matrix a2 = product(a, a), a4 = product(a2, a2), a6 = product(a4, a2);
  auto half = [&](int from) {
    const double* c = kPade + from;
    Matrix high = sum(0, c[12], a6, c[10], a4, c[8], a2);
    return plus(product(a6, high), sum(c[0], c[6], a6, c[4], a4, c[2], a2));
  };
  Matrix odd = product(a, half(1)), even = half(0);
  return quotient(plus(even, odd, -1), plus(even, odd));
}

/// How often each matrix is halved until the quotient is exact enough, then squared.
Tensor halvings(const Tensor& a, double bound) {
  Tensor norm = linalg_matrix_norm(a, Scalar(1), {-2, -1});
  return norm.div(bound).log2().ceil().clamp_min(0).unsqueeze(-1).unsqueeze(-1);
}

Tensor scaled(const Tensor& x, const Tensor& factor) { return x.mul(factor); }
Doubled scaled(const Doubled& x, const Tensor& factor) { return {x.a.mul(factor), x.g.mul(factor)}; }
Tensor chosen(const Tensor& where_true, const Tensor& x, const Tensor& y) { return where(where_true, x, y); }
Doubled chosen(const Tensor& where_true, const Doubled& x, const Doubled& y) {
  return {where(where_true, x.a, y.a), where(where_true, x.g, y.g)};
}

template <class Matrix> Matrix exponential(const Matrix& a, const Tensor& count, int64_t most) {
  Matrix x = pade(most > 0 ? scaled(a, count.neg().exp2()) : a);
  for (int64_t i = 0; i < most; ++i) {
    Matrix square = product(x, x);
    x = count.numel() == 1 ? square : chosen(count.gt(i), square, x);
  }
  return x;
}

Tensor matrix_exponential(const Tensor& a) {
  Tensor count = halvings(a, kPadeBound);
  double most = count.amax().item().to_double();
  if (!std::isfinite(most)) {
    // What is not finite has no exponential; the others are not spoilt by it.
    Tensor finite = count.isfinite();
    Tensor rest = matrix_exponential(where(finite, a, zeros_like(a)));
    return where(finite, rest, std::numeric_limits<double>::quiet_NaN());
  }
  return exponential(a, count, static_cast<int64_t>(most));
}

/// Whether the matrices, which lie row after row, are [[a, g], [0, a]] and finite: the form that gradients ask for.
template <class T> bool is_doubled(const Tensor& matrices) {
  int64_t n = matrices.size(-1), half = n / 2;
  if (n % 2 != 0) return false;
  const T *from = matrices.data<T>(), *end = from + matrices.numel();
  for (; from < end; from += n * n)
    for (int64_t row = half; row < n; ++row)
      for (int64_t column = 0; column < half; ++column)
        if (from[row * n + column] != T(0) || from[row * n + half + column] != from[(row - half) * n + column])
          return false;
  return std::isfinite(matrices.abs().amax().item().to_double());
}

/// The exponential of such matrices, block by block.
void doubled_exponential(const Tensor& out, const Tensor& matrices) {
  int64_t half = matrices.size(-1) / 2;
  auto block = [&](const Tensor& t, int64_t row, int64_t column) {
    return t.narrow(-2, row * half, half).narrow(-1, column * half, half);
  };
  Doubled x{block(matrices, 0, 0).contiguous(), block(matrices, 0, 1).contiguous()};
  Tensor count = halvings(x.a, kDerivativeBound);
  x = exponential(x, count, static_cast<int64_t>(count.amax().item().to_double()));
  kernels::copy(block(out, 0, 0), x.a);
  kernels::copy(block(out, 0, 1), x.g);
  kernels::fill(block(out, 1, 0), 0);
  kernels::copy(block(out, 1, 1), x.a);
}

UMBRA_OPERATOR("linalg_matrix_exp(Tensor self) -> Tensor")
    .out("linalg_matrix_exp.out")
    .meta([](const Tensor& self) {
      check_square(self, "linalg.matrix_exp");
      check_floating_matrix(self, "linalg.matrix_exp");
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self) {
      if (self.numel() == 0) return;
      // Squaring doubles errors: half of the digits are kept for them.
      DType wide = self.is_complex() ? DType::Complex128 : DType::Float64;
      Tensor a = self.to(wide).contiguous();
      bool doubled = self.is_complex() ? is_doubled<std::complex<double>>(a) : is_doubled<double>(a);
      if (doubled) doubled_exponential(out, a);
      else kernels::copy(out, matrix_exponential(a));
    })
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return matrix_exp_backward(self, grad); })
    .use(BatchInFront{});

UMBRA_OPERATOR("matrix_exp(Tensor self) -> Tensor").composite([](const Tensor& self) {
  return linalg_matrix_exp(self);
});

// The derivative at A^H along G is the upper right block of exp([[A^H, G], [0, A^H]]), which takes no more than its
// blocks.
UMBRA_OPERATOR("matrix_exp_backward(Tensor self, Tensor grad) -> Tensor")
    .composite([](const Tensor& self, const Tensor& grad) {
      check_matrix(self, "matrix_exp_backward");
      Tensor a = adjoint_of(self);
      SymInt n = a.sym_size(-1);
      Tensor above = cat({a, grad}, -1), below = cat({zeros_like(a), a}, -1);
      return linalg_matrix_exp(cat({above, below}, -2)).narrow(-2, 0, n).narrow(-1, n, n);
    });

// ---- powers ----

/// a times b, in `out` where that is defined.
Tensor product_into(const Tensor& a, const Tensor& b, const Tensor& out) {
  return out.defined() ? matmul_out(out, a, b) : a.matmul(b);
}

/// A positive power by squaring; the last product goes to `out` where that is defined.
Tensor positive_power(const Tensor& base, uint64_t power, const Tensor& out) {
  if (power == 2) return product_into(base, base, out);
  if (power == 3) return product_into(base.matmul(base), base, out);
  Tensor result, square;
  for (; power > 0; power /= 2) {
    square = square.defined() ? square.matmul(square) : base;
    if (power % 2 == 0) continue;
    bool last = power == 1;
    if (result.defined()) result = product_into(result, square, last ? out : Tensor());
    else result = last && out.defined() ? out.copy_(square) : square;
  }
  return result;
}

Tensor identity_like(const Tensor& self) {
  return eye(self.sym_size(-2), {.dtype = self.dtype(), .device = self.device()});
}

Tensor matrix_power_parts(const Tensor& self, int64_t n) {
  check_square(self, "linalg.matrix_power");
  if (n == 0) {
    Tensor out = self.clone(MemoryFormat::Contiguous);
    return out.copy_(identity_like(self));
  }
  if (n == 1) return self.clone();
  Tensor base = n < 0 ? linalg_inv(self) : self;
  if (n == -1) return base;
  return positive_power(base, n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n), {});
}

void check_inverted_type(const Tensor& self) {
  check<NotImplementedError>(self.is_floating_point() || self.is_complex(),
                             "linalg.inv: Expected a floating point or complex tensor as input. Got ",
                             kernel_name(self.dtype()));
}

Tensor matrix_power_out_parts(const Tensor& self, int64_t n, const Tensor& given) {
  check_square(self, "linalg.matrix_power");
  check(given.is_meta() == self.is_meta(), "matrix_power: Expected result and input tensors to be on the same device, ",
        "but got result on ", given.device(), " and input on ", self.device());
  check(can_cast(self.dtype(), given.dtype()), "matrix_power: Expected result to be safely castable from ",
        kernel_name(self.dtype()), " dtype, but got result with dtype ", kernel_name(given.dtype()));
  if (n == 0) return resized_out(given, self.sym_sizes()).copy_(identity_like(self));
  if (n == 1) return resized_out(given, self.sym_sizes()).copy_(self);
  if (n < 0) check_inverted_type(self);
  check_out_dtype(self.dtype(), given.dtype());
  Tensor out = resized_out(given, self.sym_sizes());
  if (n == -1) return linalg_inv_out(out, self);
  Tensor base = n < 0 ? linalg_inv(self) : self;
  return positive_power(base, n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n), out);
}

UMBRA_OPERATOR("linalg_matrix_power(Tensor self, int n) -> Tensor")
    .out("linalg_matrix_power.out")
    .composite(matrix_power_parts)
    .use(out_parts(matrix_power_out_parts));
UMBRA_OPERATOR("matrix_power(Tensor self, int n) -> Tensor")
    .out("matrix_power.out")
    .composite(matrix_power_parts)
    .use(out_parts(matrix_power_out_parts));

UMBRA_OPERATOR("_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor")
    .out("_compute_linear_combination.out")
    .use(out_asks("_compute_linear_combination.out",
                  [](const Tensor&, const Tensor& coefficients, const Tensor&) {
                    coefficients.sym_size(0), coefficients.sym_size(1);  // too few dimensions are an IndexError
                  }))
    .meta([](const Tensor& input, const Tensor& coefficients) {
      check(input.dim() > 0 && input.sym_numel() != 0, "Empty tensor not supported");
      coefficients.sym_size(0), coefficients.sym_size(1);  // too few dimensions are an IndexError
      check(coefficients.dim() == 2 && coefficients.sym_size(1) == input.sym_size(0),
            "_compute_linear_combination: coefficients must have a column for each tensor of the input");
      // PyTorch reads the bits of one type as the other's.
      check(coefficients.dtype() == input.dtype(), "_compute_linear_combination: coefficients of type ",
            kernel_name(coefficients.dtype()), " and an input of type ", kernel_name(input.dtype()),
            " cannot be combined");
      SymShape sizes(input.sym_sizes());
      sizes[0] = coefficients.sym_size(0);
      return TensorSpec(sizes, input.dtype(), input.device());
    })
    .cpu([](const Tensor& out, const Tensor& input, const Tensor& coefficients) {
      kernels::copy(out, tensordot(coefficients.to(input.dtype()), input, {1}, {0}));
    })
    .not_differentiable()
    .use(NeedsData{});

// ---- trace and other views ----

UMBRA_OPERATOR("trace(Tensor self) -> Tensor")
    .generated_out("trace.out")
    .meta([](const Tensor& self) {
      DType from = self.dtype();
      check_kernel_type(from != DType::Bool && from != DType::Complex32 && !is_float8(from) && !is_wide_unsigned(from),
                        "trace", self);
      check(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
      DType type = is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
      return TensorSpec({}, type, self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self) { kernels::copy(out, self.diagonal().sum()); })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return trace_backward(grad, sizes); })
    .linear()
    .batch([](const Batched& self) {
      check(self.rank() == 2, "trace: expected a matrix, but got tensor with dim ", self.rank());
      return Batched(batch_first(self).diagonal(0, -2, -1).sum(IntArrayRef{-1}), 0);
    });

UMBRA_OPERATOR("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor")
    .composite([](const Tensor& grad, std::vector<SymInt> sizes) {
      check(sizes.size() == 2, "expected matrix input");
      Tensor flat = zeros({sizes[0] * sizes[1]}, grad.options());
      Scalar step(sizes[1] + 1), end(sym_min(sizes[0], sizes[1]) * (sizes[1] + 1));
      Tensor places = arange(Scalar(0), end, step, {.dtype = DType::Int64, .device = grad.device()});
      return flat.index_fill(0, places, grad).view(sizes);
    });

UMBRA_OPERATOR("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
    .composite([](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
      return a.diagonal(offset, dim1, dim2);
    });

UMBRA_OPERATOR("matrix_H(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  check(self.dim() == 2 || self.dim() == 0, "tensor.H is only supported on matrices (2-D tensors). Got ", self.dim(),
        "-D tensor.", self.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  if (self.dim() == 0) return self.is_complex() ? self.conj() : self;
  Tensor turned = self.transpose(0, 1);
  return self.is_complex() ? turned.conj() : turned;
});

// ---- Vandermonde ----

UMBRA_OPERATOR("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor")
    .composite([](const Tensor& x, std::optional<SymInt> count) {
      check<NotImplementedError>(x.dtype() != DType::Bool && !is_reduced_floating(x.dtype()),
                                 "linalg.vander supports floating point, complex, and integer tensors, but got ",
                                 kernel_name(x.dtype()));
      Tensor rows = x.dim() == 0 ? x.unsqueeze(-1) : x;
      SymInt n = count ? *count : rows.sym_size(-1);
      check(n > 1, "N must be greater than 1.");
      SymShape sizes(rows.sym_sizes()), one(rows.sym_sizes());
      sizes.push_back(n - 1);
      one.push_back(1);
      Tensor powers = rows.unsqueeze(-1).expand(sizes).cumprod(-1);
      return cat({powers.new_ones(one), powers}, -1);
    });

UMBRA_OPERATOR("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
    .composite([](const Tensor& x, std::optional<int64_t> count, bool increasing) {
      check(x.dim() == 1, "x must be a one-dimensional tensor.");
      SymInt n = count ? SymInt(*count) : x.sym_size(0);
      check(n >= 0, "N must be non-negative.");
      DType type = promote_types(x.dtype(), is_integral(x.dtype(), true) ? DType::Int64 : x.dtype());
      Tensor out = x.new_ones({x.sym_size(0), n}, {.dtype = type});
      if (n > 1) {
        Tensor powers = x.to(type).unsqueeze(1).expand({x.sym_size(0), n - 1}).cumprod(1);
        out = cat({out.narrow(1, 0, 1), powers}, 1);
      }
      return increasing ? out : out.flip(IntArrayRef{1});
    });

// ---- covariance ----

/// Whether a condition on data holds; a run without data cannot tell.
bool is_true(const Tensor& condition) { return equal(condition, condition.new_ones({}, {.dtype = DType::Bool})); }

/// A vector of weights, one for each observation.
Tensor checked_weights(const Tensor& weights, SymInt observations, const char* name, bool integral) {
  check(weights.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name, " with ",
        weights.dim(), " dimensions");
  bool fits = integral ? is_integral(weights.dtype(), false) : is_floating(weights.dtype());
  check(fits, "cov(): expected ", name, " to have ", integral ? "integral" : "floating point", " dtype but got ", name,
        " with ", kernel_name(weights.dtype()), " dtype");
  check(weights.sym_numel() == observations, "cov(): expected ", name,
        " to have the same numel as there are observations in the input but got ", weights.sym_numel(),
        " != ", observations);
  check(is_true(weights.min().ge(0)),
        integral ? "cov(): fweights cannot be negative" : "cov(): aweights cannot be negative");
  return weights;
}

UMBRA_OPERATOR("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
    .composite([](const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
      check(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", self.dim(),
            " dimensions");
      check<NotImplementedError>(self.dtype() != DType::Bool, "cov(): bool dtype is not supported for input");
      Tensor rows = self.dim() < 2 ? self.view({1, -1}) : self;
      SymInt observations = rows.sym_size(1);
      Tensor weights;
      if (fweights.defined()) weights = checked_weights(fweights, observations, "fweights", true);
      if (aweights.defined()) {
        Tensor own = checked_weights(aweights, observations, "aweights", false);
        weights = weights.defined() ? weights.mul(own) : own;
      }
      Tensor count = weights.defined()
                         ? weights.sum()
                         : scalar_tensor(Scalar(observations), {.dtype = DType::Int64, .device = self.device()});
      if (weights.defined()) check(is_true(count.ne(0)), "cov(): weights sum to zero, can't be normalized");
      Tensor mean = (weights.defined() ? rows.mul(weights) : rows).sum(IntArrayRef{1}).div(count);
      Tensor divisor = count;
      if (!weights.defined())
        divisor = scalar_tensor(Scalar(observations - correction), {.dtype = DType::Int64, .device = self.device()});
      else if (correction != 0)
        divisor = aweights.defined() ? count.sub(weights.mul(aweights).sum().mul(correction).div(count))
                                     : count.sub(correction);
      if (is_true(divisor.le(0))) {
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
        divisor = zeros_like(divisor);
      }
      Tensor centered = rows.sub(mean.unsqueeze(1));
      Tensor other = (weights.defined() ? centered.mul(weights) : centered).t().conj();
      Tensor product = centered.mm(other);
      if (self.is_complex() && rows.sym_size(0) == 1) {
        // The variance of one variable is real.
        Tensor part = real(product);
        product = complex(part, zeros_like(part));
      }
      return product.div(divisor).squeeze();
    });

UMBRA_OPERATOR("corrcoef(Tensor self) -> Tensor").composite([](const Tensor& self) {
  check(self.dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
        self.dim(), " dimensions");
  Tensor c = cov(self);
  if (c.dim() == 0) return c.div(c);
  Tensor diagonal = c.diagonal();
  Tensor deviation = (c.is_complex() ? real(diagonal) : diagonal).sqrt();
  c = c.div(deviation.view({-1, 1})).div(deviation.view({1, -1}));
  if (c.is_complex()) return complex(real(c).clip(-1, 1), imag(c).clip(-1, 1));
  return c.clip(-1, 1);
});

// ---- places in a triangle ----

/// How many places a rows by columns matrix has on and below the diagonal `offset`: some rows with one more each,
/// then whole ones.
__int128 lower_places(__int128 rows, __int128 columns, __int128 offset) {
  __int128 first = std::clamp<__int128>(-offset, 0, rows),
           whole = std::clamp<__int128>(columns - offset - 1, first, rows);
  __int128 growing = whole - first, start = first + offset + 1;
  return growing * start + growing * (growing - 1) / 2 + (rows - whole) * columns;
}

int64_t triangle_places(int64_t rows, int64_t columns, int64_t offset, bool upper) {
  __int128 all = static_cast<__int128>(rows) * columns;
  __int128 count = upper ? all - lower_places(rows, columns, static_cast<__int128>(offset) - 1)
                         : lower_places(rows, columns, offset);
  check(count <= std::numeric_limits<int64_t>::max() / 32, "a triangle of a ", rows, " by ", columns,
        " matrix has more places than a tensor can have elements");
  return static_cast<int64_t>(count);
}

TensorSpec triangle_places_spec(int64_t rows, int64_t columns, int64_t offset, bool upper, std::optional<DType> dtype,
                                std::optional<Device> device) {
  check(rows >= 0, "row must be non-negative, got", rows);
  check(columns >= 0, "col must be non-negative, got", columns);
  const char* kernel = upper ? "triu_indices" : "tril_indices";
  bool fits = !dtype || *dtype == DType::Int32 || *dtype == DType::Int64;
  bool meta = device == Device(DeviceType::Meta);
  check(fits || !meta, "\"", kernel, "\" not implemented for '", dtype.value_or(DType::Int64), "'");
  check(dtype || !meta, "\"", kernel, "\" not implemented for 'None'");
  if (!fits) kernels::unsupported_dtype(kernel, *dtype);
  return TensorSpec({2, triangle_places(rows, columns, offset, upper)}, dtype.value_or(DType::Int64),
                    device.value_or(Device()));
}

void fill_triangle_places(const Tensor& out, int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
  Tensor places = kernels::scratch({2, out.size(1)}, DType::Int64);
  int64_t *row = places.data<int64_t>(), *column = row + out.size(1);
  __int128 offset = diagonal;
  // Rows without a place are not visited: there may be any number of them.
  auto first = static_cast<int64_t>(upper ? 0 : std::clamp<__int128>(-offset, 0, rows));
  auto last = static_cast<int64_t>(upper ? std::clamp<__int128>(columns - offset, 0, rows) : rows);
  if (columns == 0) last = first;
  for (int64_t i = first; i < last; ++i) {
    auto middle = static_cast<int64_t>(std::clamp<__int128>(i + offset + (upper ? 0 : 1), 0, columns));
    for (int64_t at = upper ? middle : 0, end = upper ? columns : middle; at < end; ++at) {
      *row++ = i;
      *column++ = at;
    }
  }
  kernels::copy(out, places);
}

UMBRA_OPERATOR(
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor")
    .meta([](int64_t rows, int64_t columns, int64_t offset, std::optional<DType> dtype, std::optional<Layout>,
             std::optional<Device> device,
             std::optional<bool>) { return triangle_places_spec(rows, columns, offset, false, dtype, device); })
    .cpu([](const Tensor& out, int64_t rows, int64_t columns, int64_t offset, std::optional<DType>,
            std::optional<Layout>, std::optional<Device>,
            std::optional<bool>) { fill_triangle_places(out, rows, columns, offset, false); });
UMBRA_OPERATOR(
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor")
    .meta([](int64_t rows, int64_t columns, int64_t offset, std::optional<DType> dtype, std::optional<Layout>,
             std::optional<Device> device,
             std::optional<bool>) { return triangle_places_spec(rows, columns, offset, true, dtype, device); })
    .cpu([](const Tensor& out, int64_t rows, int64_t columns, int64_t offset, std::optional<DType>,
            std::optional<Layout>, std::optional<Device>,
            std::optional<bool>) { fill_triangle_places(out, rows, columns, offset, true); });

}  // namespace
}  // namespace umbra::ops
