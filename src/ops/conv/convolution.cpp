// Convolutions: one operator for all ranks and directions, and the named ones that are made of it.
#include "kernels/convolution.h"

#include "core/cpp_name.h"
#include "core/stored_types.h"
#include "core/type_text.h"
#include "dispatch/layers.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/conv/any_input.h"
#include "ops/pointwise/family.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

SymShape per_dimension(SymIntArrayRef values, size_t spatial, const char* name) {
  check(values.size() == 1 || values.size() == spatial, "expected ", name,
        " to be a single integer value or a list of ", spatial, " values to match the convolution dimensions, but got ",
        name, "=", values);
  // Sizes are products of these: larger ones would overflow there.
  for (SymInt v : values)
    check(v.is_symbolic() || v.value() <= INT32_MAX, "value cannot be converted to type int without overflow");
  return values.size() == 1 ? SymShape(spatial, values[0]) : SymShape(values);
}

struct Geometry {
  SymShape stride, padding, dilation, output_padding;
};

Geometry geometry(size_t spatial, SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation,
                  SymIntArrayRef output_padding) {
  Geometry g{per_dimension(stride, spatial, "stride"), per_dimension(padding, spatial, "padding"),
             per_dimension(dilation, spatial, "dilation"), per_dimension(output_padding, spatial, "output_padding")};
  for (size_t i = 0; i < spatial; ++i) {
    check(g.padding[i] >= 0, "negative padding is not supported");
    check(g.dilation[i] >= 0, "dilation should be greater than zero");
    check(g.stride[i] > 0, "non-positive stride is not supported");
  }
  return g;
}

void check_shapes(const Tensor& input, const Tensor& weight, const Tensor& bias, bool transposed, SymInt groups) {
  check(input.dim() == weight.dim(), "Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
        "-dimensional weight ", weight.sym_sizes(), ", but got ", input.dim(), "-dimensional input of size ",
        input.sym_sizes(), " instead");
  check(is_complex(input.dtype()) == is_complex(weight.dtype()), "Input type (", type_text(input),
        ") and weight type (", type_text(weight), ") should be the same");
  check(weight.sym_sizes()[0] >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0, but got weight of size ", weight.sym_sizes(), " instead");
  check(weight.sym_sizes()[0] % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
        " at dimension 0, but got weight of size [", weight.sym_sizes(), "] instead");
  SymInt wanted = transposed ? weight.sym_sizes()[0] : weight.sym_sizes()[1] * groups;
  check(input.sym_sizes()[1] == wanted,
        transposed ? "Given transposed=" : "Given groups=", transposed ? SymInt(1) : groups, ", weight of size ",
        weight.sym_sizes(), ", expected input", input.sym_sizes(), " to have ", wanted, " channels, but got ",
        input.sym_sizes()[1], " channels instead");
  SymInt produced = transposed ? weight.sym_sizes()[1] * groups : weight.sym_sizes()[0];
  check(!bias.defined() || (bias.dim() == 1 && bias.sym_numel() == produced), "Given weight of size ",
        weight.sym_sizes(), ", expected bias to be 1-dimensional with ", produced, " elements, but got bias of size ",
        bias.defined() ? bias.sym_sizes() : SymIntArrayRef(), " instead");
  check(input.dtype() == weight.dtype(), "expected scalar type ", kernel_name(input.dtype()), " but found ",
        kernel_name(weight.dtype()));
}

Geometry checked_geometry(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                          SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed,
                          SymIntArrayRef output_padding, SymInt groups) {
  bool enough = input.dim() > 1 && weight.dim() > 1 && weight.dim() >= input.dim();
  check<IndexError>(enough || !only_metadata_is_asked(), "tuple index out of range");
  check(weight.dim() > 2, "weight should have at least three dimensions");
  auto spatial = static_cast<size_t>(weight.dim() - 2);
  Geometry g = geometry(spatial, stride, padding, dilation, output_padding);
  check(groups > 0, "non-positive groups is not supported");
  check_shapes(input, weight, bias, transposed, groups);
  for (SymInt d : g.dilation)
    if (!(d > 0))  // one dimension is computed as two
      fail("dilation should be greater than zero, but got ", spatial == 1 ? "[1, 0]" : to_string(g.dilation));
  return g;
}

[[noreturn]] void kernel_too_large(const Tensor& input, const Tensor& weight, const Geometry& g) {
  std::string padded, kernel;
  for (size_t i = 0; i < g.stride.size(); ++i) {
    padded += (i ? " x " : "") + to_string(input.sym_sizes()[i + 2] + g.padding[i] * 2);
    kernel += (i ? " x " : "") + to_string(g.dilation[i] * (weight.sym_sizes()[i + 2] - 1) + 1);
  }
  fail("Calculated padded input size per channel: (", padded, "). Kernel size: (", kernel,
       "). Kernel size can't be greater than actual input size");
}

// A name for each value, by the names of the dimensions. PyTorch has one dimension as two.
std::string by_dimension(const char* name, const SymShape& values, int64_t ahead) {
  const char* names[] = {"depth", "height", "width"};
  std::string out;
  auto add = [&](size_t dimension, SymInt value) {
    out += std::string(" ") + name + "_" + names[dimension] + ": " + to_string(value);
  };
  if (values.size() == 1) add(1, ahead);
  for (size_t i = 0; i < values.size(); ++i) add(3 - values.size() + i, values[i]);
  return out;
}

void check_output_padding(const Geometry& g) {
  for (size_t i = 0; i < g.stride.size(); ++i)
    if (g.output_padding[i] >= g.stride[i] && g.output_padding[i] >= g.dilation[i])
      fail("output padding must be smaller than either stride or dilation, but got",
           by_dimension("output_padding", g.output_padding, 0), by_dimension("stride", g.stride, 1),
           by_dimension("dilation", g.dilation, 1));
}

SymShape output_shape(const Tensor& input, const Tensor& weight, const Geometry& g, bool transposed, SymInt groups) {
  SymShape shape{input.sym_sizes()[0], transposed ? weight.sym_sizes()[1] * groups : weight.sym_sizes()[0]};
  for (size_t i = 0; i < g.stride.size(); ++i) {
    SymInt size = input.sym_sizes()[i + 2], kernel = g.dilation[i] * (weight.sym_sizes()[i + 2] - 1) + 1;
    if (transposed) {
      check_output_padding(g);
      shape.push_back((size - 1) * g.stride[i] - g.padding[i] * 2 + kernel + g.output_padding[i]);
      continue;
    }
    SymInt padded = size + g.padding[i] * 2;
    if (!padded.is_symbolic() && !kernel.is_symbolic() && padded.value() < kernel.value())
      kernel_too_large(input, weight, g);
    shape.push_back((padded - kernel) / g.stride[i] + 1);
  }
  return shape;
}

kernels::ConvolutionOptions kernel_options(size_t spatial, SymIntArrayRef stride, SymIntArrayRef padding,
                                           SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
                                           SymInt groups) {
  Geometry g = geometry(spatial, stride, padding, dilation, output_padding);
  auto plain = [](const SymShape& values) {
    SmallVector<int64_t> out;
    for (SymInt v : values) out.push_back(v.guard_int());
    return out;
  };
  return {plain(g.stride),         plain(g.padding), plain(g.dilation),
          plain(g.output_padding), transposed,       groups.guard_int()};
}

MemoryFormat output_format(const Tensor& input, const Tensor& weight, bool transposed) {
  // Of volumes, only those of the types that oneDNN has in PyTorch keep their format.
  DType part = real_type(input.dtype());
  bool kept = !transposed && (part == DType::Float32 || part == DType::Float16 || part == DType::BFloat16);
  if (input.dim() == 5 && input.device().type != DeviceType::CUDA && !kept) return MemoryFormat::Contiguous;
  for (const Tensor* t : {&input, &weight})
    if (MemoryFormat f = t->suggested_format(); f != MemoryFormat::Contiguous) return f;
  return MemoryFormat::Contiguous;
}

using Ints = std::vector<SymInt>;
using Mask = std::array<bool, 3>;

/// The batch next to the images, next to the output channels, or, where both sides have one, as groups.
Batched batch_convolution(const Batched& input, const Batched& weight, const Batched& bias, SymIntArrayRef stride,
                          SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed,
                          SymIntArrayRef output_padding, SymInt groups) {
  auto call = [&](const Tensor& x, const Tensor& w, const Tensor& b, SymInt g) {
    return convolution(x, w, b, stride, padding, dilation, transposed, output_padding, g);
  };
  Tensor plain_bias = bias.is_batched() ? Tensor() : bias.value;
  Batched out;
  if (input.is_batched() && !weight.is_batched()) {
    out = unfold_batch(call(fold_batch(input, 0), weight.value, plain_bias, groups), 0);
    if (!bias.is_batched()) return out;
  } else if (!input.is_batched() && weight.is_batched() && groups.same(1)) {
    out = unfold_batch(call(input.value, fold_batch(weight, transposed ? 1 : 0), {}, 1), 1);
  } else if (!weight.is_batched() && !input.is_batched()) {
    Tensor one = call(input.value, weight.value, {}, groups);
    out = {one.expand(batch_sizes(one.sym_sizes())), 0};
  } else {
    Tensor images = fold_batch({batch_all(input), 0}, 1), filters = fold_batch({batch_all(weight), 0}, 0);
    out = unfold_batch(call(images, filters, {}, groups * batch_scope().size), 1);
  }
  if (!bias.defined()) return out;
  Tensor whole = batch_first(out), term = batch_all(bias).unsqueeze(1);
  for (int64_t d = 3; d < whole.dim(); ++d) term = term.unsqueeze(-1);
  return {whole.add(term), 0};
}

std::tuple<Batched, Batched, Batched> batch_convolution_backward(const Batched& grad, const Batched& input,
                                                                 const Batched& weight, std::optional<Ints> bias_sizes,
                                                                 const Ints& stride, const Ints& padding,
                                                                 const Ints& dilation, bool transposed,
                                                                 const Ints& output_padding, SymInt groups,
                                                                 std::vector<bool> mask) {
  SymInt size = batch_scope().size;
  std::optional<SymIntArrayRef> sizes;
  if (bias_sizes) (*bias_sizes)[0] = (*bias_sizes)[0] * size, sizes = *bias_sizes;
  auto [of_input, of_weight, of_bias] = convolution_backward(
      fold_batch({batch_all(grad), 0}, 1), fold_batch({batch_all(input), 0}, 1), fold_batch({batch_all(weight), 0}, 0),
      sizes, stride, padding, dilation, transposed, output_padding, groups * size, mask);
  auto apart = [](const Tensor& t, int64_t at) { return t.defined() ? unfold_batch(t, at) : Batched(); };
  return {apart(of_input, 1), apart(of_weight, 0), apart(of_bias, 0)};
}

/// The sizes of an image; PyTorch has one dimension as two.
std::string image_text(const Tensor& image) {
  std::string out = image.dim() == 3 ? "1" : "";
  for (int64_t d = 2; d < image.dim(); ++d) out += (out.empty() ? "" : " x ") + std::to_string(image.size(d));
  return out;
}

/// What PyTorch's kernels refuse of a call with elements.
void check_kernel(const Tensor& out, const Tensor& input, const Tensor& weight, bool transposed) {
  if (input.numel() == 0) {
    // PyTorch computes one dimension as two.
    SymShape sizes(input.sym_sizes().begin(), input.sym_sizes().end());
    if (sizes.size() == 3) sizes = {sizes[0], sizes[1], 1, sizes[2]};
    check(input.size(0) == 0 || input.size(1) == 0,
          "Only zero batch or zero channel inputs are supported, but got input shape: ", sizes);
    return;
  }
  SymShape kernel(weight.sym_sizes().begin() + 2, weight.sym_sizes().end());
  check(std::none_of(kernel.begin(), kernel.end(), [](SymInt size) { return size.same(0); }),
        "kernel size should be greater than zero, but got", by_dimension("kernel", kernel, 1));
  bool in_space = input.dim() == 5, integral = is_integral(input.dtype(), true);
  if (is_float8(input.dtype()) || (transposed && integral && input.dtype() != DType::Int64))
    kernels::unsupported_dtype(transposed
                                   ? (in_space ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu")
                                   : (in_space ? "compute_columns3d" : "slow_conv2d_cpu"),
                               input.dtype());
  bool vanishes = false;
  for (int64_t d = 2; d < out.dim(); ++d) vanishes = vanishes || out.size(d) < 1;
  check(!transposed || !vanishes, "Given input size per channel: (", image_text(input),
        "). Calculated output size per channel: (", image_text(out), "). Output size is too small");
}

UMBRA_OPERATOR(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
    "transposed, SymInt[] output_padding, SymInt groups) -> Tensor")
    .generated_out("convolution.out")
    .meta([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
             SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
             SymInt groups) {
      Geometry g = checked_geometry(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
      SymShape shape = output_shape(input, weight, g, transposed, groups);
      return TensorSpec(shape, strides_for(shape, output_format(input, weight, transposed)), input.dtype(),
                        common_device({&input, &weight}));
    })
    .cpu([](const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
            SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
            SymInt groups) {
      check_kernel(out, input, weight, transposed);
      kernels::convolution(out, input, weight, bias,
                           kernel_options(static_cast<size_t>(weight.dim() - 2), stride, padding, dilation, transposed,
                                          output_padding, groups));
    })
    .gradient("input, weight, bias",
              {"grad", "input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding",
               "groups", "needs"},
              [](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& bias, Ints stride,
                 Ints padding, Ints dilation, bool transposed, Ints output_padding, SymInt groups,
                 std::vector<bool> needs) {
                std::optional<SymIntArrayRef> bias_sizes;
                if (bias.defined()) bias_sizes = bias.sym_sizes();
                return convolution_backward(grad, input.conj(), weight.conj(), bias_sizes, stride, padding, dilation,
                                            transposed, output_padding, groups, needs);
              })
    .tags({Tag::Core})
    .batch(batch_convolution);

// All three results are linear in the gradient of the output, and the first two also in the weight and in the input.
std::tuple<Tensor, Tensor, Tensor> convolution_double_backward(const Tensor& of_input, const Tensor& of_weight,
                                                               const Tensor& of_bias, const Tensor& grad,
                                                               const Tensor& input, const Tensor& weight, Ints stride,
                                                               Ints padding, Ints dilation, bool transposed,
                                                               Ints output_padding, SymInt groups,
                                                               std::vector<bool> needs) {
  auto convolve = [&](const Tensor& x, const Tensor& w) {
    return convolution(x, w, {}, stride, padding, dilation, transposed, output_padding, groups);
  };
  auto backward = [&](const Tensor& x, const Tensor& w, std::vector<bool> mask) {
    return convolution_backward(grad.conj(), x, w, std::nullopt, stride, padding, dilation, transposed, output_padding,
                                groups, mask);
  };
  Tensor of_grad, in, weights;
  auto add = [](Tensor& sum, const Tensor& part) { sum = sum.defined() ? sum.add(part) : part; };
  if (needs[0] && of_input.defined()) add(of_grad, convolve(of_input, weight.conj()));
  if (needs[0] && of_weight.defined()) add(of_grad, convolve(input.conj(), of_weight));
  if (needs[0] && of_bias.defined()) {
    SymShape channels(static_cast<size_t>(grad.dim()), 1);
    channels[1] = of_bias.sym_sizes()[0];
    add(of_grad, of_bias.view(channels).expand(grad.sym_sizes()));
  }
  if (needs[1] && of_weight.defined()) in = std::get<0>(backward(input, of_weight, {true, false, false}));
  if (needs[2] && of_input.defined()) weights = std::get<1>(backward(of_input, weight, {false, true, false}));
  return {of_grad, in, weights};
}

UMBRA_OPERATOR(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] "
    "output_mask) -> (Tensor, Tensor, Tensor)")
    .generated_out("convolution_backward.out", {"out0", "out1", "out2"})
    .meta([](const Tensor& grad, const Tensor& input, const Tensor& weight, std::optional<Ints>, SymIntArrayRef stride,
             SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
             SymInt groups, Mask mask) {
      Geometry g = checked_geometry(input, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
      SymShape shape = output_shape(input, weight, g, transposed, groups);
      check(any_symbolic(shape) || grad.sym_sizes() == SymIntArrayRef(shape), "Expected grad_output of size ", shape,
            ", but got ", grad.sym_sizes());
      check(grad.dtype() == input.dtype(), "expected scalar type ", kernel_name(input.dtype()), " but found ",
            kernel_name(grad.dtype()));
      TensorSpec none;
      none.defined = false;
      MemoryFormat format = output_format(input, weight, transposed);
      auto like = [&](const Tensor& t) {
        return TensorSpec(t.sym_sizes(), strides_for(t.sym_sizes(), format), t.dtype(), t.device());
      };
      return std::tuple(mask[0] ? like(input) : none, mask[1] ? like(weight) : none,
                        mask[2] ? TensorSpec({grad.sym_sizes()[1]}, grad.dtype(), grad.device()) : none);
    })
    .cpu<3>([](const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
               const Tensor& input, const Tensor& weight, std::optional<Ints>, SymIntArrayRef stride,
               SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
               SymInt groups, Mask) {
      kernels::convolution_backward(grad_input, grad_weight, grad_bias, grad, input, weight,
                                    kernel_options(static_cast<size_t>(weight.dim() - 2), stride, padding, dilation,
                                                   transposed, output_padding, groups));
    })
    .gradient("grad_output, input, weight",
              {"grad0", "grad1", "grad2", "grad_output", "input", "weight", "stride", "padding", "dilation",
               "transposed", "output_padding", "groups", "needs"},
              convolution_double_backward)
    .tags({Tag::Core})
    .batch(batch_convolution_backward);

// ---- by rank ----

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
                SymInt groups, int64_t spatial) {
  check_rank(input, spatial);
  check(transposed || !bias.defined() || bias.dtype() == input.dtype(), "Input type (", cpp_name(input.dtype()),
        ") and bias type (", bias.defined() ? cpp_name(bias.dtype()) : "", ") should be the same");
  return convolve_any(input, weight, bias, spatial, [&](const Tensor& x, const Tensor& w, const Tensor& b) {
    return convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups);
  });
}

template <int64_t kSpatial>
Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
            SymIntArrayRef padding, SymIntArrayRef dilation, SymInt groups) {
  return convolve(input, weight, bias, stride, padding, dilation, false, SymShape(kSpatial, 0), groups, kSpatial);
}

template <int64_t kSpatial>
Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                      SymIntArrayRef padding, SymIntArrayRef output_padding, SymInt groups, SymIntArrayRef dilation) {
  return convolve(input, weight, bias, stride, padding, dilation, true, output_padding, groups, kSpatial);
}

UMBRA_OPERATOR(
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] "
    "dilation=1, SymInt groups=1) -> Tensor")
    .composite(conv<1>);
UMBRA_OPERATOR(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] "
    "dilation=1, SymInt groups=1) -> Tensor")
    .composite(conv<2>);
UMBRA_OPERATOR(
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] "
    "dilation=1, SymInt groups=1) -> Tensor")
    .composite(conv<3>);
UMBRA_OPERATOR(
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
    "SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor")
    .composite(conv_transpose<1>);
UMBRA_OPERATOR(
    "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
    "SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor")
    .composite(conv_transpose<2>);
UMBRA_OPERATOR(
    "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, "
    "SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor")
    .composite(conv_transpose<3>);

}  // namespace
}  // namespace umbra::ops
