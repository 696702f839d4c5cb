// How many threads the library's operators may use.
#pragma once

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// By default as many as OpenMP offers.
int get_num_threads();
/// An error where it is not positive. It holds for operators that start from here on, on any thread.
void set_num_threads(int count);

}  // namespace umbra
