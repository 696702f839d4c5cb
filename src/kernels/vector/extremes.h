// The vectorised parts of kernels/arg_reduce.cpp, and whether positions lie in a range.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels {

/// The first largest (or smallest) of n > 0 contiguous elements of type `compute`: float32, float64 or int64. Its value
/// goes to `value`. NaN beats everything.
UMBRA_DECLARE_VECTOR(int64_t, find_extreme, (void* value, const void* values, int64_t n, DType compute, bool largest))
/// Holds row number `position` against the best so far of each column.
UMBRA_DECLARE_VECTOR(void, update_extremes,
                     (void* best, int64_t* where, const void* row, int64_t position, int64_t columns, DType compute,
                      bool largest))

/// The bits that any of some numbers has: of n positions, and of how far each is from the least and the last one that
/// there may be. A sign says that one is negative, or is outside.
struct PositionBits {
  uint64_t positions = 0, distances = 0;
};
UMBRA_DECLARE_VECTOR(PositionBits, position_bits, (const int64_t* positions, int64_t n, int64_t least, int64_t last))

}  // namespace umbra::kernels
