// Sums whose order does not matter, in several lanes at a time.
#pragma once

#include <cstdint>

namespace umbra::kernels {

/// Sums fn(i) over [0, n) in sixteen lanes, so that the compiler can take them together.
template <class T, class Fn> T sum_lanes(int64_t n, const Fn& fn) {
  constexpr int kLanes = 16;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += fn(i + lane);
  T total = 0;
  for (; i < n; ++i) total += fn(i);
  for (T lane : lanes) total += lane;
  return total;
}

}  // namespace umbra::kernels
