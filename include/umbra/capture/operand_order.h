// The order of what the functions of an operator are given, where the caller has one: an exported cond has PyTorch's,
// which goes by how its functions name what they use.
#pragma once

#include <functional>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

/// Given what functions may use, and which of it each of them uses, the places of what is kept, in order.
using OperandOrder =
    std::function<std::vector<size_t>(const std::vector<Value>& values, const std::vector<std::vector<bool>>& used)>;

/// Asked, on this thread, when a call above autograd is recorded; empty: operands stand as they are given, and then
/// what is closed over.
OperandOrder& operand_order();

}  // namespace umbra
