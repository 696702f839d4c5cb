#include "umbra/core/memory.h"

#include <gtest/gtest.h>

#include "umbra/core/storage.h"

namespace umbra {
namespace {

constexpr int64_t kLarge = 3 << 20;

// The sanitizers see every block's life by itself: nothing is kept under them.
#ifdef __SANITIZE_ADDRESS__
#define NEEDS_CACHE() GTEST_SKIP() << "blocks are not kept under the address sanitizer"
#else
#define NEEDS_CACHE() (void)0
#endif

class Memory : public testing::Test {
 protected:
  void SetUp() override { release_cached_memory(); }
  void TearDown() override {
    set_memory_cache_limit(int64_t{1} << 30);
    release_cached_memory();
  }
};

TEST_F(Memory, ALargeBlockIsGivenAgain) {
  NEEDS_CACHE();
  void* first = StorageImpl::allocate(kLarge)->data();
  EXPECT_GE(cached_memory(), kLarge);
  Storage again = StorageImpl::allocate(kLarge - 1000);
  EXPECT_EQ(again->data(), first);
  EXPECT_EQ(cached_memory(), 0);
}

TEST_F(Memory, ABlockMayBeAnEighthLargerThanWhatIsAskedAndNoMore) {
  NEEDS_CACHE();
  StorageImpl::allocate(4 << 20);
  Storage smaller = StorageImpl::allocate((4 << 20) - (600 << 10));
  EXPECT_GE(cached_memory(), 4 << 20);
}

TEST_F(Memory, NoMoreIsKeptThanTheLimitAndTheOldestGoFirst) {
  NEEDS_CACHE();
  set_memory_cache_limit(2 * kLarge + (1 << 20));
  Storage a = StorageImpl::allocate(kLarge), b = StorageImpl::allocate(kLarge), c = StorageImpl::allocate(kLarge);
  void *second = b->data(), *third = c->data();
  for (Storage* storage : {&a, &b, &c}) *storage = nullptr;
  EXPECT_LE(cached_memory(), 2 * kLarge + (1 << 20));
  Storage d = StorageImpl::allocate(kLarge), e = StorageImpl::allocate(kLarge);
  EXPECT_EQ(d->data(), third);
  EXPECT_EQ(e->data(), second);
}

TEST_F(Memory, NothingIsKeptWithALimitOfZero) {
  set_memory_cache_limit(0);
  StorageImpl::allocate(kLarge);
  EXPECT_EQ(cached_memory(), 0);
}

TEST_F(Memory, BlocksAreAlignedAndAsLargeAsTheyShouldBe) {
  for (int64_t bytes : {1 << 20, (1 << 20) + 1, 5'000'000, 9 << 20, 33 << 20}) {
    Storage storage = StorageImpl::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u);
    static_cast<char*>(storage->data())[bytes - 1] = 1;
  }
}

}  // namespace
}  // namespace umbra
