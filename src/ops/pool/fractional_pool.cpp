// Max pooling over windows at random places.
#include "ops/common/needs_data.h"
#include "ops/common/sizes_only.h"
#include "ops/pool/pool_window.h"

namespace umbra::ops {
namespace {

using Fractional = std::tuple<Tensor, Tensor> (*)(const Tensor&, const argument::Ints&, const argument::Ints&,
                                                  const Tensor&);
using FractionalBackward = Tensor (*)(const Tensor&, const Tensor&, const argument::Ints&, const argument::Ints&,
                                      const Tensor&);

constexpr const char* kSides[] = {"time", "height", "width"};

/// fractional_max_pool2d and fractional_max_pool3d.
struct FractionalPooling {
  const char *name, *checker;  // errors name one or the other
  int64_t dims;
  Fractional pool;
  FractionalBackward backward;

  void check_image(const Tensor& self) const {
    check(self.dim() == dims + 1 || self.dim() == dims + 2, checker, ": Expected ", dims + 1, "D or ", dims + 2,
          "D tensor, but got: ", self.sym_sizes());
    for (int64_t d = self.dim() - dims - (self.dim() == dims + 2 ? 1 : 0); d < self.dim(); ++d)
      check(self.sym_sizes()[d].is_symbolic() || self.sym_sizes()[d].value() > 0, checker,
            ": Expected input to have non-zero size for non-batch dimensions, but got", self.sym_sizes(),
            " with dimension ", d, " being empty.");
  }
  void check_samples(const Tensor& self, const Tensor& samples) const {
    check(self.dtype() == samples.dtype(), "Expect _random_samples to have the same dtype as input");
    check(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
    SymInt batch = self.dim() == dims + 2 ? self.sym_size(0) : SymInt(1), channels = self.sym_size(-dims - 1);
    check(samples.sym_size(0) >= batch, "Expect _random_samples.size(0) no less then input batch size.");
    check(samples.sym_size(1) == channels, "Expect _random_samples.size(1) equals to input channel size.");
    check(samples.sym_size(2) == dims, "Expect _random_samples.size(2) equals to ", dims, "; got ", samples.sym_size(2),
          ".");
  }
  void check_counts(const Ints& kernel, const Ints& size) const {
    auto count = static_cast<size_t>(dims);
    const char* tuple = dims == 2 ? "tuple of Ints" : "tuple of three Ints";
    check(kernel.size() == count, name, ": kernel_size must either be a single Int or ", tuple);
    check(size.size() == count, name, ": output_size must either be a single Int or ", tuple);
  }
  SymShape shape(const Tensor& self, const Ints& kernel, const Ints& size) const {
    check_counts(kernel, size);
    auto count = static_cast<size_t>(dims);
    check_image(self);
    SymShape shape(self.sym_sizes().drop_back(count));
    static constexpr const char* kWords[] = {"time", "height", "width"};
    for (size_t i = 0; i < count; ++i) {
      const char* word = kWords[3 - count + i];
      SymInt have = self.sym_sizes()[static_cast<size_t>(self.dim()) - count + i];
      check(kernel[i] > 0, name, "(): kernel size should be greater than zero, but got ", kernel[i]);
      check(SymInt(size[i]) + kernel[i] - 1 <= have, checker, ": pool ", word, " ", kernel[i],
            " too large relative to input ", word, " ", have);
      shape.push_back(size[i]);
    }
    check_window_sizes(shape);
    return shape;
  }

  void define_forward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& self, Ints kernel, Ints size, const Tensor& samples) {
          SymShape shape = family.shape(self, kernel, size);
          family.check_samples(self, samples);
          return std::tuple(TensorSpec(shape, self.dtype(), self.device()),
                            TensorSpec(shape, DType::Int64, self.device()));
        })
        .cpu<2>([](const Tensor& out, const Tensor& indices, const Tensor& self, Ints kernel, Ints,
                   const Tensor& samples) { kernels::fractional_max_pool(out, indices, self, samples, kernel); })
        .gradient("self", {"grad", "self", "kernel_size", "output_size", "result1"},
                  [family](const Tensor& grad, const Tensor& self, Ints kernel, Ints size, const Tensor& indices) {
                    return family.backward(grad, self, kernel, size, indices);
                  })
        .differentiable_outputs({true, false})
        .batch([family](const Batched& self, Ints kernel, Ints size, const Batched& samples) {
          Tensor chosen = batch_all(samples);
          // Samples may be for more images than there are.
          if (self.rank() == family.dims + 2)
            chosen = fold_batch({chosen.narrow(1, 0, batch_all(self).sym_size(1)), 0}, 0);
          else chosen = chosen.select(1, 0);
          auto [out, indices] = family.pool(batch_images(self, family.dims), kernel, size, chosen);
          return std::tuple(images_apart(out, self, family.dims), images_apart(indices, self, family.dims));
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& grad, const Tensor& self, Ints kernel, Ints size, const Tensor& indices) {
          for (int64_t d = 0; d <= family.dims; ++d) self.sym_size(d);  // too few dimensions are an IndexError
          for (size_t d = 0; family.dims == 3 && d < 3; ++d) {
            SymInt given = grad.sym_size((self.dim() == 5 ? 2 : 1) + static_cast<int64_t>(d));
            check(d < size.size() && given == size[d], "fractional_max_pool3d_backward_out(): gradOutput ", kSides[d],
                  " unexpected");
          }
          family.check_counts(kernel, size);
          SymShape shape = family.shape(self, kernel, size);
          check_pooled(grad, shape, "grad_output");
          check_pooled(indices, shape, "indices");
          check_gradient_type(grad, self, "grad_output");
          check(indices.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(indices.dtype()));
          return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
        })
        .cpu([family](const Tensor& out, const Tensor& grad, const Tensor&, Ints, Ints, const Tensor& indices) {
          kernels::max_pool_backward(out, grad, indices, family.dims);
        })
        .use(SizesOnly{})
        .gradient(
            "grad_output", {"grad", "indices"},
            [family](const Tensor& grad, const Tensor& indices) { return gather_pooled(grad, indices, family.dims); })
        .batch([family](const Batched& grad, const Batched& self, Ints kernel, Ints size, const Batched& indices) {
          return images_apart(family.backward(batch_images(grad, family.dims), batch_images(self, family.dims), kernel,
                                              size, batch_images(indices, family.dims)),
                              self, family.dims);
        });
  }
};

constexpr FractionalPooling kFractional2d{"fractional_max_pool2d", "fractional_max_pool2d()", 2, fractional_max_pool2d,
                                          fractional_max_pool2d_backward};
constexpr FractionalPooling kFractional3d{"fractional_max_pool3d", "fractional_max_pool3d_out()", 3,
                                          fractional_max_pool3d, fractional_max_pool3d_backward};

UMBRA_OPERATOR(
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, "
    "Tensor)")
    .out("fractional_max_pool2d.output", {"output", "indices"})
    .use([](OperatorBuilder& builder) { kFractional2d.define_forward(builder); });
UMBRA_OPERATOR(
    "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
    "indices) -> Tensor")
    .out("fractional_max_pool2d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kFractional2d.define_backward(builder); });
UMBRA_OPERATOR(
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
    "Tensor)")
    .out("fractional_max_pool3d.output", {"output", "indices"})
    .use([](OperatorBuilder& builder) { kFractional3d.define_forward(builder); });
UMBRA_OPERATOR(
    "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
    "indices) -> Tensor")
    .out("fractional_max_pool3d_backward.grad_input", {"grad_input"})
    .use([](OperatorBuilder& builder) { kFractional3d.define_backward(builder); })
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
