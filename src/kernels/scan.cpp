#include "kernels/scan.h"

#include <cmath>
#include <complex>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/math.h"
#include "kernels/parallel.h"
#include "kernels/reduction_walk.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

constexpr int64_t kBlock = 256;

/// The loops of a scan: along the dimension, and over everything else.
struct ScanGeometry {
  LoopNest rest;
  int64_t n = 1, step = 0, out_step[2] = {};
  const char* in;
  char* out[2] = {};

  ScanGeometry(const Tensor& self, int64_t dim, const Tensor& first, const Tensor& second = {}) {
    const Tensor* outs[2] = {&first, &second};
    in = static_cast<const char*>(self.raw_data());
    auto steps = [&](int64_t d, int k) {
      return outs[k]->defined() ? outs[k]->strides()[d] * outs[k]->item_size() : 0;
    };
    for (int k = 0; k < 2; ++k)
      if (outs[k]->defined()) out[k] = static_cast<char*>(outs[k]->raw_data());
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
      int64_t size = self.sizes()[d], by = self.strides()[d] * self.item_size();
      if (d != dim) {
        rest.add(size, by, steps(d, 0), steps(d, 1));
        continue;
      }
      n = size;
      step = by;
      for (int k = 0; k < 2; ++k) out_step[k] = steps(d, k);
    }
    rest.simplify();
  }
};

DType wide_type(DType from) {
  if (is_complex(from)) return DType::Complex128;
  return is_integral(from, true) ? DType::Int64 : DType::Float64;
}

/// Calls `fn(in_place_values, positions, row, count)` for each row of each block of columns, in order, and stores what
/// it leaves in the values (and in positions, for a second output). Columns are whatever varies fastest besides the
/// dimension; values are of the wide type T. `start` is called before a block's first row.
template <class T, class Start, class Step>
void scan_blocks(const ScanGeometry& geometry, DType from, DType to, const Start& start, const Step& fn) {
  const LoopNest& rest = geometry.rest;
  bool has_columns = rest.dims > 0;
  int64_t columns = has_columns ? rest.size[0] : 1, column_step = has_columns ? rest.step[0] : 0;
  int64_t blocks = (columns + kBlock - 1) / kBlock;
  int64_t tasks = rest.numel / std::max<int64_t>(columns, 1) * blocks;
  int64_t work = std::max<int64_t>(1, geometry.n * std::min(columns, kBlock));
  parallel_for(0, tasks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    T values[kBlock], state[kBlock];
    int64_t positions[kBlock];
    LoopPosition position(rest, has_columns ? 1 : 0);
    for (int64_t task = begin; task < end; ++task) {
      position.reach(task / blocks);
      int64_t column = task % blocks * kBlock, count = std::min(kBlock, columns - column);
      const char* in = geometry.in + position.offset + column * column_step;
      char* out[2] = {};
      int64_t out_column_step[2] = {item_size(to), 8};
      for (int k = 0; k < 2; ++k) {
        if (!geometry.out[k]) continue;
        if (has_columns) out_column_step[k] = rest.out_step[k][0];
        out[k] = geometry.out[k] + position.out_offset[k] + (has_columns ? column * out_column_step[k] : 0);
      }
      start(state, positions, count);
      for (int64_t r = 0; r < geometry.n; ++r) {
        convert(reinterpret_cast<char*>(values), dtype_of<T>, in + r * geometry.step, from, column_step, count);
        fn(state, values, positions, r, count);
        convert_out(out[0] + r * geometry.out_step[0], to, out_column_step[0], reinterpret_cast<const char*>(state),
                    dtype_of<T>, count);
        if (out[1])
          convert_out(out[1] + r * geometry.out_step[1], DType::Int64, out_column_step[1],
                      reinterpret_cast<const char*>(positions), DType::Int64, count);
      }
    }
  });
}

/// Along neighbouring elements with no columns to speak of: pieces of rows are converted and scanned. Several rows go
/// at once, since each of a row's steps waits for the one before.
template <class T, int ways, class Combine>
void scan_some_rows(const ScanGeometry& geometry, DType from, DType to, T first, const Combine& combine,
                    LoopPosition& position) {
  T values[ways][kBlock], state[ways];
  const char* in[ways];
  char* out[ways];
  for (int w = 0; w < ways; ++w, position.next()) {
    state[w] = first;
    in[w] = geometry.in + position.offset;
    out[w] = geometry.out[0] + position.out_offset[0];
  }
  for (int64_t at = 0; at < geometry.n; at += kBlock) {
    int64_t count = std::min(kBlock, geometry.n - at);
    for (int w = 0; w < ways; ++w)
      convert(reinterpret_cast<char*>(values[w]), dtype_of<T>, in[w] + at * geometry.step, from, geometry.step, count);
    for (int64_t j = 0; j < count; ++j)
#pragma GCC unroll 4
      for (int w = 0; w < ways; ++w) values[w][j] = state[w] = combine(state[w], values[w][j]);
    for (int w = 0; w < ways; ++w)
      convert_out(out[w] + at * geometry.out_step[0], to, geometry.out_step[0],
                  reinterpret_cast<const char*>(values[w]), dtype_of<T>, count);
  }
}

/// The same where elements are floats, which are computed with in double: read and written as they are.
template <int ways, class Combine>
void scan_rows_of_floats(const ScanGeometry& geometry, double first, const Combine& combine, LoopPosition& position) {
  double state[ways];
  const float* in[ways];
  float* out[ways];
  for (int w = 0; w < ways; ++w, position.next()) {
    state[w] = first;
    in[w] = reinterpret_cast<const float*>(geometry.in + position.offset);
    out[w] = reinterpret_cast<float*>(geometry.out[0] + position.out_offset[0]);
  }
  for (int64_t j = 0; j < geometry.n; ++j)
#pragma GCC unroll 8
    for (int w = 0; w < ways; ++w)
      out[w][j] = static_cast<float>(state[w] = combine(state[w], static_cast<double>(in[w][j])));
}

template <class T, class Combine>
void scan_rows(const ScanGeometry& geometry, DType from, DType to, T first, const Combine& combine) {
  parallel_for(0, geometry.rest.numel, std::max<int64_t>(1, kGrain / geometry.n), [&](int64_t begin, int64_t end) {
    constexpr int ways = 4;
    LoopPosition position(geometry.rest);
    position.reach(begin);
    if constexpr (std::is_same_v<T, double>) {
      constexpr int64_t item = sizeof(float);
      bool floats = from == DType::Float32 && to == DType::Float32;
      if (floats && geometry.step == item && geometry.out_step[0] == item) {
        // Rows that lie nearly whole pages apart take the same few places of the first-level cache: fewer at a time.
        constexpr int64_t kPage = 4096, kNear = 64;
        int64_t apart = geometry.rest.dims > 0 ? geometry.rest.step[0] & (kPage - 1) : kNear;
        bool crowded = apart < kNear || apart > kPage - kNear;
        for (; begin + 2 * ways <= end && !crowded; begin += 2 * ways)
          scan_rows_of_floats<2 * ways>(geometry, first, combine, position);
        for (; begin + ways / 2 <= end; begin += ways / 2)
          scan_rows_of_floats<ways / 2>(geometry, first, combine, position);
        for (; begin < end; ++begin) scan_rows_of_floats<1>(geometry, first, combine, position);
        return;
      }
    }
    for (; begin + ways <= end; begin += ways) scan_some_rows<T, ways>(geometry, from, to, first, combine, position);
    for (; begin < end; ++begin) scan_some_rows<T, 1>(geometry, from, to, first, combine, position);
  });
}

template <class T, class Combine>
void scan(const Tensor& out, const Tensor& self, int64_t dim, T first, const Combine& combine) {
  if (self.numel() == 0) return;
  ScanGeometry geometry(self, dim, out);
  DType from = self.dtype(), to = out.dtype();
  if (geometry.n == 1) geometry.step = item_size(from), geometry.out_step[0] = item_size(to);
  constexpr int64_t kShortRow = 16;  // shorter ones are taken side by side, many at a time
  bool rows = geometry.rest.dims == 0 || (geometry.step < geometry.rest.step[0] && geometry.n >= kShortRow);
  if (rows) return scan_rows<T>(geometry, from, to, first, combine);
  scan_blocks<T>(
      geometry, from, to, [&](T* state, int64_t*, int64_t count) { std::fill_n(state, count, first); },
      [&](T* state, const T* values, int64_t*, int64_t, int64_t count) {
        for (int64_t j = 0; j < count; ++j) state[j] = combine(state[j], values[j]);
      });
}

template <class Fn> void visit_wide(DType wide, const Fn& fn) {
  switch (wide) {
    case DType::Complex128: return fn(std::complex<double>());
    case DType::Float64: return fn(double());
    default: return fn(int64_t());
  }
}
DType common_wide_type(const Tensor& out, const Tensor& self) {
  return is_integral(self.dtype(), true) ? wide_type(out.dtype()) : wide_type(self.dtype());
}

/// `better(x, best)`: whether x takes the place of the best so far.
template <class Better>
void running_extreme(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, const char* name,
                     const Better& better) {
  check_type<RealOrBool>(self.dtype(), name);
  if (self.numel() == 0) return;
  ScanGeometry geometry(self, dim, values, indices);
  visit_wide(wide_type(self.dtype()), [&]<class T>(T) {
    if constexpr (!math::is_complex<T>) {
      scan_blocks<T>(
          geometry, self.dtype(), values.dtype(), [](T*, int64_t*, int64_t) {},
          [&](T* best, const T* row, int64_t* where, int64_t r, int64_t count) {
            for (int64_t j = 0; j < count; ++j) {
              bool taken = r == 0 || row[j] != row[j] || (best[j] == best[j] && better(row[j], best[j]));
              if (taken) best[j] = row[j], where[j] = r;
            }
          });
    }
  });
}

}  // namespace

void cumsum(const Tensor& out, const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return copy(out, self);  // of any type
  check_type<NumberTypes>(out.dtype(), "cumsum_out_cpu");
  visit_wide(common_wide_type(out, self),
             [&]<class T>(T) { scan(out, self, dim, T(0), [](T a, T b) { return math::add(a, b); }); });
}

void cumprod(const Tensor& out, const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return copy(out, self);  // of any type
  check_type<NumberTypes>(out.dtype(), "cumprod_out_cpu");
  visit_wide(common_wide_type(out, self),
             [&]<class T>(T) { scan(out, self, dim, T(1), [](T a, T b) { return math::multiply(a, b); }); });
}

void cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  running_extreme(values, indices, self, dim, "cummax_cpu", [](auto x, auto best) { return x >= best; });
}

void cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  running_extreme(values, indices, self, dim, "cummin_cpu", [](auto x, auto best) { return x <= best; });
}

namespace {

/// log(exp(a) + exp(b)) of complex numbers, from the one with the larger real part.
std::complex<double> log_add_exp(std::complex<double> a, std::complex<double> b) {
  if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag()))
    return {std::nan(""), std::nan("")};
  if (a.real() <= b.real()) std::swap(a, b);  // of two alike the later one
  if (std::isinf(b.real()) && b.real() < 0) return a;
  if (std::isinf(a.real()) && a.real() == b.real()) return std::log(std::exp(a) + std::exp(b));
  return a + std::log(1.0 + std::exp(b - a));
}

}  // namespace

void logcumsumexp(const Tensor& out, const Tensor& self, int64_t dim) {
  check_type<DifferentiableTypes>(self.dtype(), "logcumsumexp_out_cpu");
  if (is_complex(self.dtype())) return scan(out, self, dim, std::complex<double>(-HUGE_VAL, 0.0), log_add_exp);
  scan(out, self, dim, -HUGE_VAL, [](double a, double b) {
    double high = math::maximum(a, b), low = math::minimum(a, b);
    if (std::isinf(high) || high != high) return high;
    return high + std::log1p(std::exp(low - high));
  });
}

}  // namespace umbra::kernels
