// LU, Cholesky, LDL and triangular systems.
#include "kernels/linear_algebra.h"

#include <cblas.h>

#include <algorithm>
#include <vector>

#include "kernels/batched_matrices.h"
#include "kernels/blas.h"
#include "kernels/lanes.h"
#include "kernels/lapack.h"
#include "kernels/symmetric_factor.h"
#include "kernels/vector/triangle.h"

namespace umbra::kernels {
namespace {

double cube(double n) { return n * n * n; }

/// The transposed view of matrices.
Tensor transposed(const Tensor& t) {
  SymShape sizes(t.sym_sizes()), strides(t.sym_strides());
  size_t last = sizes.size() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

/// A copy of int32 vectors, broadcast to the batch sizes, for LAPACK.
Tensor pivots_copy(const Tensor& pivots, IntArrayRef batch) {
  std::vector<int64_t> sizes(batch.begin(), batch.end());
  sizes.push_back(pivots.size(-1));
  Tensor out = scratch(sizes, DType::Int32);
  copy(out, pivots);
  return out;
}

/// Writes zeros to what the factorisation left of the input on one side of the diagonal.
template <class T> void clear_triangle(T* a, int n, bool below) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t from = below ? j + 1 : 0, to = below ? n : j;
    for (int64_t i = from; i < to; ++i) a[j * n + i] = T(0);
  }
}

template <class T> void conjugate(T* data, int64_t n) {
  if constexpr (!std::is_same_v<T, Real<T>>)
    for (int64_t i = 0; i < n; ++i) data[i] = std::conj(data[i]);
}

/// The other triangle of a Hermitian matrix, tile by tile: one of the two is read or written across.
template <class T> void mirror_triangle(T* a, int64_t n, bool upper) {
  constexpr int64_t kTile = 16;
  for (int64_t first_column = 0; first_column < n; first_column += kTile)
    for (int64_t first_row = first_column; first_row < n; first_row += kTile)
      for (int64_t column = first_column; column < std::min(n, first_column + kTile); ++column)
        for (int64_t row = std::max(first_row, column + 1); row < std::min(n, first_row + kTile); ++row) {
          T &low = a[column * n + row], &high = a[row * n + column];
          if (upper) conjugate(&(low = high), 1);
          else conjugate(&(high = low), 1);
        }
}

template <class T> void exchange_rows(T* x, int columns, int64_t leading, const int* pivots, int count) {
  for (int64_t j = 0; j < columns; ++j)
    for (int i = 0; i < count; ++i) std::swap(x[j * leading + i], x[j * leading + pivots[i] - 1]);
}

void check_pivots(const int* pivots, int n, int rows) {
  auto [least, most] = std::minmax_element(pivots, pivots + n);
  const char* why = n == 0         ? nullptr
                    : *least < 1   ? "greater or equal to 1"
                    : *most > rows ? "smaller or equal to LU.size(-2)"
                                   : nullptr;
  if (why) fail("Pivots given to lu_solve must all be ", why, ". Did you properly pass the result of lu_factor?");
}

template <class T>
void trsm(bool left, bool upper, Form form, bool unit, int rows, int columns, const T* a, int a_leading, T* b,
          int b_leading) {
  CBLAS_TRANSPOSE op = form == Form::Plain ? CblasNoTrans : form == Form::Transposed ? CblasTrans : CblasConjTrans;
  auto call = [&](auto function, auto one) {
    function(CblasColMajor, left ? CblasLeft : CblasRight, upper ? CblasUpper : CblasLower, op,
             unit ? CblasUnit : CblasNonUnit, rows, columns, one, a, a_leading, b, b_leading);
  };
  T one(1);
  if constexpr (std::is_same_v<T, float>) call(cblas_strsm, one);
  else if constexpr (std::is_same_v<T, double>) call(cblas_dtrsm, one);
  else if constexpr (std::is_same_v<T, std::complex<float>>) call(cblas_ctrsm, &one);
  else call(cblas_ztrsm, &one);
}

// Up to so many columns BLAS solves small triangles in less time than it takes to invert them.
constexpr int kFewColumns = 16;

template <class T> bool all_finite(const T* x, int64_t count) {
  return sum_lanes<T>(count, [&](int64_t i) { return x[i] * T(0); }) == T(0);
}

/// The same from the left by halves: most of the work is then a product of matrices, which BLAS does in half the time.
/// op(A) is A or its transpose. Of many columns the small triangles on the diagonal are inverted and multiplied, too,
/// where numbers that are not finite cannot spread by that.
template <class T> class TriangleByHalves {
 public:
  TriangleByHalves(bool upper, Form form, bool unit, int columns, const T* a, int64_t a_leading, T* b, int b_leading)
      : upper_(upper),
        turned_(form != Form::Plain),
        unit_(unit),
        form_(form),
        columns_(columns),
        a_(a),
        a_leading_(a_leading),
        b_(b),
        b_leading_(b_leading) {}

  void run(int n) {
    inverts_ = columns_ > kFewColumns && std::is_same_v<T, Real<T>>;
    for (int j = 0; inverts_ && j < columns_; ++j) inverts_ = all_finite(b_ + j * b_leading_, n);
    if (inverts_) {
      inverse_.resize(kTriangle * kTriangle);
      rows_.resize(int64_t{kTriangle} * columns_);
    }
    solve(0, n);
  }

 private:
  void solve(int first, int n) {
    if (n <= kTriangle) return solve_small(first, n);
    int half = (n / 2 + kTriangle - 1) / kTriangle * kTriangle, middle = first + half, rest = n - half;
    if (upper_ == turned_) {
      solve(first, half);
      multiply(rest, half, T(-1), {at(middle, first), turned_, a_leading_}, {b_ + first, false, b_leading_}, T(1),
               b_ + middle);
      solve(middle, rest);
    } else {
      solve(middle, rest);
      multiply(half, rest, T(-1), {at(first, middle), turned_, a_leading_}, {b_ + middle, false, b_leading_}, T(1),
               b_ + first);
      solve(first, half);
    }
  }
  void solve_small(int first, int n) {
    T* b = b_ + first;
    if constexpr (std::is_same_v<T, Real<T>>) {
      if (inverts_) {
        UMBRA_VECTOR(invert_small_triangle)
        (std::is_same_v<T, double>, upper_, unit_, n, at(first, first), a_leading_, inverse_.data());
        if (all_finite(inverse_.data(), int64_t{n} * kTriangle)) {
          for (int64_t j = 0; j < columns_; ++j) std::copy_n(b + j * b_leading_, n, rows_.data() + j * n);
          return multiply(n, n, T(1), {inverse_.data(), !turned_, kTriangle}, {rows_.data(), false, n}, T(0), b);
        }
      }
    }
    trsm(true, upper_, form_, unit_, n, columns_, at(first, first), static_cast<int>(a_leading_), b,
         static_cast<int>(b_leading_));
  }
  // Row after row, what lies there is the transposed matrices.
  void multiply(int rows, int inner, T factor, blas::Matrix<const T> left, blas::Matrix<const T> right, T kept,
                T* out) const {
    blas::gemm<T>(columns_, rows, inner, factor, right, left, kept, out, b_leading_);
  }
  const T* at(int row, int column) const {
    return a_ + (turned_ ? column + row * a_leading_ : row + column * a_leading_);
  }

  bool upper_, turned_, unit_, inverts_ = false;
  Form form_;
  int columns_;
  const T* a_;
  int64_t a_leading_;
  T* b_;
  int64_t b_leading_;
  std::vector<T> inverse_, rows_;
};

/// Calls `solve(from, to)` for columns that do not depend on one another, as many parts as there are threads where so
/// many multiplications are worth it.
template <class Fn> void share_columns(int columns, double multiplications, const Fn& solve) {
  constexpr double kWorth = 1 << 20;  // of a part
  auto parts = std::max<int64_t>(1, static_cast<int64_t>(std::min<double>(num_threads(), multiplications / kWorth)));
  parallel_for(0, columns, columns / parts,
               [&](int64_t from, int64_t to) { solve(static_cast<int>(from), static_cast<int>(to - from)); });
}

}  // namespace

// ---- LU ----

namespace {

/// The first NaN on the diagonal of a factor, or `count`. Libraries differ in what they make of the elements that a NaN
/// would reach: some leave numbers there.
template <class T> int first_nan(const T* matrix, int count, int leading) {
  int j = 0;
  while (j < count && matrix[int64_t{j} * leading + j] == matrix[int64_t{j} * leading + j]) ++j;
  return j;
}

/// What is divided by a pivot that is NaN, or subtracted from by way of it, is NaN, and so no pivot after it is zero.
template <class T> void spread_nan(T* lu, int rows, int columns, int leading, int* status) {
  int from = first_nan(lu, std::min(rows, columns), leading);
  for (int c = from; c < columns; ++c)
    for (int r = from + 1; r < rows; ++r) lu[int64_t{c} * leading + r] = lu[int64_t{from} * leading + from];
  if (*status > from) *status = 0;
}

/// What getrf does for a real matrix, by halves of its columns.
template <class T> int factor_by_halves(int rows, int columns, T* a, int leading, int* pivots) {
  constexpr int kSmall = 64;  // up to here LAPACK is as fast
  const int left = std::min(rows, columns) / 2 / kTriangle * kTriangle, right = columns - left, below = rows - left;
  if (!std::is_same_v<T, Real<T>> || left == 0 || std::min(rows, columns) <= kSmall)
    return lapack::getrf<T>(rows, columns, a, leading, pivots);
  int info = factor_by_halves(rows, left, a, leading, pivots);
  T *beside = a + int64_t{left} * leading, *rest = beside + left;
  share_columns(right, 1.0 * right * left * (below + left / 2), [&](int64_t from, int columns) {
    T* part = beside + from * leading;
    exchange_rows(part, columns, leading, pivots, left);
    TriangleByHalves<T>(false, Form::Plain, true, columns, a, leading, part, leading).run(left);
    blas::gemm<T>(columns, below, left, T(-1), {part, false, leading}, {a + left, false, leading}, T(1), part + left,
                  leading);
  });
  int of_rest = factor_by_halves(below, right, rest, leading, pivots + left);
  exchange_rows(a + left, left, leading, pivots + left, std::min(below, right));
  for (int i = left; i < std::min(rows, columns); ++i) pivots[i] += left;
  return info != 0 ? info : of_rest != 0 ? of_rest + left : 0;
}

}  // namespace

void lu_factor(const Tensor& lu, const Tensor& pivots, const Tensor& info, const Tensor& a) {
  fill(info, 0);
  if (a.numel() == 0) return;  // of any type
  visit<LapackTypes>(a.dtype(), "lu_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(lu, a);
    MatrixStack<T> m(lu);
    int k = std::min(m.rows, m.columns);
    int *pivot = pivots.data<int>(), *status = info.data<int>();
    each_matrix(m.count, cube(k), [&](int64_t i) {
      status[i] = factor_by_halves(m.rows, m.columns, m[i], m.leading(), pivot + i * k);
      if (k > 0) spread_nan(m[i], m.rows, m.columns, m.leading(), &status[i]);
    });
  });
}

void lu_solve(const Tensor& out, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  if (out.numel() == 0) return;
  visit<LapackTypes>(b.dtype(), "linalg_lu_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool complex = !std::is_same_v<T, Real<T>>;
    copy(out, b);
    // A row-major solution of X A = B is the solution of the transposed equation, column-major.
    MatrixStack<T> x(left ? out : transposed(out));
    Tensor factors = column_major_copy(lu, batch_of(out)), exchanges = pivots_copy(pivots, batch_of(out));
    MatrixStack<T> m(factors);
    const int* pivot = exchanges.data<int>();
    char form = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
    bool conjugated = complex && !left && adjoint;
    bool by_halves = !complex && form == 'N' && x.columns > kFewColumns && m.rows >= kTriangle;
    each_matrix(x.count, cube(m.rows), [&](int64_t i) {
      check_pivots(pivot + i * m.rows, m.rows, m.rows);
      int64_t n = static_cast<int64_t>(x.rows) * x.columns;
      if (conjugated) conjugate(x[i], n);
      if (by_halves) {
        return share_columns(x.columns, 1.0 * m.rows * m.rows * x.columns, [&](int64_t from, int columns) {
          T* part = x[i] + from * x.leading();
          exchange_rows(part, columns, x.leading(), pivot + i * m.rows, m.rows);
          for (bool upper : {false, true})
            TriangleByHalves<T>(upper, Form::Plain, !upper, columns, m[i], m.leading(), part, x.leading()).run(m.rows);
        });
      }
      lapack::getrs<T>(form, m.rows, x.columns, m[i], m.leading(), pivot + i * m.rows, x[i], x.leading());
      if (conjugated) conjugate(x[i], n);
    });
  });
}

namespace {

/// The order of rows that the exchanges make: row i of the factored matrix is row order[i] of the original.
std::vector<int64_t> exchanged_rows(const int* pivots, int64_t count, int64_t rows) {
  std::vector<int64_t> order(rows);
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < count; ++i) {
    check(pivots[i] >= 1 && pivots[i] <= rows,
          "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
          "lu_factor?");
    std::swap(order[i], order[pivots[i] - 1]);
  }
  return order;
}

template <class T> void unpack_one(T* l, T* u, const T* lu, int64_t m, int64_t n) {
  int64_t k = std::min(m, n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j) l[i * k + j] = i == j ? T(1) : i > j ? lu[j * m + i] : T(0);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) u[i * n + j] = i <= j ? lu[j * m + i] : T(0);
}

}  // namespace

void lu_unpack(const Tensor& p, const Tensor& l, const Tensor& u, const Tensor& lu, const Tensor& pivots) {
  visit<AllTypes>(lu.dtype(), "lu_unpack_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t count = matrix_count(lu), m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
    if (l.defined()) {
      Tensor factors = column_major_copy(lu, batch_of(lu));
      parallel_for(0, count, 1 + kGrain / (m * n + 1), [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i)
          unpack_one(l.data<T>() + i * m * k, u.data<T>() + i * k * n, factors.data<T>() + i * m * n, m, n);
      });
    }
    if (!p.defined()) return;
    Tensor exchanges = contiguous(pivots);
    fill(p, 0);
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> order = exchanged_rows(exchanges.data<int>() + i * k, k, m);
      T* matrix = p.data<T>() + i * m * m;
      for (int64_t row = 0; row < m; ++row) matrix[order[row] * m + row] = T(1);
    }
  });
}

namespace {

/// -1 for an odd number of exchanges.
int exchange_sign(const int* pivots, int n) {
  bool odd = false;
  for (int i = 0; i < n; ++i) odd ^= pivots[i] != i + 1;
  return odd ? -1 : 1;
}

/// Calls `fn(matrix number, sign of the exchanges, matrix)`, the matrices n by n and column-major.
template <class T, class Fn> void each_lu(const Tensor& lu, const Tensor& pivots, const Fn& fn) {
  int64_t count = matrix_count(lu), n = lu.size(-1);
  parallel_for(0, count, 1 + kGrain / (n + 1), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      fn(i, exchange_sign(pivots.data<int>() + i * n, static_cast<int>(n)), lu.data<T>() + i * n * n);
  });
}

}  // namespace

void determinant(const Tensor& out, const Tensor& lu, const Tensor& pivots) {
  if (lu.numel() == 0) return fill(out, 1);
  visit<LapackTypes>(lu.dtype(), "linalg_det", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = lu.size(-1);
    each_lu<T>(lu, pivots, [&](int64_t i, int sign, const T* matrix) {
      T product(static_cast<Real<T>>(sign));
      for (int64_t j = 0; j < n; ++j) product *= matrix[j * (n + 1)];
      out.data<T>()[i] = product;
    });
  });
}

void log_determinant(const Tensor& sign, const Tensor& logarithm, const Tensor& lu, const Tensor& pivots) {
  visit<LapackTypes>(lu.dtype(), "linalg_slogdet", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = lu.size(-1);
    each_lu<T>(lu, pivots, [&](int64_t i, int exchanges, const T* matrix) {
      T direction(static_cast<Real<T>>(exchanges));
      Real<T> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        T element = matrix[j * (n + 1)];
        Real<T> size = std::abs(element);
        direction *= size == 0 ? T(0) : element / size;
        sum += std::log(size);
      }
      sign.data<T>()[i] = direction;
      logarithm.data<Real<T>>()[i] = sum;
    });
  });
}

// ---- Cholesky ----

void cholesky(const Tensor& out, const Tensor& info, const Tensor& a, bool upper) {
  fill(info, 0);
  if (a.numel() == 0) return;
  visit<LapackTypes>(a.dtype(), "linalg_cholesky_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, a);
    MatrixStack<T> m(out);
    int* status = info.data<int>();
    each_matrix(m.count, cube(m.rows), [&](int64_t i) {
      status[i] = lapack::potrf<T>(upper ? 'U' : 'L', m.rows, m[i], m.leading());
      int nan = status[i] == 0 ? first_nan(m[i], m.rows, m.leading()) : m.rows;
      if (nan < m.rows) status[i] = nan + 1;
      clear_triangle(m[i], m.rows, upper);
    });
  });
}

void cholesky_solve(const Tensor& out, const Tensor& b, const Tensor& factor, bool upper) {
  visit<LapackTypes>(b.dtype(), "cholesky_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, b);
    MatrixStack<T> x(out);
    Tensor factors = column_major_copy(factor, batch_of(out));
    MatrixStack<T> m(factors);
    each_matrix(x.count, cube(m.rows), [&](int64_t i) {
      if (!std::is_same_v<T, Real<T>> || x.columns <= kFewColumns || m.rows < kTriangle) {
        lapack::potrs<T>(upper ? 'U' : 'L', m.rows, x.columns, m[i], m.leading(), x[i], x.leading());
        return;
      }
      for (Form form : {upper ? Form::Transposed : Form::Plain, upper ? Form::Plain : Form::Transposed})
        TriangleByHalves<T>(upper, form, false, x.columns, m[i], m.leading(), x[i], x.leading()).run(m.rows);
    });
  });
}

// ---- triangular systems ----

void triangular_solve(const Tensor& out, const Tensor& a, const Tensor& b, bool upper, bool left, Form form,
                      bool unit_diagonal) {
  visit<LapackTypes>(b.dtype(), "triangular_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, b);
    MatrixStack<T> x(out);
    // What lies row after row is the transposed matrix column after column, and needs no copy.
    bool by_rows = a.is_contiguous() && batch_of(a) == batch_of(out) && form != Form::Adjoint;
    Tensor triangles = by_rows ? a : column_major_copy(a, batch_of(out));
    MatrixStack<T> m(triangles);
    bool is_upper = upper != by_rows;
    Form taken = !by_rows ? form : form == Form::Plain ? Form::Transposed : Form::Plain;
    constexpr int kManyRows = 64;
    bool few = x.columns <= kFewColumns,
         worth = few ? x.rows > kManyRows : std::is_same_v<T, Real<T>> && x.rows >= kTriangle;
    bool by_halves = left && worth && taken != Form::Adjoint;
    each_matrix(x.count, static_cast<double>(m.rows) * x.rows * x.columns, [&](int64_t i) {
      if (by_halves)
        share_columns(x.columns, 0.5 * x.rows * x.rows * x.columns, [&](int64_t from, int columns) {
          T* part = x[i] + from * x.leading();
          TriangleByHalves<T>(is_upper, taken, unit_diagonal, columns, m[i], m.leading(), part, x.leading())
              .run(x.rows);
        });
      else trsm(left, is_upper, taken, unit_diagonal, x.rows, x.columns, m[i], m.leading(), x[i], x.leading());
    });
  });
}

// ---- inverses of what Cholesky factored ----

namespace {

/// The number of the first zero on the diagonal, counted from 1; 0 where there is none.
template <class T> int first_zero(const T* matrix, int n, int leading) {
  for (int j = 0; j < n; ++j)
    if (matrix[int64_t{j} * leading + j] == T(0)) return j + 1;
  return 0;
}

/// The inverse of a triangle in its place, by halves: most of it is systems of many columns, where LAPACK takes column
/// after column of blocks as wide as these are.
template <class T> void invert_triangle(bool upper, int n, T* a, int leading) {
  constexpr int kSmall = 32;
  if (n <= kSmall) {
    lapack::trtri<T>(upper ? 'U' : 'L', 'N', n, a, leading);
    return;
  }
  int half = n / 2, rest = n - half, rows = upper ? half : rest, columns = upper ? rest : half;
  T *last = a + static_cast<int64_t>(half) * leading + half, *left = upper ? a : last, *right = upper ? last : a;
  T* beside = upper ? a + static_cast<int64_t>(half) * leading : a + half;
  trsm(true, upper, Form::Plain, false, rows, columns, left, leading, beside, leading);
  trsm(false, upper, Form::Plain, false, rows, columns, right, leading, beside, leading);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) beside[j * leading + i] = -beside[j * leading + i];
  invert_triangle(upper, half, a, leading);
  invert_triangle(upper, rest, last, leading);
}

}  // namespace

void cholesky_inverse(const Tensor& out, const Tensor& info, const Tensor& factor, bool upper) {
  fill(info, 0);
  visit<LapackTypes>(factor.dtype(), "cholesky_inverse_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, factor);
    MatrixStack<T> m(out);
    int* status = info.data<int>();
    int64_t n = m.rows;
    each_matrix(m.count, cube(m.rows), [&](int64_t i) {
      T* a = m[i];
      status[i] = first_zero(a, m.rows, m.leading());
      if (status[i] == 0) {
        invert_triangle(upper, m.rows, a, m.leading());
        lapack::lauum<T>(upper ? 'U' : 'L', m.rows, a, m.leading());
      }
      mirror_triangle(a, n, upper);  // that was one half of the Hermitian result
    });
  });
}

// ---- LDL ----

namespace {

template <class T> int ldl_one(T* a, int n, int leading, int* pivots, bool hermitian) {
  constexpr int kUnblocked = 64;  // up to here LAPACK takes column after column, too
  if constexpr (std::is_same_v<T, Real<T>>)
    if (n <= kUnblocked) return SymmetricFactor<T>(a, n).run(pivots);
  return hermitian ? lapack::hetrf<T>('L', n, a, leading, pivots) : lapack::sytrf<T>('L', n, a, leading, pivots);
}

}  // namespace

void ldl_factor(const Tensor& ld, const Tensor& pivots, const Tensor& info, const Tensor& a, bool hermitian) {
  fill(info, 0);
  if (a.numel() == 0) return;
  visit<LapackTypes>(a.dtype(), "ldl_factor_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(ld, a);
    MatrixStack<T> m(ld);
    int *pivot = pivots.data<int>(), *status = info.data<int>();
    each_matrix(m.count, cube(m.rows), [&](int64_t i) {
      status[i] = ldl_one(m[i], m.rows, m.leading(), pivot + i * m.rows, hermitian);
      clear_triangle(m[i], m.rows, false);
    });
  });
}

void ldl_solve(const Tensor& out, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  if (out.numel() == 0) return;
  visit<LapackTypes>(b.dtype(), "ldl_solve_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, b);
    MatrixStack<T> x(out);
    Tensor factors = column_major_copy(ld, batch_of(out)), exchanges = pivots_copy(pivots, batch_of(out));
    MatrixStack<T> m(factors);
    const int* pivot = exchanges.data<int>();
    each_matrix(x.count, cube(m.rows), [&](int64_t i) {
      const int* p = pivot + i * m.rows;
      for (int j = 0; j < m.rows; ++j)
        check(p[j] != 0 && std::abs(p[j]) <= m.rows, "torch.linalg.ldl_solve: pivots are not those of a factorisation");
      if (hermitian) lapack::hetrs<T>('L', m.rows, x.columns, m[i], m.leading(), p, x[i], x.leading());
      else lapack::sytrs<T>('L', m.rows, x.columns, m[i], m.leading(), p, x[i], x.leading());
    });
  });
}

}  // namespace umbra::kernels
