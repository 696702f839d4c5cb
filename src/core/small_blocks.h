// Memory of storages with little in them. malloc keeps blocks of up to a thousand bytes at hand in each thread, and
// takes several times as long for larger ones; here a thread keeps a few of those, too.
#pragma once

#include <cstddef>

namespace umbra {

class SmallBlocks {
 public:
  /// A block of at least `bytes`, or null.
  static void* take(size_t bytes);
  /// Gives it back, in whichever thread.
  static void put(void* block) noexcept;
};

}  // namespace umbra
