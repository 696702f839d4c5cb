#include "kernels/histogram.h"

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

/// The bins of one dimension.
template <class T> struct Bins {
  std::vector<T> edges;
  BinSearch search;
  DType stored;  // what the elements are stored as: even bins are found by steps that are rounded to it

  int64_t count() const { return static_cast<int64_t>(edges.size()) - 1; }
  bool holds(T x) const { return x >= edges.front() && x <= edges.back(); }
  /// The bin of an element that the bins hold; the last edge belongs to the last bin.
  int64_t find(T x) const {
    int64_t at;
    if (search == BinSearch::Edges) {
      at = std::upper_bound(edges.begin(), edges.end(), x) - edges.begin() - 1;
    } else {
      T scaled = rounded(rounded(x - edges.front()) * rounded(static_cast<T>(count())));
      at = static_cast<int64_t>(rounded(scaled / rounded(edges.back() - edges.front())));
      if (search == BinSearch::EvenWithEdges) {
        int64_t low = std::max<int64_t>(0, at - 1), high = std::min<int64_t>(at + 2, count() + 1);
        at = std::upper_bound(edges.begin() + low, edges.begin() + high, x) - edges.begin() - 1;
      }
    }
    return std::min(at, count() - 1);
  }
  T rounded(T x) const {
    if (stored == DType::BFloat16) return static_cast<float>(BFloat16(static_cast<float>(x)));
    if (stored == DType::Float16) return static_cast<float>(Half(static_cast<float>(x)));
    return x;
  }
};

template <class T>
void count_points(std::vector<T>& cells, const Tensor& self, const std::vector<Bins<T>>& bins, const Tensor& weight) {
  int64_t points = self.sizes()[0], dims = self.sizes()[1];
  const T* x = self.data<T>();
  const T* w = weight.defined() ? weight.data<T>() : nullptr;
  for (int64_t i = 0; i < points; ++i) {
    int64_t cell = 0;
    bool inside = true;
    for (int64_t d = 0; d < dims && inside; ++d) {
      T value = x[i * dims + d];
      inside = bins[d].holds(value);
      if (inside) cell = cell * bins[d].count() + bins[d].find(value);
    }
    if (inside) cells[cell] += w ? w[i] : T(1);
  }
}

template <class T> void make_density(std::vector<T>& cells, const std::vector<Bins<T>>& bins) {
  T total = 0;
  for (T c : cells) total += c;
  for (T& c : cells) c /= total;
  int64_t inner = 1;
  for (size_t d = bins.size(); d-- > 0;) {
    int64_t count = bins[d].count();
    for (size_t i = 0; i < cells.size(); ++i) {
      int64_t at = static_cast<int64_t>(i) / inner % count;
      cells[i] /= bins[d].edges[at + 1] - bins[d].edges[at];
    }
    inner *= count;
  }
}

}  // namespace

void histogram(const Tensor& out, const Tensor& self, TensorList edges, const Tensor& weight, bool density,
               BinSearch search) {
  DType wide = self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor points = contiguous(cast(self, wide)), weights = weight.defined() ? contiguous(cast(weight, wide)) : Tensor();
  visit<Floating>(wide, "histogram_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<Bins<T>> bins;
    for (const Tensor& e : edges) bins.push_back({read_vector<T>(e), search, self.dtype()});
    std::vector<T> cells(out.numel(), T(0));
    if (!cells.empty()) count_points(cells, points, bins, weights);
    if (density) make_density(cells, bins);
    write_vector(out, cells);
  });
}

void bin_edges(const Tensor& edges, double low, double high) {
  visit<Floating>(edges.dtype() == DType::Float64 ? DType::Float64 : DType::Float32, "histogram_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values(edges.numel());
    auto n = static_cast<int64_t>(values.size());
    T first = static_cast<T>(low), last = static_cast<T>(high);
    T step = n > 1 ? (last - first) / static_cast<T>(n - 1) : T(0);
    // From both ends, so that the last edge is exact.
    for (int64_t i = 0; i < n; ++i)
      values[i] =
          i < n / 2 ? std::fma(step, static_cast<T>(i), first) : std::fma(-step, static_cast<T>(n - i - 1), last);
    write_vector(edges, values);
  });
}

std::vector<std::pair<double, double>> column_ranges(const Tensor& self) {
  int64_t rows = self.sizes()[0], columns = self.sizes()[1];
  std::vector<double> all = read_vector<double>(self);
  std::vector<std::pair<double, double>> out;
  for (int64_t c = 0; c < columns; ++c) {
    double low = all[c], high = all[c];
    for (int64_t r = 0; r < rows; ++r) {
      double x = all[r * columns + c];
      if (std::isnan(x)) low = high = x;
      low = std::min(low, x);
      high = std::max(high, x);
      if (std::isnan(low)) break;
    }
    out.emplace_back(low, high);
  }
  return out;
}

namespace {

// Several counts of each bin, taken in turns: one need not wait for the one before where both are of the same bin.
void count_places(int64_t* counts, int64_t bins, const int64_t* places, int64_t n) {
  constexpr int64_t ways = 4, kMostBins = 4096;
  int64_t i = 0;
  if (bins <= kMostBins && n > 2 * ways * bins) {
    std::vector<int64_t> several(static_cast<size_t>(ways * bins), 0);
    for (; i + ways <= n; i += ways)
      for (int64_t w = 0; w < ways; ++w) ++several[static_cast<size_t>(w * bins + places[i + w])];
    for (int64_t w = 0; w < ways; ++w)
      for (int64_t k = 0; k < bins; ++k) counts[k] += several[static_cast<size_t>(w * bins + k)];
  }
  for (; i < n; ++i) ++counts[places[i]];
}

}  // namespace

std::pair<int64_t, int64_t> range_of(const Tensor& self) {
  Tensor whole = contiguous(cast(self, DType::Int64));
  const int64_t* x = whole.data<int64_t>();
  int64_t low = x[0], high = x[0];
  for (int64_t i = 1, n = whole.numel(); i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return {low, high};
}

void bin_count(const Tensor& out, const Tensor& self, const Tensor& weights) {
  Tensor whole = contiguous(cast(self, DType::Int64));
  int64_t n = whole.numel();
  if (n == 0) return;
  const int64_t* places = whole.data<int64_t>();
  if (!weights.defined()) return count_places(out.data<int64_t>(), out.numel(), places, n);
  Tensor terms = contiguous(cast(weights, out.dtype()));
  visit<Floating>(out.dtype(), "bincount_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    const T* from = terms.data<T>();
    for (int64_t i = 0; i < n; ++i) to[places[i]] += from[i];
  });
}

}  // namespace umbra::kernels
