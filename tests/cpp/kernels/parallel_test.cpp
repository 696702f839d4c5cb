#include "kernels/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(ParallelFor, TakesCallsFromSeveralThreadsAtOnce) {
  set_num_threads(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        parallel_for(0, 64, 1, [&](int64_t from, int64_t to) { sum += to - from; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 64);
  set_num_threads(2);
}

TEST(ParallelFor, GoesOnAfterAnExceptionWithNothingLeftBehind) {
  set_num_threads(3);
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(parallel_for(0, 100, 1, [](int64_t, int64_t) { fail("every part"); }), Error);
    std::atomic<int> parts{0};
    parallel_for(0, 100, 1, [&](int64_t from, int64_t to) { parts += static_cast<int>(to - from); });
    EXPECT_EQ(parts, 100);
  }
  set_num_threads(2);
}

TEST(ParallelFor, WorksInAForkedChild) {
  set_num_threads(2);
  parallel_for(0, 100, 1, [](int64_t, int64_t) {});
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int64_t> sum{0};
    parallel_for(0, 1000, 1, [&](int64_t from, int64_t to) { sum += to - from; });
    _exit(sum == 1000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace umbra::kernels
