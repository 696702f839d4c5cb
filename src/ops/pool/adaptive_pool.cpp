// Pooling to a given size, over one to three dimensions.
#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/sizes_only.h"
#include "ops/pool/pool_window.h"

namespace umbra::ops {
namespace {

// ---- averages ----

using Average = Tensor (*)(const Tensor&, const argument::SymInts&);
using AverageBackward = Tensor (*)(const Tensor&, const Tensor&);

/// "{1, -5}", "{1, 2,-5}": as PyTorch prints them here.
std::string in_braces(SymIntArrayRef size) {
  std::string text;
  for (size_t i = 0; i < size.size(); ++i) text += (i == 0 ? "" : i == 1 ? ", " : ",") + to_string(size[i]);
  return "{" + text + "}";
}

void check_images(const char* name, const Tensor& self, int64_t dims) {
  check(self.dim() == dims + 1 || self.dim() == dims + 2, name, "(): Expected ", dims + 1, "D or ", dims + 2,
        "D tensor, but got ", self.sym_sizes());
}

/// _adaptive_avg_pool2d and _adaptive_avg_pool3d.
struct AdaptiveAverage {
  const char *name, *kernel;
  int64_t dims;
  Average pool;
  AverageBackward backward;

  // Three dimensions always come row by row.
  TensorSpec spec(const Tensor& self, SymIntArrayRef shape) const {
    return dims == 2 ? pooled_spec(self, shape, self.dtype()) : TensorSpec(shape, self.dtype(), self.device());
  }
  void check_type(const Tensor& self) const {
    check<NotImplementedError>(self.is_floating_point(), "\"", kernel, "\" not implemented for '",
                               kernel_name(self.dtype()), "'");
  }

  void define_forward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& self, SymIntArrayRef size) {
          // On the meta device PyTorch takes any number of sizes for those of the last dimensions.
          check(static_cast<int64_t>(size.size()) == family.dims || only_metadata_is_asked(), family.name,
                ": output_size must be ", family.dims);
          check_images(family.name, self, family.dims);
          check_not_empty(std::string(family.name) + "(): Expected input", "input", self,
                          family.dims == 2 ? self.dim() - family.dims : 1);
          SymShape shape(self.sym_sizes().drop_back(static_cast<size_t>(family.dims)));
          for (SymInt s : size) {
            check(s >= 0, family.name, ": elements of output_size must be greater than or equal to 0 but received ",
                  in_braces(size));
            shape.push_back(s);
          }
          return family.spec(self, shape);
        })
        .cpu([family](const Tensor& out, const Tensor& self, SymIntArrayRef) {
          family.check_type(self);
          kernels::adaptive_average_pool(out, self, family.dims);
        })
        .gradient("self", {"grad", "self"},
                  [family](const Tensor& grad, const Tensor& self) { return family.backward(grad, self); })
        .linear()
        .tags({Tag::Core})
        .batch([family](const Batched& self, SymIntArrayRef size) {
          return images_apart(family.pool(batch_images(self, family.dims), size), self, family.dims);
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& grad, const Tensor& self) {
          std::string what = std::string(family.name) + "_backward()";
          if (family.dims == 3 && grad.dim() == self.dim()) grad.sym_size(-4);  // too few are an IndexError
          check((self.dim() == family.dims + 1 || self.dim() == family.dims + 2) && grad.dim() == self.dim(), what,
                ": Expected ", family.dims + 1, "D or ", family.dims + 2, "D tensor, but got ", self.sym_sizes(),
                " and a gradient of ", grad.sym_sizes());
          check_not_empty(what + ": Expected grad_output", "grad_output", grad, grad.dim() - family.dims);
          auto spatial = static_cast<size_t>(family.dims);
          check(grad.sym_sizes().drop_back(spatial) == self.sym_sizes().drop_back(spatial), what, ": a gradient of ",
                grad.sym_sizes(), " does not fit an input of ", self.sym_sizes());
          check(grad.dtype() == self.dtype(), "expected scalar type ", kernel_name(self.dtype()), " but found ",
                kernel_name(grad.dtype()));
          return family.spec(self, self.sym_sizes());
        })
        .cpu([family](const Tensor& out, const Tensor& grad, const Tensor& self) {
          family.check_type(self);
          kernels::adaptive_average_pool_backward(out, grad, family.dims);
        })
        .use(SizesOnly{})
        .gradient("grad_output", {"grad", "grad_output.sym_sizes"},
                  [family](const Tensor& grad, SymIntArrayRef sizes) {
                    return family.pool(grad, sizes.drop_front(sizes.size() - static_cast<size_t>(family.dims)));
                  })
        .batch([family](const Batched& grad, const Batched& self) {
          return images_apart(family.backward(batch_images(grad, family.dims), batch_images(self, family.dims)), self,
                              family.dims);
        });
  }
};

constexpr AdaptiveAverage kAverage2d{"adaptive_avg_pool2d", "adaptive_avg_pool2d", 2, _adaptive_avg_pool2d,
                                     _adaptive_avg_pool2d_backward};
constexpr AdaptiveAverage kAverage3d{"adaptive_avg_pool3d", "adaptive_avg_pool3d_cpu", 3, _adaptive_avg_pool3d,
                                     _adaptive_avg_pool3d_backward};

UMBRA_OPERATOR("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .generated_out("_adaptive_avg_pool2d.out")
    .use([](OperatorBuilder& builder) { kAverage2d.define_forward(builder); });
UMBRA_OPERATOR("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")
    .generated_out("_adaptive_avg_pool2d_backward.out")
    .use([](OperatorBuilder& builder) { kAverage2d.define_backward(builder); })
    .tags({Tag::Core});
UMBRA_OPERATOR("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
    .generated_out("_adaptive_avg_pool3d.out")
    .use([](OperatorBuilder& builder) { kAverage3d.define_forward(builder); });
UMBRA_OPERATOR("_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor")
    .generated_out("_adaptive_avg_pool3d_backward.out")
    .use([](OperatorBuilder& builder) { kAverage3d.define_backward(builder); })
    .use(LikeOnMeta{{1}})
    .use(NoOutputsOnMeta{"_adaptive_avg_pool3d_backward.out"});

// One window over everything is a mean, which is faster; where channels are last they stay so.
Tensor whole_mean(const Tensor& self, const Ints& dims, MemoryFormat channels_last) {
  Tensor out = self.mean(dims, true);
  if (self.suggested_format() != channels_last) return out;
  SymInt channels = self.sym_sizes()[1];
  SymShape sizes(static_cast<size_t>(self.dim()), 1), strides(static_cast<size_t>(self.dim()), channels);
  sizes[0] = self.sym_sizes()[0];
  sizes[1] = channels;
  strides[1] = 1;
  return out.as_strided(sizes, strides);
}

UMBRA_OPERATOR("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .out("adaptive_avg_pool2d.out")
    .use(out_asks("adaptive_avg_pool2d.out",
                  [](const Tensor& self, SymIntArrayRef, const Tensor& out) {
                    check_images("adaptive_avg_pool2d", self, 2);
                    check(self.dtype() == out.dtype(), "expected dtype ", cpp_name(self.dtype()),
                          " for `output` but got dtype ", cpp_name(out.dtype()));
                  }))
    .composite([](const Tensor& self, SymIntArrayRef size) {
      check(size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
      if (size[0].same(1) && size[1].same(1)) return whole_mean(self, {-1, -2}, MemoryFormat::ChannelsLast);
      return _adaptive_avg_pool2d(self, size);
    })
    .use(NeedsData{"adaptive_avg_pool2d.out"});
UMBRA_OPERATOR("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
    .out("adaptive_avg_pool3d.out")
    .use(out_asks("adaptive_avg_pool3d.out",
                  [](const Tensor& self, SymIntArrayRef, const Tensor& out) {
                    check_images("adaptive_avg_pool3d", self, 3);
                    check(self.dtype() == out.dtype(), "expected dtype ", cpp_name(self.dtype()),
                          " for `output` but got dtype ", cpp_name(out.dtype()));
                  }))
    .composite([](const Tensor& self, SymIntArrayRef size) {
      check(size.size() == 3, "adaptive_avg_pool3d: output_size must be 3");
      if (size[0].same(1) && size[1].same(1) && size[2].same(1))
        return whole_mean(self, {-1, -2, -3}, MemoryFormat::ChannelsLast3d);
      return _adaptive_avg_pool3d(self, size);
    })
    .use(NeedsData{"adaptive_avg_pool3d.out"});
UMBRA_OPERATOR("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
    .generated_out("adaptive_avg_pool1d.out")
    .composite([](const Tensor& self, Ints size) {
      check_line("adaptive_avg_pool1d", self);
      return adaptive_avg_pool2d(self.unsqueeze(-2), {1, only("adaptive_avg_pool1d", "output_size", size)}).squeeze(-2);
    })
    .tags({Tag::Core});

// ---- maxima ----

using Maximum = std::tuple<Tensor, Tensor> (*)(const Tensor&, const argument::Ints&);
using MaximumBackward = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

/// adaptive_max_pool2d and adaptive_max_pool3d.
struct AdaptiveMaximum {
  const char *name, *kernel;
  int64_t dims;
  Maximum pool;
  MaximumBackward backward;

  TensorSpec spec(const Tensor& self, SymIntArrayRef shape, DType dtype) const {
    return dims == 2 && self.dim() == 4 ? pooled_spec(self, shape, dtype) : TensorSpec(shape, dtype, self.device());
  }
  void check_image(const Tensor& self, const std::string& what) const {
    check(self.dim() == dims + 1 || self.dim() == dims + 2, what, ": Expected ", dims + 1, "D or ", dims + 2,
          "D tensor, but got: ", self.sym_sizes());
  }

  void define_forward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& self, Ints size) {
          std::string what = std::string(family.name) + "()";
          family.check_image(self, what);
          check_not_empty(what + ": Expected input", "input", self, 1);
          check(static_cast<int64_t>(size.size()) == family.dims, what, ": internal error: output_size.size() must be ",
                family.dims);
          SymShape shape(self.sym_sizes().drop_back(static_cast<size_t>(family.dims)));
          for (int64_t s : size) shape.push_back(s);
          check_window_sizes(shape);
          return std::tuple(family.spec(self, shape, self.dtype()), family.spec(self, shape, DType::Int64));
        })
        .cpu<2>([family](const Tensor& out, const Tensor& indices, const Tensor& self, Ints) {
          check<NotImplementedError>(self.is_floating_point(), "\"", family.kernel, "\" not implemented for '",
                                     kernel_name(self.dtype()), "'");
          kernels::adaptive_max_pool(out, indices, self, family.dims);
        })
        .gradient("self", {"grad", "self", "result1"},
                  [family](const Tensor& grad, const Tensor& self, const Tensor& indices) {
                    return family.backward(grad, self, indices);
                  })
        .differentiable_outputs({true, false})
        .batch([family](const Batched& self, Ints size) {
          auto [out, indices] = family.pool(batch_images(self, family.dims), size);
          return std::tuple(images_apart(out, self, family.dims), images_apart(indices, self, family.dims));
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& grad, const Tensor& self, const Tensor& indices) {
          std::string what = std::string(family.name) + "_backward()";
          family.check_image(grad, what);
          check_not_empty(what + ": Expected grad_output", "grad_output", grad, grad.dim() - family.dims);
          check_gradient_type(grad, self, "grad_output");
          check(grad.sym_sizes() == indices.sym_sizes() && grad.dim() == self.dim(), what, ": a gradient of ",
                grad.sym_sizes(), " does not fit indices of ", indices.sym_sizes(), " and an input of ",
                self.sym_sizes());
          check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
          return family.spec(self, self.sym_sizes(), self.dtype());
        })
        .cpu([family](const Tensor& out, const Tensor& grad, const Tensor&, const Tensor& indices) {
          kernels::max_pool_backward(out, grad, indices, family.dims);
        })
        .use(SizesOnly{})
        .gradient(
            "grad_output", {"grad", "indices"},
            [family](const Tensor& grad, const Tensor& indices) { return gather_pooled(grad, indices, family.dims); })
        .batch([family](const Batched& grad, const Batched& self, const Batched& indices) {
          return images_apart(family.backward(batch_images(grad, family.dims), batch_images(self, family.dims),
                                              batch_images(indices, family.dims)),
                              self, family.dims);
        });
  }
};

constexpr AdaptiveMaximum kMaximum2d{"adaptive_max_pool2d", "adaptive_max_pool2d", 2, adaptive_max_pool2d,
                                     adaptive_max_pool2d_backward};
constexpr AdaptiveMaximum kMaximum3d{"adaptive_max_pool3d", "adaptive_max_pool3d_cpu", 3, adaptive_max_pool3d,
                                     adaptive_max_pool3d_backward};

UMBRA_OPERATOR("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)")
    .out("adaptive_max_pool2d.out", {"out", "indices"})
    .use([](OperatorBuilder& builder) { kMaximum2d.define_forward(builder); });
UMBRA_OPERATOR("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
    .out("adaptive_max_pool2d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kMaximum2d.define_backward(builder); });
UMBRA_OPERATOR("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
    .out("adaptive_max_pool3d.out", {"out", "indices"})
    .use([](OperatorBuilder& builder) { kMaximum3d.define_forward(builder); });
UMBRA_OPERATOR("adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
    .out("adaptive_max_pool3d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kMaximum3d.define_backward(builder); })
    .use(LikeOnMeta{{1}});

UMBRA_OPERATOR("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
    .composite([](const Tensor& self, Ints size) {
      check_line("adaptive_max_pool1d", self);
      check_not_empty("adaptive_max_pool1d(): Expected input", "input", self, 1);
      auto [out, indices] =
          adaptive_max_pool2d(self.unsqueeze(-2), {1, only("adaptive_max_pool1d", "output_size", size)});
      Tensor places = indices.squeeze(-2);
      return std::tuple(out.squeeze(-2), places);
    });

}  // namespace
}  // namespace umbra::ops
