// Matrix products. Outputs are allocated by the caller, with any strides; so are inputs, which may be transposed,
// expanded or strided without being copied where the libraries below can take them so.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out = a b, with a [m, k], b [k, n].
void mm(const Tensor& out, const Tensor& a, const Tensor& b);
/// The product of int8 or uint8 with int8, in int32.
void multiply_bytes(const Tensor& out, const Tensor& a, const Tensor& b);
/// out = beta * self + alpha * a b; self is broadcast to out's shape, and not read where beta is zero. It may be out.
void addmm(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
           const Scalar& alpha);
/// out[i] = a[i] b[i].
void bmm(const Tensor& out, const Tensor& a, const Tensor& b);
void baddbmm(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha);
/// out = a v, with a [m, k], v [k].
void mv(const Tensor& out, const Tensor& a, const Tensor& v);
void addmv(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& v, const Scalar& beta,
           const Scalar& alpha);
/// The sum of products of two vectors (neither conjugated), a 0-d tensor.
void dot(const Tensor& out, const Tensor& a, const Tensor& b);

}  // namespace umbra::kernels
