// Statistics and values of batch norms, and their gradients.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/normalization.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// How the channels lie: in planes of `space` elements each (one after another, for each sample), or side by side in
// rows that have `each` elements of every channel.
struct ChannelLayout {
  bool planes = true;
  int64_t batch = 0, channels = 0, space = 1, each = 1;
  int64_t count() const { return batch * space * each; }  // elements of one channel
  int64_t rows() const { return batch * space; }
  int64_t width() const { return channels * each; }
};

bool channels_side_by_side(const Tensor& t) {
  if (t.dim() == 2) return t.is_contiguous();
  if (t.dim() == 4) return t.is_contiguous(MemoryFormat::ChannelsLast) && !t.is_contiguous();
  return t.dim() == 5 && t.is_contiguous(MemoryFormat::ChannelsLast3d) && !t.is_contiguous();
}

// Tensors of one shape, brought into the layout of the first.
class Layouts {
 public:
  explicit Layouts(const Tensor& input) {
    side_by_side_ = channels_side_by_side(input);
    layout_.batch = input.size(0);
    layout_.channels = input.size(1);
    for (int64_t d = 2; d < input.dim(); ++d) layout_.space *= input.size(d);
    // Of short planes all that a sample has are one row: a call for each of them would take longer than its work.
    constexpr int64_t kShortPlane = 128, kLongestRow = 4096, kFewRows = 4;
    bool short_planes = layout_.space < kShortPlane && layout_.channels * layout_.space <= kLongestRow;
    layout_.planes = !side_by_side_ && !(short_planes && layout_.batch >= kFewRows);
    if (!side_by_side_ && !layout_.planes) std::swap(layout_.space, layout_.each);
  }
  const ChannelLayout& layout() const { return layout_; }
  bool fits(const Tensor& t) const { return side_by_side_ ? channels_side_by_side(t) : t.is_contiguous(); }
  Tensor bring(const Tensor& t) const {
    if (fits(t)) return t;
    Tensor copied = blank(t);
    copy(copied, t);
    return copied;
  }
  Tensor blank(const Tensor& like) const {
    if (!side_by_side_) return scratch(like.sizes(), like.dtype());
    SymShape strides = like.dim() == 2 ? contiguous_strides(like.sym_sizes())
                                       : strides_for(like.sym_sizes(), like.dim() == 4 ? MemoryFormat::ChannelsLast
                                                                                       : MemoryFormat::ChannelsLast3d);
    return allocate_tensor(like.sym_sizes(), strides, like.dtype(), Device());
  }

 private:
  ChannelLayout layout_;
  bool side_by_side_;
};

// Makes sums for every channel. `plane(channel, offset)` gives those of one plane; `row(sums, offset)` adds one row to
// sums of all its places. Long sums are kept in double.
template <class T, int Count> class ChannelSums {
 public:
  explicit ChannelSums(const ChannelLayout& layout) : layout_(layout) {
    for (auto& sum : sums_) sum.assign(layout.channels, 0.0);
  }
  const std::vector<double>& operator[](int k) const { return sums_[k]; }

  template <class Plane> void add_planes(const Plane& plane) {
    parallel_for(0, layout_.channels, 1 + kGrain / (layout_.count() + 1), [&](int64_t from, int64_t to) {
      auto sums_of = plane();
      for (int64_t c = from; c < to; ++c) {
        for (int64_t b = 0; b < layout_.batch; ++b) {
          T parts[Count];
          sums_of(parts, c, (b * layout_.channels + c) * layout_.space);
          for (int k = 0; k < Count; ++k) sums_[k][c] += parts[k];
        }
      }
    });
  }
  template <class Row> void add_rows(const Row& row) {
    constexpr int64_t kBlock = 64;  // rows that are added up in T before they go into double
    using Totals = std::array<std::vector<double>, Count>;
    OrderedParts<Totals> parts;
    const int64_t width = layout_.width();
    parallel_for(0, layout_.rows(), 1 + kGrain / width, [&](int64_t from, int64_t to) {
      auto add_row = row();
      std::vector<T> block[Count];
      Totals totals;
      for (auto& total : totals) total.assign(width, 0.0);
      for (int64_t start = from; start < to; start += kBlock) {
        T* sums[Count];
        for (int k = 0; k < Count; ++k) block[k].assign(width, T(0)), sums[k] = block[k].data();
        for (int64_t r = start; r < std::min(to, start + kBlock); ++r) add_row(sums, r * width);
        for (int k = 0; k < Count; ++k)
          for (int64_t i = 0; i < width; ++i) totals[k][i] += block[k][i];
      }
      parts.add(from, std::move(totals));
    });
    parts.each([&](const Totals& totals) {
      for (int k = 0; k < Count; ++k)
        for (int64_t i = 0; i < width; ++i) sums_[k][i / layout_.each] += totals[k][i];
    });
  }

 private:
  const ChannelLayout& layout_;
  std::vector<double> sums_[Count];
};

/// A value of each channel for every place of a row.
template <class T> std::vector<T> spread(const std::vector<T>& values, const ChannelLayout& layout) {
  std::vector<T> places;
  places.reserve(layout.width());
  for (const T& value : values) places.insert(places.end(), layout.each, value);
  return places;
}

template <class T> std::vector<T> rounded(const std::vector<double>& values) { return {values.begin(), values.end()}; }

template <class T> std::vector<double> channel_sums(const Tensor& input, const ChannelLayout& layout) {
  ChannelSums<T, 1> sums(layout);
  if (layout.planes) {
    sums.add_planes([&] {
      return [&, reader = RowReader<T>(input)](T* out, int64_t, int64_t at) mutable {
        out[0] = row_functions<T>().sum(reader.read(at, layout.space), layout.space);
      };
    });
  } else {
    sums.add_rows([&] {
      return [&, reader = RowReader<T>(input)](T** out, int64_t at) mutable {
        row_functions<T>().add(out[0], reader.read(at, layout.width()), layout.width());
      };
    });
  }
  return sums[0];
}

template <class T>
std::vector<double> channel_squares(const Tensor& input, const ChannelLayout& layout, const std::vector<T>& means) {
  ChannelSums<T, 1> sums(layout);
  if (layout.planes) {
    sums.add_planes([&] {
      return [&, reader = RowReader<T>(input)](T* out, int64_t channel, int64_t at) mutable {
        out[0] = row_functions<T>().squares(reader.read(at, layout.space), means[channel], layout.space);
      };
    });
  } else {
    std::vector<T> centers = spread(means, layout);
    sums.add_rows([&] {
      return [&, reader = RowReader<T>(input)](T** out, int64_t at) mutable {
        row_functions<T>().add_squares(out[0], reader.read(at, layout.width()), centers.data(), layout.width());
      };
    });
  }
  return sums[0];
}

// out = x * a + b for each channel.
template <class T>
void scale_channels(const Tensor& out, const Tensor& input, const ChannelLayout& layout, std::vector<T> a,
                    std::vector<T> b) {
  if (!layout.planes) a = spread(a, layout), b = spread(b, layout);
  int64_t runs = layout.planes ? layout.batch * layout.channels : layout.rows();
  int64_t n = layout.planes ? layout.space : layout.width();
  parallel_for(0, runs, 1 + kGrain / (n + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input);
    RowWriter<T> writer(out);
    for (int64_t i = from; i < to; ++i) {
      const T* x = reader.read(i * n, n);
      T* y = writer.row(i * n, n);
      int64_t c = i % layout.channels;
      if (layout.planes) row_functions<T>().affine(y, x, a[c], b[c], n);
      else row_functions<T>().affine_each(y, x, a.data(), b.data(), n);
      writer.commit(i * n, n);
    }
  });
}

// out = g * a + x * b + c for each channel; g * a where there is no b, whatever x is.
template <class T>
void combine_channels(const Tensor& out, const Tensor& grad, const Tensor& input, const ChannelLayout& layout,
                      std::vector<T> a, std::vector<T> b, std::vector<T> c) {
  bool reads_input = std::any_of(b.begin(), b.end(), [](T slope) { return slope != T(0); });
  if (!layout.planes) a = spread(a, layout), b = spread(b, layout), c = spread(c, layout);
  int64_t runs = layout.planes ? layout.batch * layout.channels : layout.rows();
  int64_t n = layout.planes ? layout.space : layout.width();
  parallel_for(0, runs, 1 + kGrain / (n + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input), grads(grad);
    RowWriter<T> writer(out);
    for (int64_t i = from; i < to; ++i) {
      const T *g = grads.read(i * n, n), *x = reads_input ? reader.read(i * n, n) : nullptr;
      T* y = writer.row(i * n, n);
      int64_t k = i % layout.channels;
      if (!x && layout.planes) row_functions<T>().affine(y, g, a[k], c[k], n);
      else if (!x) row_functions<T>().affine_each(y, g, a.data(), c.data(), n);
      else if (layout.planes) row_functions<T>().combine(y, g, x, a[k], b[k], c[k], n);
      else row_functions<T>().combine_each(y, g, x, a.data(), b.data(), c.data(), n);
      writer.commit(i * n, n);
    }
  });
}

void update_running(const Tensor& running, const std::vector<double>& batch, double momentum, double factor) {
  if (!running.defined()) return;
  std::vector<double> values = read_vector<double>(running);
  for (size_t c = 0; c < values.size(); ++c) values[c] = momentum * factor * batch[c] + (1 - momentum) * values[c];
  write_vector(running, values);
}

template <class T>
void forward(const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
             const BatchNormState& state, bool training, double momentum, double eps) {
  check(!training || input.numel() > 0,
        "input tensor must have at least one element, but got input_sizes = ", to_string(input.sym_sizes()));
  if (input.numel() == 0) return;
  Layouts layouts(input);
  const ChannelLayout& layout = layouts.layout();
  Tensor x = layouts.bring(input);
  std::vector<double> means, variances;
  if (training) {
    auto n = static_cast<double>(layout.count());
    means = channel_sums<T>(x, layout);
    for (double& mean : means) mean /= n;
    variances = channel_squares<T>(x, layout, rounded<T>(means));
    for (double& variance : variances) variance /= n;
    update_running(state.running_mean, means, momentum, 1);
    update_running(state.running_var, variances, momentum, n / (n - 1));
  } else {
    means = read_vector<double>(state.running_mean);
    variances = read_vector<double>(state.running_var);
  }
  std::vector<T> weights = read_vector<T>(state.weight), biases = read_vector<T>(state.bias);
  std::vector<T> a(layout.channels), b(layout.channels), invstds(layout.channels), saved = rounded<T>(means);
  for (int64_t c = 0; c < layout.channels; ++c) {
    // Of a batch without any variation, and nothing added to it, nothing is left.
    bool constant = training && variances[c] == 0 && eps == 0;
    double invstd = constant ? 0 : 1 / std::sqrt(variances[c] + eps);
    double scale = invstd * (weights.empty() ? 1 : weights[c]);
    invstds[c] = static_cast<T>(invstd);
    a[c] = static_cast<T>(scale);
    b[c] = static_cast<T>((biases.empty() ? 0 : biases[c]) - means[c] * scale);
  }
  Tensor target = layouts.fits(out) ? out : layouts.blank(out);
  scale_channels<T>(target, x, layout, a, b);
  if (!target.is_same(out)) copy(out, target);
  if (training) {
    write_vector(save_mean, saved);
    write_vector(save_invstd, invstds);
  }
}

template <class T>
void backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad_output,
              const Tensor& input, const BatchNormState& state, const Tensor& save_mean, const Tensor& save_invstd,
              bool training, double eps) {
  Layouts layouts(input);
  const ChannelLayout& layout = layouts.layout();
  int64_t channels = layout.channels;
  if (input.numel() == 0) {
    std::vector<T> nothing(channels, T(0));
    write_vector(grad_weight, nothing);
    return write_vector(grad_bias, nothing);
  }
  Tensor x = layouts.bring(input), grad = layouts.bring(grad_output);
  std::vector<T> means = read_vector<T>(training ? save_mean : state.running_mean);
  std::vector<T> invstds = training ? read_vector<T>(save_invstd) : read_vector<T>(state.running_var);
  if (!training)
    for (T& value : invstds) value = static_cast<T>(1 / std::sqrt(static_cast<double>(value) + eps));

  ChannelSums<T, 2> sums(layout);
  if (layout.planes) {
    sums.add_planes([&] {
      return [&, reader = RowReader<T>(x), grads = RowReader<T>(grad)](T* out, int64_t c, int64_t at) mutable {
        row_functions<T>().two_sums(grads.read(at, layout.space), reader.read(at, layout.space), means[c], nullptr,
                                    layout.space, &out[0], &out[1]);
      };
    });
  } else {
    std::vector<T> centers = spread(means, layout);
    int64_t width = layout.width();
    sums.add_rows([&] {
      return [&, reader = RowReader<T>(x), grads = RowReader<T>(grad)](T** out, int64_t at) mutable {
        row_functions<T>().add_two(out[0], out[1], grads.read(at, width), reader.read(at, width), centers.data(),
                                   width);
      };
    });
  }

  std::vector<T> weights = read_vector<T>(state.weight), a(channels), b(channels), c(channels);
  std::vector<T> weight_grads(channels), bias_grads = rounded<T>(sums[0]);
  auto n = static_cast<double>(layout.count());
  for (int64_t k = 0; k < channels; ++k) {
    double invstd = invstds[k], scale = invstd * (weights.empty() ? 1 : weights[k]);
    weight_grads[k] = static_cast<T>(sums[1][k] * invstd);
    double slope = training ? -scale * invstd * invstd * sums[1][k] / n : 0;
    a[k] = static_cast<T>(scale);
    b[k] = static_cast<T>(slope);
    c[k] = static_cast<T>(training ? -scale * sums[0][k] / n - slope * means[k] : 0);
  }
  if (grad_input.defined()) {
    Tensor target = layouts.fits(grad_input) ? grad_input : layouts.blank(grad_input);
    combine_channels<T>(target, grad, x, layout, a, b, c);
    if (!target.is_same(grad_input)) copy(grad_input, target);
  }
  write_vector(grad_weight, weight_grads);
  write_vector(grad_bias, bias_grads);
}

}  // namespace

void batch_norm(const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
                const BatchNormState& state, bool training, double momentum, double eps) {
  visit<FloatingTypes>(input.dtype(), "batch_norm", [&](auto tag) {
    forward<Compute<typename decltype(tag)::type>>(out, save_mean, save_invstd, input, state, training, momentum, eps);
  });
}

void batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const BatchNormState& state,
                         const Tensor& save_mean, const Tensor& save_invstd, bool training, double eps) {
  visit<FloatingTypes>(input.dtype(), "batch_norm_backward_cpu", [&](auto tag) {
    backward<Compute<typename decltype(tag)::type>>(grad_input, grad_weight, grad_bias, grad_output, input, state,
                                                    save_mean, save_invstd, training, eps);
  });
}

}  // namespace umbra::kernels
