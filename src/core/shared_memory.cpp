#include "umbra/core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "umbra/core/error.h"

namespace umbra {

namespace {

/// What a block is known by: its file, and how much of it stands in memory.
struct Mapping {
  int descriptor;
  size_t length;
};

[[noreturn]] void fail_to(const char* what) { fail("unable to ", what, " shared memory: ", std::strerror(errno)); }

size_t mapped_length(int64_t bytes) { return static_cast<size_t>(std::max<int64_t>(bytes, 1)); }  // none of 0 bytes

/// Takes over the descriptor.
Allocator::Block map_file(int descriptor, size_t length) {
  void* data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    close(descriptor);
    fail_to("map");
  }
  return {data, new Mapping{descriptor, length}};
}

class SharedAllocator final : public Allocator {
 public:
  Block allocate(int64_t bytes, Device) override {
    int descriptor = memfd_create("umbra", MFD_CLOEXEC);
    if (descriptor < 0) fail_to("make");
    if (ftruncate(descriptor, static_cast<off_t>(mapped_length(bytes))) != 0) {
      close(descriptor);
      fail_to("size");
    }
    return map_file(descriptor, mapped_length(bytes));
  }
  void free(Block block) noexcept override {
    auto* mapping = static_cast<Mapping*>(block.handle);
    munmap(block.data, mapping->length);
    close(mapping->descriptor);
    delete mapping;
  }
  void copy(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  bool resizable() const override { return false; }  // the other processes would not know
};

/// Storages by the file they stand in, so that a tensor that comes twice is one memory here too.
class KnownFiles {
 public:
  template <class Make> Storage find_or_make(const struct stat& file, const Make& make) {
    std::lock_guard lock(mutex_);
    std::erase_if(storages_, [](const auto& entry) { return !entry.second.lock(); });
    WeakPtr<StorageImpl>& known = storages_[{file.st_dev, file.st_ino}];
    Storage storage = known.lock();
    if (!storage) known = WeakPtr<StorageImpl>(storage = make());
    return storage;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, WeakPtr<StorageImpl>> storages_;
};

}  // namespace

Allocator& shared_memory() {
  static SharedAllocator allocator;
  return allocator;
}

bool is_shared(const StorageImpl& storage) { return storage.allocator() == &shared_memory(); }

int shared_descriptor(const StorageImpl& storage) {
  check(is_shared(storage), "the storage is not in shared memory");
  return static_cast<Mapping*>(storage.handle())->descriptor;
}

Storage shared_storage(int descriptor, int64_t bytes) {
  static auto* known = new KnownFiles;  // storages may outlive every static object
  struct stat file {};
  if (fstat(descriptor, &file) != 0) fail_to("open");
  check(bytes >= 0 && bytes <= file.st_size, "shared memory of ", file.st_size, " bytes cannot hold ", bytes);
  return known->find_or_make(file, [&] {
    int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) fail_to("open");
    return StorageImpl::adopt(shared_memory(), map_file(own, mapped_length(bytes)), bytes);
  });
}

}  // namespace umbra
