#include "kernels/vector/rows.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {
namespace {

// A whole register's worth of each array at position i, and what is left at the end.
template <class T> struct Whole {
  int64_t i;
  Vec<T> operator()(const T* p) const { return Vec<T>::load(p + i); }
  void store(T* p, Vec<T> v) const { v.store(p + i); }
  /// Zero in the lanes behind the end.
  Vec<T> keep(Vec<T> v) const { return v; }
};
template <class T> struct Part {
  int64_t i, count;
  Vec<T> operator()(const T* p) const { return Vec<T>::load(p + i, count); }
  void store(T* p, Vec<T> v) const { v.store(p + i, count); }
  Vec<T> keep(Vec<T> v) const {
    T lanes[Vec<T>::size];
    v.store(lanes);
    return Vec<T>::load(lanes, count);
  }
};

template <class T, class Fn> void each(int64_t n, const Fn& fn) {
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) fn(Whole<T>{i});
  if (i < n) fn(Part<T>{i, n - i});
}

template <class T> T sum_lanes(Vec<T> v) {
  return reduce(v, [](T a, T b) { return a + b; });
}

// Sums are made block by block, so that the error does not grow with the length of the row. `fn(at, sums)` adds to
// `Count` sums; lanes behind the end have to add zero.
template <class T, int Count, class Fn> void block_sums(int64_t n, T* out, const Fn& fn) {
  constexpr int64_t kBlock = 64 * Vec<T>::size;
  Vec<T> totals[Count];
  for (Vec<T>& total : totals) total = Vec<T>(0);
  for (int64_t start = 0; start < n; start += kBlock) {
    Vec<T> sums[Count];
    for (Vec<T>& sum : sums) sum = Vec<T>(0);
    each<T>(std::min(kBlock, n - start), [&](auto at) {
      at.i += start;
      fn(at, sums);
    });
    for (int k = 0; k < Count; ++k) totals[k] += sums[k];
  }
  for (int k = 0; k < Count; ++k) out[k] = sum_lanes(totals[k]);
}

template <class T> T sum(const T* x, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) { sums[0] += at(x); });
  return result;
}

template <class T> T largest(const T* x, int64_t n) {
  Vec<T> best(-std::numeric_limits<T>::infinity());
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) best = maximum(best, Vec<T>::load(x + i));
  T result = reduce(best, [](T a, T b) { return a != a || a > b ? a : b; });
  for (; i < n; ++i) result = result != result || result > x[i] ? result : x[i];
  return result;
}

template <class T> T squares(const T* x, T center, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) {
    Vec<T> distance = at.keep(at(x) - Vec<T>(center));
    sums[0] = fma(distance, distance, sums[0]);
  });
  return result;
}

template <class T> void two_sums(const T* g, const T* x, T center, const T* weight, int64_t n, T* sum_g, T* sum_gx) {
  T results[2];
  auto add = [&](auto at, Vec<T> gradient, Vec<T>* sums) {
    sums[0] += gradient;
    sums[1] = fma(gradient, at(x) - Vec<T>(center), sums[1]);
  };
  if (weight) block_sums<T, 2>(n, results, [&](auto at, Vec<T>* sums) { add(at, at(g) * at(weight), sums); });
  else block_sums<T, 2>(n, results, [&](auto at, Vec<T>* sums) { add(at, at(g), sums); });
  *sum_g = results[0];
  *sum_gx = results[1];
}

template <class T> void affine(T* out, const T* x, T a, T b, int64_t n) {
  each<T>(n, [&](auto at) { at.store(out, fma(at(x), Vec<T>(a), Vec<T>(b))); });
}

template <class T> void normalize(T* out, const T* x, T center, T scale, const T* weight, const T* bias, int64_t n) {
  Vec<T> a(scale), mean(center);
  each<T>(n, [&](auto at) {
    Vec<T> y = (at(x) - mean) * a;  // exactly 0 at the mean, however large the scale
    if (weight && bias) y = fma(y, at(weight), at(bias));
    else if (weight) y = y * at(weight);
    else if (bias) y = y + at(bias);
    at.store(out, y);
  });
}

template <class T>
void normalize_gradient(T* out, const T* g, const T* x, const T* weight, T shift, T center, T slope, T scale,
                        int64_t n) {
  Vec<T> mean_gradient(shift), mean(center), factor(-slope), a(scale);
  each<T>(n, [&](auto at) {
    // Differences first: what cancels does so exactly, however large the scale.
    Vec<T> gradient = (weight ? at(g) * at(weight) : at(g)) - mean_gradient;
    at.store(out, fma(at(x) - mean, factor, gradient) * a);
  });
}

template <class T> void combine(T* out, const T* g, const T* x, T a, T b, T c, int64_t n) {
  Vec<T> va(a), vb(b), vc(c);
  each<T>(n, [&](auto at) { at.store(out, fma(at(g), va, fma(at(x), vb, vc))); });
}

template <class T>
void add_gradients(T* weight_sum, T* bias_sum, const T* g, const T* x, T center, T scale, int64_t n) {
  Vec<T> a(scale), b(-center * scale);
  each<T>(n, [&](auto at) {
    Vec<T> gradient = at(g);
    at.store(weight_sum, fma(gradient, fma(at(x), a, b), at(weight_sum)));
    at.store(bias_sum, at(bias_sum) + gradient);
  });
}

template <class T> void add(T* sums, const T* x, int64_t n) {
  each<T>(n, [&](auto at) { at.store(sums, at(sums) + at(x)); });
}

template <class T> void add_squares(T* sums, const T* x, const T* center, int64_t n) {
  each<T>(n, [&](auto at) {
    Vec<T> distance = at(x) - at(center);
    at.store(sums, fma(distance, distance, at(sums)));
  });
}

template <class T> void add_two(T* sums_g, T* sums_gx, const T* g, const T* x, const T* center, int64_t n) {
  each<T>(n, [&](auto at) {
    Vec<T> gradient = at(g);
    at.store(sums_g, at(sums_g) + gradient);
    at.store(sums_gx, fma(gradient, at(x) - at(center), at(sums_gx)));
  });
}

template <class T> void affine_each(T* out, const T* x, const T* a, const T* b, int64_t n) {
  each<T>(n, [&](auto at) { at.store(out, fma(at(x), at(a), at(b))); });
}

template <class T> void combine_each(T* out, const T* g, const T* x, const T* a, const T* b, const T* c, int64_t n) {
  each<T>(n, [&](auto at) { at.store(out, fma(at(g), at(a), fma(at(x), at(b), at(c)))); });
}

template <class T> T exp_scaled(T* out, const T* x, T scale, T shift, int64_t n) {
  Vec<T> factor(scale), offset(-shift), total(0);
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) {
    Vec<T> y = exp(fma(Vec<T>::load(x + i), factor, offset));
    y.store(out + i);
    total += y;
  }
  T result = sum_lanes(total);
  if (i < n) {
    Vec<T> y = exp(fma(Vec<T>::load(x + i, n - i), factor, offset));
    y.store(out + i, n - i);
    for (int lane = 0; lane < n - i; ++lane) result += y[lane];
  }
  return result;
}

template <class T> void normal_blocks(T* data, T mean, T deviation, int64_t blocks) {
  constexpr int64_t kHalf = 8, kTogether = std::max<int64_t>(1, Vec<T>::size / kHalf), kPairs = kHalf * kTogether;
  T first[kPairs] = {}, second[kPairs] = {};
  for (int64_t block = 0; block < blocks; block += kTogether) {
    int64_t count = std::min(kTogether, blocks - block);
    T* at = data + block * 2 * kHalf;
    for (int64_t k = 0; k < count; ++k) {
      std::copy_n(at + 2 * k * kHalf, kHalf, first + k * kHalf);
      std::copy_n(at + (2 * k + 1) * kHalf, kHalf, second + k * kHalf);
    }
    for (int64_t i = 0; i < kPairs; i += Vec<T>::size) {
      Vec<T> radius = sqrt(Vec<T>(-2) * log(Vec<T>(1) - Vec<T>::load(first + i)));
      Vec<T> angle = Vec<T>(2 * std::numbers::pi) * Vec<T>::load(second + i);
      (radius * cos(angle) * Vec<T>(deviation) + Vec<T>(mean)).store(first + i);
      (radius * sin(angle) * Vec<T>(deviation) + Vec<T>(mean)).store(second + i);
    }
    for (int64_t k = 0; k < count; ++k) {
      std::copy_n(first + k * kHalf, kHalf, at + 2 * k * kHalf);
      std::copy_n(second + k * kHalf, kHalf, at + (2 * k + 1) * kHalf);
    }
  }
}

template <class T> void softmax_gradient(T* out, const T* p, const T* g, T center, T scale, int64_t n) {
  Vec<T> middle(center), factor(scale);
  each<T>(n, [&](auto at) { at.store(out, at(p) * (at(g) - middle) * factor); });
}

template <class T> const RowFunctions<T>& functions() {
  static constexpr RowFunctions<T> table = {&sum<T>,
                                            &largest<T>,
                                            &squares<T>,
                                            &two_sums<T>,
                                            &affine<T>,
                                            &normalize<T>,
                                            &normalize_gradient<T>,
                                            &combine<T>,
                                            &add_gradients<T>,
                                            &add<T>,
                                            &add_squares<T>,
                                            &add_two<T>,
                                            &affine_each<T>,
                                            &combine_each<T>,
                                            &exp_scaled<T>,
                                            &normal_blocks<T>,
                                            &softmax_gradient<T>};
  return table;
}

}  // namespace

const RowFunctions<float>& float_rows() { return functions<float>(); }
const RowFunctions<double>& double_rows() { return functions<double>(); }

}  // namespace umbra::kernels::UMBRA_ISA
