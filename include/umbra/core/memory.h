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

/// Sees the storages of tensors come and go: those with memory of their own, and those of fake tensors, which have
/// none.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  /// A storage was made, or has another size.
  virtual void made(const void* storage, int64_t bytes, bool has_data) noexcept = 0;
  /// It has given its memory back.
  virtual void gone(const void* storage) noexcept = 0;
};
/// Makes an observer the one that sees all threads' storages, null for none; gives the one before.
MemoryObserver* set_memory_observer(MemoryObserver* observer);
/// While it lives, this thread's new storages are not shown to the observer: a run that only finds something out is no
/// part of what a program takes.
class UnobservedMemory {
 public:
  UnobservedMemory();
  ~UnobservedMemory();
  UnobservedMemory(const UnobservedMemory&) = delete;
  UnobservedMemory& operator=(const UnobservedMemory&) = delete;
};

/// How many bytes are kept at this moment.
int64_t cached_memory();
/// Gives everything that is kept back to the system.
void release_cached_memory();
/// Keeps at most that many bytes from now on.
void set_memory_cache_limit(int64_t bytes);

}  // namespace umbra
