#include "kernels/segment.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

template <class C> C combine(SegmentReduce reduce, C a, C x) {
  switch (reduce) {
    case SegmentReduce::Max: return a != a || x != x ? std::numeric_limits<C>::quiet_NaN() : std::max(a, x);
    case SegmentReduce::Min: return a != a || x != x ? std::numeric_limits<C>::quiet_NaN() : std::min(a, x);
    case SegmentReduce::Product: return a * x;
    default: return a + x;
  }
}

/// One segment at one place of the dimensions around it.
struct Line {
  int64_t place;        // of the result
  int64_t begin, step;  // of the data: the first element, and the way to the next
  int64_t length;
};

template <class Fn> void each_line(const Tensor& out, const Tensor& data, const Tensor& offsets, const Fn& fn) {
  int64_t outer = data.sizes()[0], n = data.sizes()[1], inner = data.sizes()[2], segments = out.sizes()[1];
  const int64_t* at = offsets.data<int64_t>();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t s = 0; s < segments; ++s) {
      int64_t begin = at[o * (segments + 1) + s], end = at[o * (segments + 1) + s + 1];
      for (int64_t i = 0; i < inner; ++i)
        fn(Line{(o * segments + s) * inner + i, (o * n + begin) * inner + i, inner, end - begin});
    }
}

/// The product of all elements of a line but one, and of what it began with.
template <class C, class At> C product_without(const Line& line, int64_t left_out, C start, const At& at) {
  C product = start;
  for (int64_t k = 0; k < line.length; ++k)
    if (k != left_out) product *= at(k);
  return product;
}

}  // namespace

void segment_reduce(const Tensor& out, const Tensor& data, const Tensor& offsets, SegmentReduce reduce,
                    std::optional<double> initial) {
  visit<FloatingTypes>(data.dtype(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    each_line(out, data, offsets, [&](const Line& line) {
      C result = static_cast<C>(start_of(reduce, initial));
      for (int64_t k = 0; k < line.length; ++k)
        result = static_cast<C>(
            static_cast<T>(combine(reduce, result, static_cast<C>(data.data<T>()[line.begin + k * line.step]))));
      if (reduce == SegmentReduce::Mean) {
        if (line.length == 0 && !initial) result = std::numeric_limits<C>::quiet_NaN();
        else if (line.length > 0) result /= static_cast<C>(line.length);
      }
      out.data<T>()[line.place] = static_cast<T>(result);
    });
  });
}

void segment_reduce_backward(const Tensor& grad_data, const Tensor& grad, const Tensor& out, const Tensor& data,
                             const Tensor& offsets, SegmentReduce reduce, std::optional<double> initial) {
  visit<FloatingTypes>(data.dtype(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    T* to = grad_data.data<T>();
    std::fill_n(to, grad_data.numel(), T(0));
    each_line(out, data, offsets, [&](const Line& line) {
      C g = static_cast<C>(grad.data<T>()[line.place]), result = static_cast<C>(out.data<T>()[line.place]);
      auto at = [&](int64_t k) { return static_cast<C>(data.data<T>()[line.begin + k * line.step]); };
      auto attains = [&](int64_t k) { return at(k) == result || at(k) != at(k); };
      int64_t attained = 0;
      for (int64_t k = 0; k < line.length; ++k) attained += attains(k);
      for (int64_t k = 0; k < line.length; ++k) {
        C share = g;
        if (reduce == SegmentReduce::Mean) share = g / static_cast<C>(line.length);
        else if (reduce == SegmentReduce::Max || reduce == SegmentReduce::Min)
          share = attains(k) ? g / static_cast<C>(attained) : C(0);
        else if (reduce == SegmentReduce::Product)
          share = at(k) == 0 || at(k) != at(k)
                      ? g * product_without(line, k, static_cast<C>(start_of(reduce, initial)), at)
                      : g * result / at(k);
        to[line.begin + k * line.step] = static_cast<T>(share);
      }
    });
  });
}

}  // namespace umbra::kernels
