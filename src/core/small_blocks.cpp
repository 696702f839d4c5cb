#include "core/small_blocks.h"

#include <malloc.h>

#include <cstdlib>

namespace umbra {

namespace {

// What malloc has at hand itself ends below the first of these. A block is known by its size again, which malloc may
// have made a little larger. The sizes have room for one, two and four kilobytes of data behind a storage.
constexpr size_t kSizes[] = {1304, 2328, 4376}, kSlack = 64;
constexpr size_t kLeast = 1032;
constexpr int kClasses = 3, kMost = 8;

struct Kept {
  void* first[kClasses] = {};  // each block begins with the address of the next
  int count[kClasses] = {};
  bool closed = false;
};
constinit thread_local Kept t_kept __attribute__((tls_model("initial-exec")));

struct Cleaner {
  ~Cleaner() {
    t_kept.closed = true;
    for (void*& first : t_kept.first)
      while (first) {
        void* block = first;
        first = *static_cast<void**>(block);
        std::free(block);
      }
  }
};
void clean_at_the_end_of_the_thread() { thread_local Cleaner cleaner; }

/// The smallest of the sizes that hold so many.
int class_for(size_t bytes) {
  int c = 0;
  while (c < kClasses && kSizes[c] < bytes) ++c;
  return c;
}
/// The size that a block of so many was asked for with.
int class_of(size_t bytes) {
  int c = 0;
  while (c < kClasses && (bytes < kSizes[c] || bytes > kSizes[c] + kSlack)) ++c;
  return c;
}

}  // namespace

void* SmallBlocks::take(size_t bytes) {
  int c = bytes <= kLeast ? kClasses : class_for(bytes);
  if (c == kClasses) return std::malloc(bytes);
  void* block = t_kept.first[c];
  if (!block) return std::malloc(kSizes[c]);
  t_kept.first[c] = *static_cast<void**>(block);
  --t_kept.count[c];
  return block;
}

void SmallBlocks::put(void* block) noexcept {
  size_t bytes = malloc_usable_size(block);
  int c = bytes <= kLeast ? kClasses : class_of(bytes);
  if (c == kClasses || t_kept.count[c] == kMost || t_kept.closed) return std::free(block);
  if (t_kept.count[c] == 0) clean_at_the_end_of_the_thread();
  *static_cast<void**>(block) = t_kept.first[c];
  t_kept.first[c] = block;
  ++t_kept.count[c];
}

}  // namespace umbra
