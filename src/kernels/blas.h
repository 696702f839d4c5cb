// General matrix products from BLAS for the types oneDNN does not serve: double and complex.
#pragma once

#include <complex>
#include <cstdint>

namespace umbra::kernels::blas {

/// Readies the library: its kernels for this processor, and no threads of its own, since it is our kernels that share
/// work out. Called by whoever is about to call BLAS or LAPACK.
void prepare();

/// A matrix inside memory: rows (or, if `transposed`, columns) are `leading` elements apart and dense.
template <class T> struct Matrix {
  T* data;
  bool transposed;
  int64_t leading;
};

/// c = alpha * a b + beta * c, with a [m, k], b [k, n] and c [m, n] in row-major order. For float, double and complex.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta, T* c,
          int64_t c_leading);

/// y = alpha * a x + beta * y, with a [m, k].
template <class T>
void gemv(int64_t m, int64_t k, T alpha, Matrix<const T> a, const T* x, int64_t x_stride, T beta, T* y,
          int64_t y_stride);

/// The sum of products of two dense vectors. For float and double, and no more elements than an int counts.
template <class T> T dot(int64_t n, const T* x, const T* y);

}  // namespace umbra::kernels::blas
