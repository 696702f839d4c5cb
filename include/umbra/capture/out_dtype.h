// out_dtype: an operator computed in another type, which captured programs keep as one call.
//
//     out_dtype = torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, x, y)
#pragma once

#include <vector>

#include "umbra/core/dtype.h"
#include "umbra/core/value.h"
#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// The operator on its tensors as `dtype`, with its result in it. `arguments` are all of the operator's. Recorded as
/// one call, unless gradients or a transform need its parts.
Tensor out_dtype(const Operator& op, DType dtype, std::vector<Value> arguments);

}  // namespace umbra
