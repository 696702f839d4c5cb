// Splits a range over the threads of the machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

namespace umbra::kernels {

/// Work of fewer elements than this is not worth a second thread.
inline constexpr int64_t kGrain = 32768;

/// How many threads a parallel_for may use; by default as many as OpenMP offers.
int num_threads();
void set_num_threads(int count);
/// True inside a parallel_for that was split: one that starts there runs serially.
bool in_parallel_region();

namespace detail {
using RangeFunction = void (*)(const void* context, int64_t begin, int64_t end);
bool worth_splitting(int64_t count, int64_t grain);
void parallel_split(int64_t begin, int64_t end, int64_t grain, RangeFunction function, const void* context);
}  // namespace detail

/// Calls `fn(from, to)` on parts of [begin, end), each of at least `grain` elements, on several threads at once.
/// What a part throws comes out of here. An empty range makes no call.
///
///     parallel_for(0, rows, kGrain / columns, [&](int64_t from, int64_t to) { ... });
template <class Fn> void parallel_for(int64_t begin, int64_t end, int64_t grain, const Fn& fn) {
  if (begin >= end) return;
  if (!detail::worth_splitting(end - begin, grain)) return fn(begin, end);
  detail::parallel_split(
      begin, end, grain,
      [](const void* context, int64_t from, int64_t to) { (*static_cast<const Fn*>(context))(from, to); }, &fn);
}

/// What the parts of a parallel_for made, taken together in the order of the range: sums of floats come out the same
/// whichever thread was first.
template <class T> class OrderedParts {
 public:
  void add(int64_t from, T part) {
    std::lock_guard lock(mutex_);
    parts_.push_back({from, std::move(part)});
  }
  template <class Visit> void each(const Visit& visit) {
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.from < b.from; });
    for (const Part& part : parts_) visit(part.value);
  }

 private:
  struct Part {
    int64_t from;
    T value;
  };
  std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace umbra::kernels
