// Vectorised runs behind kernels/convert.h.
#pragma once

#include "kernels/isa.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels {

/// Converts contiguous elements from one type to another.
UMBRA_DECLARE_VECTOR(void, convert_contiguous, (char* out, DType to, const char* in, DType from, int64_t n))
UMBRA_DECLARE_VECTOR(void, copy_strided,
                     (char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t n))
UMBRA_DECLARE_VECTOR(void, copy_transposed,
                     (char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t rows,
                      int64_t columns))

}  // namespace umbra::kernels
