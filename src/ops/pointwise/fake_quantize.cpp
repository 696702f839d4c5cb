// Fake quantisation: numbers are rounded to a grid of scale and zero point and cut off at its ends, and stay floats.
// The gradient passes where nothing was cut off: the masks say where that is.
#include <cmath>

#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

constexpr const char* kName = "fake_quantize_tensor_cachemask_kernel_type_handling";

void check_grid(int64_t low, int64_t high) {
  check(low <= high, "`quant_min` should be less than or         equal to `quant_max`.");
}
void check_floating(const Tensor& self, const char* name) {
  check<NotImplementedError>(is_floating(self.dtype()), "\"", name, "\" not implemented for '",
                             kernel_name(self.dtype()), "'");
}

/// Narrow types are computed with in float.
Tensor widened(const Tensor& self) { return self.dtype() == DType::Float64 ? self : self.to(DType::Float32); }

Tensor within(const Tensor& steps, int64_t low, int64_t high) { return steps.ge(low).logical_and_(steps.le(high)); }
/// A number that is none ends at the low end.
Tensor cut_off(const Tensor& steps, int64_t low, int64_t high) {
  Tensor least = scalar_tensor(static_cast<double>(low), steps.options());
  Tensor largest = scalar_tensor(static_cast<double>(high), steps.options());
  return steps.fmax(least).fmin(largest);
}

// ---- one scale for all ----

/// `scale` and `zero` are numbers, or tensors that broadcast.
template <class Scale, class Zero>
std::tuple<Tensor, Tensor> quantized(const Tensor& self, const Scale& inverse, const Scale& scale, const Zero& zero,
                                     int64_t low, int64_t high) {
  Tensor steps = widened(self).mul(inverse).round().add(zero);
  SymShape strides =
      self.sym_numel().same(0) ? SymShape(self.sym_strides()) : strides_in_format(self, MemoryFormat::Preserve);
  auto laid_out = [&](const Tensor& t) {
    if (t.sym_strides() == SymIntArrayRef(strides)) return t;
    return t.new_empty_strided(self.sym_sizes(), strides).copy_(t);
  };
  return {laid_out(cut_off(steps, low, high).sub(zero).mul(scale).to(self.dtype())),
          laid_out(within(steps, low, high))};
}

Tensor masked(const Tensor& grad, const Tensor& mask) { return grad.mul(mask); }

UMBRA_OPERATOR(
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
    "-> (Tensor output, Tensor mask)")
    .generated_out("fake_quantize_per_tensor_affine_cachemask.out", {"out0", "out1"})
    .all_backends([](const Tensor& self, double scale, int64_t zero, int64_t low, int64_t high) {
      check_grid(low, high);
      check(zero >= low && zero <= high, "`zero_point` must be between `quant_min` and `quant_max`.");
      check_floating(self, kName);
      double single = static_cast<float>(scale), inverse = 1.0f / static_cast<float>(scale);
      return quantized(self, Scalar(inverse), Scalar(single), Scalar(zero), low, high);
    })
    .gradient("self", {"grad", "mask"}, masked)
    .differentiable_outputs({true, false})
    .use(NeedsData{});

Tensor cachemask_backward(const Tensor& grad, const Tensor& mask) {
  check(mask.dtype() == DType::Bool, "Expected mask.scalar_type() == ScalarType::Bool to be true, but got false.");
  check(mask.sym_numel() == grad.sym_numel(), "`mask` and `dY` are not the same size: `mask` is size ",
        mask.sym_numel(), " and `dY` is size ", grad.sym_numel());
  return grad.mul(mask);
}

UMBRA_OPERATOR("fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor")
    .composite(cachemask_backward);

UMBRA_OPERATOR(
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> "
    "Tensor")
    .composite([](const Tensor& self, double scale, int64_t zero, int64_t low, int64_t high) {
      return std::get<0>(fake_quantize_per_tensor_affine_cachemask(self, scale, zero, low, high));
    });

void check_number(const Tensor& t) {
  check(t.sym_numel() == 1, "a Tensor with ", t.sym_numel(), " elements cannot be converted to Scalar");
}
/// The number that is the first row of a tensor.
Tensor first_number(const Tensor& t) {
  Tensor first = t.select(0, 0);
  check_number(first);
  return first.reshape(SymShape{});
}

/// A zero point as a number of the kind that the grid has.
Tensor whole(const Tensor& zero, DType dtype) { return zero.to(DType::Int64).to(dtype); }

UMBRA_OPERATOR(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor "
    "fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)")
    .generated_out("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.out", {"out0", "out1"})
    .all_backends([](const Tensor& self, const Tensor& scale, const Tensor& zero, const Tensor& enabled, int64_t low,
                     int64_t high) {
      check_grid(low, high);
      for (const Tensor* t : {&scale, &zero, &enabled}) check_number(*t);
      check_floating(self, kName);
      DType dtype = self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
      Tensor step = scale.to(DType::Float32).reshape(SymShape{});
      auto [output, mask] = quantized(self, step.reciprocal().to(dtype), step.to(dtype),
                                      whole(zero, dtype).reshape(SymShape{}), low, high);
      Tensor on = enabled.reshape(SymShape{}).ne(0);
      return std::tuple(where(on, output, self), mask.logical_or(on.logical_not()));
    })
    .gradient("self", {"grad", "mask"}, masked)
    .differentiable_outputs({true, false})
    .use(NeedsData{});

UMBRA_OPERATOR(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int "
    "quant_max) -> Tensor")
    .composite([](const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high) {
      Tensor enabled = ones(SymShape{1}, {.dtype = DType::Int64, .device = self.device()});
      return std::get<0>(
          _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, zero, enabled, low, high));
    });

// ---- a scale for each channel ----

void check_channel_numbers(const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis) {
  check(scale.dim() == 1, "scale should be a 1-D tensor");
  check(zero.dim() == 1, "zero point should be a 1-D tensor");
  check(scale.sym_numel() == zero.sym_numel(), "scale and zero-point need to have the same dimensions");
  check(scale.sym_numel() == self.sym_size(axis),
        "dimensions of scale and zero-point are not consistent with input tensor");
}

void check_channels(const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis, int64_t low,
                    int64_t high) {
  check(scale.dtype() == DType::Float32 || scale.dtype() == DType::BFloat16, "Scale must be Float or BFloat16, found ",
        kernel_name(scale.dtype()));
  check(zero.dtype() == DType::Int32 || zero.dtype() == DType::Float32 || zero.dtype() == DType::Float16,
        "Zero-point must be Int32, Float or Half, found ", kernel_name(zero.dtype()));
  check_channel_numbers(self, scale, zero, axis);
  check_grid(low, high);
  bool known = zero.dtype() == DType::Int32 && zero.storage()->has_data() && zero.device() == Device();
  check(!known || zero.sym_numel() == 0 || zero.ge(low).logical_and(zero.le(high)).all().item().to<bool>(),
        "`zero_point` must be between `quant_min` and `quant_max`.");
}

/// One number for each channel, to broadcast.
Tensor along(const Tensor& numbers, const Tensor& self, int64_t axis) {
  SymShape shape(static_cast<size_t>(self.dim()), SymInt(1));
  shape[axis] = numbers.sym_numel();
  return numbers.reshape(shape);
}

UMBRA_OPERATOR(
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
    "int quant_max) -> (Tensor output, Tensor mask)")
    .generated_out("fake_quantize_per_channel_affine_cachemask.out", {"out0", "out1"})
    .all_backends([](const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis, int64_t low,
                     int64_t high) {
      check_channels(self, scale, zero, axis, low, high);
      axis = wrap_dim(axis, self.dim());
      check_floating(self, "fake_quantize_channel_cachemask_cpu_type_handling");
      Tensor step = along(scale.to(DType::Float32), self, axis), origin = along(zero.to(DType::Float32), self, axis);
      if (zero.dtype() == DType::Int32) return quantized(self, step.reciprocal(), step, origin, low, high);
      // A zero point between two steps counts before the rounding.
      Tensor steps = widened(self).mul(step.reciprocal()).add(origin).round();
      return std::tuple(cut_off(steps, low, high).sub(origin).mul(step).to(self.dtype()), within(steps, low, high));
    })
    .gradient("self", {"grad", "mask"}, masked)
    .differentiable_outputs({true, false})
    .use(NeedsData{});

UMBRA_OPERATOR("fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor")
    .composite(cachemask_backward);

UMBRA_OPERATOR(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
    "quant_max) -> Tensor")
    .composite([](const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis, int64_t low,
                  int64_t high) {
      return std::get<0>(fake_quantize_per_channel_affine_cachemask(self, scale, zero, axis, low, high));
    });

// ---- with scale and zero point to be learnt ----

/// Gradients of each element for itself, the scale and the zero point.
struct LearnedGradients {
  Tensor self, scale, zero;
  LearnedGradients(const Tensor& grad, const Tensor& x, const Tensor& step, const Tensor& origin, int64_t low,
                   int64_t high) {
    Tensor steps = x.mul(step.reciprocal()).add(origin).round(), inside = within(steps, low, high);
    Tensor end = cut_off(steps, low, high).sub(origin);
    self = grad.mul(inside);
    scale = grad.mul(where(inside, end.mul(step).sub(x).div(step), end));
    zero = where(inside, zeros_like(grad), grad.mul(step.neg()));
  }
};

void check_learned(const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t low,
                   int64_t high) {
  for (const auto& [name, t] :
       {std::pair("dY", &grad), std::pair("X", &self), std::pair("scale", &scale), std::pair("zero_point", &zero)})
    check(t->dtype() == DType::Float32, "Expected ", name, ".scalar_type() == ScalarType::Float to be true, but got ",
          "false.");
  check(grad.sym_numel() == self.sym_numel(), "`X` and `dY` are not the same size");
  check(low <= 0 && high >= 0, "Expecting `quant_min` <= 0 and `quant_max` >= 0");
}

UMBRA_OPERATOR(
    "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int "
    "quant_max, float grad_factor=1.) -> Tensor")
    .generated_out("_fake_quantize_learnable_per_tensor_affine.out")
    .all_backends([](const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high, double) {
      Tensor step = first_number(scale), origin = first_number(zero);
      check_grid(low, high);
      origin = origin.round().clamp(low, high);
      check_floating(self, kName);
      return std::get<0>(quantized(self, step.reciprocal(), step, origin, low, high));
    })
    .gradient("self, scale, zero_point",
              {"grad", "self", "scale", "zero_point", "quant_min", "quant_max", "grad_factor"},
              [](const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t low,
                 int64_t high, double factor) {
                return _fake_quantize_learnable_per_tensor_affine_backward(grad, self, scale, zero, low, high, factor);
              })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, "
    "int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)")
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t low,
                     int64_t high, double factor) {
      Tensor step = first_number(scale), origin = first_number(zero).round().clamp(low, high);
      check_learned(grad, self, scale, zero, low, high);
      LearnedGradients all(grad, self, step, origin, low, high);
      auto summed = [&](const Tensor& each, const Tensor& like) {
        return each.sum().mul(factor).reshape(like.sym_sizes());
      };
      return std::tuple(all.self, summed(all.scale, scale), summed(all.zero, zero));
    })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
    "quant_min, int quant_max, float grad_factor=1.) -> Tensor")
    .generated_out("_fake_quantize_learnable_per_channel_affine.out")
    .all_backends([](const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis, int64_t low,
                     int64_t high, double) {
      Tensor origin = zero.round().clamp(low, high).to(DType::Int32);
      return std::get<0>(fake_quantize_per_channel_affine_cachemask(self, scale, origin, axis, low, high));
    })
    .gradient("self, scale, zero_point",
              {"grad", "self", "scale", "zero_point", "axis", "quant_min", "quant_max", "grad_factor"},
              [](const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis,
                 int64_t low, int64_t high, double factor) {
                return _fake_quantize_learnable_per_channel_affine_backward(grad, self, scale, zero, axis, low, high,
                                                                            factor);
              })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, "
    "int axis, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)")
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero, int64_t axis,
                     int64_t low, int64_t high, double factor) {
      check_kernel_type(!zero.is_complex() && zero.dtype() != DType::Bool, "round_vml_cpu", zero);
      check_learned(grad, self, scale, zero, low, high);
      check(grad.sym_sizes() == self.sym_sizes(), "`X` and `dY` are not the same size");
      check_channel_numbers(self, scale, zero, axis);
      axis = wrap_dim(axis, self.dim());
      LearnedGradients all(grad, self, along(scale, self, axis), along(zero.round().clamp(low, high), self, axis), low,
                           high);
      std::vector<int64_t> others;
      for (int64_t d = 0; d < self.dim(); ++d)
        if (d != axis) others.push_back(d);
      auto summed = [&](const Tensor& each) {
        return (others.empty() ? each : each.sum(IntArrayRef(others))).mul(factor);
      };
      return std::tuple(all.self, summed(all.scale), summed(all.zero));
    })
    .use(NeedsData{});

// ---- choosing the grid ----

/// Scale and zero point of a grid of bytes, or half of them, over the range that the numbers have.
std::tuple<double, int64_t> grid_for(double low, double high, bool reduce_range) {
  constexpr double kLeastScale = 6.1e-5f;
  const int64_t first = 0, last = reduce_range ? 127 : 255;
  const auto count = static_cast<double>(last - first);
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  double scale = (high - low) / count;
  if (static_cast<float>(scale) == 0 || std::isinf(1 / static_cast<float>(scale))) scale = 0.1;
  if (scale < kLeastScale) {
    double wider = kLeastScale / scale;
    scale = kLeastScale;
    if (low == 0) high = kLeastScale * count;
    else if (high == 0) low = -kLeastScale * count;
    else low = static_cast<float>(low * wider), high = static_cast<float>(high * wider);
  }
  double from_low = first - low / scale, from_high = last - high / scale;
  double error_low = std::abs(static_cast<double>(first)) - std::abs(low / scale);
  double error_high = std::abs(static_cast<double>(last)) - std::abs(high / scale);
  double zero = error_low < error_high ? from_low : from_high;
  return {scale, zero < first ? first : zero > last ? last : static_cast<int64_t>(std::nearbyint(zero))};
}

UMBRA_OPERATOR("_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)")
    .composite([](const Tensor& self, bool reduce_range) {
      double low = self.min().item().to_double(), high = self.max().item().to_double();
      return grid_for(static_cast<float>(low), static_cast<float>(high), reduce_range);
    });

/// How far numbers lie from a grid of `bits` between two bounds, which is kept in half precision.
float distance_to_grid(const float* values, int64_t count, float low, float high, int64_t bits) {
  low = static_cast<float>(Half(low));
  // Of a width that a number does not have the last digits count, as for PyTorch, where the processor's shift takes
  // those.
  float range = high - low, last = static_cast<float>((uint64_t{1} << (bits & 63)) - 1);
  float scale = range == 0 ? 1.0f : static_cast<float>(Half(range / last)), inverse = scale == 0 ? 1.0f : 1.0f / scale;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    float step = std::max(0.0f, std::min(std::nearbyint((values[i] - low) * inverse), last));
    float error = values[i] - (step * scale + low);
    sum += error * error;
  }
  return std::sqrt(sum);
}

// Bounds of a grid, found by moving one end inwards at a time as long as some part of the range is left.
UMBRA_OPERATOR(
    "choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int bit_width) -> (Tensor, Tensor)")
    .composite([](const Tensor& input, int64_t numel, int64_t bins, double ratio, int64_t bits) {
      check(input.dtype() == DType::Float32, "expected scalar type Float but found ", kernel_name(input.dtype()));
      check<ValueError>(input.numel() > 0, "input tensor is empty and has no data");
      check(numel <= input.numel(), "numel ", numel, " greater than input.numel() ", input.numel());
      check(numel >= 0, "numel is out of the bound of input tensor");
      Tensor dense = input.contiguous();
      const float* values = dense.data<float>();
      float low = values[0], high = values[0];
      for (int64_t i = 1; i < numel; ++i) low = std::min(low, values[i]), high = std::max(high, values[i]);
      float step = (high - low) / static_cast<float>(bins);
      float least =
          static_cast<float>(static_cast<int>(static_cast<double>(bins) * (1.0 - static_cast<float>(ratio)))) * step;
      float from = low, to = high, loss = distance_to_grid(values, numel, low, high, bits), best = loss;
      while (from + least < to) {
        float left = distance_to_grid(values, numel, from + step, to, bits);
        float right = distance_to_grid(values, numel, from, to - step, bits);
        if (loss < left && loss < right && loss < best) best = loss, low = from, high = to;
        if (left < right) from += step, loss = left;
        else to -= step, loss = right;
      }
      auto single = [](float value) {
        Tensor t = empty(SymShape{1}, {.dtype = DType::Float32});
        t.select(0, 0).fill_(static_cast<double>(value));
        return t;
      };
      Tensor upper = single(high), lower = single(low);
      return std::tuple(upper, lower);
    });

}  // namespace
}  // namespace umbra::ops
