#include "kernels/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>

#include <new>
#include <system_error>
#include <utility>

#include "kernels/openmp.h"

namespace umbra::kernels {

namespace {

// How long a thread looks for work, or for the end of it, before it goes to sleep: about as long as going to sleep and
// waking up takes.
constexpr int kLooks = 2000;

// The parts [first, end) of a job are left.
constexpr uint64_t make_ticket(uint64_t job, int parts) { return job << 32 | static_cast<uint64_t>(parts) << 16; }
constexpr int end_of(uint64_t ticket) { return static_cast<int>(ticket >> 16 & 0xffff); }
constexpr int first_of(uint64_t ticket) { return static_cast<int>(ticket & 0xffff); }
constexpr uint64_t without_first(uint64_t ticket) { return ticket + 1; }
constexpr uint64_t without_last(uint64_t ticket) { return ticket - (1 << 16); }

alignas(ThreadPool) std::byte g_memory[sizeof(ThreadPool)];
std::atomic<ThreadPool*> g_pool{nullptr};

// A forked child has none of its parent's workers: it begins with a pool of its own.
void make_anew() { g_pool.store(new (g_memory) ThreadPool, std::memory_order_release); }

}  // namespace

ThreadPool& ThreadPool::get() {
  static std::once_flag once;
  std::call_once(once, [] {
    make_anew();
    pthread_atfork(nullptr, nullptr, make_anew);
  });
  return *g_pool.load(std::memory_order_acquire);
}

void ThreadPool::start_workers(int count) {
  for (; workers_ < count; ++workers_) {
    // Detached, for the process may end at any time: a sleeping worker holds nothing.
    try {
      std::thread([this, index = workers_] { work(index); }).detach();
    } catch (const std::system_error&) {
      return;  // the process may have no more: those there are, and the caller, do the work
    }
  }
}

bool ThreadPool::run(int parts, int threads, PartFunction function, const void* context) {
  std::unique_lock lock(running_, std::try_to_lock);
  if (!lock) return false;
  start_workers(threads - 1);
  job_ = {function, context};
  done_.store(0, std::memory_order_relaxed);
  active_.store(threads - 1, std::memory_order_relaxed);
  ticket_.store(make_ticket((ticket_.load(std::memory_order_relaxed) >> 32) + 1, parts), std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  wake_.notify_all();
  while (take_part(End::Front)) {
  }
  wait_for_parts(parts);
  if (!error_) return true;
  std::rethrow_exception(std::exchange(error_, nullptr));
}

bool ThreadPool::take_part(End end) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (first_of(ticket) < end_of(ticket)) {
    bool front = end == End::Front;
    uint64_t rest = front ? without_first(ticket) : without_last(ticket);
    if (!ticket_.compare_exchange_weak(ticket, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    do_part(front ? first_of(ticket) : end_of(ticket) - 1);
    return true;
  }
  return false;
}

void ThreadPool::do_part(int part) {
  try {
    job_.function(job_.context, part);
  } catch (...) {
    std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  done_.fetch_add(1, std::memory_order_acq_rel);
  done_.notify_one();
}

void ThreadPool::wait_for_parts(int parts) {
  for (int look = 0; look < kLooks; ++look) {
    if (done_.load(std::memory_order_acquire) == parts) return;
    _mm_pause();
  }
  for (int32_t done; (done = done_.load(std::memory_order_acquire)) != parts;)
    done_.wait(done, std::memory_order_acquire);
}

bool ThreadPool::worth_looking(int index) const {
  uint64_t ticket = ticket_.load(std::memory_order_relaxed);
  return first_of(ticket) < end_of(ticket) && index < active_.load(std::memory_order_relaxed);
}

void ThreadPool::work(int index) {
  // Libraries with threads of their own get one: this one.
  omp_set_num_threads(1);
  for (;;) {
    int32_t seen = wake_.load(std::memory_order_seq_cst);
    bool found = false;
    for (int look = 0; look < kLooks && !found; ++look) {
      found = worth_looking(index);
      if (!found) _mm_pause();
    }
    if (!found) {
      wake_.wait(seen, std::memory_order_seq_cst);
      continue;
    }
    while (index < active_.load(std::memory_order_relaxed) && take_part(End::Back)) {
    }
  }
}

}  // namespace umbra::kernels
