// Functions of symbolic numbers that are none of C++'s operators.
#pragma once

#include <string_view>

#include "umbra/core/sym_int.h"

namespace UMBRA_API umbra {

/// One of two numbers, by a condition that is not asked: torch.sym_ite.
SymInt sym_where(const SymBool& condition, SymInt yes, SymInt no);
SymFloat sym_where(const SymBool& condition, const SymFloat& yes, const SymFloat& no);

/// The nearest integer, of two the even one: Python's round(a).
SymInt sym_round_half_even(const SymFloat& a);
/// The nearest float of so many decimal digits behind the point: Python's round(a, digits).
SymFloat sym_round_decimal(const SymFloat& a, int64_t digits);

/// A function of floats by its name: sqrt, sin, cos, tan, sinh, cosh, tanh, asin, acos, atan or log2. A ValueError
/// where it has no value.
SymFloat sym_function(std::string_view name, const SymFloat& a);

}  // namespace umbra
