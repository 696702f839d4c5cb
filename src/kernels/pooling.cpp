#include "kernels/pooling.h"

#include <limits>
#include <utility>

#include "core/per_thread.h"
#include "kernels/copy.h"
#include "kernels/planes.h"

namespace umbra::kernels {
namespace {

// ---- windows
// ---------------------------------------------------------------------------------------------------------

// What one output element sees along one dimension: elements first, first + step, ... below last.
struct Span {
  int64_t first, last;
  int64_t padded;  // how long it would be if padding counted
};

// Windows of one length, one step apart: tap k of output element o is element o * stride + first + k * dilation, where
// the input has one there.
class Regular {
 public:
  Regular() = default;
  Regular(int64_t taps, int64_t stride, int64_t first, int64_t dilation, int64_t input, int64_t output)
      : taps_(taps), stride_(stride) {
    for (int64_t k = 0; k < taps; ++k) {
      int64_t column = first + k * dilation;
      int64_t begin = column >= 0 ? 0 : (-column + stride - 1) / stride;
      int64_t end = column >= input ? 0 : std::min(output, (input - 1 - column) / stride + 1);
      if (begin < end) hits_.push_back({column + begin * stride, begin, end - begin});
    }
  }
  int64_t taps() const { return taps_; }  // 0: they are not regular
  int64_t stride() const { return stride_; }
  /// Calls fn(column of the first output element, first output element, how many) for each tap that hits the input.
  template <class Fn> void each_tap(const Fn& fn) const {
    for (const Hit& hit : hits_) fn(hit.column, hit.begin, hit.count);
  }

 private:
  struct Hit {
    int64_t column, begin, count;
  };
  int64_t taps_ = 0, stride_ = 1;
  std::vector<Hit> hits_;  // the same in every row
};

// The windows of all output elements, along three dimensions; those that the tensors do not have are of size 1.
struct Windows {
  static constexpr int kDims = 3;
  int64_t input[kDims] = {1, 1, 1}, output[kDims] = {1, 1, 1}, step[kDims] = {1, 1, 1};
  Regular columns;  // along the last dimension
  std::vector<Span> spans[kDims] = {{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}};

  Windows(const Tensor& in, const Tensor& out, int64_t dims) {
    for (int64_t d = 0; d < dims; ++d) {
      input[at(d, dims)] = in.size(in.dim() - dims + d);
      // No elements, no windows: of such a tensor one size may be huge.
      output[at(d, dims)] = out.numel() == 0 ? 0 : out.size(out.dim() - dims + d);
      spans[at(d, dims)].clear();
      spans[at(d, dims)].reserve(static_cast<size_t>(output[at(d, dims)]));
    }
    // One empty dimension leaves no window: the others, however long, are not walked.
    if (out.numel() == 0) std::fill_n(output, kDims, 0);
  }
  static int64_t at(int64_t d, int64_t dims) { return kDims - dims + d; }

  /// Calls fn(output position, span, span, span) for each output element of a plane.
  template <class Fn> void each(const Fn& fn) const {
    int64_t position = 0;
    for (const Span& a : spans[0])
      for (const Span& b : spans[1])
        for (const Span& c : spans[2]) fn(position++, a, b, c);
  }
  /// Whether it pays to go row by row.
  bool has_long_rows() const {
    constexpr int64_t kLong = 4;
    return columns.taps() > 0 && output[2] >= kLong;
  }
  /// Calls fn(first output position, span, span) for each row of output elements of a plane.
  template <class Fn> void each_row(const Fn& fn) const {
    int64_t position = 0;
    for (const Span& a : spans[0])
      for (const Span& b : spans[1]) {
        fn(position, a, b);
        position += output[2];
      }
  }
  /// Calls fn(position of its first element) for each row of the input that a row of windows sees.
  template <class Fn> void rows_inside(const Span& a, const Span& b, const Fn& fn) const {
    for (int64_t i = a.first; i < a.last; i += step[0])
      for (int64_t j = b.first; j < b.last; j += step[1]) fn((i * input[1] + j) * input[2]);
  }
  /// Calls fn(position in the input plane) for each element of a window.
  template <class Fn> void inside(const Span& a, const Span& b, const Span& c, const Fn& fn) const {
    for (int64_t i = a.first; i < a.last; i += step[0])
      for (int64_t j = b.first; j < b.last; j += step[1])
        for (int64_t k = c.first; k < c.last; k += step[2]) fn((i * input[1] + j) * input[2] + k);
  }
};

int64_t option(IntArrayRef values, int64_t d, int64_t fallback) {
  return values.empty() ? fallback : values.size() == 1 ? values[0] : values[d];
}

Windows max_windows(const Tensor& in, const Tensor& out, const PoolOptions& options) {
  auto dims = static_cast<int64_t>(options.kernel.size());
  Windows windows(in, out, dims);
  for (int64_t d = 0; d < dims; ++d) {
    int64_t k = Windows::at(d, dims), dilation = option(options.dilation, d, 1), size = windows.input[k];
    int64_t stride = option(options.stride, d, options.kernel[d]), padding = option(options.padding, d, 0);
    windows.step[k] = dilation;
    if (d + 1 == dims) windows.columns = {options.kernel[d], stride, -padding, dilation, size, windows.output[k]};
    for (int64_t o = 0; o < windows.output[k]; ++o) {
      int64_t first = o * stride - padding, last = std::min(first + (options.kernel[d] - 1) * dilation + 1, size);
      while (first < 0) first += dilation;
      windows.spans[k].push_back({first, last, 0});
    }
  }
  return windows;
}

Windows average_windows(const Tensor& in, const Tensor& out, const PoolOptions& options) {
  auto dims = static_cast<int64_t>(options.kernel.size());
  Windows windows(in, out, dims);
  for (int64_t d = 0; d < dims; ++d) {
    int64_t k = Windows::at(d, dims), size = windows.input[k];
    int64_t stride = option(options.stride, d, options.kernel[d]), padding = option(options.padding, d, 0);
    if (d + 1 == dims) windows.columns = {options.kernel[d], stride, -padding, 1, size, windows.output[k]};
    for (int64_t o = 0; o < windows.output[k]; ++o) {
      int64_t first = o * stride - padding, last = std::min(first + options.kernel[d], size + padding);
      windows.spans[k].push_back({std::max<int64_t>(first, 0), std::min(last, size), last - first});
    }
  }
  return windows;
}

Windows adaptive_windows(const Tensor& in, const Tensor& out, int64_t dims) {
  Windows windows(in, out, dims);
  for (int64_t d = 0; d < dims; ++d) {
    int64_t k = Windows::at(d, dims), size = windows.input[k], parts = windows.output[k];
    for (int64_t o = 0; o < parts; ++o) {
      int64_t first = o * size / parts, last = ((o + 1) * size + parts - 1) / parts;
      windows.spans[k].push_back({first, last, last - first});
    }
  }
  return windows;
}

// The windows of one channel, chosen by its samples. PyTorch rounds to the samples' type after each step.
template <class T>
Windows fractional_windows(const Tensor& in, const Tensor& out, IntArrayRef kernel, const T* samples) {
  auto dims = static_cast<int64_t>(kernel.size());
  Windows windows(in, out, dims);
  for (int64_t d = 0; d < dims; ++d) {
    using C = Compute<T>;
    auto rounded = [](C x) { return static_cast<C>(static_cast<T>(x)); };
    int64_t k = Windows::at(d, dims), size = windows.input[k], count = windows.output[k];
    C sample = static_cast<C>(samples[dims == 2 ? 1 - d : d]);
    C step = count > 1 ? rounded(static_cast<C>(size - kernel[d]) / static_cast<C>(count - 1)) : C(0);
    for (int64_t o = 0; o < count; ++o) {
      int64_t first = o + 1 == count ? size - kernel[d]
                                     : static_cast<int64_t>(rounded(rounded(static_cast<C>(o) + sample) * step)) -
                                           static_cast<int64_t>(rounded(sample * step));
      windows.spans[k].push_back({first, first + kernel[d], kernel[d]});
    }
  }
  return windows;
}

int64_t divisor_of(const Span& a, const Span& b, const Span& c, const PoolOptions& options) {
  if (options.divisor) return *options.divisor;
  if (options.count_include_pad) return a.padded * b.padded * c.padded;
  return (a.last - a.first) * (b.last - b.first) * (c.last - c.first);
}

// ---- maxima and averages
// ---------------------------------------------------------------------------------------------

bool is_empty(const Span& a, const Span& b, const Span& c) {
  return a.first >= a.last || b.first >= b.last || c.first >= c.last;
}

// The largest elements of one group of planes.
template <int Lanes, class C> void max_windows_of(const Windows& windows, const C* x, C* y, int64_t* positions) {
  using Limits = std::numeric_limits<C>;
  windows.each([&](int64_t o, const Span& a, const Span& b, const Span& c) {
    C best[Lanes];
    int64_t place[Lanes];
    std::fill_n(best, Lanes, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
    std::fill_n(place, Lanes, (a.first * windows.input[1] + b.first) * windows.input[2] + c.first);
    windows.inside(a, b, c, [&](int64_t i) {
      for (int lane = 0; lane < Lanes; ++lane) {
        C value = x[i * Lanes + lane];
        bool larger = value > best[lane] || value != value;
        best[lane] = larger ? value : best[lane];
        place[lane] = larger ? i : place[lane];
      }
    });
    std::copy_n(best, Lanes, y + o * Lanes);
    std::copy_n(place, Lanes, positions + o * Lanes);
  });
}

/// Rows so short that their elements are taken one by one: a loop over each tap would wait for what the one before has
/// just written.
constexpr int64_t kShortRow = 16;

// A row of numbers while a plane is worked on: small ones, of which there are many, take no memory of their own.
template <class T> class RowBuffer {
 public:
  explicit RowBuffer(int64_t n) {
    if (n > kSmall) large_.resize(static_cast<size_t>(n));
  }
  T* data() { return large_.empty() ? small_ : large_.data(); }

 private:
  static constexpr int64_t kSmall = 128;
  T small_[kSmall];
  std::vector<T> large_;
};

// Calls fn with the stride as a constant, where it is one of the usual ones: loops over them become vectors.
template <class Fn> void with_stride(int64_t stride, const Fn& fn) {
  if (stride == 1) fn(std::integral_constant<int64_t, 1>());
  else if (stride == 2) fn(std::integral_constant<int64_t, 2>());
  else fn(stride);
}

// The same for one plane with regular windows: a row of outputs at a time, tap by tap.
template <class C> void max_rows_of(const Windows& windows, const C* x, C* y, int64_t* positions) {
  using Limits = std::numeric_limits<C>;
  using Place = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;  // as wide as the numbers
  int64_t n = windows.output[2];
  RowBuffer<Place> places(n);
  windows.each_row([&](int64_t o, const Span& a, const Span& b) {
    C* __restrict best = y + o;
    Place* __restrict place = places.data();
    int64_t corner = (a.first * windows.input[1] + b.first) * windows.input[2];
    for (int64_t i = 0; i < n; ++i) {
      best[i] = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      place[i] = static_cast<Place>(corner + windows.spans[2][static_cast<size_t>(i)].first);
    }
    windows.rows_inside(a, b, [&](int64_t row) {
      windows.columns.each_tap([&](int64_t column, int64_t begin, int64_t count) {
        const C* __restrict values = x + row + column;
        auto first = static_cast<Place>(row + column);
        with_stride(windows.columns.stride(), [&](auto stride) {
          for (int64_t i = 0; i < count; ++i) {
            C value = values[i * stride];
            bool larger = value > best[begin + i];
            if constexpr (std::is_floating_point_v<C>) larger |= value != value;
            best[begin + i] = larger ? value : best[begin + i];
            place[begin + i] = larger ? static_cast<Place>(first + static_cast<Place>(i * stride)) : place[begin + i];
          }
        });
      });
    });
    std::copy_n(place, n, positions + o);
  });
}

// The same without places.
template <class C> void max_values_of(const Windows& windows, const C* x, C* y) {
  using Limits = std::numeric_limits<C>;
  int64_t n = windows.output[2];
  windows.each_row([&](int64_t o, const Span& a, const Span& b) {
    C* __restrict best = y + o;
    std::fill_n(best, n, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
    windows.rows_inside(a, b, [&](int64_t row) {
      windows.columns.each_tap([&](int64_t column, int64_t begin, int64_t count) {
        const C* __restrict values = x + row + column;
        with_stride(windows.columns.stride(), [&](auto stride) {
          for (int64_t i = 0; i < count; ++i) {
            C value = values[i * stride];
            best[begin + i] = value > best[begin + i] || value != value ? value : best[begin + i];
          }
        });
      });
    });
  });
}

/// One for each thread: in the template it would be one for each thread and type.
std::vector<int64_t>& positions_buffer() {
  static PerThread<std::vector<int64_t>> buffer;
  return *buffer;
}

template <class T, int Lanes>
void max_lanes(const Tensor& out, const Tensor& indices, const Tensor& self, const Windows& windows, int64_t dims) {
  using C = Compute<T>;
  Planes<int64_t, int64_t, Lanes> places(indices, dims);
  forward_planes<T, Lanes>(out, self, dims, [&](int64_t group, const C* x, C* y) {
    std::vector<int64_t>& buffer = positions_buffer();
    buffer.resize(static_cast<size_t>(places.buffer_size()));
    int64_t* positions = places.target(group, buffer);
    constexpr int64_t kMostPlaces = std::numeric_limits<int32_t>::max();
    bool by_rows = Lanes == 1 && windows.columns.taps() > 0 &&
                   windows.input[0] * windows.input[1] * windows.input[2] < kMostPlaces;
    if (by_rows) max_rows_of(windows, x, y, positions);
    else max_windows_of<Lanes>(windows, x, y, positions);
    places.write(group, positions);
  });
}

void max_over(const Tensor& out, const Tensor& indices, const Tensor& self, const Windows& windows, int64_t dims,
              const char* kernel) {
  if (out.numel() == 0) return;
  visit<RealTypes>(self.dtype(), kernel, [&](auto tag) {
    with_lanes(self, dims, [&](auto lanes) {
      max_lanes<typename decltype(tag)::type, lanes()>(out, indices, self, windows, dims);
    });
  });
}

// The averages of one plane with regular windows, a row of outputs at a time: the sums of columns first, then of those.
template <class C> void average_rows_of(const Windows& windows, const C* x, C* y, const C* divisors) {
  int64_t width = windows.input[2], n = windows.output[2];
  RowBuffer<C> buffer(width);
  C* __restrict sums = buffer.data();
  windows.each_row([&](int64_t o, const Span& a, const Span& b) {
    bool any = false;
    windows.rows_inside(a, b, [&](int64_t row) {
      const C* __restrict values = x + row;
      if (std::exchange(any, true))
        for (int64_t i = 0; i < width; ++i) sums[i] += values[i];
      else
        for (int64_t i = 0; i < width; ++i) sums[i] = values[i];
    });
    if (!any) std::fill_n(sums, width, C(0));
    C* __restrict to = y + o;
    if (n < kShortRow) {
      for (int64_t i = 0; i < n; ++i) {
        const Span& span = windows.spans[2][static_cast<size_t>(i)];
        C sum(0);
        for (int64_t k = span.first; k < span.last; ++k) sum += sums[k];
        to[i] = sum / divisors[o + i];
      }
      return;
    }
    std::fill_n(to, n, C(0));
    windows.columns.each_tap([&](int64_t column, int64_t begin, int64_t number) {
      const C* __restrict sum = sums + column;
      with_stride(windows.columns.stride(), [&](auto stride) {
        for (int64_t i = 0; i < number; ++i) to[begin + i] += sum[i * stride];
      });
    });
    for (int64_t i = 0; i < n; ++i) to[i] /= divisors[o + i];
  });
}

template <class Divisor>
void average_over(const Tensor& out, const Tensor& self, const Windows& windows, int64_t dims, const char* kernel,
                  const Divisor& divisor) {
  if (out.numel() == 0) return;
  visit<detail::Join<FloatingTypes, Types<int64_t>>>(self.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    // The same in every plane.
    std::vector<C> divisors(static_cast<size_t>(windows.output[0] * windows.output[1] * windows.output[2]));
    windows.each([&](int64_t o, const Span& a, const Span& b, const Span& c) {
      divisors[static_cast<size_t>(o)] = is_empty(a, b, c) ? C(1) : static_cast<C>(divisor(a, b, c));
    });
    with_lanes(self, dims, [&](auto lanes) {
      constexpr int kLanes = lanes();
      forward_planes<T, kLanes>(out, self, dims, [&](int64_t, const C* x, C* y) {
        if (kLanes == 1 && windows.has_long_rows()) return average_rows_of(windows, x, y, divisors.data());
        windows.each([&](int64_t o, const Span& a, const Span& b, const Span& c) {
          C sum[kLanes] = {}, count = divisors[static_cast<size_t>(o)];
          windows.rows_inside(a, b, [&](int64_t row) {
            C line[kLanes] = {};  // of its own: the rows do not wait for each other
            for (int64_t i = row + c.first; i < row + c.last; ++i)
              for (int lane = 0; lane < kLanes; ++lane) line[lane] += x[i * kLanes + lane];
            for (int lane = 0; lane < kLanes; ++lane) sum[lane] += line[lane];
          });
          for (int lane = 0; lane < kLanes; ++lane) y[o * kLanes + lane] = sum[lane] / count;
        });
      });
    });
  });
}

template <class Divisor>
void average_over_backward(const Tensor& grad_input, const Tensor& grad_output, const Windows& windows, int64_t dims,
                           const char* kernel, const Divisor& divisor) {
  if (grad_input.numel() == 0) return;
  visit<detail::Join<FloatingTypes, Types<int64_t>>>(grad_input.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    with_lanes(grad_input, dims, [&](auto lanes) {
      constexpr int kLanes = lanes();
      backward_planes<T, kLanes>(grad_input, grad_output, dims, [&](int64_t, const C* g, C* x) {
        windows.each([&](int64_t o, const Span& a, const Span& b, const Span& c) {
          if (is_empty(a, b, c)) return;
          C share[kLanes], count = static_cast<C>(divisor(a, b, c));
          for (int lane = 0; lane < kLanes; ++lane) share[lane] = g[o * kLanes + lane] / count;
          windows.inside(a, b, c, [&](int64_t i) {
            for (int lane = 0; lane < kLanes; ++lane) x[i * kLanes + lane] += share[lane];
          });
        });
      });
    });
  });
}

template <class T, int Lanes>
void max_backward_lanes(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices, int64_t dims) {
  using C = Compute<T>;
  Planes<int64_t, int64_t, Lanes> places(indices, dims);
  int64_t limit = 1;
  for (int64_t size : grad_input.sizes().drop_front(grad_input.dim() - dims)) limit *= size;
  backward_planes<T, Lanes>(grad_input, grad_output, dims, [&](int64_t group, const C* g, C* x) {
    std::vector<int64_t> buffer = places.buffer();
    const int64_t* place = places.read(group, buffer);
    for (int64_t i = 0; i < places.buffer_size(); ++i) {
      check(place[i] >= 0 && place[i] < limit, "Found an invalid max index: ", place[i]);
      x[place[i] * Lanes + i % Lanes] += g[i];
    }
  });
}

/// Averages whose every step is rounded to the elements' narrow type, as PyTorch's in three dimensions are.
void average_in_steps(const Tensor& out, const Tensor& self, const Windows& windows) {
  visit<Types<Half, BFloat16>>(self.dtype(), "adaptive_avg_pool3d_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward_planes<T, 1>(out, self, 3, [&](int64_t, const float* x, float* y) {
      windows.each([&](int64_t o, const Span& a, const Span& b, const Span& c) {
        T sum(0);
        windows.inside(a, b, c, [&](int64_t i) { sum = T(sum + x[i]); });
        for (const Span* span : {&a, &b, &c}) sum = T(sum / static_cast<float>(span->last - span->first));
        y[o] = sum;
      });
    });
  });
}

int64_t full_count(const Span& a, const Span& b, const Span& c) {
  return (a.last - a.first) * (b.last - b.first) * (c.last - c.first);
}

}  // namespace

void max_pool_values(const Tensor& out, const Tensor& self, const PoolOptions& options) {
  if (out.numel() == 0) return;
  auto dims = static_cast<int64_t>(options.kernel.size());
  Windows windows = max_windows(self, out, options);
  visit<FloatingTypes>(self.dtype(), "max_pool1d_impl", [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward_planes<T, 1>(out, self, dims,
                         [&](int64_t, const Compute<T>* x, Compute<T>* y) { max_values_of(windows, x, y); });
  });
}

void max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, const PoolOptions& options) {
  max_over(out, indices, self, max_windows(self, out, options), static_cast<int64_t>(options.kernel.size()),
           options.kernel.size() < 3 ? "max_pool2d" : "max_pool3d");
}

void max_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                       int64_t spatial_dims) {
  if (grad_input.numel() == 0) return;
  visit<RealTypes>(grad_input.dtype(), "max_pool_backward", [&](auto tag) {
    with_lanes(grad_input, spatial_dims, [&](auto lanes) {
      max_backward_lanes<typename decltype(tag)::type, lanes()>(grad_input, grad_output, indices, spatial_dims);
    });
  });
}

void average_pool(const Tensor& out, const Tensor& self, const PoolOptions& options) {
  average_over(out, self, average_windows(self, out, options), static_cast<int64_t>(options.kernel.size()),
               options.kernel.size() < 3 ? "avg_pool2d" : "avg_pool3d_out_frame",
               [&](const Span& a, const Span& b, const Span& c) { return divisor_of(a, b, c, options); });
}

void average_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const PoolOptions& options) {
  average_over_backward(grad_input, grad_output, average_windows(grad_input, grad_output, options),
                        static_cast<int64_t>(options.kernel.size()), "avg_pool_backward",
                        [&](const Span& a, const Span& b, const Span& c) { return divisor_of(a, b, c, options); });
}

void adaptive_average_pool(const Tensor& out, const Tensor& self, int64_t spatial_dims) {
  Windows windows = adaptive_windows(self, out, spatial_dims);
  if (spatial_dims == 3 && is_reduced_floating(self.dtype()) && out.numel() != 0)
    return average_in_steps(out, self, windows);
  average_over(out, self, windows, spatial_dims, "adaptive_avg_pool", full_count);
}

void adaptive_average_pool_backward(const Tensor& grad_input, const Tensor& grad_output, int64_t spatial_dims) {
  average_over_backward(grad_input, grad_output, adaptive_windows(grad_input, grad_output, spatial_dims), spatial_dims,
                        "adaptive_avg_pool_backward", full_count);
}

void adaptive_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, int64_t spatial_dims) {
  max_over(out, indices, self, adaptive_windows(self, out, spatial_dims), spatial_dims,
           spatial_dims < 3 ? "adaptive_max_pool2d" : "adaptive_max_pool3d_cpu");
}

void fractional_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self, const Tensor& samples,
                         IntArrayRef kernel) {
  if (out.numel() == 0) return;
  auto dims = static_cast<int64_t>(kernel.size());
  visit<FloatingTypes>(self.dtype(), "fractional_max_pool", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    Tensor chosen = contiguous(samples);
    Planes<int64_t, int64_t, 1> places(indices, dims);
    forward_planes<T, 1>(out, self, dims, [&](int64_t plane, const C* x, C* y) {
      std::vector<int64_t> positions(places.buffer_size());
      Windows windows = fractional_windows(self, out, kernel, chosen.data<T>() + plane * dims);
      max_windows_of<1>(windows, x, y, positions.data());
      places.write(plane, positions.data());
    });
  });
}

void max_unpool(const Tensor& out, const Tensor& self, const Tensor& indices, int64_t spatial_dims) {
  if (out.numel() == 0 && self.numel() == 0) return;
  IntArrayRef sizes = out.sizes().drop_front(out.dim() - spatial_dims);
  int64_t limit = 1;
  std::string volume;
  for (int64_t size : sizes) {
    limit *= size;
    volume += (volume.empty() ? "" : "x") + std::to_string(size);
  }
  visit<FloatingTypes>(self.dtype(), "max_unpool", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    Planes<int64_t, int64_t, 1> places(indices, spatial_dims);
    backward_planes<T, 1>(out, self, spatial_dims, [&](int64_t plane, const C* x, C* y) {
      std::vector<int64_t> buffer = places.buffer();
      const int64_t* place = places.read(plane, buffer);
      for (int64_t i = 0; i < places.buffer_size(); ++i) {
        check(place[i] >= 0 && place[i] < limit, "Found an invalid max index: ", place[i],
              " (output volumes are of size ", volume, ")");
        y[place[i]] = x[i];
      }
    });
  });
}

}  // namespace umbra::kernels
