#include "kernels/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "umbra/core/error.h"
#include "umbra/core/threads.h"

namespace umbra::kernels {

namespace {
std::atomic<int> thread_limit{0};  // 0: what OpenMP offers
thread_local bool inside = false;

struct InsideScope {
  bool before = inside;
  InsideScope() { inside = true; }
  ~InsideScope() { inside = before; }
};
}  // namespace

int num_threads() {
  int limit = thread_limit.load(std::memory_order_relaxed);
  return limit > 0 ? limit : omp_get_max_threads();
}

void set_num_threads(int count) {
  check(count > 0, "expected a positive number of threads, but got ", count);
  thread_limit.store(count, std::memory_order_relaxed);
}

bool in_parallel_region() { return inside; }

namespace detail {

bool worth_splitting(int64_t count, int64_t grain) {
  return count > std::max<int64_t>(grain, 1) && !inside && num_threads() > 1;
}

void parallel_split(int64_t begin, int64_t end, int64_t grain, RangeFunction function, const void* context) {
  grain = std::max<int64_t>(grain, 1);
  int64_t count = end - begin;
  int parts = static_cast<int>(std::min<int64_t>(num_threads(), (count + grain - 1) / grain));
  int64_t length = (count + parts - 1) / parts;
  std::exception_ptr error;
  std::mutex error_mutex;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    int64_t from = begin + part * length, to = std::min(end, from + length);
    if (from >= to) continue;
    InsideScope scope;
    try {
      function(context, from, to);
    } catch (...) {
      std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

}  // namespace umbra::kernels

namespace umbra {
int get_num_threads() { return kernels::num_threads(); }
void set_num_threads(int count) { kernels::set_num_threads(count); }
}  // namespace umbra
