// Distances between the rows of matrices, by p-norms.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// out[b, i, j] = ||x1[b, i] - x2[b, j]||_p; all contiguous, of one floating type.
void cdist(const Tensor& out, const Tensor& x1, const Tensor& x2, double p);
/// The gradient of x1 from that of the distances.
void cdist_backward(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                    const Tensor& distances);
/// The distances of the rows i < j of one matrix, in the order of the upper triangle.
void pdist(const Tensor& out, const Tensor& self, double p);
void pdist_backward(const Tensor& out, const Tensor& grad, const Tensor& self, double p, const Tensor& distances);

}  // namespace umbra::kernels
