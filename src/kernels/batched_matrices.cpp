#include "kernels/batched_matrices.h"

#include <mutex>

#include "kernels/blas.h"
#include "kernels/lapack.h"

namespace umbra::kernels {

void prepare_lapack() {
  // What is no number goes through the routines like any other value: LAPACKE's own look at every matrix costs a pass.
  static std::once_flag once;
  std::call_once(once, [] { LAPACKE_set_nancheck(0); });
  blas::prepare();
}

IntArrayRef batch_of(const Tensor& matrices) { return matrices.sizes().drop_back(2); }

int64_t matrix_count(const Tensor& matrices) {
  int64_t count = 1;
  for (int64_t size : batch_of(matrices)) count *= size;
  return count;
}

Tensor column_major_scratch(IntArrayRef batch, int64_t rows, int64_t columns, DType dtype) {
  SymShape sizes(as_sym(batch));
  sizes.push_back(columns);
  sizes.push_back(rows);
  SymShape strides = contiguous_strides(sizes);
  std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
  std::swap(strides[strides.size() - 2], strides[strides.size() - 1]);
  return allocate_tensor(sizes, strides, dtype, {});
}

Tensor column_major_copy(const Tensor& matrices, IntArrayRef batch) {
  Tensor out = column_major_scratch(batch, matrices.size(-2), matrices.size(-1), matrices.dtype());
  copy(out, matrices);
  return out;
}

}  // namespace umbra::kernels
