// The functions on numbers and lists that graphs of symbolic programs call.
#pragma once

#include <vector>

#include "umbra/graph/function.h"

namespace umbra::fx {

std::vector<Function> symbolic_functions();

}  // namespace umbra::fx
