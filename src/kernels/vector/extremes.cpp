#include "kernels/vector/extremes.h"

#include "kernels/vector/extreme_of.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

using math::maximum, math::minimum;

template <class T> T extreme_value(const T* in, int64_t n, bool largest) {
  if constexpr (std::is_floating_point_v<T>) return largest ? extreme_of<true>(in, n) : extreme_of<false>(in, n);
  T best = in[0];
  for (int64_t i = 1; i < n; ++i) best = largest ? maximum(best, in[i]) : minimum(best, in[i]);
  return best;
}

template <class T> int64_t find_first(const T* in, int64_t n, T value) {
  auto same = [&](T x) { return x == value || (value != value && x != x); };
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int width = Vec<T>::size;
    const bool nan = value != value;
    for (; i + width <= n; i += width) {
      Vec<T> x = Vec<T>::load(in + i);
      if (any(nan ? x != x : x == Vec<T>(value))) break;
    }
  }
  while (i < n - 1 && !same(in[i])) ++i;
  return i;
}

template <class T, bool largest> void update(T* best, int64_t* where, const T* row, int64_t position, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    bool better = largest ? row[j] > best[j] : row[j] < best[j];
    better |= (row[j] != row[j]) & (best[j] == best[j]);
    best[j] = better ? row[j] : best[j];
    where[j] = better ? position : where[j];
  }
}

template <class Fn> auto visit_compute(DType compute, const Fn& fn) {
  switch (compute) {
    case DType::Float32: return fn(float());
    case DType::Float64: return fn(double());
    default: return fn(int64_t());
  }
}

}  // namespace

int64_t find_extreme(void* value, const void* values, int64_t n, DType compute, bool largest) {
  return visit_compute(compute, [&]<class T>(T) {
    const T* in = static_cast<const T*>(values);
    T best = extreme_value(in, n, largest);
    *static_cast<T*>(value) = best;
    return find_first(in, n, best);
  });
}

void update_extremes(void* best, int64_t* where, const void* row, int64_t position, int64_t columns, DType compute,
                     bool largest) {
  visit_compute(compute, [&]<class T>(T) {
    auto* bests = static_cast<T*>(best);
    auto* in = static_cast<const T*>(row);
    if (largest) update<T, true>(bests, where, in, position, columns);
    else update<T, false>(bests, where, in, position, columns);
  });
}

PositionBits position_bits(const int64_t* positions, int64_t n, int64_t least, int64_t last) {
  PositionBits bits;
  for (int64_t i = 0; i < n; ++i) {
    const auto position = static_cast<uint64_t>(positions[i]);
    bits.positions |= position;
    bits.distances |= (position - static_cast<uint64_t>(least)) | (static_cast<uint64_t>(last) - position);
  }
  return bits;
}

}  // namespace umbra::kernels::UMBRA_ISA
