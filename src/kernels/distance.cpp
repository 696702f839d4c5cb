#include "kernels/distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/copy.h"
#include "kernels/lanes.h"
#include "kernels/parallel.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

/// What each norm does with one difference, with the sum, and for the derivative.
enum class Norm { Zero, One, Two, Infinity, Other };

Norm norm_of(double p) {
  return p == 0 ? Norm::Zero : p == 1 ? Norm::One : p == 2 ? Norm::Two : std::isinf(p) ? Norm::Infinity : Norm::Other;
}

template <class T> T sign(T x) { return static_cast<T>((x > 0) - (x < 0)); }

template <class T> T distance(const T* a, const T* b, int64_t n, Norm norm, T p) {
  auto gap = [&](int64_t i) { return std::abs(a[i] - b[i]); };
  switch (norm) {
    case Norm::Zero: return sum_lanes<T>(n, [&](int64_t i) { return std::isnan(gap(i)) ? gap(i) : T(a[i] != b[i]); });
    case Norm::One: return row_functions<T>().absolute_distance(a, b, n);
    case Norm::Two: return std::sqrt(row_functions<T>().squared_distance(a, b, n));
    case Norm::Infinity: return row_functions<T>().largest_distance(a, b, n);
    case Norm::Other: break;
  }
  return std::pow(sum_lanes<T>(n, [&](int64_t i) { return std::pow(gap(i), p); }), 1 / p);
}

/// What cdist takes for the largest difference: one that is no number is none. (pdist gives nan.)
template <class T> T largest_gap(const T* a, const T* b, int64_t n) {
  T most = row_functions<T>().largest_distance(a, b, n);
  if (most == most) return most;
  most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// All distances of one row from others that lie side by side, element by element: [n, others].
template <class T>
void distances_from(T* __restrict to, const T* a, const T* columns, int64_t n, int64_t others, Norm norm) {
  std::fill_n(to, others, T(0));
  for (int64_t k = 0; k < n; ++k) {
    const T x = a[k];
    const T* __restrict column = columns + k * others;
    auto each = [&](const auto& step) {
      for (int64_t j = 0; j < others; ++j) to[j] = step(to[j], std::abs(x - column[j]));
    };
    if (norm == Norm::One) each([](T sum, T gap) { return sum + gap; });
    else if (norm == Norm::Two) each([](T sum, T gap) { return sum + gap * gap; });
    else each([](T most, T gap) { return gap > most ? gap : most; });
  }
  if (norm == Norm::Two)
    for (int64_t j = 0; j < others; ++j) to[j] = std::sqrt(to[j]);
}

/// Adds the derivative of one distance along a - b, times `weight`, to `out`.
template <class T>
void add_slope(T* __restrict out, const T* __restrict a, const T* __restrict b, int64_t n, Norm norm, T p, T weight,
               T distance, T direction) {
  if (norm == Norm::Zero || weight == 0 || (distance == 0 && norm != Norm::One)) return;
  T scale = direction * weight;
  if (norm == Norm::Two) scale /= distance;
  if (norm == Norm::Other) scale /= std::pow(distance, p - 1);
  auto each = [&](const auto& slope) {
    for (int64_t i = 0; i < n; ++i) out[i] += slope(a[i] - b[i]);
  };
  switch (norm) {
    case Norm::One: return each([&](T gap) { return scale * sign(gap); });
    case Norm::Two: return each([&](T gap) { return scale * gap; });
    case Norm::Infinity:  // where it is attained, the gap is not 0
      return each([=](T gap) { return gap == distance ? scale : gap == -distance ? -scale : T(0); });
    default: return each([&](T gap) { return gap == 0 ? T(0) : scale * sign(gap) * std::pow(std::abs(gap), p - 1); });
  }
}

/// Where row i of the upper triangle of n rows begins among all pairs.
int64_t first_pair(int64_t i, int64_t n) { return i * n - i * (i + 1) / 2; }

}  // namespace

void cdist(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  visit<Floating>(x1.dtype(), "cdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t rows = x1.size(1), others = x2.size(1), n = x1.size(2), batch = x1.size(0);
    const T *a = x1.data<T>(), *b = x2.data<T>();
    T* to = out.data<T>();
    // Rows too short for sums of their own: many distances side by side.
    constexpr int64_t kShort = 64, kMany = 16, kMost = 4096;
    Norm norm = norm_of(p);
    bool simple = norm == Norm::One || norm == Norm::Two || norm == Norm::Infinity;
    if (simple && n < kShort && rows >= kMany && others >= kMany && others <= kMost) {
      parallel_for(0, batch, 1 + kGrain / (rows * others * n + 1), [&](int64_t from, int64_t end) {
        std::vector<T> columns(static_cast<size_t>(n * others));
        for (int64_t i = from; i < end; ++i) {
          for (int64_t j = 0; j < others; ++j)
            for (int64_t k = 0; k < n; ++k) columns[k * others + j] = b[(i * others + j) * n + k];
          for (int64_t r = i * rows; r < (i + 1) * rows; ++r)
            distances_from(to + r * others, a + r * n, columns.data(), n, others, norm);
        }
      });
      return;
    }
    parallel_for(0, batch * rows, 1 + kGrain / (others * n + 1), [&](int64_t from, int64_t end) {
      for (int64_t i = from; i < end; ++i) {
        const T* side = b + i / rows * others * n;
        for (int64_t j = 0; j < others; ++j)
          to[i * others + j] = norm == Norm::Infinity ? largest_gap(a + i * n, side + j * n, n)
                                                      : distance(a + i * n, side + j * n, n, norm, static_cast<T>(p));
      }
    });
  });
}

void cdist_backward(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                    const Tensor& distances) {
  fill(out, 0);
  visit<Floating>(x1.dtype(), "cdist_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t rows = x1.size(1), others = x2.size(1), n = x1.size(2), batch = x1.size(0);
    const T *a = x1.data<T>(), *b = x2.data<T>(), *g = grad.data<T>(), *d = distances.data<T>();
    parallel_for(0, batch * rows, 1 + kGrain / (others * n + 1), [&](int64_t from, int64_t end) {
      for (int64_t i = from; i < end; ++i) {
        const T* side = b + i / rows * others * n;
        for (int64_t j = 0; j < others; ++j) {
          int64_t at = i * others + j;
          add_slope(out.data<T>() + i * n, a + i * n, side + j * n, n, norm_of(p), static_cast<T>(p), g[at], d[at],
                    T(1));
        }
      }
    });
  });
}

void pdist(const Tensor& out, const Tensor& self, double p) {
  visit<Floating>(self.dtype(), "pdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t rows = self.size(0), n = self.size(1);
    const T* a = self.data<T>();
    parallel_for(0, rows, 1 + kGrain / (rows * n + 1), [&](int64_t from, int64_t end) {
      for (int64_t i = from; i < end; ++i) {
        T* to = out.data<T>() + first_pair(i, rows);
        for (int64_t j = i + 1; j < rows; ++j)
          to[j - i - 1] = distance(a + i * n, a + j * n, n, norm_of(p), static_cast<T>(p));
      }
    });
  });
}

void pdist_backward(const Tensor& out, const Tensor& grad, const Tensor& self, double p, const Tensor& distances) {
  fill(out, 0);
  visit<Floating>(self.dtype(), "pdist_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t rows = self.size(0), n = self.size(1);
    const T *a = self.data<T>(), *g = grad.data<T>(), *d = distances.data<T>();
    // Each row gathers from all its pairs: no two threads write one.
    parallel_for(0, rows, 1 + kGrain / (rows * n + 1), [&](int64_t from, int64_t end) {
      for (int64_t i = from; i < end; ++i)
        for (int64_t j = 0; j < rows; ++j) {
          if (i == j) continue;
          int64_t low = std::min(i, j), at = first_pair(low, rows) + std::max(i, j) - low - 1;
          add_slope(out.data<T>() + i * n, a + i * n, a + j * n, n, norm_of(p), static_cast<T>(p), g[at], d[at], T(1));
        }
    });
  });
}

}  // namespace umbra::kernels
