// Whether forward-mode differentiation follows a tensor. It stands in core because operators ask; autograd answers.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

/// Whether the tensor has a tangent at a dual level that counts now (defined in autograd).
bool has_tangent(const Tensor& tensor);

}  // namespace umbra
