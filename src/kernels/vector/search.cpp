#include "kernels/vector/search.h"

#include <algorithm>
#include <cstring>

#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

template <class T> using Ints = typename Mask<T>::Raw;

Vec<float> gather(const float* from, Ints<float> places) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), -1, reinterpret_cast<__m512i>(places), from, 4));
#else
  return Vec<float>(_mm256_i32gather_ps(from, reinterpret_cast<__m256i>(places), 4));
#endif
}
Vec<double> gather(const double* from, Ints<double> places) {
#ifdef __AVX512F__
  return Vec<double>(_mm512_mask_i64gather_pd(_mm512_setzero_pd(), -1, reinterpret_cast<__m512i>(places), from, 8));
#else
  return Vec<double>(_mm256_i64gather_pd(from, reinterpret_cast<__m256i>(places), 8));
#endif
}

/// As many searches at once as there are lanes in `count` vectors, in the steps of a search for one value: where the
/// row is in no order, what is looked at shows in the result. A vector waits for what it reads; meanwhile the others go
/// on.
template <bool right, int count, class T> void search(const T* row, int64_t n, const Vec<T>* values, Ints<T>* low) {
  Ints<T> length[count];
  for (int k = 0; k < count; ++k) {
    low[k] = Ints<T>{};
    length[k] = low[k] + static_cast<typename Mask<T>::Int>(n);
  }
  for (int64_t left = n; left > 0; left /= 2) {  // as often as the longest takes
    for (int k = 0; k < count; ++k) {
      Ints<T> half = length[k] >> 1, middle = low[k] + half, open = length[k] > 0;
      Vec<T> x = gather(row, middle & open);
      // Written so that comparisons with NaN, which are false, go the way of numbers beyond all others.
      Ints<T> before = ~(right ? x > values[k] : x >= values[k]).raw & open;
      low[k] = before ? middle + 1 : low[k];
      length[k] = before ? length[k] - half - 1 : half;
    }
  }
}

template <class T> void write_places(int64_t* to, Ints<T> places, int64_t lanes) {
  typename Mask<T>::Int single[Vec<T>::size];
  std::memcpy(single, &places, sizeof single);
  if (lanes == Vec<T>::size) std::copy_n(single, Vec<T>::size, to);
  else std::copy_n(single, lanes, to);
}

template <bool right, class T>
void search_values(const T* row, int64_t n, const T* values, int64_t count, int64_t* found) {
  constexpr int width = Vec<T>::size, together = 4;
  int64_t i = 0;
  for (; i + together * width <= count; i += together * width) {
    Vec<T> x[together];
    Ints<T> places[together];
    for (int k = 0; k < together; ++k) x[k] = Vec<T>::load(values + i + k * width);
    search<right, together>(row, n, x, places);
    for (int k = 0; k < together; ++k) write_places<T>(found + i + k * width, places[k], width);
  }
  for (; i < count; i += width) {
    int64_t lanes = std::min<int64_t>(width, count - i);
    Vec<T> x = lanes == width ? Vec<T>::load(values + i) : Vec<T>::load(values + i, lanes);
    Ints<T> places;
    search<right, 1>(row, n, &x, &places);
    write_places<T>(found + i, places, lanes);
  }
}

}  // namespace

template <class T>
void search_row(const T* row, int64_t n, const T* values, int64_t count, int64_t* found, bool right) {
  if (right) search_values<true>(row, n, values, count, found);
  else search_values<false>(row, n, values, count, found);
}
template void search_row(const float*, int64_t, const float*, int64_t, int64_t*, bool);
template void search_row(const double*, int64_t, const double*, int64_t, int64_t*, bool);

}  // namespace umbra::kernels::UMBRA_ISA
