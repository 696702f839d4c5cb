// Memory that was freed and is kept for the next tensor of its size.
//
// Pages that are fresh from the system cost more than what most operators do with them, so large blocks are kept, up to
// a limit: a sixteenth of the machine's memory and at most 1 GiB, unless set otherwise.
//
//     set_memory_cache_limit(0);      // keep nothing
#pragma once

#include <cstdint>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// How many bytes are kept at this moment.
int64_t cached_memory();
/// Gives everything that is kept back to the system.
void release_cached_memory();
/// Keeps at most that many bytes from now on.
void set_memory_cache_limit(int64_t bytes);

}  // namespace umbra
