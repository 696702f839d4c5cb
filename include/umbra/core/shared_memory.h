// Memory that several processes see: what one writes, the others read.
#pragma once

#include "umbra/core/storage.h"

namespace UMBRA_API umbra {

/// Gives blocks that stand in a file without a name: a child has them by fork, any other process by the file's
/// descriptor.
///
///     x.storage()->move_to(shared_memory());   // fork(): both see what either writes to x
Allocator& shared_memory();

bool is_shared(const StorageImpl& storage);

/// The file behind a shared storage, which stays open as long as the storage lives.
int shared_descriptor(const StorageImpl& storage);

/// The memory behind a descriptor, which stays the caller's. The same file gives the same storage while that is in use.
Storage shared_storage(int descriptor, int64_t bytes);

}  // namespace umbra
