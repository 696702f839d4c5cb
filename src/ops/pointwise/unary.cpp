// Further functions of one input: angle, sinc, degrees and radians, logit, signbit, infinities.
#include <cmath>

#include "dispatch/layers.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/comparison.h"
#include "kernels/functors/exp_log.h"
#include "kernels/functors/trigonometry.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"
#include "umbra/core/grad_mode.h"
#include "umbra/dispatch/writes.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("angle(Tensor self) -> Tensor")
    .out("angle.out")
    .use(out_asks("angle.out",
                  [](const Tensor& self, const Tensor& out) {
                    check<NotImplementedError>(!self.is_meta() || self.is_fake() || out.is_meta(),
                                               "Could not run 'aten::_resize_output_' with arguments from the 'CPU' "
                                               "backend.");
                  }))
    .meta([](const Tensor& self) {
      DType dtype = is_integral(self.dtype(), true) ? default_dtype() : real_type(self.dtype());
      // PyTorch writes those of complex numbers, and on the meta device outputs, row by row.
      bool meta = self.is_meta() && !self.is_fake();
      if (meta ? outputs_are_given() : self.is_complex() && !self.is_fake())
        return TensorSpec(self.sym_sizes(), dtype, self.device());
      return pointwise_spec({&self}, dtype);
    })
    .cpu([](const Tensor& out, const Tensor& self) {
      kernels::pointwise(functors::Angle{}, out, {&self}, is_integral(self.dtype(), true) ? out.dtype() : self.dtype());
    })
    .elementwise()
    .use(sparse::OnValues{})
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                if (!self.is_complex()) return zeros_like(grad);
                // A quarter turn further, divided by the length twice.
                Tensor length = self.abs(), turned = self.mul(std::complex<double>(0, 1)).div(length.mul(length));
                return grad.mul(turned.masked_fill(length.eq(0), 0));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("sinc(Tensor self) -> Tensor")
    .inplace("sinc_")
    .out("sinc.out")
    .use(pointwise<functors::Sinc, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                Tensor x = self.mul(M_PI), area = self.mul(self).mul(M_PI);
                Tensor slope = x.mul(x.cos()).sub(x.sin()).div(area).conj();
                return grad.mul(slope.masked_fill(area.eq(0), 0));
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

/// An output is looked at as it was given, before it gets another size.
void check_apart(const Tensor&, const Tensor& out) { check_no_overlap(get_operator("aten::mul.Tensor"), out); }

/// Times a number, laid out as the tensor is.
Tensor scaled_like(const Tensor& self, double factor) {
  DType dtype = is_integral(self.dtype(), true) ? default_dtype() : self.dtype();
  return mul_out(empty_like(self, {.dtype = dtype}), self, wrapped_number(factor));
}

void check_not_complex(const char* name, const Tensor& self) {
  if (self.is_meta() && !self.is_fake()) check(!self.is_complex(), name, " is not supported for complex tensors.");
  check<NotImplementedError>(!self.is_complex(), name, " is not supported for complex tensors.");
}

UMBRA_OPERATOR("deg2rad(Tensor self) -> Tensor")
    .inplace("deg2rad_")
    .out("deg2rad.out")
    .use(out_asks("deg2rad.out", check_apart))
    .all_backends([](const Tensor& self) {
      check_not_complex("deg2rad", self);
      return scaled_like(self, M_PI / 180);
    })
    .use(out_parts([](const Tensor& self, const Tensor& out) {
      check_not_complex("deg2rad", self);
      return mul_out(out, self, wrapped_number(M_PI / 180));
    }))
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.mul(M_PI / 180); })
    .linear()
    .tags({Tag::Pointwise})
    .use(BatchInPlace{})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("rad2deg(Tensor self) -> Tensor")
    .inplace("rad2deg_")
    .out("rad2deg.out")
    .use(out_asks("rad2deg.out", check_apart))
    .all_backends([](const Tensor& self) {
      check_not_complex("rad2deg", self);
      return scaled_like(self, 180 / M_PI);
    })
    .use(out_parts([](const Tensor& self, const Tensor& out) {
      check_not_complex("rad2deg", self);
      return mul_out(out, self, wrapped_number(180 / M_PI));
    }))
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.mul(180 / M_PI); })
    .linear()
    .tags({Tag::Pointwise})
    .use(BatchInPlace{})
    .use(sparse::OnValues{});

using Margin = std::optional<double>;

UMBRA_OPERATOR("logit(Tensor self, float? eps=None) -> Tensor")
    .inplace("logit_")
    .out("logit.out")
    .use(pointwise<functors::Logit, 1>(Promotion::IntToFloat,
                                       [](Margin eps) { return functors::Logit{.margin = eps.value_or(-1)}; }))
    .gradient("self", {"grad", "self", "eps"},
              [](const Tensor& grad, const Tensor& self, Margin eps) {
                if (!is_grad_enabled()) return logit_backward(grad, self, eps);
                // Written out, since logit_backward has no gradient.
                Tensor slope = grad.div(self.mul(self.rsub(1)));
                double low = eps.value_or(0), outside = eps ? 0 : NAN;
                return where(self.ge(low).logical_and(self.le(1 - low)), slope, outside);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise})
    .use(NothingOnMeta{});

UMBRA_OPERATOR("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor")
    .out("logit_backward.grad_input", {"grad_input"})
    .use(pointwise<functors::LogitBackward, 2>(Promotion::Default,
                                               [](Margin eps) {
                                                 return functors::LogitBackward{.margin = eps.value_or(-1)};
                                               }))
    .meta([](const Tensor& grad, const Tensor& self, Margin) {
      TensorSpec spec = pointwise_spec({&grad, &self}, Promotion::Default);
      bool read = has_elements(grad) && has_elements(self);
      if (read && !is_floating(spec.dtype)) kernels::unsupported_dtype("logit_backward_cpu", spec.dtype);
      return spec;
    })
    .tags({Tag::Pointwise});

/// A question about real numbers only.
template <class Functor> void real_question(OperatorBuilder& builder) {
  static const std::string variant = builder.op().schema().name + ".out";
  builder.use(out_asks(variant.c_str(), [](const Tensor& self, const Tensor& out) {
    std::string_view kernel = Functor::name;
    if (self.is_complex()) return;  // which is refused below
    check(out.dtype() == DType::Bool, kernel.substr(0, kernel.find('_')), " does not support non-boolean outputs.");
  }));
  builder.use(pointwise<Functor, 1>(Promotion::ToBool))
      .meta([](const Tensor& self) {
        std::string_view kernel = Functor::name;  // "isposinf_cpu"
        kernel = kernel.substr(0, kernel.find('_'));
        if (kernel.starts_with("is")) check<TypeError>(!self.is_complex(), kernel, " does not support complex inputs.");
        check<NotImplementedError>(!self.is_complex(), kernel, " is not implemented for complex tensors.");
        return pointwise_spec({&self}, DType::Bool);
      })
      .not_differentiable()
      .tags({Tag::Pointwise, Tag::ExactOut});
}

UMBRA_OPERATOR("isposinf(Tensor self) -> Tensor")
    .out("isposinf.out")
    .use(real_question<functors::IsPositiveInfinity>)
    .use(sparse::OnValues{});
UMBRA_OPERATOR("isneginf(Tensor self) -> Tensor")
    .out("isneginf.out")
    .use(real_question<functors::IsNegativeInfinity>)
    .use(sparse::OnValues{});
UMBRA_OPERATOR("signbit(Tensor self) -> Tensor")
    .out("signbit.out")
    .use(real_question<functors::SignBit>)
    .use(sparse::OnValues{});

UMBRA_OPERATOR("isreal(Tensor self) -> Tensor").composite([](const Tensor& self) {
  if (self.is_complex()) return imag(self).eq(0);
  return ones_like(self, {.dtype = DType::Bool}, MemoryFormat::Preserve);
});

}  // namespace
}  // namespace umbra::ops
