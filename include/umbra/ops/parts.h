// The parts of a tensor along its first dimension, one after the other: `for (Tensor row : x) row.zero_();`
#pragma once

#include <cstddef>
#include <iterator>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

/// Each part is a view.
class PartIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = const Tensor*;
  using reference = Tensor;

  PartIterator(Tensor tensor, int64_t position) : tensor_(std::move(tensor)), position_(position) {}
  Tensor operator*() const { return tensor_[position_]; }
  PartIterator& operator++() { return ++position_, *this; }
  PartIterator operator++(int) { return {tensor_, position_++}; }
  bool operator==(const PartIterator& other) const { return position_ == other.position_; }

 private:
  Tensor tensor_;
  int64_t position_;
};
inline PartIterator begin(const Tensor& x) {
  if (x.dim() == 0) throw TypeError("iteration over a 0-d tensor");
  return {x, 0};
}
inline PartIterator end(const Tensor& x) { return {x, x.size(0)}; }

}  // namespace umbra
