#include "kernels/vector/triangle.h"

#include <algorithm>

#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {
namespace {

/// Some columns of the inverse side by side, which solve the system of the identity's.
template <class T> void invert_columns(bool upper, bool unit, int n, const T* a, int64_t leading, T* out, int first) {
  constexpr int lanes = Vec<T>::size;
  // What is not zero begins, or ends, on the diagonal.
  const int begin = upper ? std::min(n, first + lanes) - 1 : first, end = upper ? -1 : n, step = upper ? -1 : 1;
  for (int k = begin; k != end; k += step) {
    const T* column = a + k * leading;
    Vec<T> known = Vec<T>::load(out + k * kTriangle + first);
    if (!unit) {
      known = known / Vec<T>(column[k]);
      known.store(out + k * kTriangle + first);
    }
    for (int i = k + step; i != end; i += step) {
      T* row = out + i * kTriangle + first;
      fma(Vec<T>(-column[i]), known, Vec<T>::load(row)).store(row);
    }
  }
}
template <class T> void invert(bool upper, bool unit, int n, const T* a, int64_t leading, T* out) {
  std::fill_n(out, kTriangle * kTriangle, T(0));
  for (int k = 0; k < n; ++k) out[k * kTriangle + k] = T(1);
  for (int first = 0; first < n; first += Vec<T>::size) invert_columns(upper, unit, n, a, leading, out, first);
}

}  // namespace

void invert_small_triangle(bool wide, bool upper, bool unit, int n, const void* a, int64_t leading, void* out) {
  wide ? invert(upper, unit, n, static_cast<const double*>(a), leading, static_cast<double*>(out))
       : invert(upper, unit, n, static_cast<const float*>(a), leading, static_cast<float*>(out));
}

}  // namespace umbra::kernels::UMBRA_ISA
