// Types as C++ spells them, in PyTorch's messages.
#pragma once

#include "umbra/core/dtype.h"

namespace umbra {

/// "long int".
const char* cpp_name(DType dtype);
/// Refuses an output of another type.
void check_out_dtype(DType wanted, DType given);

}  // namespace umbra
