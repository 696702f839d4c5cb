// Which operators' costs are counted from their arguments.
#pragma once

#include "umbra/fake/cost.h"

namespace umbra {

/// Whether `count_flops` is ever more than 0.
bool has_flops(const Operator& op);
/// Whether the operator's kernel takes memory for itself.
bool has_workspace(const Operator& op);
/// The bytes of plain copies that kernels get of lazily conjugated or negated tensors.
int64_t resolved_bytes(const Operator& op, const Value* arguments);

}  // namespace umbra
