// Max pooling over one to three dimensions, and its inverse.
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/may_read.h"
#include "ops/common/sizes_only.h"
#include "ops/pool/pool_window.h"
#include "umbra/core/deterministic.h"

namespace umbra::ops {
namespace {

using MaxPool = std::tuple<Tensor, Tensor> (*)(const Tensor&, const argument::Ints&, const argument::Ints&,
                                               const argument::Ints&, const argument::Ints&, bool);
using MaxPoolBackward = Tensor (*)(const Tensor&, const Tensor&, const argument::Ints&, const argument::Ints&,
                                   const argument::Ints&, const argument::Ints&, bool, const Tensor&);

/// max_pool2d_with_indices and max_pool3d_with_indices.
struct MaxPooling {
  const char* name;
  size_t dims;
  MaxPool pool;
  MaxPoolBackward backward;

  Window window(const Ints& kernel, const Ints& stride, const Ints& padding, const Ints& dilation) const {
    Ints k = per_dimension(name, "kernel_size", dims, kernel);
    return {k, per_dimension(name, "stride", dims, stride, k), per_dimension(name, "padding", dims, padding),
            per_dimension(name, "dilation", dims, dilation)};
  }
  // Three dimensions keep the channels last for single images too.
  TensorSpec spec(const Tensor& self, SymIntArrayRef shape, DType dtype) const {
    if (dims != 3 || self.dim() != 4) return pooled_spec(self, shape, dtype);
    SymIntArrayRef s = self.sym_strides(), n = self.sym_sizes();
    bool last = !n[0].same(1) && s[0].same(1) && known_equal(s[3], n[0]) && known_equal(s[2], n[0] * n[3]) &&
                known_equal(s[1], n[0] * n[3] * n[2]);
    if (!last) return TensorSpec(shape, dtype, self.device());
    SymShape strides{1, shape[0] * shape[3] * shape[2], shape[0] * shape[3], shape[0]};
    return TensorSpec(shape, strides, dtype, self.device());
  }

  void define_forward(OperatorBuilder& builder) const {
    auto self_ = *this;
    auto dims_ = static_cast<int64_t>(dims);
    builder
        .meta([self_](const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
          Window window = self_.window(kernel, stride, padding, dilation);
          if (self_.dims == 2 && only_metadata_is_asked() && !outputs_are_given()) self.sym_size(-3);
          SymShape shape = pooled_shape(self_.name, self, window, ceil_mode);
          return std::tuple(self_.spec(self, shape, self.dtype()), self_.spec(self, shape, DType::Int64));
        })
        .cpu<2>([self_](const Tensor& out, const Tensor& indices, const Tensor& self, Ints kernel, Ints stride,
                        Ints padding, Ints dilation, bool) {
          Window w = self_.window(kernel, stride, padding, dilation);
          kernels::max_pool(out, indices, self, w.options());
        })
        .gradient("self", {"grad", "self", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "result1"},
                  [backward = backward](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding,
                                        Ints dilation, bool ceil_mode, const Tensor& indices) {
                    return backward(grad, self, kernel, stride, padding, dilation, ceil_mode, indices);
                  })
        .differentiable_outputs({true, false})
        .batch([pool = pool, dims_](const Batched& self, Ints kernel, Ints stride, Ints padding, Ints dilation,
                                    bool ceil_mode) {
          auto [out, indices] = pool(batch_images(self, dims_), kernel, stride, padding, dilation, ceil_mode);
          return std::tuple(images_apart(out, self, dims_), images_apart(indices, self, dims_));
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    auto self_ = *this;
    auto dims_ = static_cast<int64_t>(dims);
    builder
        .meta([self_](const Tensor& grad, const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation,
                      bool ceil_mode, const Tensor& indices) {
          Window window = self_.window(kernel, stride, padding, dilation);
          if (self_.dims == 2 && only_metadata_is_asked()) self.sym_size(-3);
          SymShape shape = pooled_shape(self_.name, self, window, ceil_mode);
          check_pooled(grad, shape, "grad_output");
          check_pooled(indices, shape, "indices");
          check_gradient_type(grad, self);
          check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
          return self_.spec(self, self.sym_sizes(), self.dtype());
        })
        .cpu([dims_](const Tensor& out, const Tensor& grad, const Tensor&, Ints, Ints, Ints, Ints, bool,
                     const Tensor& indices) { kernels::max_pool_backward(out, grad, indices, dims_); })
        .use(SizesOnly{})
        .gradient("grad_output", {"grad", "indices"},
                  [dims_](const Tensor& grad, const Tensor& indices) { return gather_pooled(grad, indices, dims_); })
        .batch([backward = backward, dims_](const Batched& grad, const Batched& self, Ints kernel, Ints stride,
                                            Ints padding, Ints dilation, bool ceil_mode, const Batched& indices) {
          return images_apart(backward(batch_images(grad, dims_), batch_images(self, dims_), kernel, stride, padding,
                                       dilation, ceil_mode, batch_images(indices, dims_)),
                              self, dims_);
        });
  }
};

constexpr MaxPooling kMaxPool2d{"max_pool2d", 2, max_pool2d_with_indices, max_pool2d_with_indices_backward};
constexpr MaxPooling kMaxPool3d{"max_pool3d", 3, max_pool3d_with_indices, max_pool3d_with_indices_backward};

UMBRA_OPERATOR(
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)")
    .out("max_pool2d_with_indices.out", {"out", "indices"})
    .use([](OperatorBuilder& builder) { kMaxPool2d.define_forward(builder); })
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
    "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor")
    .out("max_pool2d_with_indices_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kMaxPool2d.define_backward(builder); })
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)")
    .out("max_pool3d_with_indices.out", {"out", "indices"})
    .use([](OperatorBuilder& builder) { kMaxPool3d.define_forward(builder); })
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] "
    "padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor")
    .out("max_pool3d_with_indices_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kMaxPool3d.define_backward(builder); });

UMBRA_OPERATOR(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor")
    .composite([](const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
      return std::get<0>(max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
    });
UMBRA_OPERATOR(
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
    "ceil_mode=False) -> Tensor")
    .composite([](const Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
      return std::get<0>(max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
    });

// ---- one dimension: an image of one row ----

std::tuple<Tensor, Tensor> max_pool_row(const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding,
                                        const Ints& dilation, bool ceil_mode) {
  check_line("max_pool1d", self);
  Ints steps;
  if (!stride.empty()) steps = {1, only("max_pool1d", "stride", stride)};
  auto [out, indices] = max_pool2d_with_indices(self.unsqueeze(-2), {1, only("max_pool1d", "kernel_size", kernel)},
                                                steps, {0, only("max_pool1d", "padding", padding)},
                                                {1, only("max_pool1d", "dilation", dilation)}, ceil_mode);
  return {out.squeeze(-2), indices.squeeze(-2)};
}

UMBRA_OPERATOR(
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
    "dilation=[1], "
    "bool ceil_mode=False) -> (Tensor, Tensor)")
    .composite(max_pool_row);

void check_max_pool1d(const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding,
                      const Ints& dilation, bool ceil_mode) {
  bool fits = self.dim() == 2 || self.dim() == 3;
  for (int64_t d = self.dim() == 2 ? 0 : 1; fits && d < self.dim(); ++d)
    fits = self.sym_sizes()[d].is_symbolic() || self.sym_sizes()[d].value() != 0;
  check(fits, "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:",
        self.sym_sizes());
  check(kernel.size() == 1,
        "max_pool1d() kernel_size must be an int, list of ints or tuple of ints of size 1 but got size ",
        kernel.size());
  check(stride.size() <= 1,
        "max_pool1d() stride must be None, an int, list of ints, or tuple of ints of size 1 but got size ",
        stride.size());
  check(padding.size() == 1,
        "max_pool1d() padding must be an int, list of ints, or tuple of ints of size 1 but got size ", padding.size());
  check(dilation.size() == 1,
        "max_pool1d() dilation must be an int, list of ints or tuple of ints of size 1 but got size ", dilation.size());
  int64_t k = kernel[0], step = stride.empty() ? k : stride[0], pad = padding[0], gap = dilation[0];
  check(k > 0, "max_pool1d() kernel_size must be greater than zero, but got ", k);
  check(step > 0, "max_pool1d() stride must be greater than zero, but got ", step);
  check(pad >= 0, "max_pool1d() padding must be non-negative, but got ", pad);
  int64_t reach = 0;
  check(!__builtin_mul_overflow(k - 1, gap, &reach) && reach < INT64_MAX,
        "effective kernel size overflows, but got kernel_size=", k, " and dilation=", gap);
  check(pad <= k / 2, "max_pool1d() padding should be at most half of kernel size, but got padding=", pad,
        " and kernel_size=", k);
  check(gap > 0, "max_pool1d() dilation must be greater than zero, but got ", gap);
  if (SymInt size = self.sym_size(-1); !size.is_symbolic()) {
    // Windows may be as long as numbers go.
    __int128 span = __int128{size.value()} + __int128{2} * pad - reach - 1, room = ceil_mode ? span + step - 1 : span;
    __int128 whole = room / step - (room % step < 0 ? 1 : 0);
    auto count = static_cast<int64_t>(whole + 1);
    check(count > 0, "max_pool1d() Invalid computed output size: ", count);
  }
}

/// How many rows of a contiguous tensor make a row that is worth a loop of its own.
int64_t rows_together(const Tensor& self) {
  constexpr int64_t kLong = 4096;
  int64_t rows = 1, width = std::max<int64_t>(self.size(-1), 1), count = self.numel() / width;
  while (count > 0 && count % (2 * rows) == 0 && 2 * rows * width <= kLong) rows *= 2;
  return rows;
}
/// A contiguous tensor as images of one row each, several of its own rows in a line.
Tensor as_rows(const Tensor& t, int64_t rows) {
  int64_t width = t.size(-1) * rows, count = width == 0 ? 0 : t.numel() / width;
  SymShape sizes{SymInt(1), SymInt(count), SymInt(1), SymInt(width)};
  return alias_tensor(t, sizes, contiguous_strides(sizes), t.sym_storage_offset());
}

UMBRA_OPERATOR(
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool "
    "ceil_mode=False) -> Tensor")
    .composite([](const Tensor& given, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
      check_max_pool1d(given, kernel, stride, padding, dilation, ceil_mode);
      // Where values are all that is wanted the result is contiguous, however the input lies.
      Tensor self = values_alone(given) && !given.is_neg() ? given.contiguous() : given;
      check<NotImplementedError>(self.is_floating_point() || self.is_fake() || self.is_meta(),
                                 "\"max_pool1d_impl\" not implemented for '", kernel_name(self.dtype()), "'");
      if (values_alone(self) && self.is_contiguous() && !self.is_neg()) {
        Ints steps = stride.empty() ? Ints() : Ints{1, stride[0]};
        Window window = kMaxPool2d.window({1, kernel[0]}, steps, {0, padding[0]}, {1, dilation[0]});
        Tensor image = self.unsqueeze(-2);
        Tensor out =
            kernels::scratch(guard_ints(pooled_shape(kMaxPool2d.name, image, window, ceil_mode)), self.dtype());
        bool joins = padding[0] == 0 && (kernel[0] - 1) * dilation[0] < (steps.empty() ? kernel[0] : steps[1]) &&
                     out.size(-1) * (steps.empty() ? kernel[0] : steps[1]) == self.size(-1);
        int64_t rows = joins ? rows_together(self) : 1;
        kernels::max_pool_values(as_rows(out, rows), as_rows(image, rows), window.options());
        return out.squeeze(-2);
      }
      return std::get<0>(max_pool_row(self, kernel, stride, padding, dilation, ceil_mode));
    });

// ---- back to where the elements came from ----

/// The sizes of the result of max_unpool2d and max_unpool3d.
SymShape unpooled_shape(const Tensor& self, const Tensor& indices, SymIntArrayRef size, size_t dims) {
  check(size.size() == dims, "There should be exactly ",
        dims == 2 ? "two elements (height, width)" : "three elements (depth, height, width)",
        " in output_size, but got ", size.size(), " elements.");
  check(indices.dtype() == DType::Int64,
        "elements in indices should be type int64 but got: ", kernel_name(indices.dtype()));
  auto rank = static_cast<int64_t>(dims);
  check(self.dim() == rank + 1 || self.dim() == rank + 2, "Input to max_unpooling", dims, "d should be a ", dims + 1,
        "d or ", dims + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  check(self.sym_sizes() == indices.sym_sizes(), "Expected shape of indices to be same as that of the input tensor (",
        self.sym_sizes(), ") but got indices tensor with shape: ", indices.sym_sizes());
  check_not_empty("max_unpooling" + std::to_string(dims) + "d_forward_out_cpu(): Expected input", "input", self, 1);
  SymShape shape(self.sym_sizes().drop_back(dims));
  for (SymInt s : size) {
    check(s >= 0, "max_unpooling", dims,
          "d(): output_size must contain non-negative spatial dimensions, but got output_size=", to_string(size));
    shape.push_back(s);
  }
  return shape;
}

void unpool(const Tensor& out, const Tensor& self, const Tensor& indices, int64_t dims) {
  check<NotImplementedError>(self.is_floating_point(), "\"max_unpool", dims, "d\" not implemented for '",
                             kernel_name(self.dtype()), "'");
  kernels::max_unpool(out, self, indices, dims);
}

void check_unpool3d(const Ints& stride, const Ints& padding) {
  for (const auto& [name, values] : {std::pair("stride", &stride), std::pair("padding", &padding)})
    check(values->size() == 3, "There should be exactly three elements (depth, height, width) in ", name,
          ", but got: ", values->size(), " elements.");
  check(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
        "strides should be greater than zero, but got stride: ", to_string(as_sym(stride)));
}

UMBRA_OPERATOR("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
    .out("max_unpool2d.out")
    .meta([](const Tensor& self, const Tensor& indices, SymIntArrayRef size) {
      return pooled_spec(self, unpooled_shape(self, indices, size, 2), self.dtype());
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& indices, SymIntArrayRef) {
      alert_not_deterministic("max_unpooling2d_forward_out");
      unpool(out, self, indices, 2);
    })
    .gradient("self", {"grad", "indices"},
              [](const Tensor& grad, const Tensor& indices) { return gather_pooled(grad, indices, 2); })
    .linear()
    .batch([](const Batched& self, const Batched& indices, SymIntArrayRef size) {
      return images_apart(max_unpool2d(batch_images(self, 2), batch_images(indices, 2), size), self, 2);
    });

UMBRA_OPERATOR(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor")
    .out("max_unpool3d.out")
    .meta([](const Tensor& self, const Tensor& indices, SymIntArrayRef size, Ints stride, Ints padding) {
      check_unpool3d(stride, padding);
      return TensorSpec(unpooled_shape(self, indices, size, 3), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& indices, SymIntArrayRef, Ints, Ints) {
      alert_not_deterministic("max_unpooling3d_forward_out");
      unpool(out, self, indices, 3);
    })
    .gradient("self", {"grad", "indices"},
              [](const Tensor& grad, const Tensor& indices) { return gather_pooled(grad, indices, 3); })
    .linear()
    .batch([](const Batched& self, const Batched& indices, SymIntArrayRef size, Ints stride, Ints padding) {
      return images_apart(max_unpool3d(batch_images(self, 3), batch_images(indices, 3), size, stride, padding), self,
                          3);
    });

}  // namespace
}  // namespace umbra::ops
