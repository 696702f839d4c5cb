// Integers that a SymInt cannot hold as numbers.
#pragma once

#include "umbra/core/sym_int.h"

namespace UMBRA_API umbra {
namespace sym {

/// Any 64-bit number. One below -2^62 is a constant expression, by which an operator can compare and read it; it is no
/// size: code that takes expressions on trust must not get it.
SymInt plain_number(int64_t value);

}  // namespace sym
}  // namespace umbra
