// Gather and scatter: along one dimension, each element of the index says which element of the other tensor is meant.
#pragma once

#include <string>

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// How elements that meet in one place combine.
enum class ScatterReduce { Assign, Sum, Product, Mean, Max, Min };
/// From "sum", "add", "prod", "multiply", "mean", "amax", "amin".
ScatterReduce scatter_reduce_from_name(const std::string& name);

/// out[i][j] = self[index[i][j]][j] for dim 0, and so on. out has index's sizes.
void gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index);
/// self[index[i][j]][j] = source[i][j], in place; with a reduction, combined with what is there. Unless `include_self`,
/// what was in a place before the first element arrives there does not count.
void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
             ScatterReduce reduce = ScatterReduce::Assign, bool include_self = true);
void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
             ScatterReduce reduce = ScatterReduce::Assign);

}  // namespace umbra::kernels
