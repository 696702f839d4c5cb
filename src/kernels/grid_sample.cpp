#include "kernels/grid_sample.h"

#include <cmath>
#include <compare>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

/// A narrow float whose every operation rounds: what vectors of narrow floats compute. Places on edges depend on it.
template <class T> struct Rounding {
  float value = 0;
  Rounding() = default;
  Rounding(double v) : value(static_cast<float>(T(static_cast<float>(v)))) {}
  explicit Rounding(T v) : value(static_cast<float>(v)) {}
  explicit operator T() const { return T(value); }
  explicit operator int64_t() const { return static_cast<int64_t>(value); }
  friend Rounding operator+(Rounding a, Rounding b) { return double{a.value + b.value}; }
  friend Rounding operator-(Rounding a, Rounding b) { return double{a.value - b.value}; }
  friend Rounding operator*(Rounding a, Rounding b) { return double{a.value * b.value}; }
  friend Rounding operator/(Rounding a, Rounding b) { return double{a.value / b.value}; }
  Rounding operator-() const { return double{-value}; }
  Rounding& operator+=(Rounding b) { return *this = *this + b; }
  Rounding& operator*=(Rounding b) { return *this = *this * b; }
  friend auto operator<=>(Rounding a, Rounding b) { return a.value <=> b.value; }
  friend bool operator==(Rounding a, Rounding b) { return a.value == b.value; }
};
template <class T> Rounding<T> floor(Rounding<T> x) { return double{std::floor(x.value)}; }
template <class T> Rounding<T> trunc(Rounding<T> x) { return double{std::trunc(x.value)}; }
template <class T> Rounding<T> fmod(Rounding<T> a, Rounding<T> b) { return double{std::fmod(a.value, b.value)}; }
template <class T> Rounding<T> nearbyint(Rounding<T> x) { return double{std::nearbyint(x.value)}; }
using std::floor, std::fmod, std::nearbyint, std::trunc;

/// A coordinate among elements, and how fast it moves with the grid's number.
template <class C> struct Coordinate { C at, slope; };

template <class C> Coordinate<C> unnormalized(C x, int64_t size, bool align_corners) {
  C scale = C(static_cast<double>(align_corners ? size - 1 : size) / 2);
  return {align_corners ? (x + 1) * scale : (x + 1) * scale - C(0.5), scale};
}

/// What is no number is the first element of a line in a plane, and the last of one in space.
template <int N, class C> Coordinate<C> clipped(C x, int64_t size) {
  C last = static_cast<C>(size - 1);
  if (!(x == x)) return {N == 2 ? C(0) : last, C(0)};
  if (x <= 0) return {C(0), C(0)};
  return x >= last ? Coordinate<C>{last, C(0)} : Coordinate<C>{x, C(1)};
}

/// Mirrored at the first and the last element's centre, or at their edges.
template <int N, class C> Coordinate<C> reflected(C x, C low, int64_t twice_span) {
  if (twice_span <= 0) return {C(0), C(0)};
  C span = static_cast<C>(twice_span), from_low = x - low;
  bool below = from_low < 0;
  C distance = below ? -from_low : from_low;
  C extra = N == 2 ? distance - trunc(distance / span) * span : fmod(distance, span), back = span - extra;
  bool turned = extra > back;
  return {(turned ? back : extra) + low, below != turned ? C(-1) : C(1)};
}

template <int N, class C> Coordinate<C> padded(C x, int64_t size, const GridOptions& options) {
  if (options.padding == GridPadding::Zeros) return {x, C(1)};
  if (options.padding == GridPadding::Border) return clipped<N>(x, size);
  auto [mirrored, sign] =
      options.align_corners ? reflected<N>(x, C(0), 2 * (size - 1)) : reflected<N>(x, C(-0.5), 2 * size);
  auto [inside, slope] = clipped<N>(mirrored, size);
  return {inside, sign * slope};
}

/// Places far outside, and none at all, are as good as any outside.
template <class C> int64_t whole(C x) { return x > C(-1e9) && x < C(1e9) ? static_cast<int64_t>(x) : int64_t{-100}; }

template <class C> void cubic_weights(C t, C* weights, C* slopes) {
  const C a = C(-0.75);
  auto far = [&](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  auto near = [&](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far_slope = [&](C x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  auto near_slope = [&](C x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  weights[0] = far(t + 1), weights[1] = near(t), weights[2] = near(1 - t), weights[3] = far(2 - t);
  slopes[0] = far_slope(t + 1), slopes[1] = near_slope(t), slopes[2] = -near_slope(1 - t),
  slopes[3] = -far_slope(2 - t);
}

/// Along one dimension: the elements that count (-1: outside), their weights, and how the weights change with the
/// grid's number.
template <class C, int N> struct Line {
  int count = 0;
  int64_t places[4];
  C weights[4], slopes[4];

  /// Whether it leads nowhere, in a plane: what is made of it is no number, also where nothing is read.
  bool is_lost() const { return N == 2 && !(weights[0] == weights[0]); }

  Line(C x, int64_t size, const GridOptions& options) {
    auto inside = [&](int64_t i) { return i >= 0 && i < size ? i : int64_t{-1}; };
    auto [at, slope] = unnormalized(x, size, options.align_corners);
    if (options.interpolation == GridInterpolation::Cubic) {
      C left = floor(at);
      count = 4;
      cubic_weights(at - left, weights, slopes);
      for (int k = 0; k < 4; ++k) {
        places[k] = inside(whole(padded<N>(left + C(k - 1), size, options).at));
        slopes[k] *= slope;
      }
      return;
    }
    auto [place, turn] = padded<N>(at, size, options);
    slope *= turn;
    if (options.interpolation == GridInterpolation::Nearest) {
      count = 1;
      places[0] = inside(whole(nearbyint(place)));
      weights[0] = 1, slopes[0] = 0;
      return;
    }
    C left = floor(place);
    count = 2;
    places[0] = inside(whole(left)), places[1] = inside(whole(left + 1));
    weights[1] = place - left, weights[0] = N == 2 ? C(1) - weights[1] : left + 1 - place;
    slopes[0] = -slope, slopes[1] = slope;
  }
};

/// What one place of the grid is made of: for each element of the image its offset, its weight and the derivatives of
/// the weight by the coordinates.
template <class C, int N> struct Neighbours {
  struct One {
    int64_t offset;
    C weight, slopes[N];
  };
  int count = 0;
  One all[N == 2 ? 16 : 64];

  /// `lines` in the order of the image's dimensions.
  Neighbours(const Line<C, N>* lines, const int64_t* strides) {
    int at[N] = {};
    for (;;) {
      add(lines, strides, at);
      int d = N - 1;
      while (d >= 0 && ++at[d] == lines[d].count) at[d--] = 0;
      if (d < 0) return;
    }
  }

 private:
  void add(const Line<C, N>* lines, const int64_t* strides, const int* at) {
    One one{0, C(1), {}};
    for (int d = 0; d < N; ++d) {
      if (lines[d].places[at[d]] < 0) return;
      one.offset += lines[d].places[at[d]] * strides[d];
    }
    for (int d = N - 1; d >= 0; --d) one.weight *= lines[d].weights[at[d]];
    for (int d = 0; d < N; ++d) {
      one.slopes[d] = lines[d].slopes[at[d]];
      for (int e = 0; e < N; ++e)
        if (e != d) one.slopes[d] *= lines[e].weights[at[e]];
    }
    all[count++] = one;
  }
};

/// Nested sums, the last dimension innermost: what cubics are computed by.
template <class C, int N, class T> C nested_sum(const Line<C, N>* lines, const int64_t* strides, const T* from, int d) {
  C sum = 0;
  for (int k = 0; k < lines[d].count; ++k) {
    int64_t place = lines[d].places[k];
    C value = 0;
    if (d + 1 < N) value = nested_sum<C, N>(lines, strides, from + std::max<int64_t>(place, 0) * strides[d], d + 1);
    else if (place >= 0) value = static_cast<C>(from[place * strides[d]]);
    if (place >= 0) sum += lines[d].weights[k] * value;
  }
  return sum;
}

/// The grid of one sample, place by place, computed in C.
template <class T, class C, int N> struct GridWalk {
  const Tensor& grid;
  int64_t places = 1;
  explicit GridWalk(const Tensor& grid) : grid(grid) {
    for (int d = 0; d < N; ++d) places *= grid.size(d + 1);
  }
  /// Calls fn(sample, place, lines, strides of the image) for places [begin, end) of all samples.
  template <class Fn>
  void each(int64_t begin, int64_t end, const Tensor& image, const GridOptions& options, const Fn& fn) const {
    const T* data = grid.data<T>();
    int64_t strides[N];
    for (int d = 0; d < N; ++d) strides[d] = image.stride(d + 2);
    for (int64_t i = begin; i < end; ++i) {
      int64_t sample = i / places, rest = i % places, offset = sample * grid.stride(0);
      for (int d = N; d >= 1; --d) {
        offset += rest % grid.size(d) * grid.stride(d);
        rest /= grid.size(d);
      }
      auto line = [&](int d) {
        return Line<C, N>(static_cast<C>(data[offset + (N - 1 - d) * grid.stride(N + 1)]), image.size(d + 2), options);
      };
      if constexpr (N == 2) {
        Line<C, N> lines[2] = {line(0), line(1)};
        fn(sample, i % places, lines, strides);
      } else {
        Line<C, N> lines[3] = {line(0), line(1), line(2)};
        fn(sample, i % places, lines, strides);
      }
    }
  }
};

template <class T, class C, int N>
void sample(const Tensor& out, const Tensor& image, const Tensor& grid, const GridOptions& options) {
  GridWalk<T, C, N> walk(grid);
  int64_t channels = image.size(1), step = image.stride(1);
  const T* from = image.data<T>();
  T* to = out.data<T>();  // contiguous
  bool nested = options.interpolation == GridInterpolation::Cubic;
  parallel_for(0, grid.size(0) * walk.places, 1 + kGrain / (16 * channels), [&](int64_t begin, int64_t end) {
    walk.each(begin, end, image, options,
              [&](int64_t n, int64_t place, const Line<C, N>* lines, const int64_t* strides) {
                const T* base = from + n * image.stride(0);
                T* target = to + n * channels * walk.places + place;
                bool lost = false;
                for (int d = 0; d < N; ++d) lost = lost || lines[d].is_lost();
                if (lost) {
                  for (int64_t c = 0; c < channels; ++c) target[c * walk.places] = static_cast<T>(std::nan(""));
                  return;
                }
                if (nested) {
                  for (int64_t c = 0; c < channels; ++c)
                    target[c * walk.places] = static_cast<T>(nested_sum<C, N>(lines, strides, base + c * step, 0));
                  return;
                }
                Neighbours<C, N> near(lines, strides);
                for (int64_t c = 0; c < channels; ++c) {
                  C sum = 0;
                  for (int k = 0; k < near.count; ++k)
                    sum += near.all[k].weight * static_cast<C>(base[near.all[k].offset + c * step]);
                  target[c * walk.places] = static_cast<T>(sum);
                }
              });
  });
}

template <class T, int N>
void sample_backward(const Tensor& grad_image, const Tensor& grad_grid, const Tensor& grad, const Tensor& image,
                     const Tensor& grid, const GridOptions& options) {
  using C = Compute<T>;
  GridWalk<T, C, N> walk(grid);
  int64_t channels = image.size(1);
  // Narrow types are added up in float.
  Tensor sums, values = contiguous(cast(image, dtype_of<C>)), upstream = contiguous(cast(grad, dtype_of<C>));
  if (grad_image.defined()) {
    sums = scratch(image.sizes(), dtype_of<C>);
    fill(sums, 0);
  }
  int64_t plane = 1;
  for (int d = 0; d < N; ++d) plane *= image.size(d + 2);
  // Samples are independent of each other; within one, places may share elements.
  parallel_for(0, grid.size(0), 1, [&](int64_t begin, int64_t end) {
    walk.each(begin * walk.places, end * walk.places, values, options,
              [&](int64_t n, int64_t place, const Line<C, N>* lines, const int64_t* strides) {
                Neighbours<C, N> near(lines, strides);
                C slopes[N] = {};
                for (int64_t c = 0; c < channels; ++c) {
                  C g = upstream.data<C>()[(n * channels + c) * walk.places + place];
                  const C* from = values.data<C>() + (n * channels + c) * plane;
                  C* to = sums.defined() ? sums.data<C>() + (n * channels + c) * plane : nullptr;
                  for (int k = 0; k < near.count; ++k) {
                    const auto& one = near.all[k];
                    if (to) to[one.offset] += one.weight * g;
                    for (int d = 0; d < N; ++d) slopes[d] += one.slopes[d] * from[one.offset] * g;
                  }
                }
                T* coordinates = grad_grid.data<T>() + (n * walk.places + place) * N;
                for (int d = 0; d < N; ++d) coordinates[N - 1 - d] = static_cast<T>(slopes[d]);
              });
  });
  if (grad_image.defined()) copy(grad_image, sums);
}

const char* name_of(const Tensor& image) {
  return image.dim() == 4 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu";
}

}  // namespace

void grid_sample(const Tensor& out, const Tensor& image, const Tensor& grid, const GridOptions& options) {
  visit<FloatingTypes>(image.dtype(), name_of(image), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    // PyTorch's kernels compute in the elements' type, narrow ones round at each step; save cubics in three dimensions.
    using Narrow = std::conditional_t<std::is_same_v<T, Compute<T>>, T, Rounding<T>>;
    if (image.dim() == 4) sample<T, Narrow, 2>(out, image, grid, options);
    else if (options.interpolation == GridInterpolation::Cubic) sample<T, Compute<T>, 3>(out, image, grid, options);
    else sample<T, Narrow, 3>(out, image, grid, options);
  });
}

void grid_sample_backward(const Tensor& grad_image, const Tensor& grad_grid, const Tensor& grad_output,
                          const Tensor& image, const Tensor& grid, const GridOptions& options) {
  visit<FloatingTypes>(image.dtype(), name_of(image), [&](auto tag) {
    using T = typename decltype(tag)::type;
    image.dim() == 4 ? sample_backward<T, 2>(grad_image, grad_grid, grad_output, image, grid, options)
                     : sample_backward<T, 3>(grad_image, grad_grid, grad_output, image, grid, options);
  });
}

}  // namespace umbra::kernels
