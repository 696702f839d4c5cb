// The largest or smallest of a row of numbers.
#pragma once

#include <limits>

#include "kernels/math.h"
#include "kernels/vector/narrow.h"

namespace umbra::kernels::UMBRA_ISA {

/// Of n numbers, the largest or smallest; NaN where there is one, and the infinity that all others beat where n is 0.
template <bool largest, class Stored> auto extreme_of(const Stored* in, int64_t n) {
  using V = decltype(load_lanes(in));
  using T = typename V::Element;
  constexpr int width = V::size, ways = 8;
  // The new value first: what is known of it does not wait for the other.
  auto better = [](V a, V b) { return largest ? maximum(a, b) : minimum(a, b); };
  if (n < width) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T result = largest ? -infinity : infinity;
    for (int64_t i = 0; i < n; ++i) {
      T x = static_cast<T>(in[i]);
      result = largest ? math::maximum(x, result) : math::minimum(x, result);
    }
    return result;
  }
  V best = load_lanes(in);
  int64_t i = width;
  if (n >= ways * width) {
    V each[ways];
    for (int w = 0; w < ways; ++w) each[w] = load_lanes(in + w * width);
    for (i = ways * width; i + ways * width <= n; i += ways * width)
      for (int w = 0; w < ways; ++w) each[w] = better(load_lanes(in + i + w * width), each[w]);
    auto pair = [&](int w) { return better(each[w], each[w + 1]); };
    best = better(better(pair(0), pair(2)), better(pair(4), pair(6)));
  }
  for (; i + width <= n; i += width) best = better(load_lanes(in + i), best);
  if (i < n) best = better(load_lanes(in + n - width), best);  // some of them for the second time
  return reduce(best, better);
}

}  // namespace umbra::kernels::UMBRA_ISA
