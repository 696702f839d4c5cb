// An operator as a value: what a call that takes an operator (with_effects) has among its arguments.
#pragma once

#include <string>

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {
namespace fx {

/// The value that stands for an operator; there is one for each.
Value operator_value(const Operator& op);
/// The operator that a value stands for, or null.
const Operator* operator_in(const Value& value);
/// The value that stands for an operator that this build does not have, by the name that programs call it
/// ("torch.ops.mylib.grow.default"): it can be shown and saved.
Value missing_operator_value(std::string target);
/// That name, or null.
const std::string* missing_operator_in(const Value& value);

}  // namespace fx
}  // namespace umbra
