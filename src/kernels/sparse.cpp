#include "kernels/sparse.h"

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"

namespace umbra::kernels {

void add_sparse_product(const Tensor& out, const Tensor& indices, const Tensor& values, const Tensor& dense) {
  Tensor places = contiguous(indices), factors = contiguous(values), rows = contiguous(dense);
  int64_t count = factors.numel(), width = rows.size(1), height = out.size(0), inner = rows.size(0);
  const int64_t *to = places.data<int64_t>(), *from = to + count;
  for (int64_t e = 0; e < count; ++e)
    check(to[e] >= 0 && to[e] < height && from[e] >= 0 && from[e] < inner, "addmm: index (", to[e], ", ", from[e],
          ") is out of bounds for a matrix of ", height, "x", inner);
  visit<NumberTypes>(out.dtype(), "addmm_sparse_dense", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const T *factor = factors.data<T>(), *row = rows.data<T>();
    T* sum = out.data<T>();
    // Each thread owns some rows of the output: sums come out in the same order with any number of threads.
    parallel_for(0, height, count * width < kGrain ? height : 1, [&](int64_t first, int64_t last) {
      for (int64_t e = 0; e < count; ++e) {
        if (to[e] < first || to[e] >= last) continue;
        C by = static_cast<C>(factor[e]);
        const T* source = row + from[e] * width;
        T* target = sum + to[e] * width;
        for (int64_t j = 0; j < width; ++j)
          target[j] = static_cast<T>(static_cast<C>(target[j]) + by * static_cast<C>(source[j]));
      }
    });
  });
}

}  // namespace umbra::kernels
