// A matrix that many products have on their right, such as the weight of a recurrent layer.
#pragma once

#include <memory>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Brought once into the order in which products read it. With a few rows on the left that takes as long as a product,
/// and a plain one does it each time.
///
///     RepeatedMatrix weight(transposed, 8, 100);
///     for (...) weight.add_product(sum, start, rows);   // sum = start + rows * transposed
class RepeatedMatrix {
 public:
  struct Order;  // in which oneDNN reads matrices of one size

  /// A matrix [k, n] with any strides, for so many products with about so many rows each.
  RepeatedMatrix(const Tensor& matrix, int64_t rows, int64_t products);

  /// out = start + rows * the matrix. Where the matrix is in oneDNN's order the calling thread works alone.
  void add_product(const Tensor& out, const Tensor& start, const Tensor& rows) const;
  /// out = rows * the matrix.
  void product(const Tensor& out, const Tensor& rows) const;

 private:
  bool multiply_packed(const Tensor& out, const Tensor& rows, bool add) const;

  Tensor plain_;
  std::shared_ptr<const Order> order_;  // null where oneDNN has none, or does not repay it
  Tensor packed_;                       // bytes in that order
};

}  // namespace umbra::kernels
