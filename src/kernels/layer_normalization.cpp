// Statistics and values of layer and group norms, and their gradients.
#include <cmath>

#include "kernels/normalization.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// The type a normalisation of `dtype` is computed in decides which template runs.
template <class Fn> void with_compute_type(DType dtype, const char* kernel, const Fn& fn) {
  visit<FloatingTypes>(dtype, kernel, [&](auto tag) { fn(Type<Compute<typename decltype(tag)::type>>()); });
}

template <class T> struct Moments { T mean, rstd; };
template <class T> Moments<T> moments(const T* x, int64_t n, double eps) {
  const auto& rows = row_functions<T>();
  T mean = rows.sum(x, n) / static_cast<T>(n);
  T variance = rows.squares(x, mean, n) / static_cast<T>(n);
  return {mean, T(1) / std::sqrt(std::max(variance, T(0)) + static_cast<T>(eps))};
}

template <class T> const T* pointer(const std::vector<T>& values) { return values.empty() ? nullptr : values.data(); }

struct RowShape {
  int64_t rows = 1, length = 1;
};
RowShape split(const Tensor& t, int64_t dims) {
  RowShape shape;
  for (int64_t d = 0; d < t.dim(); ++d) (d < t.dim() - dims ? shape.rows : shape.length) *= t.size(d);
  return shape;
}

template <class T>
void layer_norm_rows(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                     const Tensor& weight, const Tensor& bias, RowShape shape, double eps) {
  std::vector<T> means(shape.rows), rstds(shape.rows), weights = read_vector<T>(weight), biases = read_vector<T>(bias);
  DenseOutput target(out);
  parallel_for(0, shape.rows, 1 + kGrain / (4 * shape.length + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input);
    RowWriter<T> writer(target.tensor());
    for (int64_t i = from; i < to; ++i) {
      int64_t at = i * shape.length, n = shape.length;
      const T* x = reader.read(at, n);
      Moments<T> m = moments(x, n, eps);
      row_functions<T>().normalize(writer.row(at, n), x, m.mean, m.rstd, pointer(weights), pointer(biases), n);
      writer.commit(at, n);
      means[i] = m.mean;
      rstds[i] = m.rstd;
    }
  });
  target.finish();
  write_vector(mean, means);
  write_vector(rstd, rstds);
}

/// Sums over rows, for the gradients of weight and bias.
template <class T> struct RowSums {
  explicit RowSums(int64_t n) : weight(n, T(0)), bias(n, T(0)) {}
  void add(const RowSums& other) {
    row_functions<T>().add(weight.data(), other.weight.data(), static_cast<int64_t>(weight.size()));
    row_functions<T>().add(bias.data(), other.bias.data(), static_cast<int64_t>(bias.size()));
  }
  std::vector<T> weight, bias;
};

template <class T>
void layer_norm_backward_rows(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                              const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, RowShape shape) {
  const auto& rows = row_functions<T>();
  std::vector<T> means = read_vector<T>(mean), rstds = read_vector<T>(rstd), weights = read_vector<T>(weight);
  bool wants_sums = grad_weight.defined() || grad_bias.defined();
  int64_t n = shape.length;
  RowSums<T> sums(wants_sums ? n : 0);
  OrderedParts<RowSums<T>> parts;
  DenseOutput target(grad_input);
  parallel_for(0, shape.rows, 1 + kGrain / (4 * n + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input), grads(grad_output);
    RowSums<T> part(wants_sums ? n : 0);
    for (int64_t i = from; i < to; ++i) {
      const T *x = reader.read(i * n, n), *g = grads.read(i * n, n);
      if (wants_sums) rows.add_gradients(part.weight.data(), part.bias.data(), g, x, means[i], rstds[i], n);
      if (!grad_input.defined()) continue;
      T sum_g, sum_gx, r = rstds[i];
      rows.two_sums(g, x, means[i], pointer(weights), n, &sum_g, &sum_gx);
      T count = static_cast<T>(n);
      RowWriter<T> writer(target.tensor());
      rows.normalize_gradient(writer.row(i * n, n), g, x, pointer(weights), sum_g / count, means[i],
                              r * r * sum_gx / count, r, n);
      writer.commit(i * n, n);
    }
    if (wants_sums) parts.add(from, std::move(part));
  });
  parts.each([&](const RowSums<T>& part) { sums.add(part); });
  target.finish();
  write_vector(grad_weight, sums.weight);
  write_vector(grad_bias, sums.bias);
}

// ---- groups of channels
// ------------------------------------------------------------------------------------------------

struct GroupShape {
  int64_t batch, channels, space, groups;
  int64_t per_group() const { return channels / groups; }
  int64_t length() const { return per_group() * space; }
};
GroupShape group_shape(const Tensor& input, int64_t groups) {
  int64_t batch = input.size(0), channels = input.size(1), space = 1;
  for (int64_t d = 2; d < input.dim(); ++d) space *= input.size(d);
  return {batch, channels, space, groups};
}

template <class T>
void group_norm_rows(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                     const Tensor& weight, const Tensor& bias, GroupShape shape, double eps) {
  int64_t count = shape.batch * shape.groups, n = shape.length();
  std::vector<T> means(count), rstds(count), weights = read_vector<T>(weight), biases = read_vector<T>(bias);
  DenseOutput target(out);
  parallel_for(0, count, 1 + kGrain / (4 * n + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input);
    RowWriter<T> writer(target.tensor());
    for (int64_t i = from; i < to; ++i) {
      const T* x = reader.read(i * n, n);
      T* y = writer.row(i * n, n);
      Moments<T> m = moments(x, n, eps);
      for (int64_t k = 0; k < shape.per_group(); ++k) {
        int64_t channel = i % shape.groups * shape.per_group() + k;
        T a = m.rstd * (weights.empty() ? T(1) : weights[channel]);
        T b = (biases.empty() ? T(0) : biases[channel]) - m.mean * a;
        row_functions<T>().affine(y + k * shape.space, x + k * shape.space, a, b, shape.space);
      }
      writer.commit(i * n, n);
      means[i] = m.mean;
      rstds[i] = m.rstd;
    }
  });
  target.finish();
  write_vector(mean, means);
  write_vector(rstd, rstds);
}

template <class T>
void group_norm_backward_rows(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                              const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, GroupShape shape) {
  const auto& rows = row_functions<T>();
  std::vector<T> means = read_vector<T>(mean), rstds = read_vector<T>(rstd), weights = read_vector<T>(weight);
  RowSums<T> sums(shape.channels);
  OrderedParts<RowSums<T>> parts;
  DenseOutput target(grad_input);
  int64_t count = shape.batch * shape.groups, n = shape.length(), space = shape.space;
  parallel_for(0, count, 1 + kGrain / (4 * n + 1), [&](int64_t from, int64_t to) {
    RowReader<T> reader(input), grads(grad_output);
    RowSums<T> part(shape.channels);
    for (int64_t i = from; i < to; ++i) {
      const T *x = reader.read(i * n, n), *g = grads.read(i * n, n);
      int64_t first = i % shape.groups * shape.per_group();
      T m = means[i], r = rstds[i], sum_g = 0, sum_gx = 0;
      auto weight_of = [&](int64_t k) { return weights.empty() ? T(1) : weights[first + k]; };
      for (int64_t k = 0; k < shape.per_group(); ++k) {
        T channel_g, channel_gx;
        rows.two_sums(g + k * space, x + k * space, m, nullptr, space, &channel_g, &channel_gx);
        part.weight[first + k] += channel_gx * r;
        part.bias[first + k] += channel_g;
        sum_g += channel_g * weight_of(k);
        sum_gx += channel_gx * weight_of(k);
      }
      if (!grad_input.defined()) continue;
      T b = -r * r * r * sum_gx / static_cast<T>(n), c = -r * sum_g / static_cast<T>(n) - b * m;
      RowWriter<T> writer(target.tensor());
      T* y = writer.row(i * n, n);
      for (int64_t k = 0; k < shape.per_group(); ++k)
        rows.combine(y + k * space, g + k * space, x + k * space, r * weight_of(k), b, c, space);
      writer.commit(i * n, n);
    }
    parts.add(from, std::move(part));
  });
  parts.each([&](const RowSums<T>& part) { sums.add(part); });
  target.finish();
  write_vector(grad_weight, sums.weight);
  write_vector(grad_bias, sums.bias);
}

}  // namespace

void layer_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input, const Tensor& weight,
                const Tensor& bias, int64_t dims, double eps) {
  with_compute_type(input.dtype(), "LayerNormKernelImpl", [&](auto tag) {
    layer_norm_rows<typename decltype(tag)::type>(out, mean, rstd, contiguous(input), weight, bias, split(input, dims),
                                                  eps);
  });
}

void layer_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, int64_t dims) {
  with_compute_type(input.dtype(), "LayerNormBackwardKernelImpl", [&](auto tag) {
    layer_norm_backward_rows<typename decltype(tag)::type>(grad_input, grad_weight, grad_bias, contiguous(grad_output),
                                                           contiguous(input), mean, rstd, weight, split(input, dims));
  });
}

void group_norm(const Tensor& out, const Tensor& mean, const Tensor& rstd, const Tensor& input, const Tensor& weight,
                const Tensor& bias, int64_t groups, double eps) {
  with_compute_type(input.dtype(), "GroupNormKernelImpl", [&](auto tag) {
    group_norm_rows<typename decltype(tag)::type>(out, mean, rstd, contiguous(input), weight, bias,
                                                  group_shape(input, groups), eps);
  });
}

void group_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, int64_t groups) {
  with_compute_type(input.dtype(), "GroupNormBackwardKernelImpl", [&](auto tag) {
    group_norm_backward_rows<typename decltype(tag)::type>(grad_input, grad_weight, grad_bias, contiguous(grad_output),
                                                           contiguous(input), mean, rstd, weight,
                                                           group_shape(input, groups));
  });
}

}  // namespace umbra::kernels
