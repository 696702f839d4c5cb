// Distinct elements, or distinct slices of a tensor.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// What was found: the first of each group of equals, in order; which group each element is of; how many each has.
struct Groups {
  std::vector<int64_t> firsts, group, counts;
};

/// Groups of equal elements of a tensor, in row-major order: sorted by value, or only neighbours. Which group each
/// element is of may be left out where it is not asked for.
Groups group_elements(const Tensor& self, bool sorted, bool asks_group);
/// Groups of equal slices along a dimension: sorted from element to element, or only neighbours.
Groups group_slices(const Tensor& self, int64_t dim, bool sorted);

}  // namespace umbra::kernels
