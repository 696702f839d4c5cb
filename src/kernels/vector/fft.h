// Fourier transforms along one dimension of strided arrays, by pocketfft.
#pragma once

#include <cstddef>
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

}  // namespace umbra::kernels
