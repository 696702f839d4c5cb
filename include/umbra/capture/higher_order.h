// Operators that take functions. `cond` runs one of two branches; captured, both become graphs of their own.
//
//     Tensor y = cond(x.sum() > 0, [](auto& v) { return sin(v); }, [](auto& v) { return cos(v); }, {x})[0].tensor();
#pragma once

#include <vector>

#include "umbra/capture/make_fx.h"

namespace umbra {

/// Runs `true_function` or `false_function` on the operands. The predicate is a tensor of one bool, a bool, or a
/// symbolic bool (which is decided now, with a guard). Under capture both branches are recorded; they must give tensors
/// of the same metadata.
std::vector<Value> cond(const Value& predicate, const ValueFunction& true_function, const ValueFunction& false_function,
                        const std::vector<Value>& operands);

}  // namespace umbra
