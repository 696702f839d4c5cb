// How many samples of a packed sequence have each step.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// The numbers themselves, since what follows depends on them: from memory where the tensor is plain, which no capture
/// sees, else by operators.
std::vector<int64_t> read_batch_sizes(const Tensor& batch_sizes);

}  // namespace umbra::ops
