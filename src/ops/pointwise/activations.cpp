// Activation functions and their backward operators, which have gradients themselves.
#include "kernels/functors/activations.h"

#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/functors/arithmetic.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"
#include "umbra/core/grad_mode.h"

namespace umbra::ops {
namespace {

using namespace functors;

// ---- sigmoid, relu, threshold ----

UMBRA_OPERATOR("sigmoid(Tensor self) -> Tensor")
    .inplace("sigmoid_")
    .out("sigmoid.out")
    .use(pointwise<Sigmoid, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return sigmoid_backward(grad, result); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor")
    .out("sigmoid_backward.grad_input", {"grad_input"})
    .use(pointwise<SigmoidBackward, 2>(Promotion::Default))
    .gradient("grad_output", {"grad", "output"},
              [](const Tensor& grad, const Tensor& output) { return sigmoid_backward(grad, output.conj()); })
    .gradient("output", {"grad", "grad_output", "output"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& output) {
                return grad.conj().mul(grad_output).mul(output.conj().mul(-2).add(1));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("relu(Tensor self) -> Tensor")
    .inplace("relu_")
    .generated_out("relu.out")
    .use(pointwise<Relu, 1>(Promotion::Default))
    .meta([](const Tensor& self) {
      check<NotImplementedError>(self.dtype() != DType::Bool, "Boolean inputs not supported for relu");
      check<NotImplementedError>(!self.is_complex() || only_metadata_is_asked(),
                                 "clamp is not supported for complex types");
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return threshold_backward(grad, result, 0); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

// An addition and a relu at once; has no gradient, and takes a number of any kind as alpha.
Scalar in_kind_of(DType result, const Scalar& alpha) {
  return is_integral(result, true) ? Scalar(alpha.to_int()) : Scalar(alpha.to_double());
}
bool has_add_relu(DType type) {
  return type == DType::Float32 || type == DType::Float64 ||
         (is_integral(type, false) && type != DType::UInt8 && type <= DType::Int64);
}
TensorSpec add_relu_spec(const Tensor& self, const Tensor& other) {
  check(has_add_relu(self.dtype()) || !has_elements(self),
        "Unsupported datatype for add_relu: ", kernel_name(self.dtype()));
  return pointwise_spec({&self, &other}, Promotion::Default);
}
/// PyTorch's kernel leaves what is no number where it takes several elements at once: 64 bytes of what lies in order.
/// The last elements, fewer than that, it takes one by one.
template <class T> void drop_last_nans(const Tensor& out) {
  constexpr int64_t kTogether = 64 / sizeof(T);
  T* to = out.data<T>();
  for (int64_t i = out.numel() / kTogether * kTogether; i < out.numel(); ++i)
    if (std::isnan(to[i])) to[i] = T(0);
}

/// Whether elements of two tensors, and of what made one of them, follow each other in memory.
bool lie_in_order(const Tensor& out, const Tensor& sum, std::initializer_list<const Tensor*> operands) {
  auto along = [&](const Tensor& t) {
    return t.sym_sizes() == out.sym_sizes() && t.sym_strides() == out.sym_strides();
  };
  bool in_order = out.is_non_overlapping_and_dense() && along(sum);
  for (const Tensor* t : operands) in_order = in_order && (t->numel() == 1 || along(*t) || t->dtype() != out.dtype());
  return in_order;
}

/// The sum between zero and the largest number, of the types that the fused kernel is made for. What is no number is
/// zero where PyTorch's kernel takes elements one by one.
void add_relu(const Tensor& out, const Tensor& self, const Tensor& sum, std::initializer_list<const Tensor*> operands) {
  check_kernel_type(has_add_relu(sum.dtype()), "add_clamp_cpu", sum);
  // The largest number is one of the first argument's type.
  check(self.dtype() != DType::Float64 || sum.dtype() == DType::Float64,
        "value cannot be converted to type float without overflow");
  PositivePart kept;
  if (is_integral(self.dtype(), false)) kept.most = std::ldexp(1.0, 8 * static_cast<int>(self.item_size()) - 1) - 1;
  // An output may be one of the operands: what they were is asked before it is written.
  kept.keeps_nan = lie_in_order(out, sum, operands);
  kernels::pointwise(kept, out, {&sum});
  if (kept.keeps_nan && out.dtype() == DType::Float32) drop_last_nans<float>(out);
  if (kept.keeps_nan && out.dtype() == DType::Float64) drop_last_nans<double>(out);
}

/// Whether a sum may be made where the result will be: of the same types in the same order, in memory of its own or in
/// an operand's very place.
bool takes_sum(const Tensor& out, const Tensor& self, const Tensor& other) {
  auto like_out = [&](const Tensor& t) {
    return t.dtype() == out.dtype() && t.sym_sizes() == out.sym_sizes() && t.sym_strides() == out.sym_strides() &&
           (t.storage() != out.storage() || t.storage_offset() == out.storage_offset());
  };
  return out.is_non_overlapping_and_dense() && like_out(self) && like_out(other);
}

UMBRA_OPERATOR("_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .inplace("_add_relu_.Tensor")
    .out("_add_relu.out")
    .use(out_asks("_add_relu.out",
                  [](const Tensor& self, const Tensor& other, const Scalar&, const Tensor& out) {
                    DType common = ResultType().add(self).add(other).get();
                    // PyTorch gives back another tensor than the output, of the common type.
                    check(out.dtype() == common || !can_cast(common, out.dtype()), "_add_relu: an output of type ",
                          kernel_name(out.dtype()), " does not hold sums of type ", kernel_name(common));
                  }))
    .meta([](const Tensor& self, const Tensor& other, const Scalar&) { return add_relu_spec(self, other); })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) {
      DType common = ResultType().add(self).add(other).get();
      if (!has_add_relu(common)) kernels::unsupported_dtype("add_clamp_cpu", common);
      const Scalar factor = in_kind_of(common, alpha);
      const bool takes = takes_sum(out, self, other);
      if (takes) kernels::pointwise(functors::Add{.factor = {factor}}, out, {&self, &other});
      add_relu(out, self, takes ? out : self.add(other, factor), {&self, &other});
    })
    .elementwise()
    .use(NeedsData{"_add_relu.out"})
    .use(NothingOnMeta{});
UMBRA_OPERATOR("_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .inplace("_add_relu_.Scalar")
    .generated_out("_add_relu.Scalar_out")
    .meta([](const Tensor& self, const Scalar& other, const Scalar&) {
      return add_relu_spec(self, number_of_type(other.dtype()));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha) {
      add_relu(out, self, self.add(other, in_kind_of(ResultType().add(self).add(other).get(), alpha)), {&self});
    })
    .elementwise()
    .use(NeedsData{})
    .use(NothingOnMeta{});

/// Of integers a parameter has to be a number of their type.
void check_is_number(DType type, const Scalar& parameter) {
  bool asked = is_integral(type, false) && !parameter.is_symbolic() && !only_metadata_is_asked();
  if (asked) kernels::check_fits(parameter, type);
}

UMBRA_OPERATOR("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
    .inplace("threshold_")
    .out("threshold.out")
    .use(pointwise<Threshold, 1>(Promotion::Default,
                                 [](const Scalar& threshold, const Scalar& value) {
                                   return Threshold{.threshold = threshold, .value = value};
                                 }))
    .meta([](const Tensor& self, const Scalar& threshold, const Scalar& value) {
      for (const Scalar* number : {&threshold, &value}) check_is_number(self.dtype(), *number);
      if (is_reduced_floating(self.dtype()) && !only_metadata_is_asked()) kernels::check_fits(value, self.dtype());
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad", "self", "threshold"},
              [](const Tensor& grad, const Tensor& self, const Scalar& threshold) {
                return threshold_backward(grad, self, threshold);
              })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) { variant.node("ThresholdBackward1"); })
    .tags({Tag::Pointwise, Tag::CastsToOut, Tag::WritesOverlapping});

UMBRA_OPERATOR("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
    .out("threshold_backward.grad_input", {"grad_input"})
    .use(pointwise<ThresholdBackward, 2>(Promotion::Default,
                                         [](const Scalar& threshold) {
                                           return ThresholdBackward{.threshold = threshold};
                                         }))
    .meta([](const Tensor& grad, const Tensor& self, const Scalar& threshold) {
      TensorSpec spec = pointwise_spec({&self, &grad}, Promotion::Default);
      check_is_number(spec.dtype, threshold);
      if (only_metadata_is_asked()) spec.dtype = grad.dtype();  // what is kept there is the gradient
      return spec;
    })
    .sparse([](const Tensor& grad, const Tensor& self, const Scalar& threshold) {
      Tensor above = grad.sparse_mask(self);  // where the result is zero there is no gradient
      return with_values(self, threshold_backward(sparse_parts(above).values, sparse_parts(self).values, threshold));
    })
    .gradient("grad_output", {"grad", "self", "threshold"},
              [](const Tensor& grad, const Tensor& self, const Scalar& threshold) {
                return threshold_backward(grad, self, threshold);
              })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- gelu ----

bool uses_tanh(const std::string& approximate) {
  check(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh.");
  return approximate == "tanh";
}

// The second derivative. Exactly: density(x) (2 - x²).
Tensor gelu_curvature(const Tensor& x, const std::string& approximate) {
  Tensor square = x.mul(x);
  if (!uses_tanh(approximate)) return square.mul(-0.5).exp().mul(kGeluScale * 0.5).mul(square.rsub(2));
  // With u(x) the argument of tanh and t = tanh(u): (1 - t²) (u' + x / 2 (u'' - 2 t u'²)).
  Tensor t = x.add(square.mul(x).mul(kGeluCubic)).mul(kGeluScale).tanh();
  Tensor slope = square.mul(3 * kGeluCubic).add(1).mul(kGeluScale);
  Tensor bend = x.mul(6 * kGeluScale * kGeluCubic).sub(t.mul(slope).mul(slope).mul(2));
  return t.mul(t).rsub(1).mul(slope.add(x.mul(0.5).mul(bend)));
}

UMBRA_OPERATOR("gelu(Tensor self, *, str approximate='none') -> Tensor")
    .inplace("gelu_")
    .out("gelu.out")
    .meta([](const Tensor& self, const std::string& approximate) {
      if (only_metadata_is_asked()) uses_tanh(approximate);  // which refuses another name, as the kernel does
      return pointwise_spec({&self}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& self, const std::string& approximate) {
      if (uses_tanh(approximate)) kernels::pointwise(GeluTanh{}, out, {&self});
      else kernels::pointwise(Gelu{}, out, {&self});
    })
    .elementwise()
    .gradient("self", {"grad", "self", "approximate"},
              [](const Tensor& grad, const Tensor& self, const std::string& approximate) {
                return gelu_backward(grad, self, approximate);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::ExactOut, Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor")
    .out("gelu_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, const std::string&) {
      return pointwise_spec({&grad, &self}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& self, const std::string& approximate) {
      DType compute = pointwise_types({&grad, &self}, Promotion::Default).compute;
      if (uses_tanh(approximate)) kernels::pointwise(GeluTanhBackward{}, out, {&grad, &self}, compute);
      else kernels::pointwise(GeluBackward{}, out, {&grad, &self}, compute);
    })
    .elementwise()
    .gradient("grad_output", {"grad", "self", "approximate"},
              [](const Tensor& grad, const Tensor& self, const std::string& approximate) {
                return gelu_backward(grad, self, approximate);
              })
    .gradient("self", {"grad", "grad_output", "self", "approximate"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const std::string& approximate) {
                return grad.mul(grad_output).mul(gelu_curvature(self, approximate));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- silu, mish ----

// Their backward operators have no gradients; where one may be asked for, the backward is written out instead.

UMBRA_OPERATOR("silu(Tensor self) -> Tensor")
    .inplace("silu_")
    .out("silu.out")
    .use(pointwise<Silu, 1>(Promotion::Default))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                if (!is_grad_enabled()) return silu_backward(grad, self);
                Tensor s = self.sigmoid();
                return grad.mul(s).mul(self.mul(s.rsub(1)).add(1));
              })
    .tangent(TangentRule::Pointwise)
    .decomposition([](const Tensor& self) {
      // In float throughout, as the kernel computes it.
      bool narrow = self.dtype() == DType::Float16 || self.dtype() == DType::BFloat16;
      Tensor wide = narrow ? _to_copy(self, {.dtype = DType::Float32}) : self;
      Tensor product = wide.mul(wide.sigmoid());
      return narrow ? _to_copy(product, {.dtype = self.dtype()}) : product;
    })
    .tags({Tag::Pointwise, Tag::RealGradient});

UMBRA_OPERATOR("silu_backward(Tensor grad_output, Tensor self) -> Tensor")
    .out("silu_backward.grad_input", {"grad_input"})
    .use(pointwise<SiluBackward, 2>(Promotion::Default))
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("mish(Tensor self) -> Tensor")
    .inplace("mish_")
    .out("mish.out")
    .use(pointwise<Mish, 1>(Promotion::Default))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                if (!is_grad_enabled()) return mish_backward(grad, self);
                Tensor s = self.sigmoid(), t = softplus(self).tanh();
                return grad.mul(t.add(self.mul(s).mul(t.mul(t).rsub(1))));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("mish_backward(Tensor grad_output, Tensor self) -> Tensor")
    .use(pointwise<MishBackward, 2>(Promotion::Default))
    .meta([](const Tensor& grad, const Tensor& self) {
      TensorSpec spec = pointwise_spec({&grad, &self}, Promotion::Default);
      check(can_cast(spec.dtype, self.dtype()), "result type ", kernel_name(spec.dtype),
            " can't be cast to the desired output type ", kernel_name(self.dtype()));
      if (!self.is_meta() && !self.is_fake()) spec.dtype = self.dtype();
      return spec;
    });

// ---- leaky_relu, elu, softplus ----

UMBRA_OPERATOR("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
    .inplace("leaky_relu_")
    .out("leaky_relu.out")
    .use(pointwise<LeakyRelu, 1>(Promotion::Default, [](const Scalar& slope) { return LeakyRelu{.slope = slope}; }))
    .meta([](const Tensor& self, const Scalar& slope) {
      bool fits = slope.is_integral(true) ? self.dtype() != DType::Bool : !is_integral(self.dtype(), true);
      check<ValueError>(fits || !only_metadata_is_asked(), "negative_slope argument of type <class '",
                        slope.is_integral(true) ? "int" : "float", "'> cannot be safely cast to type <class '",
                        self.dtype() == DType::Bool ? "bool" : "int", "'>!");
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad", "self", "negative_slope"},
              [](const Tensor& grad, const Tensor& self, const Scalar& slope) {
                return leaky_relu_backward(grad, self, slope, false);
              })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) {
      variant.node("LeakyReluBackward1")
          .gradient("self", {"grad", "result", "negative_slope"},
                    [](const Tensor& grad, const Tensor& result, const Scalar& slope) {
                      return leaky_relu_backward(grad, result, slope, true);
                    })
          .tangent(TangentRule::Pointwise);
    })
    .tags({Tag::Core, Tag::Pointwise});

/// A result does not tell which side of zero its input was on where the slope is negative.
void check_slope_of_result(const char* name, double slope, bool is_result, const char* advice = "") {
  check(!is_result || slope >= 0, "In-place ", name,
        " backward calculation is triggered with a negative slope which is not supported. This is caused by calling "
        "in-place forward function with a negative slope, please call out-of-place version instead.",
        advice);
}

UMBRA_OPERATOR(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor")
    .out("leaky_relu_backward.grad_input", {"grad_input"})
    .use(pointwise<LeakyReluBackward, 2>(Promotion::Default,
                                         [](const Scalar& slope, bool) { return LeakyReluBackward{.slope = slope}; }))
    .meta([](const Tensor& grad, const Tensor& self, const Scalar& slope, bool is_result) {
      check_slope_of_result("leakyReLu", slope.to_double(), is_result,
                            " File an issue at https://github.com/pytorch/pytorch if you do require supporting "
                            "in-place leakRelu backward calculation with negative slope");
      return pointwise_spec({&self, &grad}, Promotion::Default);
    })
    .gradient("grad_output", {"grad", "self", "negative_slope", "self_is_result"},
              [](const Tensor& grad, const Tensor& self, const Scalar& slope, bool is_result) {
                return leaky_relu_backward(grad, self, slope, is_result);
              })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
    .inplace("elu_")
    .out("elu.out")
    .use(pointwise<Elu, 1>(Promotion::Default,
                           [](const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
                             return Elu{.alpha = alpha, .scale = scale, .input_scale = input_scale};
                           }))
    .meta([](const Tensor& self, const Scalar&, const Scalar&, const Scalar&) {
      check(!is_integral(self.dtype(), true) || !only_metadata_is_asked(),
            "input_scale argument of type <class 'float'> cannot be safely cast to type <class 'int'>!");
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad", "alpha", "scale", "input_scale", "self"},
              [](const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                 const Tensor& self) { return elu_backward(grad, alpha, scale, input_scale, false, self); })
    .tangent(TangentRule::Pointwise)
    .on_inplace([](OperatorBuilder& variant) {
      variant.node("EluBackward1")
          .gradient("self", {"grad", "alpha", "scale", "input_scale", "result"},
                    [](const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                       const Tensor& result) { return elu_backward(grad, alpha, scale, input_scale, true, result); })
          .tangent(TangentRule::Pointwise);
    })
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
    "self_or_result) -> Tensor")
    .out("elu_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Scalar& alpha, const Scalar&, const Scalar&, bool is_result,
             const Tensor& input) {
      check_slope_of_result("elu", alpha.to_double(), is_result);
      return pointwise_spec({&grad, &input}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
            bool is_result, const Tensor& input) {
      EluBackward functor{.alpha = alpha, .scale = scale, .input_scale = input_scale, .is_result = is_result};
      kernels::pointwise(functor, out, {&grad, &input}, pointwise_types({&grad, &input}, Promotion::Default).compute);
    })
    .elementwise()
    .gradient("grad_output", {"grad", "alpha", "scale", "input_scale", "is_result", "self_or_result"},
              [](const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                 bool is_result,
                 const Tensor& input) { return elu_backward(grad, alpha, scale, input_scale, is_result, input); })
    .gradient("self_or_result", {"grad", "grad_output", "alpha", "scale", "input_scale", "is_result", "self_or_result"},
              [](const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                 const Scalar& input_scale, bool is_result, const Tensor& input) {
                Tensor slope = grad.mul(grad_output).mul(input_scale).mul(input.lt(0));
                if (is_result) return slope;
                // Above 0 the exponential counts for nothing, but it could overflow.
                Tensor below = input.clamp_max(0);
                return slope.mul(input_scale).mul(alpha).mul(scale).mul(below.mul(input_scale).exp());
              })
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
    .out("softplus.out")
    .use(pointwise<Softplus, 1>(Promotion::Default,
                                [](const Scalar& beta, const Scalar& threshold) {
                                  return Softplus{.beta = beta, .threshold = threshold};
                                }))
    .gradient("self", {"grad", "self", "beta", "threshold"},
              [](const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) {
                return softplus_backward(grad, self, beta, threshold);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor")
    .out("softplus_backward.grad_input", {"grad_input"})
    .use(pointwise<SoftplusBackward, 2>(Promotion::Default,
                                        [](const Scalar& beta, const Scalar& threshold) {
                                          return SoftplusBackward{.beta = beta, .threshold = threshold};
                                        }))
    .gradient("grad_output", {"grad", "self", "beta", "threshold"},
              [](const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) {
                return softplus_backward(grad, self, beta, threshold);
              })
    .gradient("self", {"grad", "grad_output", "self", "beta", "threshold"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                 const Scalar& threshold) {
                Tensor weight = grad.mul(grad_output), x = self.mul(beta);
                return sigmoid_backward(weight, x.sigmoid()).mul(beta).masked_fill(x.gt(threshold), 0);
              })
    .tangent(TangentRule::Pointwise);

// ---- piecewise linear ones ----

UMBRA_OPERATOR("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
    .inplace("hardtanh_")
    .out("hardtanh.out")
    .use(pointwise<Clamp, 1>(Promotion::Default,
                             [](const Scalar& low, const Scalar& high) { return Clamp{.low = low, .high = high}; }))
    .meta([](const Tensor& self, const Scalar& low, const Scalar& high) {
      check<NotImplementedError>(self.dtype() != DType::Bool, "Bool inputs not supported for hardtanh");
      check<NotImplementedError>(!self.is_complex() || only_metadata_is_asked(),
                                 "clamp is not supported for complex types");
      if (is_integral(self.dtype(), true)) low.to_int(), high.to_int();  // a limit that is none is refused
      if (is_reduced_floating(self.dtype()) && !only_metadata_is_asked())
        for (const Scalar* bound : {&low, &high}) kernels::check_fits(*bound, self.dtype());
      return spec_like(self);
    })
    .gradient("self", {"grad", "self", "min_val", "max_val"},
              [](const Tensor& grad, const Tensor& self, const Scalar& low, const Scalar& high) {
                return hardtanh_backward(grad, self, low, high);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor")
    .out("hardtanh_backward.grad_input", {"grad_input"})
    .use(pointwise<HardtanhBackward, 2>(Promotion::Default,
                                        [](const Scalar& low, const Scalar& high) {
                                          return HardtanhBackward{.low = low, .high = high};
                                        }))
    .gradient("grad_output", {"grad", "self", "min_val", "max_val"},
              [](const Tensor& grad, const Tensor& self, const Scalar& low, const Scalar& high) {
                return hardtanh_backward(grad, self, low, high);
              })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR("relu6(Tensor self) -> Tensor")
    .composite([](const Tensor& self) { return hardtanh(self, 0, 6); })
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("relu6_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) {
  return hardtanh_(self, 0, 6);
});

UMBRA_OPERATOR("hardsigmoid(Tensor self) -> Tensor")
    .inplace("hardsigmoid_")
    .out("hardsigmoid.out")
    .use(pointwise<Hardsigmoid, 1>(Promotion::Default))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return hardsigmoid_backward(grad, self); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor")
    .out("hardsigmoid_backward.grad_input", {"grad_input"})
    .use(pointwise<HardsigmoidBackward, 2>(Promotion::Default));

UMBRA_OPERATOR("hardswish(Tensor self) -> Tensor")
    .inplace("hardswish_")
    .out("hardswish.out")
    .use(pointwise<Hardswish, 1>(Promotion::Default))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return hardswish_backward(grad, self); })
    .tangent(TangentRule::Pointwise);

UMBRA_OPERATOR("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor")
    .generated_out("hardswish_backward.out")
    .use(pointwise<HardswishBackward, 2>(Promotion::Default))
    .gradient("grad_output", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return hardswish_backward(grad, self); })
    .gradient("self", {"grad", "grad_output", "self"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
                Tensor bent = self.gt(-3).logical_and(self.lt(3));
                return where(bent, grad.mul(grad_output).div(3), 0);
              })
    .tangent(TangentRule::Pointwise);

}  // namespace
}  // namespace umbra::ops
