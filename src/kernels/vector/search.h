// The vectorised part of kernels/search.cpp.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace umbra::kernels {

/// How many of the n numbers of a row come before each of some values: those that are smaller, or with `right` no
/// larger. NaN comes behind all numbers. T is float or double, n below 2^31.
UMBRA_DECLARE_VECTOR(template <class T> void, search_row,
                     (const T* row, int64_t n, const T* values, int64_t count, int64_t* found, bool right))

}  // namespace umbra::kernels
