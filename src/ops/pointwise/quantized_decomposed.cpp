// Quantisation written out: plain tensors of integers beside their scales and zero points, as exported programs of
// quantised models have it.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using OptionalType = std::optional<DType>;

/// The least and the largest integer that elements of a type can say; none for types that are not for it.
std::optional<std::pair<int64_t, int64_t>> bounds_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return std::pair<int64_t, int64_t>{0, 255};
    case DType::Int8: return std::pair<int64_t, int64_t>{-128, 127};
    case DType::UInt16: return std::pair<int64_t, int64_t>{0, 65535};
    case DType::Int16: return std::pair<int64_t, int64_t>{-32768, 32767};
    case DType::Int32: return std::pair<int64_t, int64_t>{INT32_MIN, INT32_MAX};
    case DType::Float8E5M2: return std::pair<int64_t, int64_t>{-57344, 57344};
    case DType::Float8E4M3: return std::pair<int64_t, int64_t>{-448, 448};
    default: return {};
  }
}

void check_bounds(int64_t low, int64_t high, DType dtype) {
  auto bounds = bounds_of(dtype);
  check<ValueError>(bounds.has_value(), "Unsupported dtype: ", dtype);
  check<AssertionError>(low >= bounds->first,
                        "quant_min out of bounds for dtype, quant_min_lower_bound: ", bounds->first,
                        " quant_min: ", low);
  check<AssertionError>(high <= bounds->second,
                        "quant_max out of bounds for dtype, quant_max_upper_bound: ", bounds->second,
                        " quant_max: ", high);
}

/// What is quantised is read as float.
Tensor float_input(const Tensor& input) {
  bool half = input.dtype() == DType::Float16 || input.dtype() == DType::BFloat16;
  check<AssertionError>(half || input.dtype() == DType::Float32,
                        "Expecting input to have dtype torch.float32, but got dtype: ", input.dtype());
  return half ? input.to(DType::Float32) : input;
}

/// Without data there are no numbers to read: what a call gives looks like its input.
bool has_numbers(const Tensor& t) { return t.storage()->has_data() && !t.is_meta(); }

// ---- one scale for all ----

void check_one(const Tensor& scale, const Tensor& zero) {
  check<AssertionError>(zero.sym_numel() == 1,
                        "Expecting zero_point tensor to be one element, but received : ", zero.sym_numel());
  check<AssertionError>(scale.sym_numel() == 1,
                        "Expecting scale tensor to be one element, but received : ", scale.sym_numel());
}

Tensor quantize(const Tensor& given, double scale, int64_t zero, int64_t low, int64_t high, DType dtype) {
  Tensor input = float_input(given);
  check_bounds(low, high, dtype);
  check<ZeroDivisionError>(scale != 0, "float division by zero");
  return input.mul(1.0 / scale).round().add(zero).clamp(low, high).to(dtype);
}

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
    "quant_max, ScalarType dtype) -> Tensor")
    .all_backends(quantize);

Tensor quantize_by_tensors(const Tensor& input, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high,
                           DType dtype) {
  check_one(scale, zero);
  if (!has_numbers(scale) || !has_numbers(zero)) return empty_like(float_input(input), {.dtype = dtype});
  return quantize(input, scale.item().to_double(), zero.item().to<int64_t>(), low, high, dtype);
}

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max, ScalarType dtype) -> Tensor")
    .all_backends(quantize_by_tensors);

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
    "quant_min, Tensor quant_max, ScalarType dtype) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scale, const Tensor& zero, const Tensor& low,
                     const Tensor& high, DType dtype) {
      check_one(scale, zero);
      if (!has_numbers(low) || !has_numbers(high)) return empty_like(float_input(input), {.dtype = dtype});
      return quantize_by_tensors(input, scale, zero, low.item().to<int64_t>(), high.item().to<int64_t>(), dtype);
    });

void check_quantized(const Tensor& input, DType dtype) {
  check<AssertionError>(input.dtype() == dtype, "Expecting input to have dtype: ", dtype, ", but got ", input.dtype());
}

Tensor dequantize_by(const Tensor& input, double scale, int64_t zero, int64_t, int64_t, DType dtype, OptionalType out) {
  check_quantized(input, dtype);
  check<ValueError>(bounds_of(dtype).has_value(), "Unsupported dtype in dequantize_per_tensor: ", dtype);
  return input.to(out.value_or(DType::Float32)).sub(zero).mul(scale);
}

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
    "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
    .all_backends(dequantize_by);

Tensor dequantize_by_tensors(const Tensor& input, const Tensor& scale, const Tensor& zero, DType dtype,
                             OptionalType out) {
  check_one(scale, zero);
  check_quantized(input, dtype);
  if (!has_numbers(scale) || !has_numbers(zero)) return empty_like(input, {.dtype = out.value_or(DType::Float32)});
  return dequantize_by(input, scale.item().to_double(), zero.item().to<int64_t>(), 0, 0, dtype, out);
}

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scale, const Tensor& zero, int64_t, int64_t, DType dtype,
                     OptionalType out) { return dequantize_by_tensors(input, scale, zero, dtype, out); });

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
    "quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scale, const Tensor& zero, const Tensor&, const Tensor&,
                     DType dtype, OptionalType out) { return dequantize_by_tensors(input, scale, zero, dtype, out); });

// ---- a scale for each channel ----

/// One number for each channel, to broadcast.
Tensor along(const Tensor& numbers, const Tensor& input, int64_t axis) {
  SymShape shape(static_cast<size_t>(input.dim()), SymInt(1));
  shape[wrap_dim(axis, input.dim())] = numbers.sym_size(0);
  return numbers.view(shape);
}

void check_axis(const Tensor& input, int64_t axis) {
  check<AssertionError>(axis < input.dim(), "Expecting axis to be < ", input.dim());
}

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
    "quant_min, int quant_max, ScalarType dtype) -> Tensor")
    .all_backends([](const Tensor& given, const Tensor& scales, const Tensor& zeros, int64_t axis, int64_t low,
                     int64_t high, DType dtype) {
      Tensor input = float_input(given);
      check_axis(input, axis);
      check_bounds(low, high, dtype);
      Tensor steps = input.mul(along(scales, input, axis).reciprocal()).round();
      return steps.add(along(zeros, input, axis)).clamp(low, high).to(dtype);
    });

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int "
    "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t axis, int64_t low,
                     int64_t high, DType dtype, OptionalType out) {
      check<AssertionError>(input.dtype() == dtype, "Expecting input to have dtype: ", dtype,
                            ", but got dtype: ", input.dtype());
      check_axis(input, axis);
      check_bounds(low, high, dtype);
      Tensor steps = zeros.defined() ? input.sub(along(zeros, input, axis)) : input;
      return steps.mul(along(scales, input, axis)).to(out.value_or(DType::Float32));
    });

/// Whether an element lies between the ends of the grid.
struct ChannelGrid {
  Tensor scale, zero, steps;
  ChannelGrid(const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t axis)
      : scale(along(scales.to(DType::Float32), input, axis)),
        zero(along(zeros.to(DType::Int32), input, axis)),
        steps(input.mul(scale.reciprocal()).round().add(zero)) {}
};

UMBRA_OPERATOR(
    "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
    "quant_min, int quant_max) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t axis, int64_t low,
                     int64_t high) {
      check<AssertionError>(input.dtype() == DType::Float32,
                            "Expecting input to have dtype torch.float32, but got dtype: ", input.dtype());
      check_axis(input, axis);
      ChannelGrid grid(input, scales, zeros, axis);
      return grid.steps.clamp(low, high).sub(grid.zero).mul(grid.scale);
    })
    .gradient("input", {"grad", "input", "scales", "zero_points", "axis", "quant_min", "quant_max"},
              [](const Tensor& grad, const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t axis,
                 int64_t low, int64_t high) {
                ChannelGrid grid(input, scales, zeros, axis);
                return grad.mul(grid.steps.ge(low).logical_and(grid.steps.le(high)));
              });

// ---- a scale for each row ----

void check_rows(const Tensor& input, const Tensor& scales, const Tensor& zeros) {
  SymInt rows = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) rows = rows * input.sym_size(d);
  check<AssertionError>(rows == scales.sym_numel(), "num_tokens: ", rows, " scales: torch.Size(", scales.sym_sizes(),
                        ")");
  check<AssertionError>(rows == zeros.sym_numel(), "num_tokens: ", rows, " zero_points: torch.Size(", zeros.sym_sizes(),
                        ")");
}

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
    "quant_max, ScalarType dtype) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t low, int64_t high,
                     DType dtype) {
      check_bounds(low, high, dtype);
      check_rows(input, scales, zeros);
      return input.mul(scales.reciprocal()).add(zeros).round().clamp(low, high).to(dtype);
    });

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
    "quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t, int64_t, DType,
                     DType out) { return input.sub(zeros).mul(scales).to(out); });

// ---- a scale for each group of a row ----

int64_t checked_group(const Tensor& input, const Tensor& scales, int64_t group, const char* name) {
  check<AssertionError>(group > 1, "group_size must be > 1");
  if (group > input.size(-1) && scales.size(-1) == 1) group = input.size(-1);
  check<AssertionError>(input.size(-1) % group == 0, name, ".shape[-1] must be divisible by group_size");
  check<AssertionError>(input.dim() == 2, name, " must be 2-dimensional");
  return group;
}

UMBRA_OPERATOR(
    "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, "
    "int quant_max, ScalarType dtype, int group_size) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t low, int64_t high,
                     DType dtype, int64_t group) {
      group = checked_group(input, scales, group, "input");
      Tensor groups = input.reshape({-1, group});
      check<AssertionError>(!has_numbers(groups) || !groups.isnan().any().item().to_bool(),
                            "to_quant must not contain NaNs");
      Tensor steps = groups.mul(scales.reshape({-1, 1}).reciprocal()).add(zeros.reshape({-1, 1})).round();
      return steps.clamp(low, high).to(dtype).reshape(input.sym_sizes());
    });

UMBRA_OPERATOR(
    "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int "
    "quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor")
    .all_backends([](const Tensor& input, const Tensor& scales, const Tensor& zeros, int64_t, int64_t, DType,
                     int64_t group, DType out) {
      group = checked_group(input, scales, group, "w_int8");
      Tensor steps = input.reshape({-1, group});
      Tensor none = zeros.defined() ? Tensor() : umbra::zeros(SymShape{}, {.dtype = DType::Int32});
      steps = steps.sub(zeros.defined() ? zeros.reshape({-1, 1}) : none).mul(scales.reshape({-1, 1}));
      return steps.reshape(input.sym_sizes()).to(out);
    });

// ---- numbers that are not quantised ----

UMBRA_OPERATOR("dequantize.self(Tensor self) -> Tensor")
    .generated_out("dequantize.self_out")
    .all_backends([](const Tensor& self) { return self.to(DType::Float32); });

// ---- choosing scales ----

using Grid = std::tuple<Tensor, Tensor>;

void check_range_to_choose(const Tensor& input, int64_t low, int64_t high, DType dtype) {
  DType type = input.dtype();
  check<AssertionError>(type == DType::Float32 || type == DType::Float16 || type == DType::BFloat16,
                        "Expecting input to have dtype torch.float32/16/b16, but got dtype: ", type);
  check<AssertionError>(bounds_of(dtype).has_value(),
                        "Expecting target dtype to be one of those of quantised numbers, ", "but got: ", dtype);
  check<AssertionError>(low <= 0 && high >= 0, "Used-specified quantization range must include 0.");
  check<AssertionError>(low < high, "qmin must be strictly less than qmax for user-specified quantization range.");
}

/// Scale and zero point as tensors of one element each.
Grid grid_like(const Tensor& input) {
  return {empty({1}, {.dtype = DType::Float64, .device = input.device()}),
          empty({1}, {.dtype = DType::Int64, .device = input.device()})};
}

template <bool kSymmetric> Grid choose_grid(const Tensor& input, int64_t low, int64_t high, double eps, DType dtype) {
  check_range_to_choose(input, low, high, dtype);
  if (!has_numbers(input)) return grid_like(input);
  auto [least, most] = aminmax(input);
  Tensor below = least.minimum(zeros_like(least)), above = most.maximum(zeros_like(most));
  Tensor finest = scalar_tensor(eps, {.dtype = DType::Float32}), scale, zero;
  if (kSymmetric) {
    scale = below.neg().maximum(above).div(static_cast<double>(high - low) / 2).maximum(finest);
    zero = scalar_tensor(dtype == DType::UInt8 ? 128 : 0, {.dtype = DType::Int64});
  } else {
    scale = above.sub(below).div(static_cast<double>(high - low)).maximum(finest);
    zero = below.div(scale).round().to(DType::Int32).rsub(low).clamp(low, high);
  }
  return {scale.to(DType::Float64).reshape({1}), zero.to(DType::Int64).reshape({1})};
}

UMBRA_OPERATOR(
    "quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
    "dtype) -> (Tensor, Tensor)")
    .all_backends(choose_grid<false>);
UMBRA_OPERATOR(
    "quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
    "ScalarType dtype) -> (Tensor, Tensor)")
    .all_backends(choose_grid<true>);

Grid row_grids_like(const Tensor& input) {
  SymShape sizes(input.sym_sizes());
  sizes[sizes.size() - 1] = 1;
  return {empty(sizes, {.dtype = DType::Float64, .device = input.device()}),
          empty(sizes, {.dtype = DType::Int64, .device = input.device()})};
}

UMBRA_OPERATOR("quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
    .all_backends([](const Tensor& input, DType dtype) -> Grid {
      if (!has_numbers(input)) return row_grids_like(input);
      Tensor largest = input.abs().amax(IntArrayRef{-1}, true);
      if (largest.dtype() == DType::Float16) largest = largest.to(DType::Float32);
      check(dtype == DType::Int8, "unsupported dtype in choose_qparams_per_token: ", dtype);
      Tensor scales = largest.clamp_min(1e-5).div(127);
      Tensor zeros = zeros_like(scales);
      return {scales, zeros};
    });

Grid choose_row_grids(const Tensor& input, DType) {
  constexpr int64_t kLow = -128, kHigh = 127;
  Tensor least = input.amin(IntArrayRef{-1}, true), most = input.amax(IntArrayRef{-1}, true);
  Tensor below = least.minimum(zeros_like(least)), above = most.maximum(zeros_like(most));
  Tensor scale = above.sub(below).div(static_cast<double>(kHigh - kLow)).clamp_min(0x1p-23);
  Tensor lower = below.div(scale), upper = above.div(scale);
  Tensor from_low = lower.add(kLow).add(upper.add(kHigh)).gt(0);
  Tensor zero = where(from_low, lower.rsub(kLow), upper.rsub(kHigh)).clamp(kLow, kHigh).round();
  return {scale.to(DType::Float64), zero.to(DType::Int64)};
}

UMBRA_OPERATOR(
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, "
    "Tensor)")
    .composite(choose_row_grids);
UMBRA_OPERATOR(
    "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
    .all_backends(choose_row_grids);

UMBRA_OPERATOR("quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
    .all_backends([](const Tensor& input, DType dtype) {
      return input.dtype() == dtype ? input.clone() : input.to(dtype);
    });

}  // namespace
}  // namespace umbra::ops
