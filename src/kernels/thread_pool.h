// The threads that parallel_for shares its work with.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

namespace umbra::kernels {

/// Work is taken, not dealt out: the caller publishes a job of numbered parts and takes parts itself until none is
/// left, workers that are awake take parts as well, and the caller waits for parts that are begun and for nothing else.
/// A worker that another process keeps from its core therefore costs nothing but its help, where the barrier of a team
/// of threads would wait for it. The caller takes parts from the front and workers from the back: in the next job over
/// the same tensors each then meets what its own caches hold.
class ThreadPool {
 public:
  using PartFunction = void (*)(const void* context, int part);
  static ThreadPool& get();

  /// Calls `function` for every part below `parts` (at most kMostParts), on up to `threads` threads. False, and nothing
  /// done, where another thread is using the pool. What a part throws comes out of here.
  bool run(int parts, int threads, PartFunction function, const void* context);

  static constexpr int kMostParts = 0xffff;

 private:
  struct Job {
    PartFunction function = nullptr;
    const void* context = nullptr;
  };
  void start_workers(int count);
  void work(int index);
  enum class End { Front, Back };
  /// Takes a part of the job that is running and does it; false where there is none left.
  bool take_part(End end);
  void do_part(int part);
  void wait_for_parts(int parts);
  bool worth_looking(int index) const;

  std::mutex running_;  // held by the thread whose job it is
  Job job_;             // written while no part can be taken
  std::exception_ptr error_;
  std::mutex error_mutex_;
  int workers_ = 0;

  // Number of the job, and which of its parts are left: in one word, so that a part is taken of the job that was looked
  // at or not at all.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int32_t> done_{0};
  alignas(64) std::atomic<int32_t> wake_{0};  // workers without work sleep on it
  std::atomic<int> active_{0};                // workers below this number may help
};

}  // namespace umbra::kernels
