// Fourier transforms along one dimension of strided arrays, by pocketfft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/isa.h"

namespace umbra::kernels {

/// One pass: the transform along `axis` of an array of these sizes (of the real side, where one side is real). Strides
/// are in bytes. `to` may be `from` where both are complex.
struct FftPass {
  enum class Kind { ComplexToComplex, RealToComplex, ComplexToReal };
  Kind kind;
  bool wide;  // double, or float
  bool forward;
  double scale;
  std::vector<size_t> sizes;
  std::vector<ptrdiff_t> from_strides, to_strides;
  size_t axis;
  const char* from;
  char* to;
};

UMBRA_DECLARE_VECTOR(void, fft_pass, (const FftPass& pass))

/// How many transforms of floats, or of doubles, run side by side in a register.
UMBRA_DECLARE_VECTOR(int64_t, fft_lanes, (bool wide))
/// The same for rows that are dense on both sides, `from_bytes` and `to_bytes` apart, of which there are `groups` times
/// as many as there are lanes: they are brought side by side, and back, by whole registers. Complex to complex, real to
/// complex forward and complex to real backward.
UMBRA_DECLARE_VECTOR(void, fft_rows,
                     (const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes,
                      int64_t groups))
/// Whether one of so many rows is long enough to be transformed by itself, and has sides that fill registers.
UMBRA_DECLARE_VECTOR(bool, fft_takes_row, (const FftPass& pass, int64_t rows))
/// The same for rows that it takes, one after the other, of which there are `rows`.
UMBRA_DECLARE_VECTOR(void, fft_long_rows,
                     (const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes,
                      int64_t rows))

}  // namespace umbra::kernels
