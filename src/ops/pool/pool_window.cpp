#include "ops/pool/pool_window.h"

#include "ops/common/unbacked.h"

namespace umbra::ops {
namespace {

const char* word_for(size_t dims) { return dims == 2 ? "two" : "three"; }

/// "kT: 1 kH: 2 kW: 3" for the prefix "k".
std::string by_dimension(const char* prefix, const Ints& values) {
  static constexpr const char* kNames[] = {"T", "H", "W"};
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? " " : "") + std::string(prefix) + kNames[3 - values.size() + i] + ": " + std::to_string(values[i]);
  return text;
}

// How often a window fits. With ceil_mode one that hangs over counts, unless it would begin in the padding.
SymInt pooled_size(SymInt size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  SymInt span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (!ceil_mode) return span / stride + 1;
  SymInt out = (span + stride - 1) / stride + 1;
  return (out - 1) * stride >= size + padding ? out - 1 : out;
}

// Channels and spatial sizes as messages have them: "3x8x8".
std::string image_size(SymIntArrayRef shape, size_t dims) {
  std::string out;
  for (SymInt s : shape.drop_front(shape.size() - dims - 1)) out += (out.empty() ? "" : "x") + to_string(s);
  return out;
}

void check_rank(const Tensor& self, int64_t dims) {
  check(self.dim() == dims + 1 || self.dim() == dims + 2, "non-empty ", dims + 1, "D or ", dims + 2,
        "D (batch mode) tensor expected for input");
}

void check_image(const char* name, const Tensor& self, int64_t dims) {
  if (dims == 3) return check_not_empty(std::string(name) + "(): Expected input", "input", self, self.dim() - 4);
  for (int64_t d = 1; d <= 3; ++d)
    check(self.sym_size(-d).is_symbolic() || self.sym_size(-d).value() != 0,
          "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sym_sizes());
}

// In PyTorch's order: what a size is computed from comes before what makes no sense.
void check_window(const Window& w) {
  for (int64_t i = 0; i < w.dims(); ++i) {
    check(w.stride[i] != 0, "stride should not be zero");
    check(w.padding[i] >= 0, "pad must be non-negative, but got pad: ", w.padding[i]);
    check(w.padding[i] <= ((w.kernel[i] - 1) * w.dilation[i] + 1) / 2,
          "pad should be at most half of effective kernel size, but got pad=", w.padding[i],
          ", kernel_size=", w.kernel[i], " and dilation=", w.dilation[i]);
  }
  auto all_positive = [](const Ints& values) { return std::ranges::all_of(values, [](int64_t v) { return v > 0; }); };
  // The texts are made where they are needed only.
  if (!all_positive(w.kernel)) fail("kernel size should be greater than zero, but got ", by_dimension("k", w.kernel));
  if (!all_positive(w.stride)) fail("stride should be greater than zero, but got ", by_dimension("d", w.stride));
  if (!all_positive(w.dilation))
    fail("dilation should be greater than zero, but got ", by_dimension("dilation", w.dilation));
}

}  // namespace

Ints per_dimension(const char* operator_name, const char* argument, size_t dims, const Ints& values,
                   const Ints& otherwise) {
  if (values.empty() && !otherwise.empty()) return otherwise;
  for (int64_t v : values)
    check(v >= INT32_MIN && v <= INT32_MAX, "value cannot be converted to type int without overflow");
  if (values.size() != 1 && values.size() != dims) {
    std::string_view of = operator_name, what = argument;
    const char* must = what == "dilation" ? " must be either" : of == "avg_pool3d" ? " must be" : " must either be";
    fail(of, ": ", what, must, what == "stride" ? " omitted," : "", " a single int, or a tuple of ", word_for(dims),
         " ints");
  }
  return values.size() == 1 ? Ints(dims, values[0]) : values;
}

int64_t only(const char* operator_name, const char* argument, const Ints& values) {
  check(values.size() == 1, operator_name, "() argument '", argument, "' should contain one int (got ", values.size(),
        ")");
  return values[0];
}

void check_line(const char* operator_name, const Tensor& self) {
  check(self.dim() == 2 || self.dim() == 3, "Expected 2 to 3 dimensions, but got ", self.dim(),
        "-dimensional tensor for argument #1 'self' (while checking arguments for ", operator_name, ")");
}

void check_not_empty(const std::string& what, const char* name, const Tensor& t, int64_t first) {
  for (int64_t d = first; d < t.dim(); ++d)
    check(t.sym_sizes()[d].is_symbolic() || t.sym_sizes()[d].value() > 0, what,
          " to have non-zero size for non-batch dimensions, but ", name, " has sizes ", t.sym_sizes(),
          " with dimension ", d, " being empty");
}

void check_window_sizes(SymIntArrayRef sizes) {
  for (SymInt s : sizes)
    if (!s.is_symbolic() && s.value() < 0)
      fail("Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
}

SymShape pooled_shape(const char* name, const Tensor& self, const Window& w, bool ceil_mode) {
  int64_t dims = w.dims();
  check_rank(self, dims);
  check_window(w);
  check_image(name, self, dims);
  SymShape shape(self.sym_sizes());
  bool too_small = false;
  for (int64_t i = 0; i < dims; ++i) {
    auto d = static_cast<size_t>(self.dim() - dims + i);
    shape[d] = pooled_size(shape[d], w.kernel[i], w.stride[i], w.padding[i], w.dilation[i], ceil_mode);
    too_small |= !expect_at_most(1, shape[d]);
  }
  auto count = static_cast<size_t>(dims);
  if (too_small)
    fail("Given input size: (", image_size(self.sym_sizes(), count), "). Calculated output size: (",
         image_size(shape, count), "). Output size is too small");
  return shape;
}

void check_pooled(const Tensor& t, SymIntArrayRef shape, const char* name) {
  check(t.sym_sizes() == shape, "Expected ", name, " of size ", to_string(shape), ", but got ", t.sym_sizes());
}

void check_gradient_type(const Tensor& grad, const Tensor& self, const char* argument) {
  check(grad.dtype() == self.dtype(), "expected dtype ", kernel_name(self.dtype()), " for `", argument,
        "` but got dtype ", kernel_name(grad.dtype()));
}

TensorSpec pooled_spec(const Tensor& self, SymIntArrayRef shape, DType dtype) {
  return TensorSpec(shape, strides_for(shape, self.suggested_format()), dtype, self.device());
}

Tensor gather_pooled(const Tensor& grad, const Tensor& indices, int64_t dims) {
  auto count = static_cast<size_t>(dims);
  auto flat = [&](SymIntArrayRef sizes) {
    check(sizes.size() >= count, "a pooled image has ", dims, " dimensions or more, but got: ", to_string(sizes));
    SymShape shape(sizes.drop_back(count));
    shape.push_back(product(sizes.drop_front(sizes.size() - count)));
    return shape;
  };
  return grad.reshape(flat(grad.sym_sizes()))
      .gather(-1, indices.reshape(flat(indices.sym_sizes())))
      .view(indices.sym_sizes());
}

Tensor batch_images(const Batched& t, int64_t dims) {
  return t.rank() == dims + 2 ? fold_batch({batch_all(t), 0}, 0) : batch_all(t);
}
Batched images_apart(const Tensor& result, const Batched& like, int64_t dims) {
  return like.rank() == dims + 2 ? unfold_batch(result, 0) : Batched(result, 0);
}

}  // namespace umbra::ops
