// Sliding blocks of an image as columns (im2col), back (col2im), and windows along one dimension (unfold).
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;

struct Blocks {
  Ints kernel, dilation, padding, stride;
  SymInt height, width;  // of the image
  SymInt rows, columns;  // how many blocks fit

  Blocks(SymInt height, SymInt width, const Ints& kernel, const Ints& dilation, const Ints& padding, const Ints& stride)
      : kernel(kernel), dilation(dilation), padding(padding), stride(stride), height(height), width(width) {
    rows = count(height, 0);
    columns = count(width, 1);
  }
  SymInt count(SymInt size, size_t d) const {
    SymInt reach = SymInt(dilation[d]) * (kernel[d] - 1) + 1;
    return (size + SymInt(padding[d]) * 2 - reach) / stride[d] + 1;
  }
  SymShape padded(const Tensor& image) const {
    SymShape sizes(image.sym_sizes());
    sizes[sizes.size() - 2] = height + SymInt(padding[0]) * 2;
    sizes[sizes.size() - 1] = width + SymInt(padding[1]) * 2;
    return sizes;
  }
};

void check_two(const char* name, const Ints& values) {
  check(values.size() == 2, "It is expected ", name, " equals to 2, but got size ", values.size());
}
std::string two(const Ints& v) { return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ")"; }

void check_blocks(const Ints& kernel, const Ints& dilation, const Ints& padding, const Ints& stride) {
  check(kernel[0] > 0 && kernel[1] > 0, "kernel size should be greater than zero, but got kernel_height: ", kernel[0],
        " kernel_width: ", kernel[1]);
  check(dilation[0] > 0 && dilation[1] > 0,
        "dilation should be greater than zero, but got dilation_height: ", dilation[0],
        " dilation_width: ", dilation[1]);
  check(padding[0] >= 0 && padding[1] >= 0, "padding should be non-negative, but got pad_height: ", padding[0],
        " pad_width: ", padding[1]);
  check(stride[0] > 0 && stride[1] > 0, "stride should be greater than zero, but got stride_height: ", stride[0],
        " stride_width: ", stride[1]);
}

// "[2, 3]"; symbolic sizes count as not empty.
bool is_zero(SymInt s) { return !s.is_symbolic() && s.value() == 0; }

void check_block_types(const char* name, const Tensor& self) {
  bool fits = (is_floating(self.dtype()) && !is_float8(self.dtype())) || self.dtype() == DType::Bool ||
              (self.is_complex() && self.dtype() != DType::Complex32);
  check<NotImplementedError>(fits, "\"", name, "\" not implemented for '", kernel_name(self.dtype()), "'");
}

Blocks im2col_blocks(const Tensor& self, const Ints& kernel, const Ints& dilation, const Ints& padding,
                     const Ints& stride) {
  check_two("kernel_size", kernel);
  check_two("dilation", dilation);
  check_two("padding", padding);
  check_two("stride", stride);
  check_blocks(kernel, dilation, padding, stride);
  bool fits = self.dim() == 3 || self.dim() == 4;
  for (int64_t d = 1; fits && d <= 3; ++d) fits = !is_zero(self.sym_size(-d));
  check(fits,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
        "got: ",
        self.sym_sizes());
  Blocks blocks(self.sym_size(-2), self.sym_size(-1), kernel, dilation, padding, stride);
  check(blocks.rows >= 1 && blocks.columns >= 1, "Given input with spatial size (", blocks.height, ", ", blocks.width,
        "), kernel_size=", two(kernel), ", dilation=", two(dilation), ", padding=", two(padding),
        ", calculated shape of the array of sliding blocks as (", blocks.rows, ", ", blocks.columns,
        "), but its components must be at least one.");
  return blocks;
}

UMBRA_OPERATOR("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
    .out("im2col.out")
    .all_backends([](const Tensor& self, Ints kernel, Ints dilation, Ints padding, Ints stride) {
      Blocks b = im2col_blocks(self, kernel, dilation, padding, stride);
      if (!self.is_fake() && !self.is_meta()) check_block_types("im2col_out_cpu", self);
      Tensor image = self.dim() == 3 ? self.unsqueeze(0) : self;
      SymInt samples = image.sym_size(0), channels = image.sym_size(1);
      if (padding[0] || padding[1]) image = constant_pad_nd(image, {padding[1], padding[1], padding[0], padding[0]});
      SymIntArrayRef s = image.sym_strides();
      // Every block as a view: they overlap.
      Tensor all =
          image.as_strided({samples, channels, kernel[0], kernel[1], b.rows, b.columns},
                           {s[0], s[1], s[2] * dilation[0], s[3] * dilation[1], s[2] * stride[0], s[3] * stride[1]},
                           image.sym_storage_offset());
      Tensor out =
          all.clone(MemoryFormat::Contiguous).view({samples, channels * kernel[0] * kernel[1], b.rows * b.columns});
      return self.dim() == 3 ? out.squeeze(0) : out;
    })
    .gradient(
        "self", {"grad", "self.sym_sizes", "kernel_size", "dilation", "padding", "stride"},
        [](const Tensor& grad, SymIntArrayRef sizes, Ints kernel, Ints dilation, Ints padding, Ints stride) {
          return col2im(grad, {sizes[sizes.size() - 2], sizes[sizes.size() - 1]}, kernel, dilation, padding, stride);
        })
    .linear()
    .batch([](const Batched& self, Ints kernel, Ints dilation, Ints padding, Ints stride) {
      if (self.rank() == 3) return Batched(im2col(batch_first(self), kernel, dilation, padding, stride), 0);
      return unfold_batch(im2col(fold_batch(self, 0), kernel, dilation, padding, stride), 0);
    });

void check_col2im(const Tensor& self, const Blocks& b) {
  bool fits = (self.dim() == 2 || self.dim() == 3) && !is_zero(self.sym_size(-1)) && !is_zero(self.sym_size(-2));
  check(fits,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
        "but got: ",
        self.sym_sizes());
  SymInt rows = self.sym_size(-2), have = self.sym_size(-1);
  int64_t block = 0;
  check(!__builtin_mul_overflow(b.kernel[0], b.kernel[1], &block), "Given kernel_width = ", b.kernel[1],
        " and kernel_height = ", b.kernel[0], " the product of kernel_width and kernel_height overflowed.");
  check(rows % block == 0,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=",
        rows, " and kernel_size=", two(b.kernel), ".");
  check(b.rows >= 1 && b.columns >= 1, "Given output_size=(", b.height, ", ", b.width, "), kernel_size=", two(b.kernel),
        ", dilation=", two(b.dilation), ", padding=", two(b.padding), ", stride=", two(b.stride),
        ", calculated shape of the array of sliding blocks as (", b.rows, ", ", b.columns,
        "), which is too small (non-positive)");
  check(have == b.rows * b.columns, "Given output_size=(", b.height, ", ", b.width, "), kernel_size=", two(b.kernel),
        ", dilation=", two(b.dilation), ", padding=", two(b.padding), ", stride=", two(b.stride),
        ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", b.rows, " * ",
        b.columns, " = ", b.rows * b.columns, ", but got input.size(2)=", have, ".");
}

UMBRA_OPERATOR(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
    "Tensor")
    .out("col2im.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size, Ints kernel, Ints dilation, Ints padding, Ints stride) {
      check(size.size() == 2, "It is expected output_size equals to 2, but got size ", size.size());
      check_two("kernel_size", kernel);
      check_two("dilation", dilation);
      check_two("padding", padding);
      check_two("stride", stride);
      check_blocks(kernel, dilation, padding, stride);
      Blocks b(size[0], size[1], kernel, dilation, padding, stride);
      check_col2im(self, b);
      if (!self.is_fake() && !self.is_meta()) check_block_types("col2im_out_cpu", self);
      Tensor columns = self.dim() == 2 ? self.unsqueeze(0) : self;
      SymInt samples = columns.sym_size(0), channels = columns.sym_size(1) / (kernel[0] * kernel[1]);
      Tensor out = zeros({samples, channels, b.height + 2 * padding[0], b.width + 2 * padding[1]}, self.options());
      Tensor blocks = columns.reshape({samples, channels, kernel[0], kernel[1], b.rows, b.columns});
      for (int64_t i = 0; i < kernel[0]; ++i)
        for (int64_t j = 0; j < kernel[1]; ++j) {
          SymInt top = i * dilation[0], left = j * dilation[1];
          out.slice(2, top, top + stride[0] * (b.rows - 1) + 1, stride[0])
              .slice(3, left, left + stride[1] * (b.columns - 1) + 1, stride[1])
              .add_(blocks.select(2, i).select(2, j));
        }
      if (padding[0] || padding[1])
        out = out.narrow(2, padding[0], b.height).narrow(3, padding[1], b.width).clone(MemoryFormat::Contiguous);
      return self.dim() == 2 ? out.squeeze(0) : out;
    })
    .gradient("self", {"grad", "kernel_size", "dilation", "padding", "stride"},
              [](const Tensor& grad, Ints kernel, Ints dilation, Ints padding, Ints stride) {
                return im2col(grad, kernel, dilation, padding, stride);
              })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, SymIntArrayRef size, Ints kernel, Ints dilation, Ints padding, Ints stride) {
      if (self.rank() == 2) return Batched(col2im(batch_first(self), size, kernel, dilation, padding, stride), 0);
      return unfold_batch(col2im(fold_batch(self, 0), size, kernel, dilation, padding, stride), 0);
    });

// ---- windows of one dimension ----

UMBRA_OPERATOR("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
    .view([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
      int64_t d = wrap_dim(dimension, self.dim());
      SymInt most = self.dim() == 0 ? SymInt(1) : self.sym_sizes()[d];
      check(size >= 0, "size is ", size, " but must be >= 0");
      check(expect_at_most(size, most), "maximum size for tensor at dimension ", d, " is ", most, " but size is ",
            size);
      check(step > 0, "step is ", step, " but must be > 0");
      SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
      sizes.push_back(size);
      strides.push_back(self.dim() == 0 ? SymInt(1) : self.sym_strides()[d]);
      if (self.dim() > 0) {
        sizes[d] = (most - size) / step + 1;
        strides[d] = strides[d] * step;
      }
      return alias_tensor(self, sizes, strides, self.sym_storage_offset());
    })
    .gradient("self", {"grad", "self.sym_sizes", "dimension", "size", "step"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t dimension, int64_t size, int64_t step) {
                return unfold_backward(grad, sizes, dimension, size, step);
              })
    .linear()
    .batch([](const Batched& self, int64_t dimension, int64_t size, int64_t step) {
      Tensor all = batch_first(self);
      // A number counts as a dimension of size 1, of which there is one window.
      if (self.rank() == 0) return Batched(all.unsqueeze(1).unfold(1, size, step).select(1, 0), 0);
      return Batched(all.unfold(wrap_dim(dimension, self.rank()) + 1, size, step), 0);
    });

UMBRA_OPERATOR("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor")
    .generated_out("unfold_backward.out")
    .all_backends([](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, int64_t size, int64_t step) {
      check<ValueError>(step > 0, "step is ", step, " but must be > 0");
      Tensor out = zeros(sizes, grad.options());
      int64_t d = wrap_dim(dim, out.dim());
      if (step >= size || out.dim() == 0) {  // windows do not meet
        out.unfold(d, size, step).copy_(grad);
        return out;
      }
      if (out.sym_numel().same(0) && grad.dim() == 0) return out;
      SymInt windows = grad.sym_size(d);  // too few dimensions are an IndexError
      if (!windows.is_symbolic() && windows.value() < size) {
        for (int64_t w = 0; w < windows.value(); ++w)
          out.narrow(d, w * step, size).add_(grad.select(d, w).movedim(-1, d));
        return out;
      }
      for (int64_t k = 0; k < size; ++k) out.slice(d, k, (windows - 1) * step + k + 1, step).add_(grad.select(-1, k));
      return out;
    })
    .gradient("grad_in", {"grad", "dim", "size", "step"},
              [](const Tensor& grad, int64_t dim, int64_t size, int64_t step) { return grad.unfold(dim, size, step); })
    .linear()
    .batch([](const Batched& grad, SymIntArrayRef sizes, int64_t dim, int64_t size, int64_t step) {
      Tensor all = batch_first(grad);
      if (sizes.empty()) return Batched(all.sum(IntArrayRef{1}), 0);
      int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size())) + 1;
      return Batched(unfold_backward(all, batch_sizes(sizes), at, size, step), 0);
    });

}  // namespace
}  // namespace umbra::ops
