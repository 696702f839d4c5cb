// The factorisation L D L^T of a small real symmetric matrix, with the pivots of Bunch and Kaufman: what LAPACK's sytf2
// does column by column through BLAS, in loops of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace umbra::kernels {

/// Factors a column-major matrix of which the lower triangle counts, and spoils the upper one. D has blocks of one and
/// two; pivots and results are as LAPACK gives them.
template <class T> class SymmetricFactor {
 public:
  SymmetricFactor(T* a, int n) : a_(a), n_(n) {}

  /// LAPACK's `info`: the number of the first pivot that is zero, or 0.
  int run(int* pivots) {
    int info = 0;
    for (int k = 0; k < n_;) {
      Pivot pivot = choose(k);
      if (pivot.size == 0) {
        if (info == 0) info = k + 1;
        pivots[k] = k + 1;
        ++k;
        continue;
      }
      exchange(k, pivot);
      if (pivot.size == 1) {
        eliminate_one(k);
        pivots[k] = pivot.row + 1;
      } else {
        if (k + 2 < n_) eliminate_two(k);
        pivots[k] = pivots[k + 1] = -(pivot.row + 1);
      }
      k += pivot.size;
    }
    return info;
  }

 private:
  struct Pivot {
    int size, row;  // of the block of D (0: the column is zero), and what comes to its end
  };

  T* column(int j) const { return a_ + static_cast<int64_t>(j) * n_; }
  T& at(int row, int j) const { return column(j)[row]; }

  Pivot choose(int k) const {
    const T grows_least = (1 + std::sqrt(T(17))) / 8;  // the share that bounds the growth of elements best
    T diagonal = std::abs(at(k, k)), most = 0;
    for (int i = k + 1; i < n_; ++i) most = std::max(most, std::abs(at(i, k)));
    if (std::max(diagonal, most) == 0 || diagonal != diagonal) return {0, k};
    if (!(diagonal < grows_least * most)) return {1, k};
    int row = k + 1;
    while (row + 1 < n_ && std::abs(at(row, k)) != most) ++row;
    T beside = 0;
    for (int j = k; j < row; ++j) beside = std::max(beside, std::abs(at(row, j)));
    for (int i = row + 1; i < n_; ++i) beside = std::max(beside, std::abs(at(i, row)));
    if (diagonal >= grows_least * most * (most / beside)) return {1, k};
    return {std::abs(at(row, row)) >= grows_least * beside ? 1 : 2, row};
  }

  /// Exchanges the pivot's row and column with the last of the block, in what is not yet factored.
  void exchange(int k, Pivot pivot) const {
    int last = k + pivot.size - 1, row = pivot.row;
    if (row == last) return;
    std::swap_ranges(column(last) + row + 1, column(last) + n_, column(row) + row + 1);
    for (int i = last + 1; i < row; ++i) std::swap(at(i, last), at(row, i));
    std::swap(at(last, last), at(row, row));
    if (pivot.size == 2) std::swap(at(last, k), at(row, k));
  }

  /// Where a loop down column j begins: at the diagonal or, so that whole registers are worked on, above it.
  int above(int j) const {
    constexpr int kWidth = 8;
    return std::max(0, n_ - (n_ - j + kWidth - 1) / kWidth * kWidth);
  }

  void eliminate_one(int k) const {
    T* x = column(k);
    const T inverse = 1 / x[k];
    for (int j = k + 1; j < n_; ++j) {
      T* __restrict to = column(j);
      const T factor = inverse * x[j];
      for (int i = above(j); i < n_; ++i) to[i] -= factor * x[i];
    }
    for (int i = k + 1; i < n_; ++i) x[i] *= inverse;
  }

  void eliminate_two(int k) const {
    T *x = column(k), *y = column(k + 1);
    // The inverse of the block, scaled by what is beside its diagonal.
    const T side = x[k + 1], second = y[k + 1] / side, first = x[k] / side, scale = 1 / (second * first - 1) / side;
    for (int j = k + 2; j < n_; ++j) {
      T* __restrict to = column(j);
      const T u = scale * (second * x[j] - y[j]), v = scale * (first * y[j] - x[j]);
      for (int i = above(j); i < n_; ++i) to[i] -= x[i] * u + y[i] * v;
      x[j] = u;
      y[j] = v;
    }
  }

  T* a_;
  int n_;
};

}  // namespace umbra::kernels
