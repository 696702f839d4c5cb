// Inverses of small triangular matrices.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace umbra::kernels {

constexpr int kTriangle = 32;  // rows, at most

/// The inverse of a triangle of n rows of doubles or floats that lies by columns, by rows of kTriangle numbers, zeros
/// beside it.
UMBRA_DECLARE_VECTOR(void, invert_small_triangle,
                     (bool wide, bool upper, bool unit, int n, const void* a, int64_t leading, void* out))

}  // namespace umbra::kernels
