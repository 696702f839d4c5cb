// Images of other sizes, by index: the places that are read, and the weights of what is read there.
#include "capture/core/core.h"
#include "ops/upsample/sizes.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

using Scale = std::optional<double>;
using Scales = std::optional<std::vector<double>>;
using Sizes = std::optional<SymIntArrayRef>;

Tensor in_own_layout(const Tensor& out, const Tensor& self) { return out.contiguous(self.suggested_format()); }

/// How far the source moves for one step of the result.
Scalar step_of(SymInt in, SymInt out, bool align_corners, Scale scale) {
  if (align_corners) return out > 1 ? Scalar(sym_true_divide(in - 1, out - 1)) : Scalar(0);
  return scale && *scale > 0 ? Scalar(1 / *scale) : Scalar(sym_true_divide(in, out));
}

Tensor counted(SymInt n, const Tensor& like) {
  TensorOptions options{.layout = Layout::Strided, .device = like.device(), .pin_memory = false};
  return arange(0, Scalar(n), 1, options)._to_copy({.dtype = like.dtype()});
}

Tensor places(const Tensor& steps, const Scalar& step, bool align_corners) {
  return align_corners ? steps * step : (steps + 0.5) * step - 0.5;
}

// ---- nearest ----

/// The source of each position of one dimension: its place times the step, cut down. `middle` is what is added to a
/// position first.
Tensor nearest_places(SymInt out, SymInt in, Scale scale, double middle, Device device) {
  TensorOptions options{.dtype = DType::Float32, .layout = Layout::Strided, .device = device, .pin_memory = false};
  Tensor steps = arange(0, Scalar(out), 1, options) + middle;
  return (steps * step_of(in, out, false, scale))._to_copy({.dtype = DType::Int64});
}

Tensor nearest(const Tensor& self, SymIntArrayRef size, const std::vector<Scale>& scales, double middle) {
  std::vector<Tensor> indices(2);
  int64_t n = static_cast<int64_t>(size.size());
  for (int64_t d = 0; d < n; ++d) {
    auto i = static_cast<size_t>(d);
    indices.push_back(nearest_places(size[i], self.sym_size(d + 2), scales[i], middle, self.device()));
    for (int64_t after = d + 1; after < n; ++after) indices.back() = indices.back().unsqueeze(-1);
  }
  return in_own_layout(index(self, indices), self);
}

template <class... More> auto nearest_by(double middle) {
  return [middle](const Tensor& self, SymIntArrayRef size, More... scales) {
    return in_full_precision(self, [&](const Tensor& x) { return nearest(x, size, {scales...}, middle); });
  };
}

// ---- linear ----

/// `compute` of floats: whole numbers are rounded to again.
template <class F> Tensor blended(const Tensor& self, F&& compute) {
  if (!is_integral(self.dtype(), true)) return in_full_precision(self, compute);
  return compute(self._to_copy({.dtype = DType::Float32})).round()._to_copy({.dtype = self.dtype()});
}

Tensor linear(const Tensor& self, SymIntArrayRef size, bool align_corners, const std::vector<Scale>& scales) {
  std::vector<Tensor> exact, low, high;
  size_t n = size.size();
  for (size_t d = 0; d < n; ++d) {
    SymInt in = self.sym_size(static_cast<int64_t>(d) + 2);
    Scalar step = step_of(in, size[d], align_corners, scales[d]);
    SymShape shape{size[d]};
    for (size_t after = d + 1; after < n; ++after) shape.push_back(1);
    exact.push_back(places(counted(size[d], self), step, align_corners).clamp(0.0).view(shape));
    low.push_back(exact.back()._to_copy({.dtype = DType::Int64}));
    high.push_back((low.back() + 1).clamp(std::nullopt, Scalar(in - 1)));
  }
  std::vector<Tensor> corners;
  for (size_t corner = 0; corner < (size_t{1} << n); ++corner) {
    std::vector<Tensor> indices(2);
    for (size_t d = 0; d < n; ++d) indices.push_back(corner >> (n - 1 - d) & 1 ? high[d] : low[d]);
    corners.push_back(index(self, indices));
  }
  for (size_t d = n; d-- > 0;) {  // the last dimension's neighbours lie next to each other
    Tensor weight = exact[d].sub(low[d]).clamp(0.0, 1.0);
    std::vector<Tensor> between;
    for (size_t i = 0; i < corners.size(); i += 2) {
      Tensor difference = corners[i + 1].sub(corners[i]);
      between.push_back(corners[i].add(difference.mul(weight)));
    }
    corners = std::move(between);
  }
  return in_own_layout(corners[0], self);
}

std::vector<Scale> each(const Scales& scales, size_t n) {
  std::vector<Scale> out(n);
  for (size_t d = 0; scales && d < n; ++d) out[d] = (*scales)[d];
  return out;
}

// ---- cubic ----

/// The weights of the four neighbours of a place that lies `t` after the second.
std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  auto both = [&](const Tensor& x, const Tensor& y) {
    SymShape shape(t.sym_sizes());
    shape.insert(0, SymInt(2));
    return cat(std::vector<Tensor>{x, y}).view(shape);
  };
  Tensor inner = both(t, Scalar(1.0) - t);
  Tensor next = t + 1.0, outer = both(next, Scalar(2.0) - t);
  Tensor far = ((outer * a - 5 * a) * outer + 8 * a) * outer - 4 * a;
  Tensor near = (inner * (a + 2) - (a + 3)) * inner * inner + 1;
  auto halves = [](const Tensor& x) { return x.unbind(0); };
  std::vector<Tensor> ends = halves(far), middle = halves(near);
  return {ends[0], middle[0], middle[1], ends[1]};
}

Tensor weighted_sum(const std::vector<Tensor>& values, const std::vector<Tensor>& weights) {
  Tensor first = values[0].mul(weights[0]), sum = first.add(values[1].mul(weights[1]));
  for (size_t i = 2; i < values.size(); ++i) sum = sum.add(values[i].mul(weights[i]));
  return sum;
}

Tensor cubic(const Tensor& self, SymIntArrayRef size, bool align_corners, const std::vector<Scale>& scales) {
  SymInt height = self.sym_size(2), width = self.sym_size(3);
  Tensor down = counted(size[0], self), right = counted(size[1], self);
  Tensor x = places(right, step_of(width, size[1], align_corners, scales[1]), align_corners);
  Tensor y = places(down, step_of(height, size[0], align_corners, scales[0]), align_corners).unsqueeze(-1);
  Tensor x_low = x.floor(), y_low = y.floor();
  Tensor y_rest = y.sub(y_low).clamp(0.0, 1.0), x_rest = x.sub(x_low).clamp(0.0, 1.0);
  Tensor column = x_low._to_copy({.dtype = DType::Int64}), row = y_low._to_copy({.dtype = DType::Int64});
  auto around = [](const Tensor& place) {
    Tensor before = place - 1, after = place + 1;
    return std::vector<Tensor>{before, place, after, place + 2};
  };
  std::vector<Tensor> rows = around(row), columns = around(column);
  std::vector<Tensor> across = cubic_weights(x_rest), along = cubic_weights(y_rest), lines;
  for (const Tensor& r : rows) {
    std::vector<Tensor> values;
    for (const Tensor& c : columns) {
      Tensor inside = r.clamp(0, Scalar(height - 1));
      values.push_back(index(self, std::vector<Tensor>{{}, {}, inside, c.clamp(0, Scalar(width - 1))}));
    }
    lines.push_back(weighted_sum(values, across));
  }
  return in_own_layout(weighted_sum(lines, along), self);
}

// ---- grids ----

/// Positions from -1 to 1: of the corners, or of the middles of pixels.
Tensor grid_line(SymInt n, bool align_corners, const Tensor& like) {
  int64_t count = n.guard_int();
  if (count < 2) return full(SymIntArrayRef(), 0, {.dtype = like.dtype(), .device = like.device()});
  auto length = static_cast<double>(count);
  Scalar end = align_corners ? Scalar(1) : Scalar((length - 1) / length);
  Scalar start = align_corners ? Scalar(-1) : Scalar(-(length - 1) / length);
  return steps_between(start, end, n, like.dtype(), like.device());
}

Tensor affine_grid(const Tensor& theta, SymIntArrayRef size, bool align_corners) {
  SymIntArrayRef plane = size.drop_front(2);
  auto n = static_cast<int64_t>(plane.size());
  std::vector<Tensor> lines;  // x, y, (z,) 1
  for (int64_t d = n; d-- > 0;) {
    std::vector<int64_t> shape(static_cast<size_t>(n + 1), 1);
    shape[static_cast<size_t>(d)] = -1;
    Tensor line = grid_line(plane[static_cast<size_t>(d)], align_corners, theta);
    shape[static_cast<size_t>(d)] = line.dim() == 0 ? 1 : line.sym_size(0).guard_int();
    lines.push_back(line.view(shape));
  }
  std::vector<SymInt> ones(static_cast<size_t>(n + 1), SymInt(1));
  TensorOptions options{
      .dtype = theta.dtype(), .layout = Layout::Strided, .device = theta.device(), .pin_memory = false};
  lines.push_back(full(SymIntArrayRef(ones), 1, options));
  for (int64_t i = 0; i <= n; ++i)
    lines[static_cast<size_t>(i)] = constant_pad_nd(lines[static_cast<size_t>(i)], IntArrayRef({i, n - i}), 0.0);
  Tensor grid = lines[0];
  for (size_t i = 1; i < lines.size(); ++i) grid = grid.add(lines[i]);
  grid = grid.view(IntArrayRef({-1, n + 1, 1})).mul(theta.permute(IntArrayRef({0, 2, 1})).unsqueeze(1));
  SymShape shape{size[0]};
  for (SymInt s : plane) shape.push_back(s);
  shape.push_back(n);
  return grid.sum(IntArrayRef({-2})).view(shape);
}

}  // namespace

void add_resampling(DecompositionTable& table) {
  for (auto [name, middle] : {std::pair("aten::upsample_nearest", 0.0), {"aten::_upsample_nearest_exact", 0.5}}) {
    std::string begin(name);
    table.add(begin + "1d", nearest_by<Scale>(middle));
    table.add(begin + "2d", nearest_by<Scale, Scale>(middle));
    table.add(begin + "3d", nearest_by<Scale, Scale, Scale>(middle));
  }
  table.add("aten::upsample_linear1d", [](const Tensor& self, SymIntArrayRef size, bool align_corners, Scale scale) {
    return blended(self, [&](const Tensor& x) { return linear(x, size, align_corners, {scale}); });
  });
  table.add("aten::upsample_trilinear3d.vec", [](const Tensor& self, Sizes size, bool align_corners, Scales scales) {
    SymShape sizes = ops::upsampled_sizes(self.sym_sizes(), size, scales);
    std::vector<Scale> by = each(scales, 3);
    if (is_integral(self.dtype(), true)) return upsample_trilinear3d(self, sizes, align_corners, by[0], by[1], by[2]);
    return in_full_precision(self, [&](const Tensor& x) { return linear(x, sizes, align_corners, by); });
  });
  table.add("aten::upsample_bicubic2d.vec", [](const Tensor& self, Sizes size, bool align_corners, Scales scales) {
    SymShape sizes = ops::upsampled_sizes(self.sym_sizes(), size, scales);
    std::vector<Scale> by = each(scales, 2);
    // Bytes are blended in whole numbers, which stays with the kernel.
    if (is_integral(self.dtype(), true)) return upsample_bicubic2d(self, sizes, align_corners, by[0], by[1]);
    return in_full_precision(self, [&](const Tensor& x) { return cubic(x, sizes, align_corners, by); });
  });
  table.add("aten::affine_grid_generator", [](const Tensor& theta, SymIntArrayRef size, bool align_corners) {
    return in_full_precision(theta, [&](const Tensor& x) { return affine_grid(x, size, align_corners); });
  });
}

}  // namespace umbra::core_table
