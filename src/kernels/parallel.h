// Splits a range over the threads of the machine.
#pragma once

#include <cstdint>
#include <type_traits>

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

}  // namespace umbra::kernels
