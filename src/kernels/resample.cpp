#include "kernels/resample.h"

#include <cmath>
#include <memory>
#include <numbers>

#include "kernels/copy.h"
#include "kernels/planes.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// ---- where the elements of a result come from ----

struct TapRange {
  int64_t first, count;  // in `places` and `weights`
};
/// The elements of the input that each output element is made of, along one dimension, and their weights.
template <class W> struct Taps {
  int64_t input = 1;
  std::vector<TapRange> ranges;
  std::vector<int64_t> places;
  std::vector<W> weights;

  /// Makes room for that many output elements, of so many input elements each.
  void reserve(int64_t output, int64_t each) {
    ranges.reserve(static_cast<size_t>(output));
    places.reserve(static_cast<size_t>(output * each));
    weights.reserve(static_cast<size_t>(output * each));
  }
  int64_t output() const { return static_cast<int64_t>(ranges.size()); }
  void begin() { ranges.push_back({static_cast<int64_t>(places.size()), 0}); }
  void add(int64_t place, W weight) {
    places.push_back(place);
    weights.push_back(weight);
    ++ranges.back().count;
  }
};

/// One input element a step of this in the output.
template <class W> W step_of(int64_t input, int64_t output, bool align_corners, std::optional<double> scale) {
  if (align_corners) return output > 1 ? static_cast<W>(input - 1) / static_cast<W>(output - 1) : W(0);
  if (scale && *scale > 0) return static_cast<W>(1.0 / *scale);
  return static_cast<W>(input) / static_cast<W>(output);
}

/// The place in the input of an output element; centres of elements, not their edges, lie on each other.
template <class W> W source(W step, int64_t o, bool align_corners, bool may_be_negative) {
  if (align_corners) return step * static_cast<W>(o);
  W place = step * (static_cast<W>(o) + W(0.5)) - W(0.5);
  return !may_be_negative && place < 0 ? W(0) : place;
}

struct Line {
  int64_t input, output;
  bool align_corners;
  std::optional<double> scale;
};

template <class W> Taps<W> nearest_taps(const Line& line, bool exact) {
  Taps<W> taps{.input = line.input};
  taps.reserve(line.output, 1);
  W step = step_of<W>(line.input, line.output, false, line.scale);
  for (int64_t o = 0; o < line.output; ++o) {
    W place = exact ? source(step, o, false, false) + W(0.5) : step * static_cast<W>(o);
    taps.begin();
    taps.add(std::min(static_cast<int64_t>(std::floor(place)), line.input - 1), W(1));
  }
  return taps;
}

template <class W> Taps<W> linear_taps(const Line& line) {
  Taps<W> taps{.input = line.input};
  taps.reserve(line.output, 2);
  W step = step_of<W>(line.input, line.output, line.align_corners, line.scale);
  for (int64_t o = 0; o < line.output; ++o) {
    int64_t left = o;
    W share = 0;
    if (line.input != line.output) {
      W place = source(step, o, line.align_corners, false);
      left = std::min(static_cast<int64_t>(std::floor(place)), line.input - 1);
      share = std::clamp(place - static_cast<W>(left), W(0), W(1));
    }
    taps.begin();
    taps.add(left, W(1) - share);
    taps.add(std::min(left + 1, line.input - 1), share);
  }
  return taps;
}

/// The weight of an element at this distance, by a cubic that is 1 at 0 and 0 at 1 and 2.
template <class W> W cubic(W x, W a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

template <class W> Taps<W> cubic_taps(const Line& line) {
  constexpr W a = W(-0.75);
  Taps<W> taps{.input = line.input};
  taps.reserve(line.output, 4);
  W step = step_of<W>(line.input, line.output, line.align_corners, line.scale);
  for (int64_t o = 0; o < line.output; ++o) {
    W place = source(step, o, line.align_corners, true);
    auto left = std::min(static_cast<int64_t>(std::floor(place)), line.input - 1);
    W t = std::clamp(place - static_cast<W>(left), W(0), W(1)), u = W(1) - t;
    W weights[4] = {((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
                    ((a + 2) * u - (a + 3)) * u * u + 1, ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a};
    taps.begin();
    for (int64_t k = 0; k < 4; ++k) taps.add(std::clamp<int64_t>(left - 1 + k, 0, line.input - 1), weights[k]);
  }
  return taps;
}

template <class W> W triangle(W x) { return std::max(W(0), W(1) - std::abs(x)); }
template <class W> W lanczos(W x) {
  auto sinc = [](W y) { return y == 0 ? W(1) : std::sin(std::numbers::pi_v<W> * y) / (std::numbers::pi_v<W> * y); };
  return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : W(0);
}

/// A filter of `width` input elements; where the result is smaller, and `smooth`, it is as much wider.
template <class W, class Filter> Taps<W> filter_taps(const Line& line, int width, bool smooth, const Filter& filter) {
  Taps<W> taps{.input = line.input};
  taps.reserve(line.output, width);
  W step = step_of<W>(line.input, line.output, line.align_corners, line.scale);
  bool wider = smooth && step >= 1;
  W support = W(width) * W(0.5) * (wider ? step : W(1)), inverse = wider ? W(1) / step : W(1);
  W edge = line.align_corners && !smooth ? W(0.5) : W(0);
  auto most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  for (int64_t o = 0; o < line.output; ++o) {
    W center = step * (static_cast<W>(o) + W(0.5) - edge);
    int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + W(0.5) + edge), 0);
    int64_t last = std::min<int64_t>(static_cast<int64_t>(center + support + W(0.5) + edge), line.input);
    int64_t count = std::clamp<int64_t>(last - first, 0, most);
    W total = 0;
    taps.begin();
    for (int64_t k = 0; k < count; ++k) {
      W weight = filter((static_cast<W>(k + first) - center + W(0.5) - edge) * inverse);
      taps.add(first + k, weight);
      total += weight;
    }
    if (total != 0)
      for (int64_t k = 0; k < count; ++k) taps.weights[taps.ranges.back().first + k] /= total;
  }
  return taps;
}

template <class W> Taps<W> taps_of(Interpolation mode, const Line& line) {
  switch (mode) {
    case Interpolation::Nearest: return nearest_taps<W>(line, false);
    case Interpolation::NearestExact: return nearest_taps<W>(line, true);
    case Interpolation::Linear: return linear_taps<W>(line);
    case Interpolation::Cubic: return cubic_taps<W>(line);
    case Interpolation::LinearSmooth: return filter_taps<W>(line, 2, true, triangle<W>);
    case Interpolation::CubicSmooth: return filter_taps<W>(line, 4, true, [](W x) { return cubic(x, W(-0.5)); });
    case Interpolation::LanczosSmooth: return filter_taps<W>(line, 6, true, lanczos<W>);
  }
  return {};
}

bool is_nearest(Interpolation mode) { return mode == Interpolation::Nearest || mode == Interpolation::NearestExact; }
bool is_smooth(Interpolation mode) { return mode >= Interpolation::LinearSmooth; }

Line line_of(const Tensor& in, const Tensor& out, size_t d, const ResampleOptions& options) {
  auto at = static_cast<int64_t>(d) - static_cast<int64_t>(options.scales.size());
  return {in.size(at), out.size(at), options.align_corners, options.scales[d]};
}

template <class W> std::vector<Taps<W>> all_taps(const Tensor& in, const Tensor& out, const ResampleOptions& options) {
  std::vector<Taps<W>> taps;
  for (size_t d = 0; d < options.scales.size(); ++d)
    taps.push_back(taps_of<W>(options.mode, line_of(in, out, d, options)));
  return taps;
}

// ---- one dimension at a time ----

/// to = the weighted sum of rows of x, n wide. Two rows at a time, so that the result is written once where there are
/// two.
template <class C, class W>
void weighted_rows(C* __restrict to, const C* x, const int64_t* places, const W* weights, int64_t count, int64_t n) {
  auto row = [&](int64_t k) { return x + places[k] * n; };
  auto weight = [&](int64_t k) { return static_cast<C>(weights[k]); };
  if (count == 0) return static_cast<void>(std::fill_n(to, n, C(0)));
  int64_t k = count % 2;
  if (k == 1) {
    const C* __restrict one = row(0);
    C w = weight(0);
    for (int64_t b = 0; b < n; ++b) to[b] = w * one[b];
  }
  for (; k < count; k += 2) {
    const C* __restrict one = row(k), * __restrict two = row(k + 1);
    C first = weight(k), second = weight(k + 1);
    if (k == 0)
      for (int64_t b = 0; b < n; ++b) to[b] = first * one[b] + second * two[b];
    else
      for (int64_t b = 0; b < n; ++b) to[b] = (to[b] + first * one[b]) + second * two[b];
  }
}

/// y[a][o][b] = sum of weights times x[a][place][b].
template <class C, class W> void gather_line(C* y, const C* x, const Taps<W>& taps, int64_t outer, int64_t inner) {
  for (int64_t a = 0; a < outer; ++a, x += taps.input * inner)
    for (const auto& range : taps.ranges) {
      const int64_t* place = taps.places.data() + range.first;
      const W* weight = taps.weights.data() + range.first;
      if (inner > 1) {
        weighted_rows(y, x, place, weight, range.count, inner);
        y += inner;
      } else if (range.count == 2) {  // the usual number of neighbours
        *y++ = static_cast<C>(weight[0]) * x[place[0]] + static_cast<C>(weight[1]) * x[place[1]];
      } else {
        C sum = 0;
        for (int64_t k = 0; k < range.count; ++k) sum += static_cast<C>(weight[k]) * x[place[k]];
        *y++ = sum;
      }
    }
}

/// y[o1][o2]...[lane] = x[place1][place2]...[lane] for the dimensions from d on. What was just picked is not picked
/// again.
template <class C, class W> C* pick(C* y, const C* x, const std::vector<Taps<W>>& taps, size_t d, int64_t lanes) {
  const std::vector<int64_t>& places = taps[d].places;
  if (d + 1 == taps.size() && lanes == 1) {
    for (int64_t place : places) *y++ = x[place];
    return y;
  }
  int64_t inner = lanes;
  for (size_t k = d + 1; k < taps.size(); ++k) inner *= taps[k].input;
  const C* before = nullptr;
  for (size_t o = 0; o < places.size(); ++o) {
    C* start = y;
    const C* from = x + places[o] * inner;
    if (before && places[o] == places[o - 1]) {
      y += start - before;
      copy_bytes(reinterpret_cast<char*>(start), reinterpret_cast<const char*>(before), (y - start) * sizeof(C));
    } else if (d + 1 < taps.size()) {
      y = pick(y, from, taps, d + 1, lanes);
    } else {
      y = std::copy_n(from, lanes, y);
    }
    before = start;
  }
  return y;
}

/// The transpose: x[a][place][b] += weight * y[a][o][b], into zeros.
template <class C, class W> void scatter_line(C* x, const C* y, const Taps<W>& taps, int64_t outer, int64_t inner) {
  for (int64_t a = 0; a < outer; ++a, x += taps.input * inner)
    for (const auto& range : taps.ranges) {
      for (int64_t k = range.first; k < range.first + range.count; ++k) {
        C* row = x + taps.places[k] * inner;
        C w = static_cast<C>(taps.weights[k]);
        for (int64_t b = 0; b < inner; ++b) row[b] += w * y[b];
      }
      y += inner;
    }
}

/// Runs a step for each dimension of some planes, the last one first; what comes between two of them lies in buffers.
/// `step(to, from, taps, outer, inner)` with the sizes ahead of and behind the dimension.
template <class C, class W, class Step>
void each_line(C* to, const C* from, const std::vector<Taps<W>>& taps, int64_t planes, int64_t lanes, bool forward,
               const Step& step) {
  std::vector<int64_t> sizes;
  for (const Taps<W>& t : taps) sizes.push_back(forward ? t.input : t.output());
  std::unique_ptr<C[]> buffers[2];
  for (size_t n = 0; n < taps.size(); ++n) {
    size_t d = forward ? taps.size() - 1 - n : n;
    sizes[d] = forward ? taps[d].output() : taps[d].input;
    int64_t outer = planes, inner = lanes;
    for (size_t k = 0; k < taps.size(); ++k) (k < d ? outer : k > d ? inner : outer) *= k == d ? 1 : sizes[k];
    C* target = to;
    if (n + 1 < taps.size()) {
      auto size = static_cast<size_t>(outer * inner * sizes[d]);
      buffers[n % 2] = std::make_unique_for_overwrite<C[]>(size);
      target = buffers[n % 2].get();
      if (!forward) std::fill_n(target, size, C(0));
    }
    step(target, from, taps[d], outer, inner);
    from = target;
  }
}

// ---- bytes: weights of 16 bits, results rounded after each dimension ----

struct ByteTaps {
  Taps<int32_t> taps;
  int precision = 0;
};

/// What falls on one place at the edge, as one weight.
Taps<double> merged(const Taps<double>& taps) {
  Taps<double> out{.input = taps.input};
  for (const auto& range : taps.ranges) {
    out.begin();
    for (int64_t k = range.first; k < range.first + range.count; ++k) {
      if (k > range.first && taps.places[k] == taps.places[k - 1]) out.weights.back() += taps.weights[k];
      else out.add(taps.places[k], taps.weights[k]);
    }
  }
  return out;
}

ByteTaps byte_taps(const Line& line, Interpolation mode) {
  bool smooth = is_smooth(mode);
  Taps<double> exact;
  switch (mode) {
    case Interpolation::Linear:
    case Interpolation::LinearSmooth: exact = filter_taps<double>(line, 2, smooth, triangle<double>); break;
    case Interpolation::Cubic: exact = merged(cubic_taps<double>(line)); break;
    case Interpolation::CubicSmooth:
      exact = filter_taps<double>(line, 4, true, [](double x) { return cubic(x, -0.5); });
      break;
    default: exact = filter_taps<double>(line, 6, true, lanczos<double>);
  }
  double largest = 0;
  for (double w : exact.weights) largest = std::max(largest, w);
  ByteTaps out{.taps = {.input = exact.input, .ranges = exact.ranges, .places = exact.places, .weights = {}}};
  while (out.precision < 22 && static_cast<int>(0.5 + largest * (1 << (out.precision + 1))) < (1 << 15))
    ++out.precision;
  for (double w : exact.weights)
    out.taps.weights.push_back(static_cast<int32_t>(w * (1 << out.precision) + (w < 0 ? -0.5 : 0.5)));
  return out;
}

template <int Lanes>
void resample_bytes(const Tensor& out, const Tensor& self, const ResampleOptions& options, int64_t dims) {
  std::vector<Taps<int32_t>> taps;
  std::vector<int> precisions;
  for (size_t d = 0; d < options.scales.size(); ++d) {
    ByteTaps line = byte_taps(line_of(self, out, d, options), options.mode);
    taps.push_back(line.taps);
    precisions.push_back(line.precision);
  }
  forward_planes<uint8_t, Lanes>(out, self, dims, [&](int64_t, const uint8_t* x, uint8_t* y) {
    each_line(y, x, taps, 1, Lanes, true,
              [&](uint8_t* to, const uint8_t* from, const Taps<int32_t>& line, int64_t outer, int64_t inner) {
                int precision = precisions[static_cast<size_t>(&line - taps.data())];
                for (int64_t a = 0; a < outer; ++a, from += line.input * inner)
                  for (const auto& range : line.ranges)
                    for (int64_t b = 0; b < inner; ++b) {
                      int32_t sum = 1 << (precision - 1);
                      for (int64_t k = range.first; k < range.first + range.count; ++k)
                        sum += line.weights[k] * from[line.places[k] * inner + b];
                      *to++ = static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
                    }
              });
  });
}

// ---- the kernels ----

const char* name_of(const ResampleOptions& options) {
  switch (options.mode) {
    case Interpolation::Nearest: return "compute_indices_weights_nearest";
    case Interpolation::NearestExact: return "compute_indices_weights_nearest_exact";
    case Interpolation::Linear: return "compute_indices_weights_linear";
    case Interpolation::Cubic: return "compute_indices_weights_cubic";
    default: return "compute_index_ranges_weights";
  }
}

/// PyTorch keeps the weights of narrow elements in their type, save those of two dimensions and of many channels that
/// lie last, which are linear.
bool has_narrow_weights(const Tensor& self, const ResampleOptions& options, int64_t dims, bool channels_last) {
  if (!is_reduced_floating(self.dtype())) return false;
  if (options.mode == Interpolation::Cubic) return true;
  return options.mode == Interpolation::Linear && dims != 2 && (!channels_last || self.size(1) <= 3);
}
template <class T, class W> void round_weights(std::vector<Taps<W>>& taps, bool linear) {
  auto rounded = [](W weight) { return static_cast<W>(static_cast<T>(weight)); };
  for (Taps<W>& line : taps) {
    for (W& weight : line.weights) weight = rounded(weight);
    if (!linear) continue;
    for (const TapRange& range : line.ranges) line.weights[range.first] = rounded(W(1) - line.weights[range.first + 1]);
  }
}

template <class T, int Lanes>
void resample_planes(const Tensor& out, const Tensor& self, const ResampleOptions& options, int64_t dims) {
  using C = Compute<T>;
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<Taps<W>> taps = all_taps<W>(self, out, options);
  if (has_narrow_weights(self, options, dims, Lanes > 1)) round_weights<T>(taps, options.mode == Interpolation::Linear);
  bool nearest = is_nearest(options.mode);
  // The filters of several passes give tensors of the input's type in between.
  bool rounds = is_smooth(options.mode) && !std::is_same_v<T, C>;
  auto resampled = [&](const C* x, C* y, int64_t planes) {
    if (nearest) {
      int64_t size = Lanes;
      for (const Taps<W>& t : taps) size *= t.input;
      for (; planes > 0; --planes, x += size) y = pick(y, x, taps, 0, Lanes);
      return;
    }
    auto step = [&](C* to, const C* from, const Taps<W>& line, int64_t outer, int64_t inner) {
      gather_line(to, from, line, outer, inner);
      if (rounds && to != y)
        for (int64_t i = 0; i < outer * line.output() * inner; ++i) to[i] = static_cast<C>(static_cast<T>(to[i]));
    };
    each_line(y, x, taps, planes, Lanes, true, step);
  };
  if constexpr (std::is_same_v<T, C> && Lanes == 1) {
    if (self.is_contiguous() && out.is_contiguous()) {  // as many planes at once as stay in the cache
      constexpr int64_t kPiece = 8192;
      int64_t count = 1, size = 1, out_size = 1;
      for (int64_t d = 0; d < self.dim(); ++d) (d < self.dim() - dims ? count : size) *= self.size(d);
      for (const Taps<W>& t : taps) out_size *= t.output();
      int64_t together = std::max<int64_t>(1, kPiece / (size + out_size));
      parallel_for(0, count, 1 + kGrain / (4 * size + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += together)
          resampled(self.data<T>() + i * size, out.data<T>() + i * out_size, std::min(together, end - i));
      });
      return;
    }
  }
  forward_planes<T, Lanes>(out, self, dims, [&](int64_t, const C* x, C* y) { resampled(x, y, 1); });
}

}  // namespace

void resample(const Tensor& out, const Tensor& self, const ResampleOptions& options) {
  if (out.numel() == 0) return;
  auto dims = static_cast<int64_t>(options.scales.size());
  bool bytes = self.dtype() == DType::UInt8;
  with_lanes(self, dims, [&](auto lanes) {
    constexpr int kLanes = lanes();
    if (bytes && is_nearest(options.mode)) return resample_planes<uint8_t, kLanes>(out, self, options, dims);
    if (bytes && dims == 2) return resample_bytes<kLanes>(out, self, options, dims);
    visit<FloatingTypes>(self.dtype(), name_of(options), [&](auto tag) {
      resample_planes<typename decltype(tag)::type, kLanes>(out, self, options, dims);
    });
  });
}

void resample_backward(const Tensor& grad_input, const Tensor& grad_output, const ResampleOptions& options) {
  if (grad_input.numel() == 0) return;
  auto dims = static_cast<int64_t>(options.scales.size());
  visit<FloatingTypes>(grad_input.dtype(), "upsample_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
    std::vector<Taps<W>> taps = all_taps<W>(grad_input, grad_output, options);
    with_lanes(grad_input, dims, [&](auto lanes) {
      constexpr int kLanes = lanes();
      backward_planes<T, kLanes>(grad_input, grad_output, dims, [&](int64_t, const C* g, C* x) {
        each_line(x, g, taps, 1, kLanes, false,
                  [&](C* to, const C* from, const Taps<W>& line, int64_t outer, int64_t inner) {
                    scatter_line(to, from, line, outer, inner);
                  });
      });
    });
  });
}

}  // namespace umbra::kernels
