#include "kernels/vector/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/vector/extreme_of.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

/// Sums fn(lanes at i) over [0, n); begun in lanes of T, kept in double, so that long rows do not lose digits.
/// Lanes beyond n count as 0.
template <class T, class Fn> double sum_over(int64_t n, const Fn& fn) {
  constexpr int width = Vec<T>::size;
  constexpr int64_t chunk = 64 * width;
  auto plus = [](Vec<T> a, Vec<T> b) { return a + b; };
  double total = 0;
  int64_t i = 0;
  while (i + width <= n) {
    Vec<T> sum(0);
    for (int64_t end = std::min(n - width + 1, i + chunk); i < end; i += width) sum += fn(i, width);
    total += reduce(sum, plus);
  }
  if (i < n) {
    T lanes[width];
    fn(i, static_cast<int>(n - i)).store(lanes);
    for (int64_t l = 0; l < n - i; ++l) total += lanes[l];
  }
  return total;
}

template <class T> Vec<T> load(const T* from, int64_t i, int count) {
  return count == Vec<T>::size ? Vec<T>::load(from + i) : Vec<T>::load(from + i, count);
}
template <class T> void store(T* to, int64_t i, int count, Vec<T> value) {
  if (count == Vec<T>::size) value.store(to + i);
  else value.store(to + i, count);
}
/// Calls fn(i, count) for each register's worth of [0, n).
template <class T, class Fn> void for_lanes(int64_t n, const Fn& fn) {
  constexpr int width = Vec<T>::size;
  int64_t i = 0;
  for (; i + width <= n; i += width) fn(i, width);
  if (i < n) fn(i, static_cast<int>(n - i));
}

/// The first lanes; the rest are zero.
template <class T> Vec<T> first_of(Vec<T> a, int count) {
  if (count == Vec<T>::size) return a;
  T lanes[Vec<T>::size];
  a.store(lanes);
  return Vec<T>::load(lanes, count);
}
/// Rows that fit so many registers, forward: what lies behind their ends adds nothing. The library's logarithm of one
/// number takes longer than the rest of a row, so that of a register's worth of rows is taken at once.
template <int registers, class T>
void rows_of_registers(bool is_log, char* const* data, const int64_t* strides, int64_t count, int n) {
  constexpr int width = Vec<T>::size;
  auto length = [&](int i) { return i + 1 < registers ? width : n - i * width; };
  for (int64_t first = 0; first < count; first += width) {
    const int rows = static_cast<int>(std::min<int64_t>(width, count - first));
    auto at = [&](int k, int r) { return reinterpret_cast<T*>(data[k] + (first + r) * strides[k]); };
    T totals[width];
    for (int r = 0; r < rows; ++r) {
      const T* in = at(1, r);
      Vec<T> top(extreme_of<true>(in, n)), sum(0);
      for (int i = 0; i < registers; ++i) {
        const Vec<T> x = load(in, i * width, length(i)) - top, power = first_of(exp(x), length(i));
        sum += power;
        store(at(0, r), i * width, length(i), is_log ? x : power);
      }
      totals[r] = reduce(sum, [](Vec<T> a, Vec<T> b) { return a + b; });
    }
    const Vec<T> total = load(totals, 0, rows);
    (is_log ? log(total) : Vec<T>(1) / total).store(totals);
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < registers; ++i) {
        const Vec<T> x = load(at(0, r), i * width, length(i)), of_row(totals[r]);
        store(at(0, r), i * width, length(i), is_log ? x - of_row : x * of_row);
      }
  }
}

template <class T> bool short_rows(bool is_log, char* const* data, const int64_t* strides, int64_t count, int64_t n) {
  const int length = static_cast<int>(std::min<int64_t>(n, 5 * Vec<T>::size));
  switch ((length + Vec<T>::size - 1) / Vec<T>::size) {
    case 1: rows_of_registers<1, T>(is_log, data, strides, count, length); return true;
    case 2: rows_of_registers<2, T>(is_log, data, strides, count, length); return true;
    case 3: rows_of_registers<3, T>(is_log, data, strides, count, length); return true;
    case 4: rows_of_registers<4, T>(is_log, data, strides, count, length); return true;
    default: return false;
  }
}

template <class T> void row(SoftmaxOp op, char* const* data, int64_t n) {
  T* out = reinterpret_cast<T*>(data[0]);
  const T* in = reinterpret_cast<const T*>(data[1]);
  const T* result = reinterpret_cast<const T*>(data[2]);  // backward only
  switch (op) {
    case SoftmaxOp::Forward: {
      Vec<T> top(extreme_of<true>(in, n));
      double sum = sum_over<T>(n, [&](int64_t i, int count) {
        Vec<T> power = exp(load(in, i, count) - top);
        store(out, i, count, power);
        return power;
      });
      Vec<T> scale(1 / sum);
      for_lanes<T>(n, [&](int64_t i, int count) { store(out, i, count, load(out, i, count) * scale); });
      break;
    }
    case SoftmaxOp::LogForward: {
      Vec<T> top(extreme_of<true>(in, n));
      double sum = sum_over<T>(n, [&](int64_t i, int count) { return exp(load(in, i, count) - top); });
      Vec<T> shift(std::log(sum));
      for_lanes<T>(n, [&](int64_t i, int count) { store(out, i, count, load(in, i, count) - top - shift); });
      break;
    }
    case SoftmaxOp::Backward: {
      Vec<T> inner(sum_over<T>(n, [&](int64_t i, int count) { return load(in, i, count) * load(result, i, count); }));
      for_lanes<T>(n, [&](int64_t i, int count) {
        store(out, i, count, (load(in, i, count) - inner) * load(result, i, count));
      });
      break;
    }
    case SoftmaxOp::LogBackward: {
      Vec<T> total(sum_over<T>(n, [&](int64_t i, int count) { return load(in, i, count); }));
      for_lanes<T>(n, [&](int64_t i, int count) {
        store(out, i, count, load(in, i, count) - exp(load(result, i, count)) * total);
      });
      break;
    }
  }
}

/// A register's worth of columns, all rows.
template <class T> void lanes_of_columns(SoftmaxOp op, char* const* data, const int64_t* steps, int64_t n, int count) {
  auto at = [&](int k, int64_t r) { return load(reinterpret_cast<const T*>(data[k] + r * steps[k]), 0, count); };
  auto put = [&](int64_t r, Vec<T> value) { store(reinterpret_cast<T*>(data[0] + r * steps[0]), 0, count, value); };
  Vec<T> sum(0);
  switch (op) {
    case SoftmaxOp::Forward:
    case SoftmaxOp::LogForward: {
      Vec<T> top(-std::numeric_limits<T>::infinity());
      for (int64_t r = 0; r < n; ++r) top = maximum(top, at(1, r));
      if (op == SoftmaxOp::Forward) {
        for (int64_t r = 0; r < n; ++r) {
          Vec<T> power = exp(at(1, r) - top);
          put(r, power);
          sum += power;
        }
        Vec<T> scale = Vec<T>(1) / sum;
        for (int64_t r = 0; r < n; ++r) put(r, at(0, r) * scale);
      } else {
        for (int64_t r = 0; r < n; ++r) sum += exp(at(1, r) - top);
        Vec<T> shift = log(sum);
        for (int64_t r = 0; r < n; ++r) put(r, at(1, r) - top - shift);
      }
      break;
    }
    case SoftmaxOp::Backward:
      for (int64_t r = 0; r < n; ++r) sum += at(1, r) * at(2, r);
      for (int64_t r = 0; r < n; ++r) put(r, (at(1, r) - sum) * at(2, r));
      break;
    case SoftmaxOp::LogBackward:
      for (int64_t r = 0; r < n; ++r) sum += at(1, r);
      for (int64_t r = 0; r < n; ++r) put(r, at(1, r) - exp(at(2, r)) * sum);
      break;
  }
}

template <class T> void columns_of(SoftmaxOp op, char* const* data, const int64_t* steps, int64_t n, int64_t columns) {
  for_lanes<T>(columns, [&](int64_t j, int count) {
    int64_t shift = j * static_cast<int64_t>(sizeof(T));
    char* block[] = {data[0] + shift, data[1] + shift, data[2] ? data[2] + shift : nullptr};
    lanes_of_columns<T>(op, block, steps, n, count);
  });
}

}  // namespace

void softmax_row(SoftmaxOp op, DType compute, char* const* data, int64_t n) {
  if (compute == DType::Float32) row<float>(op, data, n);
  else row<double>(op, data, n);
}

bool softmax_short_rows(SoftmaxOp op, DType compute, char* const* data, const int64_t* strides, int64_t count,
                        int64_t n) {
  if (op != SoftmaxOp::Forward && op != SoftmaxOp::LogForward) return false;
  const bool is_log = op == SoftmaxOp::LogForward;
  if (compute == DType::Float32) return short_rows<float>(is_log, data, strides, count, n);
  return short_rows<double>(is_log, data, strides, count, n);
}

void softmax_columns(SoftmaxOp op, DType compute, char* const* data, const int64_t* steps, int64_t n, int64_t columns) {
  if (compute == DType::Float32) columns_of<float>(op, data, steps, n, columns);
  else columns_of<double>(op, data, steps, n, columns);
}

}  // namespace umbra::kernels::UMBRA_ISA
