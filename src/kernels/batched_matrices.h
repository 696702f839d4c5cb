// Stacks of dense column-major matrices, as LAPACK takes them, and how work on them is shared out.
#pragma once

#include <complex>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"

namespace umbra::kernels {

/// The types that LAPACK has routines for.
using LapackTypes = Types<float, double, std::complex<float>, std::complex<double>>;
template <class T> struct RealOf { using type = T; };
template <class T> struct RealOf<std::complex<T>> { using type = T; };
/// float for complex64.
template <class T> using Real = typename RealOf<T>::type;

/// A tensor of dense matrices, column after column: the last two dimensions are the matrix, the others count.
template <class T> struct MatrixStack {
  T* data;
  int rows, columns;
  int64_t count;

  explicit MatrixStack(const Tensor& t)
      : data(t.data<T>()),
        rows(static_cast<int>(t.size(-2))),
        columns(static_cast<int>(t.size(-1))),
        count(rows > 0 && columns > 0 ? t.numel() / (rows * static_cast<int64_t>(columns)) : 0) {}
  T* operator[](int64_t i) const { return data + i * rows * columns; }
  /// LAPACK's leading dimension: at least 1.
  int leading() const { return rows > 0 ? rows : 1; }
};

/// A scratch tensor of these batch sizes whose matrices lie column after column.
Tensor column_major_scratch(IntArrayRef batch, int64_t rows, int64_t columns, DType dtype);
/// A copy of `matrices`, broadcast to the batch sizes, column after column.
Tensor column_major_copy(const Tensor& matrices, IntArrayRef batch);
/// The batch sizes of a tensor of matrices.
IntArrayRef batch_of(const Tensor& matrices);
/// How many matrices: the product of the batch sizes, 1 for a single one.
int64_t matrix_count(const Tensor& matrices);

/// Readies BLAS and LAPACK.
void prepare_lapack();

/// Calls `fn(i)` for each of `count` matrices, which the threads share out. `work` is how many multiplications one
/// takes.
template <class Fn> void each_matrix(int64_t count, double work, const Fn& fn) {
  prepare_lapack();
  int64_t grain = 1 + static_cast<int64_t>(kGrain / (work + 1));
  parallel_for(0, count, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) fn(i);
  });
}

}  // namespace umbra::kernels
