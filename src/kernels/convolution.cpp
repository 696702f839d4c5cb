#include "kernels/convolution.h"

#include "kernels/convolution_geometry.h"
#include "kernels/copy.h"
#include "kernels/matmul.h"
#include "kernels/parallel.h"
#include "kernels/reductions.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

using Geometry = ConvolutionGeometry;

// ---- windows as columns of a matrix
// ----------------------------------------------------------------------------------

// The loops over one image: each row of the matrix [image channels, kernel..., map...] belongs to one place in the
// kernel.
class Columns {
 public:
  explicit Columns(const Geometry& g) : g_(g) {}

  /// Copies each element that a window covers into the matrix; zero beyond the image's edge.
  template <class T> void gather(T* columns, const T* image, int64_t channels) const {
    each_row(channels, [&](int64_t row, int64_t channel, const int64_t* kernel) {
      T* to = columns + row * g_.map_size();
      const T* from = image + channel * g_.image_size();
      each_run(kernel, [&](int64_t map_at, int64_t image_at, int64_t first, int64_t last, int64_t n, int64_t step) {
        std::fill(to + map_at, to + map_at + first, T{});
        for (int64_t i = first; i < last; ++i) to[map_at + i] = from[image_at + i * step];
        std::fill(to + map_at + std::max(first, last), to + map_at + n, T{});
      });
    });
  }
  /// Adds each element of the matrix to the one in the image that it stands for.
  template <class T> void scatter_add(T* image, const T* columns, int64_t channels) const {
    int64_t rows = g_.kernel_size();
    parallel_for(0, channels, 1, [&](int64_t from_channel, int64_t to_channel) {
      for (int64_t channel = from_channel; channel < to_channel; ++channel) {
        for (int64_t row = 0; row < rows; ++row) {
          int64_t kernel[kMaxDims];
          unravel(row, kernel);
          T* to = image + channel * g_.image_size();
          const T* from = columns + (channel * rows + row) * g_.map_size();
          each_run(kernel, [&](int64_t map_at, int64_t image_at, int64_t first, int64_t last, int64_t, int64_t step) {
            for (int64_t i = first; i < last; ++i)
              to[image_at + i * step] = add_elements(to[image_at + i * step], from[map_at + i]);
          });
        }
      }
    });
  }

 private:
  static constexpr int64_t kMaxDims = 3;

  void unravel(int64_t row, int64_t* kernel) const {
    for (int64_t d = g_.dims() - 1; d >= 0; --d) {
      kernel[d] = row % g_.kernel[d];
      row /= g_.kernel[d];
    }
  }
  template <class Fn> void each_row(int64_t channels, const Fn& fn) const {
    int64_t rows = g_.kernel_size();
    parallel_for(0, channels * rows, 1 + kGrain / (g_.map_size() + 1), [&](int64_t from, int64_t to) {
      for (int64_t row = from; row < to; ++row) {
        int64_t kernel[kMaxDims];
        unravel(row % rows, kernel);
        fn(row, row / rows, kernel);
      }
    });
  }
  // For each line of the map along the last dimension, fn(start in the map, start in the image, first and last element
  // that lie inside the image, length, step in the image).
  template <class Fn> void each_run(const int64_t* kernel, const Fn& fn) const {
    int64_t last = g_.dims() - 1, n = g_.map[last], step = g_.stride[last];
    int64_t shift = kernel[last] * g_.dilation[last] - g_.padding[last];
    int64_t begin = std::min(n, shift >= 0 ? 0 : (-shift + step - 1) / step);
    int64_t end = shift >= g_.image[last] ? 0 : std::min(n, (g_.image[last] - 1 - shift) / step + 1);
    int64_t lines = g_.map_size() / std::max<int64_t>(n, 1);
    for (int64_t line = 0; line < lines; ++line) {
      int64_t rest = line, image_at = 0, scale = g_.image[last];
      bool inside = true;
      for (int64_t d = last - 1; d >= 0; --d) {
        int64_t at = rest % g_.map[d] * g_.stride[d] + kernel[d] * g_.dilation[d] - g_.padding[d];
        inside = inside && at >= 0 && at < g_.image[d];
        image_at += at * scale;
        scale *= g_.image[d];
        rest /= g_.map[d];
      }
      if (inside && begin < end) fn(line * n, image_at + shift, begin, end, n, step);
      else fn(line * n, 0, n, n, n, step);
    }
  }

  const Geometry& g_;
};

// A matrix inside a contiguous tensor.
Tensor matrix(const Tensor& t, int64_t offset, int64_t rows, int64_t columns, bool transposed = false) {
  SymShape sizes = {rows, columns}, strides = {columns, 1};
  if (transposed) std::swap(sizes[0], sizes[1]), std::swap(strides[0], strides[1]);
  return alias_tensor(t, sizes, strides, t.storage_offset() + offset);
}

// The sizes of the matrices of one group.
struct GroupMatrices {
  int64_t image_channels, map_channels, columns_rows;  // columns_rows: image channels times kernel
  explicit GroupMatrices(const Geometry& g)
      : image_channels(g.image_channels / g.groups),
        map_channels(g.map_channels / g.groups),
        columns_rows(image_channels * g.kernel_size()) {}
};

// Calls fn(image offset, map offset, weight offset) for each sample and group.
template <class Fn> void each_group(const Geometry& g, const Fn& fn) {
  GroupMatrices m(g);
  for (int64_t sample = 0; sample < g.batch; ++sample)
    for (int64_t group = 0; group < g.groups; ++group)
      fn((sample * g.groups + group) * m.image_channels * g.image_size(),
         (sample * g.groups + group) * m.map_channels * g.map_size(), group * m.map_channels * m.columns_rows);
}

void gather_columns(const Tensor& columns, const Tensor& image, int64_t offset, int64_t channels, const Geometry& g) {
  visit_item_size(image.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Columns(g).gather(words<T>(columns), words<T>(image) + offset, channels);
  });
}

// Whether the one window is the image.
bool window_is_image(const Geometry& g) {
  for (int64_t d = 0; d < g.dims(); ++d)
    if (g.map[d] != 1 || g.padding[d] != 0 || g.kernel[d] != g.image[d]) return false;
  return true;
}

// Whether the matrix of windows is the image itself: a window that is the image, or kernels of one element, at every
// place.
bool windows_are_image(const Geometry& g) {
  if (window_is_image(g)) return true;
  for (int64_t d = 0; d < g.dims(); ++d)
    if (g.kernel[d] != 1 || g.stride[d] != 1 || g.padding[d] != 0 || g.map[d] != g.image[d]) return false;
  return true;
}

// The three computations for contiguous tensors of any type, by products with the matrix of windows.
void map_of_image(const Tensor& map, const Tensor& image, const Tensor& weight, const Geometry& g) {
  GroupMatrices m(g);
  if (g.groups == 1 && window_is_image(g)) {  // all samples at once
    mm(matrix(map, 0, g.batch, m.map_channels), matrix(image, 0, g.batch, m.columns_rows),
       matrix(weight, 0, m.map_channels, m.columns_rows, /*transposed=*/true));
    return;
  }
  bool direct = windows_are_image(g);
  Tensor columns = direct ? Tensor() : scratch({m.columns_rows, g.map_size()}, image.dtype());
  each_group(g, [&](int64_t image_at, int64_t map_at, int64_t weight_at) {
    if (!direct) gather_columns(columns, image, image_at, m.image_channels, g);
    mm(matrix(map, map_at, m.map_channels, g.map_size()), matrix(weight, weight_at, m.map_channels, m.columns_rows),
       direct ? matrix(image, image_at, m.columns_rows, g.map_size()) : columns);
  });
}

void image_of_map(const Tensor& image, const Tensor& map, const Tensor& weight, const Geometry& g) {
  GroupMatrices m(g);
  Tensor columns = scratch({m.columns_rows, g.map_size()}, image.dtype());
  fill(image, 0);
  each_group(g, [&](int64_t image_at, int64_t map_at, int64_t weight_at) {
    mm(columns, matrix(weight, weight_at, m.map_channels, m.columns_rows, /*transposed=*/true),
       matrix(map, map_at, m.map_channels, g.map_size()));
    visit<NumberTypes>(image.dtype(), "slow_conv_transpose", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Columns(g).scatter_add(image.data<T>() + image_at, columns.data<T>(), m.image_channels);
    });
  });
}

void weight_gradient(const Tensor& grad_weight, const Tensor& map, const Tensor& image, const Geometry& g) {
  GroupMatrices m(g);
  Tensor columns = scratch({m.columns_rows, g.map_size()}, image.dtype());
  fill(grad_weight, 0);
  each_group(g, [&](int64_t image_at, int64_t map_at, int64_t weight_at) {
    gather_columns(columns, image, image_at, m.image_channels, g);
    Tensor target = matrix(grad_weight, weight_at, m.map_channels, m.columns_rows);
    addmm(target, target, matrix(map, map_at, m.map_channels, g.map_size()),
          matrix(columns, 0, m.columns_rows, g.map_size(), /*transposed=*/true), 1, 1);
  });
}

// ---- the choice between oneDNN and columns
// ---------------------------------------------------------------------------

// Runs `compute` on contiguous tensors of a type that products can be accumulated in, and copies its result to `out`.
template <class Compute> void with_plain(const Tensor& out, const Tensor& a, const Tensor& b, const Compute& compute) {
  DType wide = compute_type(out.dtype());
  bool direct = out.is_contiguous() && out.dtype() == wide;
  Tensor result = direct ? out : scratch(out.sizes(), wide);
  compute(result, contiguous(cast(a, wide)), contiguous(cast(b, wide)));
  if (!direct) copy(out, result);
}

// One number for all elements of a channel's plane.
template <class T>
void add_to_planes(T* data, const T* bias, int64_t bias_stride, int64_t planes, int64_t channels, int64_t size) {
  parallel_for(0, planes, 1 + kGrain / size, [&](int64_t from, int64_t to) {
    for (int64_t plane = from; plane < to; ++plane) {
      T* at = data + plane * size;
      const T added = bias[plane % channels * bias_stride];
      for (int64_t i = 0; i < size; ++i) at[i] = add_elements(at[i], added);
    }
  });
}

void add_bias(const Tensor& out, const Tensor& bias) {
  if (!bias.defined()) return;
  Strided<2> walk;
  for (int64_t d = 0; d < out.dim(); ++d) walk.push(out.size(d), {out.stride(d), d == 1 ? bias.stride(0) : 0});
  walk.simplify();
  visit<NumberTypes>(out.dtype(), "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t channels = out.size(1), planes = out.size(0) * channels;
    if (out.is_contiguous())
      return add_to_planes(out.data<T>(), bias.data<T>(), bias.stride(0), planes, channels, out.numel() / planes);
    parallel_for(0, out.numel(), kGrain, [&](int64_t from, int64_t to) {
      Odometer<2> at(walk);
      at.seek(from);
      for (int64_t i = from; i < to; ++i, at.next())
        out.data<T>()[at[0]] = add_elements(out.data<T>()[at[0]], bias.data<T>()[at[1]]);
    });
  });
}

// Where a call of oneDNN costs more than the product: of few numbers, where it would bring a weight that is used once
// into another order, or planes into one that has their channels together.
bool is_plain_product(const Tensor& map, const Tensor& image, const Geometry& g) {
  if (!windows_are_image(g) || map.dtype() != DType::Float32 || !image.is_contiguous()) return false;
  constexpr int64_t small = 1 << 16, wide = 256;
  bool of_planes = map.is_contiguous() && g.map_size() >= wide;
  return (g.groups == 1 && (window_is_image(g) || of_planes)) || map.numel() * GroupMatrices(g).columns_rows < small;
}

constexpr int64_t kSharedPlanes = 1 << 20;  // so many multiplications are worth a second thread

// For kernels of one element: sample by sample, each with its bias while it is in the cache.
void map_of_planes(const Tensor& map, const Tensor& image, const Tensor& weight, const Tensor& bias,
                   const Geometry& g) {
  GroupMatrices m(g);
  const int64_t size = g.map_size(), from_size = m.image_channels * size, to_size = m.map_channels * size;
  const Tensor kernels = matrix(weight, 0, m.map_channels, m.columns_rows);
  parallel_for(0, g.batch, 1 + kSharedPlanes / (to_size * m.columns_rows), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      mm(matrix(map, i * to_size, m.map_channels, size), kernels, matrix(image, i * from_size, m.columns_rows, size));
      if (bias.defined())
        add_to_planes(map.data<float>() + i * to_size, bias.data<float>(), bias.stride(0), m.map_channels,
                      m.map_channels, size);
    }
  });
}

void make_map(const Tensor& map, const Tensor& image, const Tensor& weight, const Tensor& bias, const Geometry& g) {
  bool plain = is_plain_product(map, image, g);
  if (plain && g.groups == 1 && !window_is_image(g) && map.is_contiguous() && weight.is_contiguous())
    return map_of_planes(map, image, weight, bias, g);
  if (!plain && onednn_map_of_image(map, image, weight, bias, g)) return;
  with_plain(map, image, weight,
             [&](const Tensor& out, const Tensor& a, const Tensor& b) { map_of_image(out, a, b, g); });
  add_bias(map, bias);
}

void make_image(const Tensor& image, const Tensor& map, const Tensor& weight, const Tensor& bias, const Geometry& g) {
  if (!onednn_image_of_map(image, map, weight, g))
    with_plain(image, map, weight,
               [&](const Tensor& out, const Tensor& a, const Tensor& b) { image_of_map(out, a, b, g); });
  add_bias(image, bias);
}

void make_weight_gradient(const Tensor& grad_weight, const Tensor& map, const Tensor& image, const Geometry& g) {
  if (onednn_weight_gradient(grad_weight, map, image, g)) return;
  with_plain(grad_weight, map, image,
             [&](const Tensor& out, const Tensor& a, const Tensor& b) { weight_gradient(out, a, b, g); });
}

void clear(const Tensor& t) {
  if (t.defined()) fill(t, 0);
}

}  // namespace

void convolution(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const ConvolutionOptions& options) {
  if (out.numel() == 0) return;
  if (input.numel() == 0 || weight.numel() == 0) {
    clear(out);
    return add_bias(out, bias);
  }
  if (options.transposed) make_image(out, input, weight, bias, convolution_geometry(out, input, weight, options));
  else make_map(out, input, weight, bias, convolution_geometry(input, out, weight, options));
}

void convolution_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                          const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          const ConvolutionOptions& options) {
  if (grad_output.numel() == 0 || input.numel() == 0 || weight.numel() == 0) {
    for (const Tensor* t : {&grad_input, &grad_weight, &grad_bias}) clear(*t);
    if (grad_output.numel() == 0) return;
  } else if (options.transposed) {
    Geometry g = convolution_geometry(grad_output, input, weight, options);
    if (grad_input.defined()) make_map(grad_input, grad_output, weight, Tensor(), g);
    if (grad_weight.defined()) make_weight_gradient(grad_weight, input, grad_output, g);
  } else {
    Geometry g = convolution_geometry(input, grad_output, weight, options);
    if (grad_input.defined()) make_image(grad_input, grad_output, weight, Tensor(), g);
    if (grad_weight.defined()) make_weight_gradient(grad_weight, grad_output, input, g);
  }
  if (!grad_bias.defined()) return;
  SmallVector<int64_t> dims = {0};
  for (int64_t d = 2; d < grad_output.dim(); ++d) dims.push_back(d);
  sum(grad_bias, grad_output, dims);
}

// ---- what they take beside their results ----

namespace {

// What `with_plain` copies, and the matrix of windows.
int64_t plain_workspace(ConvolutionResult result, const Tensor& out, const Tensor& a, const Tensor& b,
                        const Geometry& g) {
  DType wide = compute_type(out.dtype());
  bool direct = out.is_contiguous() && out.dtype() == wide;
  int64_t elements = direct ? 0 : out.numel();
  for (const Tensor* t : {&a, &b})
    if (t->dtype() != wide || !t->is_contiguous()) elements += t->numel();
  bool columns = result != ConvolutionResult::Map || !windows_are_image(g);
  if (columns) elements += GroupMatrices(g).columns_rows * g.map_size();
  return elements * item_size(wide);
}

int64_t map_workspace(const Tensor& map, const Tensor& image, const Tensor& weight, const Tensor& bias,
                      const Geometry& g) {
  if (!is_plain_product(map, image, g))
    if (auto bytes = onednn_workspace(ConvolutionResult::Map, image, map, weight, bias, g)) return *bytes;
  return plain_workspace(ConvolutionResult::Map, map, image, weight, g);
}

int64_t image_workspace(const Tensor& image, const Tensor& map, const Tensor& weight, const Geometry& g) {
  if (auto bytes = onednn_workspace(ConvolutionResult::Image, image, map, weight, Tensor(), g)) return *bytes;
  return plain_workspace(ConvolutionResult::Image, image, map, weight, g);
}

int64_t weight_workspace(const Tensor& weight, const Tensor& map, const Tensor& image, const Geometry& g) {
  if (auto bytes = onednn_workspace(ConvolutionResult::Weight, image, map, weight, Tensor(), g)) return *bytes;
  return plain_workspace(ConvolutionResult::Weight, weight, map, image, g);
}

}  // namespace

int64_t convolution_workspace(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias,
                              const ConvolutionOptions& options) {
  if (out.numel() == 0 || input.numel() == 0 || weight.numel() == 0) return 0;
  if (options.transposed) return image_workspace(out, input, weight, convolution_geometry(out, input, weight, options));
  return map_workspace(out, input, weight, bias, convolution_geometry(input, out, weight, options));
}

int64_t convolution_backward_workspace(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_output,
                                       const Tensor& input, const Tensor& weight, const ConvolutionOptions& options) {
  if (grad_output.numel() == 0 || input.numel() == 0 || weight.numel() == 0) return 0;
  bool transposed = options.transposed;
  const Tensor &image = transposed ? grad_output : input, &map = transposed ? input : grad_output;
  Geometry g = convolution_geometry(image, map, weight, options);
  int64_t most = 0;
  if (grad_input.defined())
    most = transposed ? map_workspace(grad_input, grad_output, weight, Tensor(), g)
                      : image_workspace(grad_input, grad_output, weight, g);
  if (grad_weight.defined()) most = std::max(most, weight_workspace(grad_weight, map, image, g));
  return most;
}

}  // namespace umbra::kernels
