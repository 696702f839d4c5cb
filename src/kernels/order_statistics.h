// Single elements of the sorted order along one dimension: the k-th, the middle one, the most frequent one. NaN counts
// as the largest number.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// How medians meet NaN: one makes the result NaN, or it does not count.
enum class Nans : uint8_t { Propagate, Ignore };

/// `values` and `indices` have the sizes of self with the dimension reduced to 1.
void kth_value(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, int64_t k);
/// The lower one of two middle elements.
void median(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, Nans nans);
/// The same of all elements; the tensor has one at least.
void whole_median(const Tensor& out, const Tensor& self, Nans nans);
/// Of equally frequent elements the smallest, and its last place.
void mode(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim);

/// out[..., i] is the element that would stand at ranks[..., i] if rows[..., :] were sorted; of float or double. `out`
/// is contiguous and has the sizes of `ranks`.
void elements_at_ranks(const Tensor& out, const Tensor& rows, const Tensor& ranks);

}  // namespace umbra::kernels
