#include "kernels/parallel.h"

#include <algorithm>
#include <atomic>

#include "kernels/openmp.h"
#include "kernels/thread_pool.h"
#include "umbra/core/error.h"
#include "umbra/core/threads.h"

namespace umbra::kernels {

namespace {
std::atomic<int> thread_limit{0};  // 0: as many as OpenMP would use
thread_local bool g_inside = false;

// More parts than threads: who is held up leaves the rest to the others.
constexpr int64_t kPartsPerThread = 4;

struct InsideScope {
  bool before = g_inside;
  InsideScope() { g_inside = true; }
  ~InsideScope() { g_inside = before; }
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

bool in_parallel_region() { return g_inside; }

namespace detail {

bool worth_splitting(int64_t count, int64_t grain) {
  return count > std::max<int64_t>(grain, 1) && !g_inside && num_threads() > 1;
}

void parallel_split(int64_t begin, int64_t end, int64_t grain, RangeFunction function, const void* context) {
  grain = std::max<int64_t>(grain, 1);
  int threads = num_threads();
  int64_t count = end - begin, most = std::min<int64_t>(threads * kPartsPerThread, ThreadPool::kMostParts);
  struct Range {
    int64_t begin, end, length;
    RangeFunction function;
    const void* context;
  } range{begin, end, 0, function, context};
  int64_t parts = std::clamp<int64_t>(count / grain, 1, most);
  range.length = (count + parts - 1) / parts;
  auto do_part = [](const void* pointer, int part) {
    const Range& r = *static_cast<const Range*>(pointer);
    int64_t from = r.begin + part * r.length, to = std::min(r.end, from + r.length);
    if (from >= to) return;
    InsideScope scope;
    r.function(r.context, from, to);
  };
  int used = static_cast<int>(std::min<int64_t>(threads, parts));
  if (ThreadPool::get().run(static_cast<int>(parts), used, do_part, &range)) return;
  // Another thread has the pool. The same parts, so that sums over parts come out the same.
  for (int part = 0; part < static_cast<int>(parts); ++part) do_part(&range, part);
}

}  // namespace detail

}  // namespace umbra::kernels

namespace umbra {
int get_num_threads() { return kernels::num_threads(); }
void set_num_threads(int count) { kernels::set_num_threads(count); }
}  // namespace umbra
