// The first step to the eigenvalues of a small symmetric matrix: what LAPACK's sytd2 does column by column through
// BLAS, in loops of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace umbra::kernels {

/// Reflects a column-major matrix of which the lower triangle counts to tridiagonal form, and spoils the upper one. The
/// reflections and their scales are left as LAPACK's sytrd leaves them.
class Tridiagonal {
 public:
  Tridiagonal(float* a, int n) : a_(a), n_(n), v_(n), w_(n) {}

  void run(float* diagonal, float* beside, float* scales) {
    for (int j = 0; j < n_; ++j)
      for (int i = j + 1; i < n_; ++i) column(i)[j] = column(j)[i];
    for (int k = 0; k + 1 < n_; ++k) {
      diagonal[k] = column(k)[k];
      double scale = make_reflection(k, beside[k]);
      scales[k] = static_cast<float>(scale);
      if (scale != 0) reflect_rest(k, static_cast<float>(scale));
    }
    diagonal[n_ - 1] = column(n_ - 1)[n_ - 1];
  }

 private:
  static constexpr int kWidth = 8;

  float* column(int j) const { return a_ + static_cast<int64_t>(j) * n_; }
  /// Where a loop over rows from k + 1 on begins: there or, so that whole registers are worked on, above. Vectors are
  /// zero in those rows, and what is in the matrix there is of no use any more.
  int above(int k) const { return std::max(0, n_ - (n_ - k - 1 + kWidth - 1) / kWidth * kWidth); }

  template <class Term> double sum(int from, const Term& term) const {
    std::array<double, kWidth> lanes{};
    for (; from + kWidth <= n_; from += kWidth)
      for (int lane = 0; lane < kWidth; ++lane) lanes[lane] += term(from + lane);
    for (; from < n_; ++from) lanes[0] += term(from);
    double total = 0;
    for (double lane : lanes) total += lane;
    return total;
  }

  /// The reflection that leaves of column k one element below the diagonal; gives its scale, 0 where there is none.
  double make_reflection(int k, float& beside) {
    float* x = column(k);
    const float head = beside = x[k + 1];
    double rest = sum(k + 2, [&](int i) { return double{x[i]} * x[i]; });
    if (rest == 0) return 0;
    double size = -std::copysign(std::sqrt(double{head} * head + rest), head), inverse = 1 / (head - size);
    beside = static_cast<float>(size);
    v_[k] = 0;
    v_[k + 1] = 1;
    for (int i = k + 2; i < n_; ++i) v_[i] = x[i] = static_cast<float>(x[i] * inverse);
    return (size - head) / size;
  }

  /// Both sides of what is left, by a vector and what the matrix makes of it.
  void reflect_rest(int k, float scale) {
    float *v = v_.data(), *w = w_.data();
    const int from = above(k);
    std::fill(w + from, w + n_, 0.0f);
    int j = k + 1;
    for (; j + 4 <= n_; j += 4) {
      const float *a = column(j), *b = column(j + 1), *c = column(j + 2), *d = column(j + 3);
      for (int i = from; i < n_; ++i) w[i] += (a[i] * v[j] + b[i] * v[j + 1]) + (c[i] * v[j + 2] + d[i] * v[j + 3]);
    }
    for (; j < n_; ++j)
      for (int i = from; i < n_; ++i) w[i] += column(j)[i] * v[j];
    std::fill(w + from, w + k + 1, 0.0f);
    double along = sum(k + 1, [&](int i) { return double{w[i]} * v[i]; });
    const auto half = static_cast<float>(-0.5 * scale * scale * along);
    for (int i = k + 1; i < n_; ++i) w[i] = scale * w[i] + half * v[i];
    for (j = k + 1; j < n_; ++j) {
      float* __restrict to = column(j);
      const float x = v[j], y = w[j];
      for (int i = from; i < n_; ++i) to[i] -= v[i] * y + w[i] * x;
    }
  }

  float* a_;
  int n_;
  std::vector<float> v_, w_;  // a reflection, and what the matrix makes of it
};

}  // namespace umbra::kernels
