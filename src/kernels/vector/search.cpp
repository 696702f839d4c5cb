#include "kernels/vector/search.h"

#include <algorithm>

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

/// As many searches at once as there are lanes, in the steps of a search for one value: where the row is in no order,
/// what is looked at shows in the result.
template <bool right, class T> Ints<T> search(const T* row, int64_t n, Vec<T> values) {
  Ints<T> low{}, length = low + static_cast<typename Mask<T>::Int>(n);
  for (int64_t left = n; left > 0; left /= 2) {  // as often as the longest takes
    Ints<T> half = length >> 1, middle = low + half, open = length > 0;
    Vec<T> x = gather(row, middle & open);
    // Written so that comparisons with NaN, which are false, go the way of numbers beyond all others.
    Ints<T> before = ~(right ? x > values : x >= values).raw & open;
    low = before ? middle + 1 : low;
    length = before ? length - half - 1 : half;
  }
  return low;
}

}  // namespace

template <class T>
void search_row(const T* row, int64_t n, const T* values, int64_t count, int64_t* found, bool right) {
  constexpr int width = Vec<T>::size;
  for (int64_t i = 0; i < count; i += width) {
    int64_t lanes = std::min<int64_t>(width, count - i);
    Vec<T> x = lanes == width ? Vec<T>::load(values + i) : Vec<T>::load(values + i, lanes);
    Ints<T> places = right ? search<true>(row, n, x) : search<false>(row, n, x);
    for (int64_t k = 0; k < lanes; ++k) found[i + k] = places[k];
  }
}
template void search_row(const float*, int64_t, const float*, int64_t, int64_t*, bool);
template void search_row(const double*, int64_t, const double*, int64_t, int64_t*, bool);

}  // namespace umbra::kernels::UMBRA_ISA
