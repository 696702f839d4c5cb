#include "umbra/core/storage.h"

#include <cstdlib>
#include <cstring>

#include "umbra/core/error.h"

namespace umbra {

namespace {
constexpr size_t kAlignment = 64;

// One malloc with room to align by hand: for small blocks that is several times faster than aligned_alloc.
void* aligned_block(int64_t bytes, void** data) {
  check(bytes >= 0, "Storage size calculation overflowed: ", bytes, " bytes");
  void* block = std::malloc(static_cast<size_t>(bytes) + kAlignment);
  if (!block)
    fail<OutOfMemoryError>("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
  *data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(block) + kAlignment - 1) & ~(kAlignment - 1));
  return block;
}
}  // namespace

Storage StorageImpl::allocate(int64_t bytes) {
  Storage storage(new StorageImpl);
  storage->block_ = aligned_block(bytes, &storage->data_);
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
