// Elements of a tensor by their indices, for loops over data.
//
//     auto image = x.accessor<float, 3>();                    // checks type and number of dimensions once
//     for (int64_t row = 0; row < image.size(1); ++row) image[0][row][2] += 1;
#pragma once

#include <cstddef>
#include <cstdint>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// The elements of N dimensions: an index gives an accessor of one dimension less, the last one an element. Indices are
/// not checked. The tensor has to outlive it.
template <class T, size_t N> class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  /// The element or the accessor at an index of the first dimension.
  decltype(auto) operator[](int64_t index) const {
    T* at = data_ + index * strides_[0];
    if constexpr (N == 1) return static_cast<T&>(*at);
    else return TensorAccessor<T, N - 1>(at, sizes_ + 1, strides_ + 1);
  }
  int64_t size(size_t dim) const { return sizes_[dim]; }
  int64_t stride(size_t dim) const { return strides_[dim]; }
  T* data() const { return data_; }

 private:
  static_assert(N > 0, "a tensor without dimensions has one element: item<T>()");
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

}  // namespace umbra
