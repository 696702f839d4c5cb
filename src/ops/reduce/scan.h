// What running sums and products share.
#pragma once

#include <optional>

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// In place, a scan is computed in the tensor's own type.
void check_scanned_in_place(const Tensor& self, std::optional<DType> dtype);

}  // namespace umbra::ops
