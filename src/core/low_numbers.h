// What numbers ask of the expressions above them: integers below -2^62, which a SymInt cannot hold as numbers, and
// comparisons that a program does not ask.
#pragma once

#include "umbra/core/sym_int.h"

namespace umbra {

/// Makes the constant expression that stands for such a number; sym/, which has the expressions, sets it. Without it
/// the number is refused.
extern SymInt (*make_low_number)(int64_t value);
/// A comparison of which the answer is known, for a program that may hand it on unasked (ShapeEnv::hold).
extern SymBool (*hold_comparison)(SymOp op, SymInt a, SymInt b);

/// Any 64-bit number, as who reads an argument wants it: one that is no size is told so by the operator. Lists, which
/// operators take for sizes on trust, hold no such number.
inline SymInt any_number(int64_t value) {
  return SymInt::can_hold(value) || !make_low_number ? SymInt(value) : make_low_number(value);
}

}  // namespace umbra
