// Other names of convolution: by the kind of padding, by library, and over sequences with the channels last.
#include "dispatch/layers.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/conv/any_input.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<SymInt>;

// ---- padding by name ----

// As much padding as keeps the size; where the sides differ, the input gets the difference beforehand.
Tensor same_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                        SymIntArrayRef dilation, SymInt groups) {
  auto spatial = static_cast<size_t>(weight.dim() - 2);
  check(weight.dim() > 2, "weight should have at least three dimensions");
  for (SymInt s : stride) check(s == 1, "padding='same' is not supported for strided convolutions");
  check(dilation.size() == 1 || dilation.size() == spatial, "dilation cannot broadcast to ", spatial, " dimensions");
  SymShape padding(spatial, 0), extra(2 * spatial, 0);
  bool even = true;
  for (size_t i = 0; i < spatial; ++i) {
    SymInt total = dilation[dilation.size() == 1 ? 0 : i] * (weight.sym_sizes()[i + 2] - 1);
    padding[i] = total / 2;
    extra[2 * (spatial - 1 - i) + 1] = total - padding[i] * 2;
    even = even && total % 2 == 0;
  }
  Tensor padded = even ? input : constant_pad_nd(input, extra, 0);
  SymShape none(spatial, 0);
  return convolution(padded, weight, bias, stride, padding, dilation, false, none, groups);
}

Tensor convolution_by_mode(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                           const std::string& padding, SymIntArrayRef dilation, SymInt groups) {
  if (padding == "same") return same_convolution(input, weight, bias, stride, dilation, groups);
  check(padding == "valid", "Invalid padding string: '", padding, "'");
  return convolution(input, weight, bias, stride, {SymInt(0)}, dilation, false, {SymInt(0)}, groups);
}

UMBRA_OPERATOR(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
    "SymInt groups) -> Tensor")
    .composite(convolution_by_mode);

template <int64_t kSpatial>
Tensor conv_by_mode(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                    const std::string& padding, SymIntArrayRef dilation, SymInt groups) {
  check_rank(input, kSpatial);
  return convolve_any(input, weight, bias, kSpatial, [&](const Tensor& x, const Tensor& w, const Tensor& b) {
    return convolution_by_mode(x, w, b, stride, padding, dilation, groups);
  });
}

UMBRA_OPERATOR(
    "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
    "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor")
    .composite(conv_by_mode<1>);
UMBRA_OPERATOR(
    "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor")
    .composite(conv_by_mode<2>);
UMBRA_OPERATOR(
    "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
    "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor")
    .composite(conv_by_mode<3>);

// ---- by library ----

UMBRA_OPERATOR(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool "
    "transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool "
    "allow_tf32) -> Tensor")
    .generated_out("_convolution.out")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                  SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
                  SymInt groups, bool, bool, bool, bool) {
      return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
    });
UMBRA_OPERATOR(
    "_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool "
    "cudnn_enabled) -> Tensor")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntArrayRef stride,
                  SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding,
                  SymInt groups, bool, bool, bool) {
      return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
    });
UMBRA_OPERATOR(
    "mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] "
    "dilation, "
    "SymInt groups) -> Tensor")
    .generated_out("mkldnn_convolution.out")
    .use(out_asks("mkldnn_convolution.out",
                  [](const Tensor& self, const Tensor&, const Tensor&, SymIntArrayRef padding, SymIntArrayRef,
                     SymIntArrayRef, SymInt, const Tensor&) {
                    if (only_metadata_is_asked())
                      check(self.dim() >= 2, "expected padding to be a single integer value or a list of ",
                            self.dim() - 2, " values to match the convolution dimensions, but got padding=", padding);
                  }))
    .composite([](const Tensor& self, const Tensor& weight, const Tensor& bias, SymIntArrayRef padding,
                  SymIntArrayRef stride, SymIntArrayRef dilation, SymInt groups) {
      int64_t spatial = weight.dim() - 2;
      check(padding.size() == 1 || static_cast<int64_t>(padding.size()) == spatial,
            "expected padding to be a single integer value or a list of ", spatial,
            " values to match the convolution dimensions, but got padding=", padding);
      return convolution(self, weight, bias, stride, padding, dilation, false, {SymInt(0)}, groups);
    });

// These take the kernel's size once more. PyTorch has no kernel of theirs for the meta device, and says so first.
void check_no_meta(const char* name, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    check<NotImplementedError>(!t->defined() || !t->is_meta() || t->is_fake(), "aten::", name,
                               ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                               "kernel registered.");
}

void check_kernel(const Tensor& weight, SymIntArrayRef kernel) {
  check(weight.dim() == static_cast<int64_t>(kernel.size()) + 2 && weight.sym_sizes().drop_front(2) == kernel,
        "expected a weight with a kernel of size ", kernel, ", but got weight of size ", weight.sym_sizes());
}

template <int kSpatial>
Tensor plain_convolution(const Tensor& self, const Tensor& weight, SymIntArrayRef kernel, const Tensor& bias,
                         SymIntArrayRef stride, SymIntArrayRef padding) {
  check_no_meta(kSpatial == 2 ? "_slow_conv2d_forward" : "slow_conv3d_forward", {&self, &weight, &bias});
  if (kSpatial == 3) {
    for (const auto& [name, list] : {std::pair("kernel_size", kernel), {"stride", stride}, {"padding", padding}})
      check(list.size() == 3, "It is expected ", name, " equals to 3, but got size ", list.size());
    weight.sym_size(1), self.sym_size(1);  // too few dimensions are an IndexError
  }
  check_kernel(weight, kernel);
  return convolution(self, weight, bias, stride, padding, {SymInt(1)}, false, {SymInt(0)}, 1);
}

UMBRA_OPERATOR(
    "_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] "
    "padding) -> Tensor")
    .out("_slow_conv2d_forward.output", {"output"})
    .composite(plain_convolution<2>)
    .use(NeedsData{});
UMBRA_OPERATOR(
    "thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], "
    "SymInt[2] padding=[0, 0]) -> Tensor")
    .out("thnn_conv2d.out")
    .composite([](const Tensor& self, const Tensor& weight, SymIntArrayRef kernel, const Tensor& bias,
                  SymIntArrayRef stride, SymIntArrayRef padding) {
      return _slow_conv2d_forward(self, weight, kernel, bias, stride, padding);
    });
UMBRA_OPERATOR(
    "slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] "
    "padding) -> Tensor")
    .out("slow_conv3d_forward.output", {"output"})
    .composite(plain_convolution<3>)
    .use(NeedsData{});
UMBRA_OPERATOR(
    "slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
    "SymInt[3] padding=[0, 0, 0]) -> Tensor")
    .out("slow_conv3d.out")
    .composite([](const Tensor& self, const Tensor& weight, SymIntArrayRef kernel, const Tensor& bias,
                  SymIntArrayRef stride,
                  SymIntArrayRef padding) { return slow_conv3d_forward(self, weight, kernel, bias, stride, padding); });

template <int kSpatial>
Tensor dilated_convolution(const Tensor& self, const Tensor& weight, SymIntArrayRef kernel, const Tensor& bias,
                           SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation) {
  check_no_meta(kSpatial == 2 ? "slow_conv_dilated2d" : "slow_conv_dilated3d", {&self, &weight, &bias});
  check_kernel(weight, kernel);
  return convolution(self, weight, bias, stride, padding, dilation, false, {SymInt(0)}, 1);
}
UMBRA_OPERATOR(
    "slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, "
    "1], "
    "SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor")
    .generated_out("slow_conv_dilated2d.out")
    .composite(dilated_convolution<2>)
    .use(NeedsData{});
UMBRA_OPERATOR(
    "slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, "
    "1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor")
    .generated_out("slow_conv_dilated3d.out")
    .composite(dilated_convolution<3>)
    .use(NeedsData{});

template <int kSpatial>
Tensor transposed_convolution(const Tensor& self, const Tensor& weight, SymIntArrayRef kernel, const Tensor& bias,
                              SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef output_padding,
                              SymIntArrayRef dilation) {
  if (kSpatial == 3) check_no_meta("slow_conv_transpose3d", {&self, &weight, &bias});
  check_kernel(weight, kernel);
  return convolution(self, weight, bias, stride, padding, dilation, true, output_padding, 1);
}
UMBRA_OPERATOR(
    "slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, "
    "1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor")
    .out("slow_conv_transpose2d.out")
    .composite(transposed_convolution<2>);
UMBRA_OPERATOR(
    "slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, "
    "1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor")
    .out("slow_conv_transpose3d.out")
    .composite(transposed_convolution<3>)
    .use(NeedsData{});

// ---- time, batch, channels ----

void check_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias) {
  check(self.dim() == 3, "Input must have 3 dims: time, batch, in_channel");
  check(weight.dim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  check(bias.dim() == 1, "Bias must be 1-D");
  check(self.sym_size(2) == weight.sym_size(1), "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
  check(weight.sym_size(2) == bias.sym_size(0), "Bias size must equal dim 2 in the weight tensor (output channels).");
}

bool fits_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias) {
  return self.dim() == 3 && weight.dim() == 3 && bias.dim() == 1 && self.sym_size(2) == weight.sym_size(1) &&
         weight.sym_size(2) == bias.sym_size(0);
}

/// The gradients step by step over the kernel: nobody asks whether the inputs fit each other, and what a tensor has too
/// few dimensions for is nothing.
std::tuple<Tensor, Tensor, Tensor> tbc_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                 const Tensor& bias, int64_t pad) {
  auto size = [](const Tensor& t, int64_t dim) { return dim < t.dim() ? t.sym_size(dim).guard_int() : 0; };
  int64_t length = size(input, 0), batch = size(input, 1), width = size(weight, 0);
  constexpr int64_t kFar = int64_t{1} << 61;  // beyond every size, and sums with it are numbers still
  pad = std::clamp(pad, -kFar, kFar);
  int64_t steps = length - width + 1 + pad * 2;
  auto nothing = [](const Tensor& t) { return zeros(t.sym_sizes(), t.options()); };
  Tensor of_input = nothing(input), of_weight = nothing(weight), of_bias = nothing(bias);
  for (int64_t k = 0; k < width; ++k) {
    int64_t from = std::max<int64_t>(0, k - pad), to = std::max<int64_t>(0, pad - k);
    int64_t count = std::min(length + pad - k, steps) - to;
    if (count <= 0) continue;
    Tensor grads = grad.narrow(0, to, count).contiguous().view({count * batch, size(weight, 2)});
    Tensor inputs = input.narrow(0, from, count).contiguous().view({count * batch, size(input, 2)});
    of_input.narrow(0, from, count).add_(grads.mm(weight.select(0, k).t()).view({count, batch, size(input, 2)}));
    of_weight.select(0, k).addmm_(inputs.t(), grads);
  }
  Tensor over_time = grad.sum(IntArrayRef{0});
  return {of_input, of_weight, of_bias.copy_(over_time.sum(IntArrayRef{0}))};
}

// As an ordinary convolution over time.
UMBRA_OPERATOR("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
    .generated_out("conv_tbc.out")
    .all_backends([](const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
      check_tbc(self, weight, bias);
      Tensor x = self.permute({1, 2, 0}), w = weight.permute({2, 1, 0});
      Tensor out = convolution(x, w, bias, {SymInt(1)}, {SymInt(pad)}, {SymInt(1)}, false, {SymInt(0)}, 1);
      return out.permute({2, 0, 1}).contiguous();
    })
    .gradient("self, weight, bias", {"grad", "self", "weight", "bias", "pad"},
              [](const Tensor& grad, const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
                return conv_tbc_backward(grad, self, weight, bias, pad);
              });

UMBRA_OPERATOR(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)")
    .composite([](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t pad) {
      if (!fits_tbc(input, weight, bias)) return tbc_gradients(grad, input, weight, bias, pad);
      Tensor g = grad.permute({1, 2, 0}), x = input.permute({1, 2, 0}), w = weight.permute({2, 1, 0});
      auto [of_input, of_weight, of_bias] =
          convolution_backward(g, x, w, bias.sym_sizes(), {SymInt(1)}, {SymInt(pad)}, {SymInt(1)}, false, {SymInt(0)},
                               1, {true, true, true});
      return std::tuple{of_input.permute({2, 0, 1}).contiguous(), of_weight.permute({2, 1, 0}).contiguous(), of_bias};
    });

}  // namespace
}  // namespace umbra::ops
