#include "umbra/core/storage.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/block_cache.h"
#include "core/lent_memory.h"
#include "core/small_blocks.h"
#include "umbra/core/error.h"
#include "umbra/core/memory.h"

namespace umbra {

namespace {
constexpr size_t kAlignment = 64;
#ifdef __SANITIZE_ADDRESS__
// A block of its own, never one that was used before: the sanitizer sees its ends and its life.
constexpr int64_t kSmall = -1;
constexpr size_t kCached = SIZE_MAX;
#else
constexpr int64_t kSmall = 4096;
constexpr size_t kCached = BlockCache::kSmallest;
#endif

void* align(void* address) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(address) + kAlignment - 1) & ~(kAlignment - 1));
}

class CpuAllocator final : public Allocator {
 public:
  // One malloc with room to align by hand: for small blocks that is several times faster than aligned_alloc.
  Block allocate(int64_t bytes, Device) override {
    auto size = static_cast<size_t>(bytes);
    if (size >= kCached) {
      if (void* data = BlockCache::get().take(size)) return {data, nullptr};
    } else if (void* handle = std::malloc(size + kAlignment)) {
      return {align(handle), handle};
    }
    fail<OutOfMemoryError>("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
  }
  void free(Block block) noexcept override {
    if (block.handle) std::free(block.handle);
    else if (block.data) BlockCache::get().put(block.data);
  }
  void copy(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
};

// Ready before any constructor runs: static tensors may be made by any of them.
constinit CpuAllocator g_cpu_allocator;
constinit std::atomic<Allocator*> g_allocators[static_cast<size_t>(DeviceType::HPU) + 1] = {&g_cpu_allocator};

Allocator& allocator_for(Device device) {
  Allocator* found = allocator(device.type);
  if (__builtin_expect(!found, 0))  // the device's name is made only for the message
    fail<NotImplementedError>("this build cannot hold data on device ", to_string(device));
  return *found;
}

constinit std::atomic<MemoryObserver*> g_observer = nullptr;
constinit thread_local int t_unobserved = 0;

void observe(const StorageImpl& storage) {
  MemoryObserver* observer = g_observer.load(std::memory_order_relaxed);
  if (observer && t_unobserved == 0)
    observer->made(&storage, storage.bytes().has_hint() ? storage.bytes().hint() : 0, storage.has_data());
}
}  // namespace

MemoryObserver* set_memory_observer(MemoryObserver* observer) { return g_observer.exchange(observer); }
UnobservedMemory::UnobservedMemory() { ++t_unobserved; }
UnobservedMemory::~UnobservedMemory() { --t_unobserved; }

Allocator* allocator(DeviceType type) {
  return g_allocators[static_cast<size_t>(type)].load(std::memory_order_acquire);
}
Allocator* set_allocator(DeviceType type, Allocator* allocator) {
  return g_allocators[static_cast<size_t>(type)].exchange(allocator);
}

void* StorageImpl::operator new(size_t size, Behind contents) {
  if (void* object = SmallBlocks::take(size + contents.bytes)) return object;
  throw std::bad_alloc();
}
void StorageImpl::operator delete(void* object) noexcept { SmallBlocks::put(object); }
void StorageImpl::operator delete(void* object, Behind) noexcept { SmallBlocks::put(object); }

Storage StorageImpl::allocate(int64_t bytes, Device device) {
  check(bytes >= 0, "Storage size calculation overflowed: ", bytes, " bytes");
  Allocator& from = allocator_for(device);
  bool small = bytes <= kSmall && &from == &g_cpu_allocator;
  Storage storage(new (Behind{small ? static_cast<size_t>(bytes) + kAlignment : 0}) StorageImpl);
  if (small) {
    storage->data_ = align(storage.get() + 1);
  } else {
    Allocator::Block block = from.allocate(bytes, device);
    storage->data_ = block.data;
    storage->handle_ = block.handle;
    storage->allocator_ = &from;
  }
  storage->bytes_ = bytes;
  if (device.type != DeviceType::CPU) storage->device_ = device;
  observe(*storage);
  return storage;
}

Storage StorageImpl::without_data(SymInt bytes, Device device) {
  Storage storage(new StorageImpl);
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->has_data_ = false;
  observe(*storage);
  return storage;
}

Storage StorageImpl::wrap(void* data, int64_t bytes, std::function<void()> release) {
  Storage storage(new StorageImpl);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->release_ = release ? std::move(release) : [] {};
  return storage;
}

Storage StorageImpl::adopt(Allocator& from, Allocator::Block block, int64_t bytes, Device device) {
  Storage storage(new StorageImpl);
  storage->data_ = block.data;
  storage->handle_ = block.handle;
  storage->allocator_ = &from;
  storage->bytes_ = bytes;
  storage->device_ = device;
  observe(*storage);
  return storage;
}

StorageImpl::~StorageImpl() { release_resources(); }

void StorageImpl::release_resources() {
  if (MemoryObserver* observer = g_observer.load(std::memory_order_relaxed)) observer->gone(this);
  if (release_) std::exchange(release_, nullptr)();
  free_block();
  data_ = nullptr;
}

void StorageImpl::free_block() noexcept {
  if (Allocator* from = std::exchange(allocator_, nullptr)) from->free({data_, handle_});
}

void StorageImpl::replace_block(Allocator& by, int64_t bytes) {
  Allocator::Block block = by.allocate(bytes, device_);
  if (data_) by.copy(block.data, data_, std::min(bytes, bytes_.value()));
  free_block();
  data_ = block.data;
  handle_ = block.handle;
  allocator_ = &by;
}

void StorageImpl::resize(int64_t bytes) {
  check(resizable() && !is_lent(*this), "Trying to resize storage that is not resizable");
  check(bytes >= 0, "Storage size calculation overflowed: ", bytes, " bytes");
  if (has_data_) replace_block(allocator_for(device_), bytes);
  bytes_ = bytes;
  observe(*this);
}

void StorageImpl::move_to(Allocator& other) {
  check(has_data_, "a storage without data cannot be moved to other memory");
  if (allocator_ == &other) return;
  check(!is_lent(*this), "memory that a NumPy array uses cannot be moved elsewhere");
  replace_block(other, bytes_.value());
  if (release_) std::exchange(release_, nullptr)();
}

namespace {
std::mutex g_lent_mutex;
std::unordered_map<const StorageImpl*, size_t>& lent_counts() {
  static auto* counts = new std::unordered_map<const StorageImpl*, size_t>();  // arrays may outlive static objects
  return *counts;
}
}  // namespace

void lend(const StorageImpl& storage) {
  std::lock_guard lock(g_lent_mutex);
  ++lent_counts()[&storage];
}

void take_back(const StorageImpl& storage) {
  std::lock_guard lock(g_lent_mutex);
  auto found = lent_counts().find(&storage);
  if (found != lent_counts().end() && --found->second == 0) lent_counts().erase(found);
}

bool is_lent(const StorageImpl& storage) {
  std::lock_guard lock(g_lent_mutex);
  return lent_counts().contains(&storage);
}

}  // namespace umbra
