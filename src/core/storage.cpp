#include "umbra/core/storage.h"

#include <cstdlib>
#include <cstring>

#include "umbra/core/error.h"

namespace umbra {

namespace {
constexpr size_t kAlignment = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kSmall = -1;  // a block of its own, so that the sanitizer sees its ends
#else
constexpr int64_t kSmall = 1024;
#endif

void* align(void* address) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(address) + kAlignment - 1) & ~(kAlignment - 1));
}

// One malloc with room to align by hand: for small blocks that is several times faster than aligned_alloc.
void* aligned_block(int64_t bytes, void** data) {
  check(bytes >= 0, "Storage size calculation overflowed: ", bytes, " bytes");
  void* block = std::malloc(static_cast<size_t>(bytes) + kAlignment);
  if (!block)
    fail<OutOfMemoryError>("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
  *data = align(block);
  return block;
}
}  // namespace

void* StorageImpl::operator new(size_t size, Behind contents) {
  if (void* object = std::malloc(size + contents.bytes)) return object;
  throw std::bad_alloc();
}
void StorageImpl::operator delete(void* object) noexcept { std::free(object); }
void StorageImpl::operator delete(void* object, Behind) noexcept { std::free(object); }

Storage StorageImpl::allocate(int64_t bytes) {
  bool small = bytes >= 0 && bytes <= kSmall;
  Storage storage(new (Behind{small ? static_cast<size_t>(bytes) + kAlignment : 0}) StorageImpl);
  if (small) storage->data_ = align(storage.get() + 1);
  else storage->block_ = aligned_block(bytes, &storage->data_);
  storage->bytes_ = bytes;
  return storage;
}

Storage StorageImpl::without_data(SymInt bytes, Device device) {
  Storage storage(new StorageImpl);
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->has_data_ = false;
  return storage;
}

Storage StorageImpl::wrap(void* data, int64_t bytes, std::function<void()> release) {
  Storage storage(new StorageImpl);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->release_ = release ? std::move(release) : [] {};
  return storage;
}

StorageImpl::~StorageImpl() { release_resources(); }

void StorageImpl::release_resources() {
  if (release_) std::exchange(release_, nullptr)();
  std::free(std::exchange(block_, nullptr));
  data_ = nullptr;
}

void StorageImpl::resize(int64_t bytes) {
  check(resizable(), "Trying to resize storage that is not resizable");
  if (has_data_) {
    void* data;
    void* block = aligned_block(bytes, &data);
    if (data_) std::memcpy(data, data_, static_cast<size_t>(std::min(bytes, bytes_.value())));
    std::free(block_);
    block_ = block;
    data_ = data;
  }
  bytes_ = bytes;
}

}  // namespace umbra
