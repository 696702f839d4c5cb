// The numbers by which PyTorch knows types of elements: in schemas, in TorchScript and where an operator gives a type.
#pragma once

#include "umbra/core/dtype.h"

namespace UMBRA_API umbra {

int64_t number_of(DType dtype);
/// The type of a number; undefined where no type of ours has it.
DType dtype_of_number(int64_t number);

}  // namespace umbra
