// Reductions. `dims` (not negative, none twice) are reduced; none at all means that nothing is, as in torch's sum over
// an empty tuple after the caller has resolved it. `out` has the sizes of the input with the reduced dimensions either
// left out or of size 1. Its type is the caller's choice: results are converted.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Sums are made pairwise over blocks: the error grows with the logarithm of the number of elements. Narrow floats are
/// summed in float, integers and bool in int64.
void sum(const Tensor& out, const Tensor& self, IntArrayRef dims);
void mean(const Tensor& out, const Tensor& self, IntArrayRef dims);
void nansum(const Tensor& out, const Tensor& self, IntArrayRef dims);
void prod(const Tensor& out, const Tensor& self, IntArrayRef dims);
/// Largest and smallest values; NaN where there is one. The caller refuses empty reductions.
void amax(const Tensor& out, const Tensor& self, IntArrayRef dims);
void amin(const Tensor& out, const Tensor& self, IntArrayRef dims);
/// Whether any or all elements are not 0.
void any(const Tensor& out, const Tensor& self, IntArrayRef dims);
void all(const Tensor& out, const Tensor& self, IntArrayRef dims);

/// Whether all elements of two contiguous tensors of one type and size are equal; looks no further than the first that
/// are not.
bool all_equal(const Tensor& a, const Tensor& b);

/// Position (int64) of the first largest or smallest element along `dim`; without one, in the flattened tensor.
/// NaN counts as both.
void argmax(const Tensor& out, const Tensor& self, std::optional<int64_t> dim);
void argmin(const Tensor& out, const Tensor& self, std::optional<int64_t> dim);
/// The element and its position along `dim`.
void max_with_index(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim);
void min_with_index(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim);

/// Variance (or with `root` the standard deviation) with divisor max(0, n - correction), and the mean.
/// Either output may be undefined. Complex numbers have a real variance.
void var_mean(const Tensor& variance, const Tensor& mean, const Tensor& self, IntArrayRef dims, double correction,
              bool root);

/// The p-norm of absolute values: (sum |x|^p)^(1/p); infinity is the largest, -infinity the smallest, 0 counts what is
/// not 0.
void norm(const Tensor& out, const Tensor& self, double p, IntArrayRef dims);
void logsumexp(const Tensor& out, const Tensor& self, IntArrayRef dims);

}  // namespace umbra::kernels
