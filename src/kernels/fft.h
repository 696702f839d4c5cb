// Fourier transforms over some dimensions. Outputs are allocated by the caller, with any strides; `scale` multiplies
// the result.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

void fft_c2c(const Tensor& out, const Tensor& self, IntArrayRef dims, bool forward, double scale);
/// Of real numbers. The last of `dims` has n/2 + 1 elements in `out`, or all n: what is left out is the conjugate of
/// what is there.
void fft_r2c(const Tensor& out, const Tensor& self, IntArrayRef dims, bool onesided, double scale);
/// To real numbers, from the n/2 + 1 first elements of the last of `dims`; backward.
void fft_c2r(const Tensor& out, const Tensor& self, IntArrayRef dims, double scale);

}  // namespace umbra::kernels
