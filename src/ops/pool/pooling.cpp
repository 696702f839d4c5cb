// Max and average pooling over two dimensions, adaptive average pooling.
#include "kernels/pooling.h"

#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;

/// Two numbers for two dimensions; one stands for both, none for those of `otherwise`.
Ints pair(const char* operator_name, const char* argument, const Ints& values, const Ints& otherwise = {}) {
  if (values.empty() && !otherwise.empty()) return otherwise;
  for (int64_t v : values)
    check(v >= INT32_MIN && v <= INT32_MAX, "value cannot be converted to type int without overflow");
  check(values.size() == 1 || values.size() == 2, operator_name, ": ", argument,
        " must be either a single int, or a tuple of two ints");
  return values.size() == 1 ? Ints{values[0], values[0]} : values;
}

struct Window {
  Ints kernel, stride, padding, dilation;
};

// How often a window fits. With ceil_mode one that hangs over counts, unless it would begin in the padding.
SymInt pooled_size(SymInt size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  SymInt span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (!ceil_mode) return span / stride + 1;
  SymInt out = (span + stride - 1) / stride + 1;
  return (out - 1) * stride >= size + padding ? out - 1 : out;
}

// Channels, height and width as messages have them: "3x8x8".
std::string image_size(SymIntArrayRef shape) {
  std::string out;
  for (SymInt s : shape.drop_front(shape.size() - 3)) out += (out.empty() ? "" : "x") + to_string(s);
  return out;
}

SymShape pooled_shape(const char* name, const Tensor& self, const Window& w, bool ceil_mode) {
  check(self.dim() == 3 || self.dim() == 4, name,
        "(): Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:",
        to_string(self.sym_sizes()));
  SymShape shape(self.sym_sizes());
  for (size_t d = shape.size() - 3; d < shape.size(); ++d)
    if (!shape[d].is_symbolic() && shape[d].value() == 0)
      fail(name, "(): Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:",
           to_string(self.sym_sizes()));
  for (int i = 0; i < 2; ++i) {
    check(w.kernel[i] > 0, "kernel size should be greater than zero, but got kH: ", w.kernel[0], " kW: ", w.kernel[1]);
    check(w.stride[i] > 0, "stride should be greater than zero, but got dH: ", w.stride[0], " dW: ", w.stride[1]);
    check(w.dilation[i] > 0, "dilation should be greater than zero, but got dilationH: ", w.dilation[0],
          " dilationW: ", w.dilation[1]);
    check(w.padding[i] >= 0, "pad must be non-negative, but got pad: ", w.padding[i]);
    check(w.padding[i] <= ((w.kernel[i] - 1) * w.dilation[i] + 1) / 2,
          "pad should be at most half of effective kernel size, but got pad=", w.padding[i],
          ", kernel_size=", w.kernel[i], " and dilation=", w.dilation[i]);
    size_t d = shape.size() - 2 + static_cast<size_t>(i);
    shape[d] = pooled_size(shape[d], w.kernel[i], w.stride[i], w.padding[i], w.dilation[i], ceil_mode);
  }
  if (!(shape[shape.size() - 2] >= 1 && shape.back() >= 1))
    fail("Given input size: (", image_size(self.sym_sizes()), "). Calculated output size: (", image_size(shape),
         "). Output size is too small");
  return shape;
}

// A gradient (and what comes with it) has the shape that pooling gives.
void check_pooled(const Tensor& t, SymIntArrayRef shape, const char* name) {
  check(t.sym_sizes() == shape, "Expected ", name, " of size ", to_string(shape), ", but got ",
        to_string(t.sym_sizes()));
}

TensorSpec pooled_spec(const Tensor& self, SymIntArrayRef shape, DType dtype) {
  return TensorSpec(shape, strides_for(shape, self.suggested_format()), dtype, self.device());
}

// ---- max ----

Window max_window(const Ints& kernel, const Ints& stride, const Ints& padding, const Ints& dilation) {
  Ints k = pair("max_pool2d", "kernel_size", kernel);
  return {k, pair("max_pool2d", "stride", stride, k), pair("max_pool2d", "padding", padding),
          pair("max_pool2d", "dilation", dilation)};
}
kernels::PoolOptions options_of(const Window& w) {
  return {.kernel = w.kernel, .stride = w.stride, .padding = w.padding, .dilation = w.dilation};
}

/// Images of a batch of their own take the other one next to it; single ones become a batch.
Tensor batch_images(const Batched& t) { return t.rank() == 4 ? fold_batch({batch_all(t), 0}, 0) : batch_all(t); }
Batched images_apart(const Tensor& result, const Batched& like) {
  return like.rank() == 4 ? unfold_batch(result, 0) : Batched(result, 0);
}

UMBRA_OPERATOR(
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)")
    .out("max_pool2d_with_indices.out", {"out", "indices"})
    .meta([](const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
      SymShape shape = pooled_shape("max_pool2d", self, max_window(kernel, stride, padding, dilation), ceil_mode);
      return std::tuple(pooled_spec(self, shape, self.dtype()), pooled_spec(self, shape, DType::Int64));
    })
    .cpu<2>([](const Tensor& out, const Tensor& indices, const Tensor& self, Ints kernel, Ints stride, Ints padding,
               Ints dilation, bool) {
      Window w = max_window(kernel, stride, padding, dilation);
      kernels::max_pool(out, indices, self, options_of(w));
    })
    .gradient("self", {"grad", "self", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "result1"},
              [](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation,
                 bool ceil_mode, const Tensor& indices) {
                return max_pool2d_with_indices_backward(grad, self, kernel, stride, padding, dilation, ceil_mode,
                                                        indices);
              })
    .differentiable_outputs({true, false})
    .tags({Tag::Core})
    .batch([](const Batched& self, std::vector<int64_t> kernel, std::vector<int64_t> stride,
              std::vector<int64_t> padding, std::vector<int64_t> dilation, bool ceil_mode) {
      auto [out, indices] = max_pool2d_with_indices(batch_images(self), kernel, stride, padding, dilation, ceil_mode);
      return std::tuple(images_apart(out, self), images_apart(indices, self));
    });

UMBRA_OPERATOR(
    "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
    "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor")
    .out("max_pool2d_with_indices_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation,
             bool ceil_mode, const Tensor& indices) {
      SymShape shape = pooled_shape("max_pool2d", self, max_window(kernel, stride, padding, dilation), ceil_mode);
      check_pooled(grad, shape, "grad_output");
      check_pooled(indices, shape, "indices");
      check(grad.dtype() == self.dtype(), "expected dtype ", kernel_name(self.dtype()),
            " for `gradOutput` but got dtype ", kernel_name(grad.dtype()));
      check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
      return pooled_spec(self, self.sym_sizes(), self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor&, Ints, Ints, Ints, Ints, bool, const Tensor& indices) {
      kernels::max_pool_backward(out, grad, indices, 2);
    })
    .gradient("grad_output", {"grad", "indices"},
              [](const Tensor& grad, const Tensor& indices) {
                // Each gradient came from one place: read it there.
                SymShape flat(grad.sym_sizes().drop_back(2)), picked(indices.sym_sizes().drop_back(2));
                flat.push_back(-1);
                picked.push_back(-1);
                return grad.reshape(flat).gather(-1, indices.reshape(picked)).view(indices.sym_sizes());
              })
    .tags({Tag::Core})
    .batch([](const Batched& grad, const Batched& self, std::vector<int64_t> kernel, std::vector<int64_t> stride,
              std::vector<int64_t> padding, std::vector<int64_t> dilation, bool ceil_mode, const Batched& indices) {
      return images_apart(max_pool2d_with_indices_backward(batch_images(grad), batch_images(self), kernel, stride,
                                                           padding, dilation, ceil_mode, batch_images(indices)),
                          self);
    });

UMBRA_OPERATOR(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor")
    .composite([](const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
      return std::get<0>(max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
    });

// ---- average ----

Window average_window(const Ints& kernel, const Ints& stride, const Ints& padding) {
  Ints k = pair("avg_pool2d", "kernel_size", kernel);
  return {k, pair("avg_pool2d", "stride", stride, k), pair("avg_pool2d", "padding", padding), {1, 1}};
}
kernels::PoolOptions average_options(const Window& w, bool count_include_pad, std::optional<int64_t> divisor) {
  return {.kernel = w.kernel,
          .stride = w.stride,
          .padding = w.padding,
          .count_include_pad = count_include_pad,
          .divisor = divisor};
}

UMBRA_OPERATOR(
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor")
    .out("avg_pool2d.out")
    .meta([](const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool,
             std::optional<int64_t> divisor) {
      self.sym_size(-3);  // fewer than three dimensions are told by this one
      check(!divisor || *divisor != 0, "divisor must be not zero");
      return pooled_spec(self, pooled_shape("avg_pool2d", self, average_window(kernel, stride, padding), ceil_mode),
                         self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool, bool count_include_pad,
            std::optional<int64_t> divisor) {
      Window w = average_window(kernel, stride, padding);
      kernels::average_pool(out, self, average_options(w, count_include_pad, divisor));
    })
    .gradient("self",
              {"grad", "self", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
               "divisor_override"},
              [](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                 bool count_include_pad, std::optional<int64_t> divisor) {
                return avg_pool2d_backward(grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
              })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, std::vector<int64_t> kernel, std::vector<int64_t> stride,
              std::vector<int64_t> padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
      return images_apart(
          avg_pool2d(batch_images(self), kernel, stride, padding, ceil_mode, count_include_pad, divisor), self);
    });

UMBRA_OPERATOR(
    "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
    "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
    .out("avg_pool2d_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool,
             std::optional<int64_t> divisor) {
      check(!divisor || *divisor != 0, "divisor must be not zero");
      check_pooled(grad, pooled_shape("avg_pool2d", self, average_window(kernel, stride, padding), ceil_mode),
                   "grad_output");
      check(grad.dtype() == self.dtype(), "expected dtype ", kernel_name(self.dtype()),
            " for `gradOutput` but got dtype ", kernel_name(grad.dtype()));
      return pooled_spec(self, self.sym_sizes(), self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor&, Ints kernel, Ints stride, Ints padding, bool,
            bool count_include_pad, std::optional<int64_t> divisor) {
      Window w = average_window(kernel, stride, padding);
      kernels::average_pool_backward(out, grad, average_options(w, count_include_pad, divisor));
    })
    .gradient("grad_output",
              {"grad", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"},
              [](const Tensor& grad, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                 std::optional<int64_t> divisor) {
                return avg_pool2d(grad, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
              })
    .tags({Tag::Core})
    .batch([](const Batched& grad, const Batched& self, std::vector<int64_t> kernel, std::vector<int64_t> stride,
              std::vector<int64_t> padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
      return images_apart(avg_pool2d_backward(batch_images(grad), batch_images(self), kernel, stride, padding,
                                              ceil_mode, count_include_pad, divisor),
                          self);
    });

// ---- adaptive ----

void check_spatial(const char* what, const Tensor& t) {
  for (int64_t d : {t.dim() - 2, t.dim() - 1})
    check(t.sym_sizes()[d].is_symbolic() || t.sym_sizes()[d].value() > 0, what,
          " to have non-zero size for non-batch dimensions, but it has sizes ", to_string(t.sym_sizes()),
          " with dimension ", d, " being empty");
}

UMBRA_OPERATOR("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .meta([](const Tensor& self, SymIntArrayRef size) {
      check(size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
      check(self.dim() == 3 || self.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ",
            to_string(self.sym_sizes()));
      check_spatial("adaptive_avg_pool2d(): Expected input", self);
      SymShape shape(self.sym_sizes().drop_back(2));
      for (SymInt s : size) {
        check(s >= 0, "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received ",
              to_string(size));
        shape.push_back(s);
      }
      return pooled_spec(self, shape, self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& self, SymIntArrayRef) {
      check<NotImplementedError>(self.is_floating_point(), "\"adaptive_avg_pool2d\" not implemented for '",
                                 kernel_name(self.dtype()), "'");
      kernels::adaptive_average_pool(out, self, 2);
    })
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return _adaptive_avg_pool2d_backward(grad, self); })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, SymIntArrayRef size) {
      return images_apart(_adaptive_avg_pool2d(batch_images(self), size), self);
    });

UMBRA_OPERATOR("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")
    .meta([](const Tensor& grad, const Tensor& self) {
      check((self.dim() == 3 || self.dim() == 4) && grad.dim() == self.dim(),
            "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got ", to_string(self.sym_sizes()),
            " and a gradient of ", to_string(grad.sym_sizes()));
      check_spatial("adaptive_avg_pool2d_backward(): Expected grad_output", grad);
      check(grad.sym_sizes().drop_back(2) == self.sym_sizes().drop_back(2) && grad.dtype() == self.dtype(),
            "adaptive_avg_pool2d_backward(): a gradient of ", to_string(grad.sym_sizes()), " does not fit an input of ",
            to_string(self.sym_sizes()));
      return pooled_spec(self, self.sym_sizes(), self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor&) {
      kernels::adaptive_average_pool_backward(out, grad, 2);
    })
    .gradient("grad_output", {"grad", "grad_output.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) {
                return _adaptive_avg_pool2d(grad, {sizes[sizes.size() - 2], sizes[sizes.size() - 1]});
              })
    .tags({Tag::Core})
    .batch([](const Batched& grad, const Batched& self) {
      return images_apart(_adaptive_avg_pool2d_backward(batch_images(grad), batch_images(self)), self);
    });

UMBRA_OPERATOR("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef size) {
      check(size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
      // One window over everything is a mean, which is faster.
      if (size[0].same(1) && size[1].same(1)) {
        Tensor out = self.mean(IntArrayRef{-1, -2}, true);
        if (self.suggested_format() != MemoryFormat::ChannelsLast) return out;
        SymInt channels = self.sym_sizes()[1];
        return out.as_strided({self.sym_sizes()[0], channels, 1, 1}, {channels, 1, channels, channels});
      }
      return _adaptive_avg_pool2d(self, size);
    });

}  // namespace
}  // namespace umbra::ops
