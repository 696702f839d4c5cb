// Activations made of others or with a gate: celu, selu, log_sigmoid, glu, prelu, hardshrink, softshrink.
#include "kernels/fits.h"
#include "kernels/functors/activations.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

using namespace functors;

// ---- celu, selu: special cases of elu ----

double inverse(const Scalar& alpha) {
  check(!alpha.equals(0), "ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1 / alpha.to_double();
}

UMBRA_OPERATOR("celu(Tensor self, Scalar alpha=1.0) -> Tensor")
    .inplace("celu_")
    .generated_out("celu.out")
    .all_backends([](const Tensor& self, const Scalar& alpha) {
      double scale = inverse(alpha);
      bool counts = is_integral(self.dtype(), true) && self.is_meta();
      check<ValueError>(!counts || alpha.equals(1) || !is_floating(alpha.dtype()),
                        "alpha argument of type <class 'float'> cannot be safely cast to type <class 'int'>!");
      if (counts && !is_floating(alpha.dtype())) return empty_like(self);
      return elu(self, alpha, 1, scale);
    })
    .gradient("self", {"grad", "alpha", "self"},
              [](const Tensor& grad, const Scalar& alpha, const Tensor& self) {
                return elu_backward(grad, alpha, 1, inverse(alpha), false, self);
              })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) {
      variant.node("CeluBackward1")
          .gradient("self", {"grad", "alpha", "result"},
                    [](const Tensor& grad, const Scalar& alpha, const Tensor& result) {
                      return elu_backward(grad, alpha, 1, inverse(alpha), true, result);
                    })
          .tangent(TangentRule::Pointwise);
    })
    .tags({Tag::Pointwise});

constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

UMBRA_OPERATOR("selu(Tensor self) -> Tensor")
    .composite([](const Tensor& self) { return elu(self, kSeluAlpha, kSeluScale); })
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("selu_(Tensor(a!) self) -> Tensor(a!)")
    .composite([](const Tensor& self) { return elu_(self, kSeluAlpha, kSeluScale); })
    .tags({Tag::Pointwise});

// ---- log_sigmoid: exp(-|x|) is kept for the backward ----

/// The kernels read one type.
void check_one_type(const Tensor& self, std::initializer_list<const Tensor*> others) {
  for (const Tensor* t : others)
    check(!has_elements(self) || !has_elements(*t) || t->dtype() == self.dtype(), "Found dtype ",
          kernel_name(t->dtype()), " but expected ", kernel_name(self.dtype()));
}

void check_log_sigmoid(const Tensor& self, const Tensor& out) {
  check_kernel_type(is_floating(self.dtype()), "log_sigmoid_cpu", self);
  if (has_elements(self)) check_read_as(self.dtype(), out);
}

UMBRA_OPERATOR("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")
    .out("log_sigmoid_forward.output", {"output", "buffer"})
    .use(out_asks("log_sigmoid_forward.output",
                  [](const Tensor& self, const Tensor& output, const Tensor&) { check_log_sigmoid(self, output); }))
    .meta([](const Tensor& self) {
      check<NotImplementedError>(self.dtype() != DType::Bool || !only_metadata_is_asked(),
                                 "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to ",
                                 "invert a mask, use the `~` or `logical_not()` operator instead.");
      // The kernel writes row by row, however its input lies.
      TensorSpec spec =
          has_elements(self) ? TensorSpec(self.sym_sizes(), self.dtype(), self.device()) : spec_like(self);
      TensorSpec buffer = spec;
      if (self.device().type == DeviceType::CUDA) buffer = TensorSpec({SymInt(0)}, self.dtype(), self.device());
      return std::tuple(spec, buffer);
    })
    .cpu<2>([](const Tensor& output, const Tensor& buffer, const Tensor& self) {
      kernels::pointwise(LogSigmoid{}, output, {&self});
      kernels::pointwise(LogSigmoidBuffer{}, buffer, {&self});
    })
    .gradient("self", {"grad", "self", "buffer"},
              [](const Tensor& grad, const Tensor& self, const Tensor& buffer) {
                return log_sigmoid_backward(grad, self, buffer);
              })
    .differentiable_outputs({true, false})
    .node("LogSigmoidBackward0");

UMBRA_OPERATOR("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor")
    .out("log_sigmoid_backward.grad_input", {"grad_input"})
    .use(out_asks("log_sigmoid_backward.grad_input", [](const Tensor&, const Tensor& self, const Tensor&,
                                                        const Tensor& out) { check_written_type(self, out); }))
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& buffer) {
      if (only_metadata_is_asked()) common_device({&grad, &self, &buffer});
      if (has_elements(self))
        broadcast_shapes(broadcast_shapes(buffer.sym_sizes(), self.sym_sizes()), grad.sym_sizes());
      check_one_type(self, {&grad, &buffer});
      return pointwise_spec({&grad, &self}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& self, const Tensor& buffer) {
      kernels::pointwise(LogSigmoidBackward{}, out, {&grad, &self, &buffer});
    })
    .elementwise()
    .gradient("grad_output", {"grad", "self", "buffer"},
              [](const Tensor& grad, const Tensor& self, const Tensor& buffer) {
                return log_sigmoid_backward(grad, self, buffer);
              })
    .gradient("self", {"grad", "grad_output", "self"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
                Tensor s = self.sigmoid();
                return grad.mul(grad_output).mul(s.sub(1).mul(s));
              })
    .use(BatchInFront{});

UMBRA_OPERATOR("log_sigmoid(Tensor self) -> Tensor")
    .out("log_sigmoid.out")
    .composite([](const Tensor& self) { return std::get<0>(log_sigmoid_forward(self)); })
    .use(out_parts([](const Tensor& self, const Tensor& out) {
      check(self.is_fake() || out.is_fake() || self.is_meta() == out.is_meta(), "Attempting to copy from device ",
            self.device(), " to device ", out.device(), ", but cross-device copies are not allowed!");
      check_log_sigmoid(self, out);
      return std::get<0>(log_sigmoid_forward_out(out, unwanted_out(self, self.dtype()), self));
    }));

// ---- glu: the first half, gated by the second ----

struct Halves {
  Tensor first, gate;
  Halves(const Tensor& self, int64_t dim, bool of_gradient_on_meta = false) {
    if (self.is_meta() || of_gradient_on_meta)
      check<AssertionError>(self.dim() > 0, "glu does not support 0-dimensional tensors");
    check(self.dim() > 0, "glu does not support 0-dimensional tensors");
    int64_t at = wrap_dim(dim, self.dim());
    SymInt size = self.sym_sizes()[at];
    constexpr const char* kOdd = "Halving dimension must be even, but dimension ";
    if (of_gradient_on_meta) check<AssertionError>(size % 2 == 0, kOdd, at, " is size ", size);
    check(size % 2 == 0, kOdd, at, " is size ", size);
    first = self.narrow(at, 0, size / 2);
    gate = self.narrow(at, size / 2, size / 2);
  }
};

UMBRA_OPERATOR("glu(Tensor self, int dim=-1) -> Tensor")
    .out("glu.out")
    .all_backends([](const Tensor& self, int64_t dim) {
      if (self.is_meta()) wrap_dim(dim, self.dim());
      check<IndexError>(!self.is_meta() || self.dim() > 0, "tuple index out of range");
      Halves halves(self, dim);
      check<NotImplementedError>(is_floating(self.dtype()), "\"glu_cpu\" not implemented for '",
                                 kernel_name(self.dtype()), "'");
      return halves.first.mul(halves.gate.sigmoid());
    })
    .gradient("self", {"grad", "self", "dim"},
              [](const Tensor& grad, const Tensor& self, int64_t dim) { return glu_backward(grad, self, dim); });

/// The gradient of a gated linear unit, by values.
Tensor glu_gradient(const Tensor& grad, const Halves& halves, int64_t dim) {
  Tensor s = halves.gate.sigmoid();
  return cat({grad.mul(s), grad.mul(halves.first).mul(s).mul(s.rsub(1))}, dim);
}

UMBRA_OPERATOR("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
    .out("glu_backward.grad_input", {"grad_input"})
    .use(out_asks("glu_backward.grad_input",
                  [](const Tensor&, const Tensor& self, int64_t dim, const Tensor& out) {
                    if (self.is_meta()) Halves(self, dim, true);
                    check(self.dim() > 0, "glu does not support 0-dimensional tensors");
                    wrap_dim(dim, self.dim());
                    check(!has_elements(self) || self.dtype() == out.dtype(), "Found dtype ", kernel_name(self.dtype()),
                          " but expected ", kernel_name(out.dtype()));
                  }))
    .all_backends([](const Tensor& grad, const Tensor& self, int64_t dim) {
      Halves halves(self, dim, grad.is_meta() || self.is_meta());
      if (has_elements(grad) && has_elements(self)) {
        check(grad.dtype() == self.dtype(), "Found dtype ", kernel_name(grad.dtype()), " but expected ",
              kernel_name(self.dtype()));
        check(!is_integral(self.dtype(), true), "result type ", kernel_name(default_dtype()),
              " can't be cast to the desired output type ", kernel_name(self.dtype()));
      }
      SymShape sizes = broadcast_shapes(halves.gate.sym_sizes(), grad.sym_sizes());
      check(SymIntArrayRef(sizes) == halves.gate.sym_sizes(), "output with shape ", halves.gate.sym_sizes(),
            " doesn't match the broadcast shape ", to_string(SymIntArrayRef(sizes)));
      // With data, either half is written to where it belongs.
      if (has_elements(grad) && has_elements(self) && grad.is_contiguous() && self.is_contiguous()) {
        Tensor s = halves.gate.sigmoid(), out = empty_like(self);
        Halves written(out, dim);
        mul_out(written.first, grad, s);
        mul_out(written.gate, grad, halves.first);
        sigmoid_backward_out(written.gate, written.gate, s);
        return out;
      }
      return glu_gradient(grad, halves, dim);
    })
    .gradient("grad_output", {"grad", "self", "dim"},
              [](const Tensor& grad, const Tensor& self, int64_t dim) {
                Halves halves(self, dim), grads(grad, dim);
                Tensor s = halves.gate.sigmoid();
                return grads.first.mul(s).add(grads.gate.mul(halves.first).mul(s).mul(s.rsub(1)));
              })
    .gradient("self", {"grad", "grad_output", "self", "dim"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, int64_t dim) {
                Halves halves(self, dim), grads(grad, dim);
                Tensor s = halves.gate.sigmoid(), slope = grad_output.mul(s).mul(s.rsub(1));
                Tensor bend = grads.first.add(grads.gate.mul(halves.first).mul(s.mul(-2).add(1)));
                return cat({grads.gate.mul(slope), bend.mul(slope)}, dim);
              })
    .use(batch_through([](const Tensor& grad, const Tensor& self, int64_t dim) {
      return glu_gradient(grad, Halves(self, dim), dim);
    }));

UMBRA_OPERATOR("glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor")
    .generated_out("glu_jvp.out")
    .all_backends([](const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
      dim = wrap_dim(dim, x.dim());
      SymInt half = glu.sym_size(dim);
      x.narrow(dim, half, half), dx.narrow(dim, half, half);  // which refuses what is out of range
      for (const Tensor* t : {&x, &dx})
        check(t->dtype() == glu.dtype(), "Found dtype ", kernel_name(t->dtype()), " but expected ",
              kernel_name(glu.dtype()));
      Halves moved(dx, dim);
      Tensor s = Halves(x, dim).gate.sigmoid();
      return moved.first.mul(s).add(glu.mul(moved.gate).mul(s.rsub(1)));
    })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor")
    .generated_out("glu_backward_jvp.out")
    .all_backends([](const Tensor& grad_x, const Tensor& grad_glu, const Tensor& x, const Tensor& dgrad_glu,
                     const Tensor& dx, int64_t dim) {
      dim = wrap_dim(dim, x.dim());
      SymInt half = grad_glu.sym_size(dim);
      for (const Tensor* t : {&x, &dx, &grad_x}) t->narrow(dim, 0, half), t->narrow(dim, half, half);  // in this order
      Halves halves(x, dim), moved(dx, dim);
      Tensor first = Halves(grad_x, dim).first, s = halves.gate.sigmoid(), rest = s.rsub(1);
      Tensor dfirst = dgrad_glu.mul(s).add(first.mul(rest).mul(moved.gate));
      Tensor dgate =
          dfirst.mul(halves.first).add(first.mul(moved.first)).sub(first.mul(halves.first).mul(s).mul(moved.gate));
      return cat({dfirst, dgate.mul(rest)}, dim);
    })
    .use(NeedsData{});

// ---- prelu: leaky_relu with a slope for each channel ----

UMBRA_OPERATOR("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
    .use(pointwise<Prelu, 2>(Promotion::Default))
    .meta([](const Tensor& self, const Tensor& weight) {
      TensorSpec spec = pointwise_spec({&self, &weight}, Promotion::Default);
      check_one_type(self, {&weight});
      return spec;
    })
    .gradient("self, weight", {"grad", "self", "weight"},
              [](const Tensor& grad, const Tensor& self, const Tensor& weight) {
                return _prelu_kernel_backward(grad, self, weight);
              });

UMBRA_OPERATOR("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)")
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& weight) {
      TensorSpec spec = pointwise_spec({&self, &weight, &grad}, Promotion::Default);
      check_one_type(self, {&weight, &grad});
      return std::tuple(spec, spec);
    })
    .cpu<2>([](const Tensor& grad_self, const Tensor& grad_weight, const Tensor& grad, const Tensor& self,
               const Tensor& weight) {
      kernels::pointwise(PreluBackward{}, grad_self, {&grad, &self, &weight});
      kernels::pointwise(PreluWeightBackward{}, grad_weight, {&grad, &self});
    })
    .gradient("grad_output, self, weight", {"grad0", "grad1", "grad_output", "self", "weight"},
              [](const Tensor& grad0, const Tensor& grad1, const Tensor& grad_output, const Tensor& self,
                 const Tensor& weight) {
                // At 0 the first derivative is the weight, that of the derivative 1.
                Tensor positive = self.ge(0), to_output, to_self, to_weight;
                if (grad0.defined()) {
                  to_output = where(positive, grad0, grad0.mul(weight));
                  to_weight = where(positive, 0, grad0.mul(grad_output));
                }
                if (grad1.defined()) {
                  Tensor part = where(positive, 0, grad1.mul(self));
                  to_output = to_output.defined() ? to_output.add(part) : part;
                  to_self = where(positive, 0, grad1.mul(grad_output));
                }
                return std::tuple(to_output, to_self, to_weight);
              });

UMBRA_OPERATOR("prelu(Tensor self, Tensor weight) -> Tensor").composite([](const Tensor& self, const Tensor& weight) {
  check(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ", kernel_name(self.dtype()), " and ",
        kernel_name(weight.dtype()));
  if (weight.sym_numel() != 1) {
    check(self.dim() > 0, "Not allow zero-dim input tensor.");
    SymInt channels = self.dim() > 1 ? self.sym_sizes()[1] : SymInt(1);
    check(channels == weight.sym_numel(),
          "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.sym_numel(),
          " and channel size = ", channels, ".");
  }
  check(weight.dim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (self.dim() == weight.dim()) return _prelu_kernel(self, weight);
  if (self.dim() == 0) return _prelu_kernel(self, weight.reshape({}));
  SymShape shape(self.dim(), 1);
  if (self.dim() > 1 && weight.dim() == 1) shape[1] = weight.sym_sizes()[0];
  return _prelu_kernel(self, weight.reshape(shape));
});

// ---- shrinking ----

UMBRA_OPERATOR("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
    .out("hardshrink.out")
    .use(pointwise<Hardshrink, 1>(Promotion::Default, [](const Scalar& bound) { return Hardshrink{.bound = bound}; }))
    .gradient("self", {"grad", "self", "lambd"},
              [](const Tensor& grad, const Tensor& self, const Scalar& bound) {
                return hardshrink_backward(grad, self, bound);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor")
    .out("hardshrink_backward.grad_input", {"grad_input"})
    .use(pointwise<ShrinkBackward, 2>(Promotion::Default,
                                      [](const Scalar& bound) { return ShrinkBackward{.bound = bound}; }))
    .gradient("grad_out", {"grad", "self", "lambd"},
              [](const Tensor& grad, const Tensor& self, const Scalar& bound) {
                return hardshrink_backward(grad, self, bound);
              })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
    .out("softshrink.out")
    .use(pointwise<Softshrink, 1>(Promotion::Default, [](const Scalar& bound) { return Softshrink{.bound = bound}; }))
    .meta([](const Tensor& self, const Scalar& bound) {
      check_kernel_type(is_floating(self.dtype()), "softshrink_check", self);
      check<TypeError>(is_floating(self.dtype()), "softshrink has a range of floating point numbers only, but got ",
                       kernel_name(self.dtype()));
      double largest = kernels::largest_number(self.dtype());
      check(bound.is_symbolic() || (bound.to_double() >= 0 && bound.to_double() <= largest),
            "lambda must be in range [0, ", number_text(largest), "] for input dtype ", kernel_name(self.dtype()),
            ", but found ", number_text(bound.to_double()));
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad", "self", "lambd"},
              [](const Tensor& grad, const Tensor& self, const Scalar& bound) {
                return softshrink_backward(grad, self, bound);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor")
    .out("softshrink_backward.grad_input", {"grad_input"})
    .use(pointwise<ShrinkBackward, 2>(Promotion::Default,
                                      [](const Scalar& bound) { return ShrinkBackward{.bound = bound}; }))
    .gradient("grad_output", {"grad", "self", "lambd"},
              [](const Tensor& grad, const Tensor& self, const Scalar& bound) {
                return softshrink_backward(grad, self, bound);
              })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise);

// ---- gelu's gradient by parts that can be differentiated again ----

UMBRA_OPERATOR("infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& self) {
      check_kernel_type(!self.is_complex(), "erf_vml_cpu", self);
      check_kernel_type(!grad.is_complex(), "erf_vml_cpu", grad);
      Tensor below = self.mul(M_SQRT1_2).erf_().add(1).mul_(0.5), density = self.mul(-0.5).mul(self).exp_();
      Tensor out = below.addcmul_(self, density, M_2_SQRTPI * M_SQRT1_2 * 0.5).mul_(grad);
      return out.to(result_type(grad, self));
    });

}  // namespace
}  // namespace umbra::ops
