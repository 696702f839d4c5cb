// Bounds of integers that index, in C++ and in Python.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace indexing {

/// An error unless the dimension has that element. `position`: of the integer among the items of its index, which the
/// message names.
void check_index(const Tensor& t, int64_t dim, SymInt index, int64_t position);
[[noreturn]] void fail_bounds(int64_t index, int64_t position, SymInt size);

}  // namespace indexing
}  // namespace umbra
