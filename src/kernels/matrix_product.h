// A product of matrices, as kernels/matmul.cpp hands it from one way of multiplying to another.
#pragma once

#include <algorithm>

#include "umbra/core/scalar.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// One operand: a stack of matrices inside memory. Strides count elements.
struct Matrices {
  Tensor tensor;
  char* data = nullptr;
  int64_t rows = 0, columns = 0, batch_stride = 0, row_stride = 0, column_stride = 0;

  bool rows_dense() const { return column_stride == 1 && row_stride >= std::max<int64_t>(columns, 1); }
  bool columns_dense() const { return row_stride == 1 && column_stride >= std::max<int64_t>(rows, 1); }
  /// Whether BLAS and oneDNN can take it as it lies.
  bool regular() const { return rows_dense() || columns_dense(); }
};

/// The product that is asked for: out = beta * out + alpha * a b, for each of `batch` matrices. `bias` is a row to be
/// added to each row of the result, or none.
struct Product {
  Matrices out, a, b;
  int64_t batch = 1;
  Scalar beta = 0, alpha = 1;
  Tensor bias = {};
  int64_t bias_at = 0;  // where the row begins in `bias`
  int64_t work() const { return batch * out.rows * out.columns * a.columns; }
};

}  // namespace umbra::kernels
