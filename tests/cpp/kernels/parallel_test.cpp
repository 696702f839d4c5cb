#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "umbra/core/error.h"

namespace umbra::kernels {
namespace {

TEST(ParallelFor, CoversTheRangeOnceAndInParts) {
  std::vector<int> seen(1000, 0);
  std::mutex mutex;
  parallel_for(10, 1000, 1, [&](int64_t from, int64_t to) {
    EXPECT_LT(from, to);
    std::lock_guard lock(mutex);
    for (int64_t i = from; i < to; ++i) ++seen[i];
  });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i >= 10) << i;
}

TEST(ParallelFor, CallsNothingForAnEmptyRange) {
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, RunsSmallWorkOnTheCallersThread) {
  auto caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(0, 100, 100, [&](int64_t, int64_t) {
    ++calls;
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, LetsExceptionsOutAsThemselves) {
  EXPECT_THROW(parallel_for(0, 1000, 1, [](int64_t, int64_t to) { check<IndexError>(to != 1000, "last part"); }),
               IndexError);
  EXPECT_FALSE(in_parallel_region());
}

TEST(ParallelFor, RunsNestedCallsSerially) {
  set_num_threads(2);
  parallel_for(0, 2, 1, [](int64_t, int64_t) {
    EXPECT_TRUE(in_parallel_region());
    int calls = 0;
    parallel_for(0, 1000, 1, [&](int64_t, int64_t) { ++calls; });
    EXPECT_EQ(calls, 1);
  });
}

TEST(ParallelFor, UsesNoMoreThreadsThanAllowed) {
  int before = num_threads();
  set_num_threads(1);
  parallel_for(0, 1000, 1, [](int64_t from, int64_t to) { EXPECT_EQ(to - from, 1000); });
  set_num_threads(before);
  EXPECT_THROW(set_num_threads(0), Error);
}

}  // namespace
}  // namespace umbra::kernels
