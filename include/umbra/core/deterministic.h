// Whether a program asks for deterministic algorithms. Umbra's kernels are deterministic whatever it says; it is
// remembered for those who ask, captured programs are kept apart by it, and what PyTorch refuses then is refused.
#pragma once

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

bool deterministic_algorithms();
/// With `warn_only`, what would be refused is warned of.
void set_deterministic_algorithms(bool enabled, bool warn_only = false);
/// Refuses, or warns of, an operator that PyTorch does not call deterministic.
void alert_not_deterministic(const char* caller);

/// Whether memory that nobody has written yet is filled with a value that shows: so it is among deterministic
/// algorithms, unless it is switched off.
bool fills_new_memory();
void set_fill_uninitialized_memory(bool enabled);
bool fill_uninitialized_memory();

}  // namespace umbra
