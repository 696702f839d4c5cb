// Reductions over segments of a dimension, each of a length of its own.
#pragma once

#include <string>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

enum class SegmentReduce : uint8_t { Sum, Mean, Max, Min, Product };

/// `data` is [outer, n, inner], `out` [outer, segments, inner], and `offsets` [outer, segments + 1] says where segments
/// begin and end. `initial` is what each begins with; without one, a mean of nothing is NaN.
void segment_reduce(const Tensor& out, const Tensor& data, const Tensor& offsets, SegmentReduce reduce,
                    std::optional<double> initial);
/// The gradient of `data`, which is zero outside of all segments.
void segment_reduce_backward(const Tensor& grad_data, const Tensor& grad, const Tensor& out, const Tensor& data,
                             const Tensor& offsets, SegmentReduce reduce, std::optional<double> initial);

}  // namespace umbra::kernels
