// Operators that take functions. `cond` runs one of two branches; captured, both become graphs of their own.
//
//     auto sine = [](const std::vector<Value>& v) { return std::vector<Value>{sin(v[0].tensor())}; };
//     auto cosine = [](const std::vector<Value>& v) { return std::vector<Value>{cos(v[0].tensor())}; };
//     Tensor y = cond(x.sum() > 0, sine, cosine, {x})[0].tensor();
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
