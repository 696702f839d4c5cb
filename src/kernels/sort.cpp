#include "kernels/sort.h"

#include <algorithm>

#include "kernels/line_sorter.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

using SortedTypes = detail::Join<RealOrBool, WideUnsigned>;
constexpr const char* kSort = "sorting_kernel_method_name";

}  // namespace

int64_t sort_workspace(const Tensor& self, int64_t dim, int64_t wanted) {
  if (self.numel() == 0 || self.dim() == 0) return 0;
  int64_t n = self.size(dim), lines = self.numel() / n;
  int64_t at_once = std::min<int64_t>(num_threads(), (lines + line_grain(n) - 1) / line_grain(n)), bytes = 0;
  visit<SortedTypes>(self.dtype(), kSort, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_key_type<Compute<T>>(n, [&]<class Key>(Key*) { bytes = at_once * LineSorter<T, Key>::bytes(n, wanted); });
  });
  return bytes;
}

void sort(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending) {
  if (values.numel() == 0) return;
  bool scalar = self.dim() == 0;
  int64_t n = scalar ? 1 : self.sizes()[dim], wanted = scalar ? 1 : values.sizes()[dim];
  auto step = [&](const Tensor& t) { return scalar ? int64_t{0} : t.strides()[dim]; };
  Strided<3> lines;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) lines.push(self.sizes()[d], {self.strides()[d], values.strides()[d], indices.strides()[d]});
  visit<SortedTypes>(self.dtype(), kSort, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t grain = line_grain(n);
    int64_t in_step = step(self), out_step = step(values), where_step = step(indices);
    auto sort_lines = [&]<class Key>(int64_t begin, int64_t end, const Key*) {
      LineSorter<T, Key> sorter(n, wanted, descending);
      Odometer<3> at(lines);
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = self.data<T>() + at[0];
        sorter.sort(in, in_step);
        T* out = values.data<T>() + at[1];
        int64_t* where = indices.data<int64_t>() + at[2];
        for (int64_t k = 0; k < wanted; ++k) {
          int64_t place = sorter.place(k);
          out[k * out_step] = in[place * in_step];
          where[k * where_step] = place;
        }
      }
    };
    with_key_type<Compute<T>>(n, [&](auto* key) {
      parallel_for(0, lines.numel(), grain, [&](int64_t begin, int64_t end) { sort_lines(begin, end, key); });
    });
  });
}

}  // namespace umbra::kernels
