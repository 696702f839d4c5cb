// Runs of elements from one type and step in memory to another: what copies, casts and strided kernels are made of.
#pragma once

#include <cstdint>

#include "umbra/core/dtype.h"

namespace umbra::kernels {

/// memcpy, also where the target lies a few bytes behind the source but for whole pages: there the processor's own
/// instruction for long copies, which the C library uses, is ten times slower than loops.
void copy_bytes(char* out, const char* in, int64_t bytes);

/// `n` elements of type `from`, `stride` bytes apart (0: one element, repeated), to contiguous elements of type `to`.
/// Complex numbers lose their imaginary part on the way to real ones; anything that is not 0 becomes true.
void convert(char* out, DType to, const char* in, DType from, int64_t stride, int64_t n);

/// Contiguous elements of type `from` to elements of type `to` that lie `stride` bytes apart.
void convert_out(char* out, DType to, int64_t stride, const char* in, DType from, int64_t n);

/// Moves elements of `item` bytes (1, 2, 4, 8 or 16), each side with its own step.
void copy_strided(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t n);

/// The transpose of `rows` x `columns` elements: out[c * out_stride + r] = in[r * in_stride + c], in elements' bytes:
/// steps are in bytes, and along r in out and along c in in the elements lie side by side.
void copy_transposed(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t rows,
                     int64_t columns);

}  // namespace umbra::kernels
