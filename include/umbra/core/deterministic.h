// Whether a program asks for deterministic algorithms. Umbra's kernels are deterministic whatever it says; it is
// remembered for those who ask, and captured programs are kept apart by it.
#pragma once

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

bool deterministic_algorithms();
void set_deterministic_algorithms(bool enabled);

}  // namespace umbra
