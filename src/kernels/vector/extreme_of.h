// The largest or smallest of a row of numbers.
#pragma once

#include <limits>

#include "kernels/math.h"
#include "kernels/vector/narrow.h"

namespace umbra::kernels::UMBRA_ISA {

/// Remembers whether there was a NaN: one comparison looks at two registers.
template <class T> struct NanWatch {
#ifdef __AVX512F__
  unsigned seen = 0;
  void look(Vec<float> a, Vec<float> b) { seen |= _mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q); }
  void look(Vec<double> a, Vec<double> b) { seen |= _mm512_cmp_pd_mask(a.raw, b.raw, _CMP_UNORD_Q); }
  bool any() const { return seen != 0; }
#else
  typename Mask<T>::Raw seen{};
  void look(Vec<T> a, Vec<T> b) { seen |= (a.raw != a.raw) | (b.raw != b.raw); }
  bool any() const { return UMBRA_ISA::any(Mask<T>(seen)); }
#endif
};

/// The larger or smaller of each lane: b where either is NaN.
template <bool largest, class T> Vec<T> better_number(Vec<T> a, Vec<T> b) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return Vec<T>(largest ? _mm512_maskz_max_ps(-1, a.raw, b.raw) : _mm512_maskz_min_ps(-1, a.raw, b.raw));
  else return Vec<T>(largest ? _mm512_maskz_max_pd(-1, a.raw, b.raw) : _mm512_maskz_min_pd(-1, a.raw, b.raw));
#else
  return Vec<T>((largest ? a.raw > b.raw : a.raw < b.raw) ? a.raw : b.raw);
#endif
}

/// Of n numbers, the largest or smallest; NaN where there is one, and the infinity that all others beat where n is 0.
template <bool largest, class Stored> auto extreme_of(const Stored* in, int64_t n) {
  using V = decltype(load_lanes(in));
  using T = typename V::Element;
  constexpr int width = V::size, ways = 4;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T result = largest ? -infinity : infinity;
  if (n < width) {
    for (int64_t i = 0; i < n; ++i) {
      T x = static_cast<T>(in[i]);
      result = largest ? math::maximum(x, result) : math::minimum(x, result);
    }
    return result;
  }
  auto better = [](V a, V b) { return better_number<largest>(a, b); };
  NanWatch<T> nans;
  V best[ways];
  for (V& b : best) b = V(result);
  int64_t i = 0;
  for (; i + ways * width <= n; i += ways * width) {
    V x[ways];
    for (int w = 0; w < ways; ++w) x[w] = load_lanes(in + i + w * width);
    for (int w = 0; w < ways; w += 2) nans.look(x[w], x[w + 1]);
    for (int w = 0; w < ways; ++w) best[w] = better(x[w], best[w]);
  }
  auto take = [&](int64_t at) {
    V x = load_lanes(in + at);
    nans.look(x, x);
    best[0] = better(x, best[0]);
  };
  for (; i + width <= n; i += width) take(i);
  if (i < n) take(n - width);  // some of them for the second time
  if (nans.any()) return std::numeric_limits<T>::quiet_NaN();
  return reduce(better(better(best[0], best[1]), better(best[2], best[3])), better);
}

}  // namespace umbra::kernels::UMBRA_ISA
