// What running sums and products share.
#pragma once

#include <optional>

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// Of one element or none there is nothing to gather: kernels, which are not made for every type, are not asked.
inline bool is_trivial_scan(const Tensor& self) { return self.dim() == 0 || self.sym_numel().same(0); }

/// In place, a scan is computed in the tensor's own type.
void check_scanned_in_place(const Tensor& self, std::optional<DType> dtype);

}  // namespace umbra::ops
