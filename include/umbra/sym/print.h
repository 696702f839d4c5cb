// Text of expressions: as sympy prints them, as .pt2 files hold them, and as Python code over a program's inputs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "umbra/sym/expression.h"

namespace UMBRA_API umbra {
namespace sym {

/// As sympy's str: `2*s0 + 1`, `((s0 + 1)//2)`, `Max(1, u0)`, `Eq(s0, 4)`, `(s0 < 4) & (s1 > 2)`.
std::string to_text(const Expression* a);

/// The same of a condition, written as PyTorch keeps it for the run: `3 < u0`, `Eq(u0, u1 + 2)`. The smaller side comes
/// first, without a common factor, and nothing is subtracted.
std::string to_condition_text(const Expression* a);

/// As sympy's srepr, the form of .pt2 files: `Add(Mul(Integer(2), Symbol('s58', positive=True, integer=True)),
/// Integer(1))`.
std::string to_srepr(const Expression* a);

/// As a Python expression over inputs: `(L['x'].size()[0] % 2) == 0`. `name` gives the text of a symbol.
std::string to_python(const Expression* a, const std::function<std::string(const Expression*)>& name);

/// A float with so many significant digits, as sympy writes it: `2.0`, `0.333333333333333`, `1.0e-5`.
std::string float_text(double value, int digits = 15);

/// The name sympy and PyTorch have for the function at the root: `FloorDiv`, `PythonMod`, `StrictGreaterThan`.
std::string_view function_name(const Expression* a);
/// A relation with a number on the left prints with its sides exchanged: `0 <= u0` as `u0 >= 0`.
bool prints_flipped(const Expression* a);

}  // namespace sym
}  // namespace umbra
