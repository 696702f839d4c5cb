// Eigenvalues, singular values, least squares.
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/batched_matrices.h"
#include "kernels/copy.h"
#include "kernels/lanes.h"
#include "kernels/lapack.h"
#include "kernels/linear_algebra.h"
#include "kernels/tridiagonal.h"

namespace umbra::kernels {
namespace {

double cube(double n) { return n * n * n; }

// ---- eigenvalues ----

/// Whether LAPACK would take the matrix as it is: not scaled first, and nothing in it that is not a number.
template <class T> bool needs_no_scaling(const T* a, int n) {
  const T least = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  const T lower = std::sqrt(least), upper = std::sqrt(1 / least);
  const int64_t count = int64_t{n} * n;
  // NaN where one is there, or an infinite one.
  if (sum_lanes<T>(count, [&](int64_t i) { return a[i] * 0; }) != 0) return false;
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::abs(a[i]) > largest ? std::abs(a[i]) : largest;
  return largest > 2 * lower && largest < upper / 2;
}

template <class T>
int reduce_to_tridiagonal(char triangle, int n, T* a, T* diagonal, T* beside, T* scales, std::span<T> work) {
  constexpr int kUnblocked = 128;  // larger ones gain by products of matrices
  if constexpr (std::is_same_v<T, float>) {
    if (triangle == 'L' && n <= kUnblocked) {
      Tridiagonal(a, n).run(diagonal, beside, scales);
      return 0;
    }
  }
  return lapack::sytrd_work<T>(triangle, n, a, n, diagonal, beside, scales, work.data(), static_cast<int>(work.size()));
}

/// What heevd does for the vectors of one real matrix, step by step. The last step is shared out: the vectors of the
/// tridiagonal matrix are reflected each by itself.
template <class T> int symmetric_vectors(char triangle, int n, T* a, T* values) {
  constexpr int kBlock = 64;    // LAPACK's blocks are no larger
  constexpr int kShared = 128;  // the vectors of smaller ones are turned before another thread has begun
  std::vector<T> beside(n), scales(n);
  const int64_t square = int64_t{n} * n;
  // Memory that is kept for reuse: fresh pages would cost a tenth of the whole.
  Tensor memory = scratch({square + std::max<int64_t>(int64_t{kBlock} * n, 1 + 4 * int64_t{n} + square)}, dtype_of<T>);
  T* vectors = memory.data<T>();
  std::span<T> work(vectors + square, static_cast<size_t>(memory.numel() - square));
  std::vector<int> places(3 + 5 * static_cast<size_t>(n));
  int info = reduce_to_tridiagonal(triangle, n, a, values, beside.data(), scales.data(), work);
  if (info == 0)
    info = lapack::stedc_work<T>('I', n, values, beside.data(), vectors, n, work.data(), static_cast<int>(work.size()),
                                 places.data(), static_cast<int>(places.size()));
  if (info != 0) return info;
  int64_t grain = n < kShared ? n : (n + num_threads() - 1) / num_threads();
  parallel_for(0, n, grain, [&](int64_t from, int64_t to) {
    std::vector<T> own(static_cast<size_t>(kBlock) * (to - from) + kBlock * (kBlock + 1));
    lapack::ormtr_work<T>('L', triangle, 'N', n, static_cast<int>(to - from), a, n, scales.data(), vectors + from * n,
                          n, own.data(), static_cast<int>(own.size()));
  });
  std::copy_n(vectors, square, a);
  return 0;
}

}  // namespace

void eigh(const Tensor& values, const Tensor& vectors, const Tensor& info, const Tensor& a, bool upper) {
  fill(info, 0);
  if (a.numel() == 0) return;  // of any type
  visit<LapackTypes>(a.dtype(), "linalg_eigh_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    bool wanted = vectors.defined();
    Tensor work = wanted ? vectors : column_major_scratch(batch_of(a), a.size(-2), a.size(-1), a.dtype());
    copy(work, a);
    MatrixStack<T> m(work);
    auto* w = values.data<Real<T>>();
    int* status = info.data<int>();
    constexpr int kFewRows = 16;
    each_matrix(m.count, 4 * cube(m.rows), [&](int64_t i) {
      if constexpr (std::is_same_v<T, Real<T>>)
        if (wanted && m.rows >= kFewRows && needs_no_scaling(m[i], m.rows)) {
          status[i] = symmetric_vectors(upper ? 'U' : 'L', m.rows, m[i], w + i * m.rows);
          return;
        }
      status[i] = lapack::heevd<T>(wanted ? 'V' : 'N', upper ? 'U' : 'L', m.rows, m[i], m.leading(), w + i * m.rows);
    });
  });
}

namespace {

template <class T> int eig_one(T* a, int n, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors) {
  using Complex = std::complex<Real<T>>;
  char job = vectors ? 'V' : 'N';
  T none;
  int leading = std::max(n, 1);
  if constexpr (std::is_same_v<T, Complex>) {
    return lapack::choose<T>(LAPACKE_cgeev, LAPACKE_zgeev, LAPACKE_cgeev, LAPACKE_zgeev)(
        LAPACK_COL_MAJOR, 'N', job, n, a, leading, values, &none, 1, vectors ? vectors : &none, leading);
  } else {
    // Of a real matrix LAPACK gives real and imaginary parts apart, and a conjugate pair's vectors as one of each.
    std::vector<T> real(n), imaginary(n), right(vectors ? static_cast<size_t>(n) * n : 1);
    int info = lapack::choose<T>(LAPACKE_sgeev, LAPACKE_dgeev, LAPACKE_sgeev, LAPACKE_dgeev)(
        LAPACK_COL_MAJOR, 'N', job, n, a, leading, real.data(), imaginary.data(), &none, 1, right.data(), leading);
    for (int j = 0; j < n; ++j) values[j] = Complex(real[j], imaginary[j]);
    if (!vectors) return info;
    for (int64_t j = 0; j < n; ++j) {
      const T *first = right.data() + j * n, *second = first + n;
      bool pair = imaginary[j] != 0 && j + 1 < n;
      for (int64_t i = 0; i < n; ++i) {
        vectors[j * n + i] = pair ? Complex(first[i], second[i]) : Complex(first[i], 0);
        if (pair) vectors[(j + 1) * n + i] = Complex(first[i], -second[i]);
      }
      j += pair;
    }
    return info;
  }
}

}  // namespace

void eig(const Tensor& values, const Tensor& vectors, const Tensor& info, const Tensor& a) {
  fill(info, 0);
  visit<LapackTypes>(a.dtype(), "linalg_eig_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Complex = std::complex<Real<T>>;
    Tensor work = column_major_copy(a, batch_of(a));
    MatrixStack<T> m(work);
    int* status = info.data<int>();
    int64_t n = m.rows;
    each_matrix(m.count, 10 * cube(m.rows), [&](int64_t i) {
      Complex* v = vectors.defined() ? vectors.data<Complex>() + i * n * n : nullptr;
      status[i] = eig_one(m[i], m.rows, values.data<Complex>() + i * n, v);
    });
  });
}

// ---- singular values ----

void svd(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& info, const Tensor& a) {
  fill(info, 0);
  visit<LapackTypes>(a.dtype(), "linalg_svd_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor work = column_major_copy(a, batch_of(a));
    MatrixStack<T> m(work);
    int k = std::min(m.rows, m.columns);
    bool wanted = u.defined();
    int64_t u_columns = wanted ? u.size(-1) : 0, v_rows = wanted ? vh.size(-2) : 0;
    char job = !wanted ? 'N' : u_columns == m.rows && v_rows == m.columns ? 'A' : 'S';
    auto* values = s.data<Real<T>>();
    int* status = info.data<int>();
    each_matrix(m.count, 10 * cube(k), [&](int64_t i) {
      T none;
      T* left = wanted ? u.data<T>() + i * m.rows * u_columns : &none;
      T* right = wanted ? vh.data<T>() + i * v_rows * m.columns : &none;
      status[i] = lapack::gesdd<T>(job, m.rows, m.columns, m[i], m.leading(), values + i * k, left, m.leading(), right,
                                   std::max(1, static_cast<int>(v_rows)));
    });
  });
}

// ---- least squares ----

void least_squares(const Tensor& b, const Tensor& rank, const Tensor& singular_values, const Tensor& info,
                   const Tensor& a, double rcond, LeastSquaresDriver driver) {
  fill(info, 0);
  visit<LapackTypes>(a.dtype(), "linalg_lstsq_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor work = column_major_copy(a, batch_of(b));
    MatrixStack<T> m(work), x(b);
    int k = std::min(m.rows, m.columns);
    int* status = info.data<int>();
    auto cutoff = static_cast<Real<T>>(rcond);
    if (rank.defined()) fill(rank, 0);
    each_matrix(m.count, 10 * cube(k), [&](int64_t i) {
      int found = 0, rows = m.rows, columns = m.columns, right = x.columns;
      std::vector<Real<T>> spectrum(k);
      if (driver == LeastSquaresDriver::Gels) {
        status[i] = lapack::gels<T>('N', rows, columns, right, m[i], m.leading(), x[i], x.leading());
      } else if (driver == LeastSquaresDriver::Gelsy) {
        std::vector<int> order(columns, 0);
        status[i] =
            lapack::gelsy<T>(rows, columns, right, m[i], m.leading(), x[i], x.leading(), order.data(), cutoff, &found);
      } else {
        auto solve = [&](auto routine) {
          status[i] =
              routine(rows, columns, right, m[i], m.leading(), x[i], x.leading(), spectrum.data(), cutoff, &found);
        };
        if (driver == LeastSquaresDriver::Gelsd) solve([](auto... args) { return lapack::gelsd<T>(args...); });
        else solve([](auto... args) { return lapack::gelss<T>(args...); });
      }
      if (rank.defined()) rank.data<int64_t>()[i] = found;
      if (singular_values.defined())
        std::copy(spectrum.begin(), spectrum.end(), singular_values.data<Real<T>>() + i * k);
    });
  });
}

}  // namespace umbra::kernels
