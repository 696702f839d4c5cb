// Memory and its identity: sharing, resizing, weak references, foreign blocks.
#include "umbra/core/storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "umbra/core/error.h"

namespace umbra {
namespace {

bool is_aligned(const Storage& storage) { return reinterpret_cast<uintptr_t>(storage->data()) % 64 == 0; }

TEST(Storage, BlocksOfEverySizeAreAligned) {
  for (int64_t bytes : {0, 1, 63, 64, 1023, 1024, 1025, 1 << 20}) {
    Storage storage = StorageImpl::allocate(bytes);
    EXPECT_TRUE(is_aligned(storage)) << bytes;
    EXPECT_EQ(storage->bytes().value(), bytes);
    std::memset(storage->data(), 1, static_cast<size_t>(bytes));
  }
}

TEST(Storage, ResizingKeepsContents) {
  for (int64_t from : {16, 4096}) {  // small contents stand inside the object, large ones do not
    Storage storage = StorageImpl::allocate(from);
    std::memset(storage->data(), 7, static_cast<size_t>(from));
    storage->resize(10000);
    EXPECT_EQ(storage->bytes().value(), 10000);
    EXPECT_TRUE(is_aligned(storage));
    EXPECT_EQ(static_cast<char*>(storage->data())[from - 1], 7);
    storage->resize(8);
    EXPECT_EQ(static_cast<char*>(storage->data())[7], 7);
  }
}

TEST(Storage, WeakReferencesDoNotKeepIt) {
  for (int64_t bytes : {16, 4096}) {
    Storage storage = StorageImpl::allocate(bytes);
    WeakPtr<StorageImpl> weak(storage);
    EXPECT_TRUE(weak.lock());
    storage = nullptr;
    EXPECT_FALSE(weak.lock());
  }
}

TEST(Storage, ThreadsThatLockAndLetGoFreeItOnce) {
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> released = 0;
    static char block[8];
    Storage storage = StorageImpl::wrap(block, 8, [&] { ++released; });
    WeakPtr<StorageImpl> weak(storage);
    std::thread other([weak = std::move(weak), &released]() mutable {
      Storage locked = weak.lock();
      weak = WeakPtr<StorageImpl>();  // from here on the count of weak references is as if there had been none
      if (locked) {
        EXPECT_EQ(released.load(), 0);
      }
    });
    storage = nullptr;
    other.join();
    EXPECT_EQ(released.load(), 1);
  }
}

TEST(Storage, ForeignMemoryIsGivenBackOnceAndNotResized) {
  char block[8];
  int released = 0;
  {
    Storage storage = StorageImpl::wrap(block, 8, [&] { ++released; });
    EXPECT_EQ(storage->data(), block);
    EXPECT_THROW(storage->resize(16), Error);
    WeakPtr<StorageImpl> weak(storage);
    storage = nullptr;
    EXPECT_EQ(released, 1);  // at the last strong reference, whatever weak ones remain
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, WithoutDataItHasASizeAndAnIdentity) {
  Storage storage = StorageImpl::without_data(int64_t{1} << 50, Device(DeviceType::CUDA, 0));
  EXPECT_FALSE(storage->has_data());
  EXPECT_EQ(storage->bytes().value(), int64_t{1} << 50);
}

TEST(Storage, NegativeSizesAreRefused) { EXPECT_THROW(StorageImpl::allocate(-1), Error); }

}  // namespace
}  // namespace umbra
