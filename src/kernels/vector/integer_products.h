// Products of integer matrices, which no library has.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels {

/// One operand of a product: where it begins, and its steps in elements.
struct IntegerMatrix {
  const void* data;
  int64_t row_stride, column_stride;
};

/// sums = a b, for some rows of a and as many of `sums`, which is dense, of uint64 for int64 elements and of uint32 for
/// narrower ones: products wrap around. The rows of b are dense.
UMBRA_DECLARE_VECTOR(void, multiply_integers,
                     (DType dtype, void* sums, IntegerMatrix a, IntegerMatrix b, int64_t rows, int64_t columns,
                      int64_t inner))

}  // namespace umbra::kernels
