// Average pooling over one to three dimensions.
#include "ops/common/kernel_type.h"
#include "ops/common/sizes_only.h"
#include "ops/pool/pool_window.h"

namespace umbra::ops {
namespace {

using Divisor = std::optional<int64_t>;
using AveragePool = Tensor (*)(const Tensor&, const argument::Ints&, const argument::Ints&, const argument::Ints&, bool,
                               bool, Divisor);
using AveragePoolBackward = Tensor (*)(const Tensor&, const Tensor&, const argument::Ints&, const argument::Ints&,
                                       const argument::Ints&, bool, bool, Divisor);

/// avg_pool2d and avg_pool3d.
struct AveragePooling {
  const char* name;
  size_t dims;
  AveragePool pool;
  AveragePoolBackward backward;

  Window window(const Ints& kernel, const Ints& stride, const Ints& padding) const {
    Ints k = per_dimension(name, "kernel_size", dims, kernel);
    return {k, per_dimension(name, "stride", dims, stride, k), per_dimension(name, "padding", dims, padding),
            Ints(dims, 1)};
  }
  SymShape shape(const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding, bool ceil_mode,
                 Divisor divisor) const {
    Window over = window(kernel, stride, padding);
    check(!divisor || *divisor != 0, "divisor must be not zero");
    if (dims == 2) self.sym_size(-3);  // fewer than three dimensions are told by this one
    else if (self.dim() > 3) check_covers(self, over);
    return pooled_shape(name, self, over, ceil_mode);
  }
  /// In three dimensions the window has to fit into the image itself, whatever is put around it.
  static void check_covers(const Tensor& self, const Window& over) {
    bool fits = true;
    for (int64_t i = 0; i < 3; ++i) fits = fits && self.sym_size(i - 3) >= SymInt(over.kernel[static_cast<size_t>(i)]);
    check(fits, "input image (T: ", self.sym_size(-3), " H: ", self.sym_size(-2), " W: ", self.sym_size(-1),
          ") smaller than kernel size (kT: ", over.kernel[0], " kH: ", over.kernel[1], " kW: ", over.kernel[2], ")");
  }
  /// PyTorch has no averages of narrow floats in three dimensions.
  void check_type(const char* kernel, const Tensor& image) const {
    check_kernel_type(dims == 2 || !is_reduced_floating(image.dtype()) || image.numel() == 0, kernel, image);
  }
  // Three dimensions always come row by row.
  TensorSpec spec(const Tensor& self, SymIntArrayRef shape) const {
    return dims == 2 ? pooled_spec(self, shape, self.dtype()) : TensorSpec(shape, self.dtype(), self.device());
  }
  static kernels::PoolOptions options(const Window& w, bool count_include_pad, Divisor divisor) {
    kernels::PoolOptions out = w.options();
    out.count_include_pad = count_include_pad;
    out.divisor = divisor;
    return out;
  }

  void define_forward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool,
                       Divisor divisor) {
          return family.spec(self, family.shape(self, kernel, stride, padding, ceil_mode, divisor));
        })
        .cpu([family](const Tensor& out, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool,
                      bool count_include_pad, Divisor divisor) {
          Window w = family.window(kernel, stride, padding);
          family.check_type("avg_pool3d_out_frame", self);
          kernels::average_pool(out, self, options(w, count_include_pad, divisor));
        })
        .gradient(
            "self",
            {"grad", "self", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"},
            [family](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                     bool count_include_pad, Divisor divisor) {
              return family.backward(grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
            })
        .linear()
        .tags({Tag::Core})
        .batch([family](const Batched& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                        bool count_include_pad, Divisor divisor) {
          auto d = static_cast<int64_t>(family.dims);
          return images_apart(
              family.pool(batch_images(self, d), kernel, stride, padding, ceil_mode, count_include_pad, divisor), self,
              d);
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                       bool, Divisor divisor) {
          check_pooled(grad, family.shape(self, kernel, stride, padding, ceil_mode, divisor), "grad_output");
          check_gradient_type(grad, self);
          return family.spec(self, self.sym_sizes());
        })
        .cpu([family](const Tensor& out, const Tensor& grad, const Tensor&, Ints kernel, Ints stride, Ints padding,
                      bool, bool count_include_pad, Divisor divisor) {
          Window w = family.window(kernel, stride, padding);
          family.check_type("avg_pool3d_backward_out_frame", grad);
          kernels::average_pool_backward(out, grad, options(w, count_include_pad, divisor));
        })
        .use(SizesOnly{})
        .gradient("grad_output",
                  {"grad", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"},
                  [family](const Tensor& grad, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                           bool count_include_pad, Divisor divisor) {
                    return family.pool(grad, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
                  })
        .batch([family](const Batched& grad, const Batched& self, Ints kernel, Ints stride, Ints padding,
                        bool ceil_mode, bool count_include_pad, Divisor divisor) {
          auto d = static_cast<int64_t>(family.dims);
          return images_apart(family.backward(batch_images(grad, d), batch_images(self, d), kernel, stride, padding,
                                              ceil_mode, count_include_pad, divisor),
                              self, d);
        });
  }
};

constexpr AveragePooling kAvgPool2d{"avg_pool2d", 2, avg_pool2d, avg_pool2d_backward};
constexpr AveragePooling kAvgPool3d{"avg_pool3d", 3, avg_pool3d, avg_pool3d_backward};

UMBRA_OPERATOR(
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor")
    .out("avg_pool2d.out")
    .use([](OperatorBuilder& builder) { kAvgPool2d.define_forward(builder); });
UMBRA_OPERATOR(
    "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
    "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
    .out("avg_pool2d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kAvgPool2d.define_backward(builder); })
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor")
    .out("avg_pool3d.out")
    .use([](OperatorBuilder& builder) { kAvgPool3d.define_forward(builder); });
UMBRA_OPERATOR(
    "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
    "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
    .out("avg_pool3d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kAvgPool3d.define_backward(builder); });

UMBRA_OPERATOR(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool "
    "count_include_pad=True) -> Tensor")
    .generated_out("avg_pool1d.out")
    .composite([](const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool count_include_pad) {
      check_line("avg_pool1d", self);
      Ints steps;
      if (!stride.empty()) steps = {1, only("avg_pool1d", "stride", stride)};
      return avg_pool2d(self.unsqueeze(-2), {1, only("avg_pool1d", "kernel_size", kernel)}, steps,
                        {0, only("avg_pool1d", "padding", padding)}, ceil_mode, count_include_pad)
          .squeeze(-2);
    })
    .tags({Tag::Core});

}  // namespace
}  // namespace umbra::ops
