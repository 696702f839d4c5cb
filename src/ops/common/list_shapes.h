// What a gradient gets as "tensors.sym_sizes", where `tensors` is a list.
#pragma once

#include <vector>

#include "umbra/core/sym_int.h"

namespace umbra::ops {

/// The shapes of the list's tensors. They are given as each tensor's number of dimensions and its sizes, one after the
/// other.
inline std::vector<SymIntArrayRef> shapes_in(SymIntArrayRef sizes) {
  std::vector<SymIntArrayRef> shapes;
  for (size_t i = 0; i < sizes.size();) {
    auto rank = static_cast<size_t>(sizes[i].value());
    shapes.emplace_back(sizes.data() + i + 1, rank);
    i += 1 + rank;
  }
  return shapes;
}

}  // namespace umbra::ops
