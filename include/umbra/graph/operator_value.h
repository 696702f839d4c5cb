// An operator as a value: what a call that takes an operator (with_effects) has among its arguments.
#pragma once

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {
namespace fx {

/// The value that stands for an operator; there is one for each.
Value operator_value(const Operator& op);
/// The operator that a value stands for, or null.
const Operator* operator_in(const Value& value);

}  // namespace fx
}  // namespace umbra
