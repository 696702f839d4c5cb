#include "kernels/segment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

double start_of(SegmentReduce reduce, std::optional<double> initial) {
  if (initial) return *initial;
  switch (reduce) {
    case SegmentReduce::Max: return -std::numeric_limits<double>::infinity();
    case SegmentReduce::Min: return std::numeric_limits<double>::infinity();
    case SegmentReduce::Product: return 1;
    default: return 0;
  }
}

template <SegmentReduce reduce, class C> C combine(C a, C x) {
  if constexpr (reduce == SegmentReduce::Max) return x != x || !(a >= x || a != a) ? x : a;
  else if constexpr (reduce == SegmentReduce::Min) return x != x || !(a <= x || a != a) ? x : a;
  else if constexpr (reduce == SegmentReduce::Product) return a * x;
  else return a + x;
}

/// Calls fn with the reduction as a constant.
template <class Fn> void with_reduction(SegmentReduce reduce, const Fn& fn) {
  switch (reduce) {
    case SegmentReduce::Max: return fn(std::integral_constant<SegmentReduce, SegmentReduce::Max>());
    case SegmentReduce::Min: return fn(std::integral_constant<SegmentReduce, SegmentReduce::Min>());
    case SegmentReduce::Product: return fn(std::integral_constant<SegmentReduce, SegmentReduce::Product>());
    case SegmentReduce::Mean: return fn(std::integral_constant<SegmentReduce, SegmentReduce::Mean>());
    default: return fn(std::integral_constant<SegmentReduce, SegmentReduce::Sum>());
  }
}

/// One segment: rows of the data, each as wide as the dimensions behind, that make one row of the result.
struct Segment {
  int64_t place;          // of the result's row
  int64_t begin, length;  // of the data: where the first row is, and how many there are
};

template <class Fn> void each_segment(const Tensor& out, const Tensor& data, const Tensor& offsets, const Fn& fn) {
  int64_t outer = data.sizes()[0], n = data.sizes()[1], inner = data.sizes()[2], segments = out.sizes()[1];
  const int64_t* at = offsets.data<int64_t>();
  for (int64_t o = 0; o < outer; ++o, at += segments + 1)
    for (int64_t s = 0; s < segments; ++s)
      fn(Segment{(o * segments + s) * inner, (o * n + at[s]) * inner, at[s + 1] - at[s]});
}

/// The product of all elements of a column but one, and of what it began with.
template <class C, class T>
C product_without(const T* column, int64_t step, int64_t length, int64_t left_out, C start) {
  C product = start;
  for (int64_t k = 0; k < length; ++k)
    if (k != left_out) product *= static_cast<C>(column[k * step]);
  return product;
}

template <SegmentReduce reduce, class C> C finished(C result, int64_t length, bool begun) {
  if (reduce != SegmentReduce::Mean) return result;
  if (length == 0) return begun ? result : std::numeric_limits<C>::quiet_NaN();
  return result / static_cast<C>(length);
}

/// How one column of a segment shares out its gradient where it goes by the values.
template <SegmentReduce reduce, class T, class C>
void share_by_value(T* to, const T* from, int64_t step, int64_t length, C grad, C result, C start) {
  auto at = [=](int64_t k) { return static_cast<C>(from[k * step]); };
  auto attains = [=](int64_t k) { return at(k) == result || at(k) != at(k); };
  int64_t attained = 0;
  if constexpr (reduce != SegmentReduce::Product)
    for (int64_t k = 0; k < length; ++k) attained += attains(k);
  for (int64_t k = 0; k < length; ++k) {
    C share;
    if constexpr (reduce != SegmentReduce::Product) share = attains(k) ? grad / static_cast<C>(attained) : C(0);
    else if (at(k) == 0 || at(k) != at(k)) share = grad * product_without(from, step, length, k, start);
    else share = grad * result / at(k);
    to[k * step] = static_cast<T>(share);
  }
}

}  // namespace

void segment_reduce(const Tensor& out, const Tensor& data, const Tensor& offsets, SegmentReduce reduce,
                    std::optional<double> initial) {
  visit<FloatingTypes>(data.dtype(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const int64_t inner = data.sizes()[2];
    const C start = static_cast<C>(start_of(reduce, initial));
    const T* from = data.data<T>();
    T* to = out.data<T>();
    std::vector<C> sums(static_cast<size_t>(inner));
    with_reduction(reduce, [&](auto constant) {
      constexpr SegmentReduce kReduce = constant();
      auto step = [](C sum, T x) { return static_cast<C>(static_cast<T>(combine<kReduce>(sum, static_cast<C>(x)))); };
      auto finish = [&](C sum, int64_t length) {
        return static_cast<T>(finished<kReduce>(sum, length, initial.has_value()));
      };
      each_segment(out, data, offsets, [&](const Segment& segment) {
        const T* row = from + segment.begin;
        if (inner == 1) {
          C sum = start;
          for (int64_t k = 0; k < segment.length; ++k) sum = step(sum, row[k]);
          to[segment.place] = finish(sum, segment.length);
          return;
        }
        C* sum = sums.data();
        std::fill_n(sum, inner, start);
        for (int64_t k = 0; k < segment.length; ++k, row += inner)
          for (int64_t i = 0; i < inner; ++i) sum[i] = step(sum[i], row[i]);
        for (int64_t i = 0; i < inner; ++i) to[segment.place + i] = finish(sum[i], segment.length);
      });
    });
  });
}

void segment_reduce_backward(const Tensor& grad_data, const Tensor& grad, const Tensor& out, const Tensor& data,
                             const Tensor& offsets, SegmentReduce reduce, std::optional<double> initial) {
  visit<FloatingTypes>(data.dtype(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const int64_t inner = data.sizes()[2];
    const C start = static_cast<C>(start_of(reduce, initial));
    const T *from = data.data<T>(), *results = out.data<T>(), *grads = grad.data<T>();
    T* to = grad_data.data<T>();
    std::fill_n(to, grad_data.numel(), T(0));
    with_reduction(reduce, [&](auto constant) {
      constexpr SegmentReduce kReduce = constant();
      each_segment(out, data, offsets, [&](const Segment& segment) {
        const T* g = grads + segment.place;
        T* row = to + segment.begin;
        if constexpr (kReduce == SegmentReduce::Sum || kReduce == SegmentReduce::Mean) {
          C count = kReduce == SegmentReduce::Mean ? static_cast<C>(segment.length) : C(1);
          for (int64_t k = 0; k < segment.length; ++k, row += inner)
            for (int64_t i = 0; i < inner; ++i) row[i] = static_cast<T>(static_cast<C>(g[i]) / count);
        } else {
          for (int64_t i = 0; i < inner; ++i)
            share_by_value<kReduce, T, C>(row + i, from + segment.begin + i, inner, segment.length,
                                          static_cast<C>(g[i]), static_cast<C>(results[segment.place + i]), start);
        }
      });
    });
  });
}

}  // namespace umbra::kernels
