#include "kernels/vector/rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/vector/extreme_of.h"

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
  return reduce(v, [](Vec<T> a, Vec<T> b) { return a + b; });
}

// Sums are made block by block, so that the error does not grow with the length of the row. `fn(at, sums)` adds to
// `Count` sums; lanes behind the end have to add zero.
template <class T, int Count, class Fn> void block_sums(int64_t n, T* out, const Fn& fn) {
  constexpr int64_t kBlock = 64 * Vec<T>::size;
  Vec<T> totals[Count];
  for (Vec<T>& total : totals) total = Vec<T>(0);
  // Several sums of each: an addition need not wait for the one before.
  constexpr int ways = 4, width = Vec<T>::size;
  if (n < ways * width) {  // too short for that
    each<T>(n, [&](auto at) { fn(at, totals); });
    for (int k = 0; k < Count; ++k) out[k] = sum_lanes(totals[k]);
    return;
  }
  for (int64_t i = 0; i < n;) {
    Vec<T> sums[ways][Count];
    for (auto& each : sums)
      for (Vec<T>& sum : each) sum = Vec<T>(0);
    int64_t end = std::min(n, i + kBlock);
    for (; i + ways * width <= end; i += ways * width)
      for (int w = 0; w < ways; ++w) fn(Whole<T>{i + w * width}, sums[w]);
    for (; i + width <= end; i += width) fn(Whole<T>{i}, sums[0]);
    if (i < end) fn(Part<T>{i, end - i}, sums[1]);
    i = end;
    for (int k = 0; k < Count; ++k) totals[k] += (sums[0][k] + sums[1][k]) + (sums[2][k] + sums[3][k]);
  }
  for (int k = 0; k < Count; ++k) out[k] = sum_lanes(totals[k]);
}

template <class T> T sum(const T* x, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) { sums[0] += at(x); });
  return result;
}

template <class T> T largest(const T* x, int64_t n) { return extreme_of<true>(x, n); }

template <class T> T squares(const T* x, T center, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) {
    Vec<T> distance = at.keep(at(x) - Vec<T>(center));
    sums[0] = fma(distance, distance, sums[0]);
  });
  return result;
}

template <class T> T squared_distance(const T* a, const T* b, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) {
    Vec<T> distance = at(a) - at(b);
    sums[0] = fma(distance, distance, sums[0]);
  });
  return result;
}

template <class T> T absolute_distance(const T* a, const T* b, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) { sums[0] += abs(at(a) - at(b)); });
  return result;
}

template <class T> T largest_distance(const T* a, const T* b, int64_t n) {
  Vec<T> most(0);
  each<T>(n, [&](auto at) { most = maximum(abs(at(a) - at(b)), most); });
  return reduce(most, [](Vec<T> x, Vec<T> y) { return maximum(x, y); });
}

template <class T> T smooth_distance(const T* a, const T* b, T limit, int64_t n) {
  T result;
  block_sums<T, 1>(n, &result, [&](auto at, Vec<T>* sums) {
    Vec<T> distance = abs(at(a) - at(b)), part = minimum(distance, Vec<T>(limit));
    sums[0] = fma(part, fma(part, Vec<T>(-0.5), distance), sums[0]);
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

template <class T>
void sum_of_rows(T* out, const T* table, int64_t stride, const int64_t* numbers, int64_t count, int64_t n) {
  constexpr int ways = 4, width = Vec<T>::size, wide = ways * width;
  int64_t j = 0;
  for (; j + wide <= n; j += wide) {  // sums stay in registers
    Vec<T> sums[ways];
    for (Vec<T>& sum : sums) sum = Vec<T>(0);
    for (int64_t i = 0; i < count; ++i)
      for (int w = 0; w < ways; ++w) sums[w] += Vec<T>::load(table + numbers[i] * stride + j + w * width);
    for (int w = 0; w < ways; ++w) sums[w].store(out + j + w * width);
  }
  for (; j < n; j += width) {
    int64_t lanes = std::min<int64_t>(width, n - j);
    Vec<T> sum(0);
    for (int64_t i = 0; i < count; ++i) sum += Vec<T>::load(table + numbers[i] * stride + j, lanes);
    sum.store(out + j, lanes);
  }
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

// The logarithm, sine and cosine behind PyTorch's normal numbers in float, to the last bit: those of the Cephes library
// as avx_mathfun has them, with products and sums joined where its compiler joins them.

Vec<float> cephes_log(Vec<float> a) {
  using Int = typename Mask<float>::Raw;
  Int raw = bits(a), power = (raw >> 23) - 126;
  Vec<float> exponent(__builtin_convertvector(power, typename Vec<float>::Raw));
  Vec<float> x = from_bits<float>((raw & 0x807fffff) | 0x3f000000);  // the fraction, in [0.5, 1)
  Mask<float> small = x < Vec<float>(0.707106781186547524f);
  exponent -= select(small, Vec<float>(1), 0);
  x = (x - Vec<float>(1)) + select(small, x, 0);
  constexpr float kCoefficients[] = {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                                     -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  Vec<float> square = x * x, y(7.0376836292e-2f);
  for (float c : kCoefficients) y = fma(y, x, Vec<float>(c));
  y = fma(y * x, square, exponent * Vec<float>(-2.12194440e-4f));
  y = fma(-square, Vec<float>(0.5f), y);
  return fma(exponent, Vec<float>(0.693359375f), x + y);
}

void cephes_sine_and_cosine(Vec<float> x, Vec<float>& sine, Vec<float>& cosine) {  // of x >= 0
  using Int = typename Mask<float>::Raw;
  Int octant = (__builtin_convertvector((x * Vec<float>(1.27323954473516f)).raw, Int) + 1) & ~1;
  Vec<float> turns(__builtin_convertvector(octant, typename Vec<float>::Raw));
  for (float part : {-0.78515625f, -2.4187564849853515625e-4f, -3.77489497744594108e-8f})
    x = fma(turns, Vec<float>(part), x);
  Vec<float> square = x * x;
  Vec<float> even = fma(Vec<float>(2.443315711809948e-5f), square, Vec<float>(-1.388731625493765e-3f));
  even = fma(even, square, Vec<float>(4.166664568298827e-2f));
  even = fma(even * square, square, -(square * Vec<float>(0.5f))) + Vec<float>(1);
  Vec<float> odd = fma(Vec<float>(-1.9515295891e-4f), square, Vec<float>(8.3321608736e-3f));
  odd = fma(fma(odd, square, Vec<float>(-1.6666654611e-1f)) * square, x, x);
  Mask<float> straight((octant & 2) == 0);
  sine = from_bits<float>(bits(select(straight, odd, even)) ^ ((octant & 4) << 29));
  cosine = from_bits<float>(bits(select(straight, even, odd)) ^ ((~(octant - 2) & 4) << 29));
}

constexpr int64_t kPairs = 8;

#ifdef __AVX512F__
// A register has room for the first, or the second, halves of two blocks.
Vec<float> load_halves(const float* from) {
  __m512 low = _mm512_castps256_ps512(_mm256_loadu_ps(from));
  return Vec<float>(_mm512_insertf32x8(low, _mm256_loadu_ps(from + 2 * kPairs), 1));
}
void store_halves(float* to, Vec<float> x) {
  _mm256_storeu_ps(to, _mm512_castps512_ps256(x.raw));
  _mm256_storeu_ps(to + 2 * kPairs, _mm512_extractf32x8_ps(x.raw, 1));
}
#endif

template <class Load, class Store>
void normal_halves(float* data, float mean, float deviation, const Load& load, const Store& store) {
  Vec<float> first = Vec<float>(1) - load(data), sine, cosine;
  Vec<float> radius = sqrt(Vec<float>(-2) * cephes_log(first));
  cephes_sine_and_cosine(Vec<float>(2 * std::numbers::pi) * load(data + kPairs), sine, cosine);
  store(data, fma(radius * cosine, Vec<float>(deviation), Vec<float>(mean)));
  store(data + kPairs, fma(radius * sine, Vec<float>(deviation), Vec<float>(mean)));
}
void normal_block(float* data, float mean, float deviation) {
  constexpr int64_t count = std::min<int64_t>(kPairs, Vec<float>::size);
  static_assert(count == kPairs);
  normal_halves(
      data, mean, deviation, [](const float* from) { return Vec<float>::load(from, count); },
      [](float* to, Vec<float> x) { x.store(to, count); });
}
void normal_block(double* data, double mean, double deviation) {
  for (int64_t i = 0; i < kPairs; ++i) {
    double radius = std::sqrt(-2 * std::log(1 - data[i])), angle = 2 * std::numbers::pi * data[i + kPairs];
    data[i] = std::fma(radius * std::cos(angle), deviation, mean);
    data[i + kPairs] = std::fma(radius * std::sin(angle), deviation, mean);
  }
}

template <class T> void normal_blocks(T* data, T mean, T deviation, int64_t blocks) {
  int64_t block = 0;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    for (; block + 2 <= blocks; block += 2)
      normal_halves(data + 2 * kPairs * block, mean, deviation, load_halves, store_halves);
#endif
  for (; block < blocks; ++block) normal_block(data + 2 * kPairs * block, mean, deviation);
}

template <class T> Vec<T> sigmoid(Vec<T> x) { return Vec<T>(1) / (Vec<T>(1) + exp(-x)); }

template <class T>
void lstm_cell(T* hidden, T* cell, const T* gates, const T* more_gates, const T* cell_before, int64_t n) {
  each<T>(n, [&](auto at) {
    auto gate = [&](int64_t k) { return more_gates ? at(gates + k * n) + at(more_gates + k * n) : at(gates + k * n); };
    Vec<T> next = fma(sigmoid(gate(1)), at(cell_before), sigmoid(gate(0)) * tanh(gate(2)));
    at.store(cell, next);
    at.store(hidden, sigmoid(gate(3)) * tanh(next));
  });
}

template <class T>
void lstm_cell_gradient(T* grad_gates, T* grad_cell_before, const T* grad_hidden, const T* grad_cell, const T* gates,
                        const T* more_gates, const T* cell_before, const T* cell, int64_t n) {
  each<T>(n, [&](auto at) {
    auto gate = [&](int64_t k) { return more_gates ? at(gates + k * n) + at(more_gates + k * n) : at(gates + k * n); };
    auto given = [&](const T* grad) { return grad ? at(grad) : Vec<T>(0); };
    const Vec<T> one(1);
    Vec<T> in = sigmoid(gate(0)), forget = sigmoid(gate(1)), candidate = tanh(gate(2)), out = sigmoid(gate(3));
    Vec<T> bent = tanh(at(cell)), of_hidden = given(grad_hidden);
    Vec<T> of_cell = given(grad_cell) + of_hidden * out * (one - bent * bent);
    at.store(grad_gates, of_cell * candidate * in * (one - in));
    at.store(grad_gates + n, of_cell * at(cell_before) * forget * (one - forget));
    at.store(grad_gates + 2 * n, of_cell * in * (one - candidate * candidate));
    at.store(grad_gates + 3 * n, of_hidden * bent * out * (one - out));
    at.store(grad_cell_before, of_cell * forget);
  });
}

template <class T> void softmax_gradient(T* out, const T* p, const T* g, T center, T scale, int64_t n) {
  Vec<T> middle(center), factor(scale);
  each<T>(n, [&](auto at) { at.store(out, at(p) * (at(g) - middle) * factor); });
}

template <class T> const RowFunctions<T>& functions() {
  static constexpr RowFunctions<T> table = {&sum<T>,
                                            &largest<T>,
                                            &squares<T>,
                                            &squared_distance<T>,
                                            &absolute_distance<T>,
                                            &largest_distance<T>,
                                            &smooth_distance<T>,
                                            &two_sums<T>,
                                            &sum_of_rows<T>,
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
                                            &lstm_cell<T>,
                                            &lstm_cell_gradient<T>,
                                            &softmax_gradient<T>};
  return table;
}

}  // namespace

const RowFunctions<float>& float_rows() { return functions<float>(); }
const RowFunctions<double>& double_rows() { return functions<double>(); }

}  // namespace umbra::kernels::UMBRA_ISA
