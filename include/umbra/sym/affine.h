// Sizes that are a multiple of one symbol plus a number, as those of derived Dims are.
#pragma once

#include <optional>

#include "umbra/sym/expression.h"

namespace UMBRA_API umbra {
namespace sym {

/// coefficient * symbol + constant
struct Affine {
  Integer coefficient = 0, constant = 0;
};

/// `2*s0 + 1` in s0 is {2, 1}, a number {0, number}; nothing where anything else occurs in the expression.
std::optional<Affine> affine_in(const Expression* a, const Expression* symbol);

}  // namespace sym
}  // namespace umbra
