#include "kernels/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <new>
#include <system_error>
#include <utility>

#include "kernels/openmp.h"

namespace umbra::kernels {

namespace {

// How often a thread looks for work, or for the end of it, before it lets other programs have its core meanwhile.
constexpr int kLooks = 2000;
// How long it then goes on looking before it goes to sleep, in cycles: some tenths of a millisecond. A program's next
// work mostly comes within that, and a thread that has to be woken comes too late for most of it.
constexpr uint64_t kPatience = 1 << 20;

/// Whether `found` is true within that time.
template <class Found> bool look_for(const Found& found, uint64_t patience = kPatience) {
  for (int look = 0; look < kLooks; ++look) {
    if (found()) return true;
    _mm_pause();
  }
  for (uint64_t start = __rdtsc(); __rdtsc() - start < patience;) {
    sched_yield();
    if (found()) return true;
  }
  return false;
}

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
  if (look_for([&] { return done_.load(std::memory_order_acquire) == parts; })) return;
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
    // A job of fewer threads tells that the next one will hardly need this one.
    uint64_t patience = index < active_.load(std::memory_order_relaxed) ? kPatience : 0;
    if (!look_for([&] { return worth_looking(index); }, patience)) {
      wake_.wait(seen, std::memory_order_seq_cst);
      continue;
    }
    while (index < active_.load(std::memory_order_relaxed) && take_part(End::Back)) {
    }
  }
}

}  // namespace umbra::kernels
