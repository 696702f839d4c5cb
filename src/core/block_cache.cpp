#include "core/block_cache.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "umbra/core/memory.h"

namespace umbra {

namespace {

constexpr size_t kHugePage = size_t{1} << 21;

size_t default_limit() {
  size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min<size_t>(memory / 16, size_t{1} << 30);
}

// Blocks of several huge pages start at one and ask for them: a page fault for 2 MiB instead of 512.
void* from_system(size_t bytes) {
  bool huge = bytes >= 2 * kHugePage;
  size_t alignment = huge ? kHugePage : 64;
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block && huge) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace

BlockCache::BlockCache() : limit_(default_limit()) {
  // A process that forks while another thread is in here would leave the child a lock that nobody opens.
  pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().mutex_.unlock(); });
}

BlockCache& BlockCache::get() {
  static auto& cache = *new BlockCache;  // blocks come back until the last moment of the process
  return cache;
}

// Class 8 e + s holds up to 2^e (1 + (s + 1) / 8) bytes.
size_t BlockCache::class_of(size_t bytes) {
  size_t exponent = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;
  return exponent * kSteps + (bytes - 1 - (size_t{1} << exponent)) / ((size_t{1} << exponent) / kSteps);
}
size_t BlockCache::capacity_of(size_t size_class) {
  size_t power = size_t{1} << size_class / kSteps;
  return power + (size_class % kSteps + 1) * (power / kSteps);
}

void* BlockCache::take(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) return nullptr;
  size_t size_class = class_of(bytes), capacity = capacity_of(size_class);
  {
    std::lock_guard lock(mutex_);
    if (Header* kept = pop(size_class)) return kept + 1;
  }
  void* block = from_system(sizeof(Header) + capacity);
  if (!block) {
    shrink(0);
    block = from_system(sizeof(Header) + capacity);
  }
  if (!block) return nullptr;
  auto* header = static_cast<Header*>(block);
  header->capacity = capacity;
  header->size_class = size_class;
  return header + 1;
}

void BlockCache::put(void* data) noexcept {
  Header* header = static_cast<Header*>(data) - 1;
  std::lock_guard lock(mutex_);
  if (header->capacity > limit_) return std::free(header);
  insert(header);
  shrink_locked(limit_);
}

BlockCache::Header* BlockCache::pop(size_t size_class) noexcept {
  Header* header = classes_[size_class];
  if (header) remove(header);
  return header;
}

void BlockCache::insert(Header* header) noexcept {
  Header*& first = classes_[header->size_class];
  header->before = nullptr;
  header->behind = first;
  if (first) first->before = header;
  first = header;
  header->newer = nullptr;
  header->older = newest_;
  (newest_ ? newest_->newer : oldest_) = header;
  newest_ = header;
  bytes_ += header->capacity;
}

void BlockCache::remove(Header* header) noexcept {
  (header->before ? header->before->behind : classes_[header->size_class]) = header->behind;
  if (header->behind) header->behind->before = header->before;
  (header->newer ? header->newer->older : newest_) = header->older;
  (header->older ? header->older->newer : oldest_) = header->newer;
  bytes_ -= header->capacity;
}

void BlockCache::shrink_locked(size_t bytes) noexcept {
  while (bytes_ > bytes) {
    Header* header = oldest_;
    remove(header);
    std::free(header);
  }
}

void BlockCache::shrink(size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  shrink_locked(bytes);
}

size_t BlockCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void BlockCache::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
  shrink_locked(limit_);
}

int64_t cached_memory() { return static_cast<int64_t>(BlockCache::get().bytes()); }
void release_cached_memory() { BlockCache::get().shrink(0); }
void set_memory_cache_limit(int64_t bytes) {
  BlockCache::get().set_limit(static_cast<size_t>(std::max<int64_t>(bytes, 0)));
}

}  // namespace umbra
