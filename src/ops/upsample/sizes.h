// Sizes of images that are asked for by sizes or by scales.
#pragma once

#include <optional>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// The sizes of the result without batch and channels: `output`, or the input's times `scales`, cut down. Exactly one
/// of them is there.
SymShape upsampled_sizes(SymIntArrayRef input, const std::optional<SymIntArrayRef>& output,
                         const std::optional<std::vector<double>>& scales);

}  // namespace umbra::ops
