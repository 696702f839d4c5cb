#include "kernels/sort.h"

#include <algorithm>
#include <numeric>

#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

using SortedTypes = detail::Join<RealTypes, Bool>;

template <class T> bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (a == a && b != b);
  else return a < b;
}

/// One line along the dimension: its places in sorted order, the first `wanted` of them for sure.
template <class T>
void order_line(const std::vector<T>& line, std::vector<int64_t>& places, int64_t wanted, bool descending) {
  std::iota(places.begin(), places.end(), 0);
  auto ascends = [&](int64_t a, int64_t b) { return before(line[a], line[b]) || (!before(line[b], line[a]) && a < b); };
  auto descends = [&](int64_t a, int64_t b) {
    return before(line[b], line[a]) || (!before(line[a], line[b]) && a < b);
  };
  auto middle = places.begin() + wanted;
  // The places themselves break ties, so that an unstable algorithm gives the stable order.
  if (wanted < static_cast<int64_t>(places.size()) / 2) {
    descending ? std::partial_sort(places.begin(), middle, places.end(), descends)
               : std::partial_sort(places.begin(), middle, places.end(), ascends);
  } else {
    descending ? std::sort(places.begin(), places.end(), descends) : std::sort(places.begin(), places.end(), ascends);
  }
}

}  // namespace

void sort(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending) {
  if (values.numel() == 0) return;
  bool scalar = self.dim() == 0;
  int64_t n = scalar ? 1 : self.sizes()[dim], wanted = scalar ? 1 : values.sizes()[dim];
  auto step = [&](const Tensor& t) { return scalar ? int64_t{0} : t.strides()[dim]; };
  Strided<3> lines;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) lines.push(self.sizes()[d], {self.strides()[d], values.strides()[d], indices.strides()[d]});
  visit<SortedTypes>(self.dtype(), "sort", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * 8));
    parallel_for(0, lines.numel(), grain, [&](int64_t begin, int64_t end) {
      std::vector<Compute<T>> line(n);
      std::vector<int64_t> places(n);
      Odometer<3> at(lines);
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = self.data<T>() + at[0];
        for (int64_t k = 0; k < n; ++k) line[k] = static_cast<Compute<T>>(in[k * step(self)]);
        order_line(line, places, wanted, descending);
        T* out = values.data<T>() + at[1];
        int64_t* where = indices.data<int64_t>() + at[2];
        for (int64_t k = 0; k < wanted; ++k) {
          out[k * step(values)] = in[places[k] * step(self)];
          where[k * step(indices)] = places[k];
        }
      }
    });
  });
}

}  // namespace umbra::kernels
