// Powers, reciprocals, absolute values and signs.
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/exp_log.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

using functors::Power;

TensorSpec power_spec(const Tensor& base, const Scalar& exponent) {
  // The number has a say in the type, none in the layout.
  DType type = pointwise_types({&base, &number_of_type(exponent.dtype())}, Promotion::Default).result;
  TensorSpec spec = pointwise_spec({&base}, type);
  bool integers = is_integral(base.dtype(), true) && exponent.is_integral(true) && !exponent.is_symbolic();
  check(!integers || exponent.to_int() >= 0, "Integers to negative integer powers are not allowed.");
  return spec;
}

// Small whole and half exponents have kernels of their own.
void power_kernel(const Tensor& out, const Tensor& base, const Scalar& exponent) {
  Tensor number = wrapped_number(exponent);
  DType compute = pointwise_types({&base, &number}, Promotion::Default).compute;
  bool fractional = is_floating(compute) || is_complex(compute);
  if (!fractional || item_size(compute) < 4) kernels::check_fits(exponent, compute);
  if (exponent.equals(0)) kernels::fill(out, 1);
  else if (exponent.equals(1)) kernels::copy(out, base);
  else if (exponent.equals(2)) kernels::pointwise(functors::Square{}, out, {&base}, compute);
  else if (exponent.equals(3)) kernels::pointwise(functors::Cube{}, out, {&base}, compute);
  else if (fractional && exponent.equals(0.5)) kernels::pointwise(functors::Sqrt{}, out, {&base}, compute);
  else if (fractional && exponent.equals(-0.5)) kernels::pointwise(functors::Rsqrt{}, out, {&base}, compute);
  else if (fractional && exponent.equals(-1)) kernels::pointwise(functors::Reciprocal{}, out, {&base}, compute);
  else if (fractional && exponent.equals(-2)) kernels::pointwise(functors::InverseSquare{}, out, {&base}, compute);
  else kernels::pointwise(Power{}, out, {&base, &number}, compute);
}

Scalar minus_one(const Scalar& s) { return s.is_complex() ? Scalar(s.to_complex() - 1.0) : Scalar(s.to_double() - 1); }
/// A negative number has a logarithm where the powers are complex.
Scalar logarithm(const Scalar& s, bool complex) {
  return complex || s.is_complex() ? Scalar(std::log(s.to_complex())) : Scalar(std::log(s.to_double()));
}

// Exponents at which 0 to their power is flat: there the logarithm of the base is not asked for.
Tensor at_least_zero(const Tensor& exponent) {
  if (!exponent.is_complex()) return exponent.ge(0);
  return imag(exponent).eq(0).logical_and(real(exponent).ge(0));
}

UMBRA_OPERATOR("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
    .inplace("pow_.Scalar")
    .out("pow.Tensor_Scalar_out")
    .meta(power_spec)
    .cpu(power_kernel)
    .elementwise()
    .sparse(sparse::raise_to)
    .gradient("self", {"grad", "self", "exponent"},
              [](const Tensor& grad, const Tensor& self, const Scalar& exponent) {
                if (exponent.equals(0)) return zeros_like(grad);
                Scalar factor = exponent.is_complex() ? exponent : Scalar(exponent.to_double());
                return grad.mul(self.pow(minus_one(exponent)).mul(factor).conj());
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
    .inplace("pow_.Tensor")
    .out("pow.Tensor_Tensor_out")
    .use(pointwise<Power, 2>(Promotion::Default))
    .gradient("self", {"grad", "self", "exponent"},
              [](const Tensor& grad, const Tensor& self, const Tensor& exponent) {
                Tensor slope = exponent.mul(self.pow(exponent.sub(1)));
                Tensor elsewhere = grad.mul(slope.conj()), nothing = zeros_like(slope);
                return where(exponent.eq(0), nothing, elsewhere);
              })
    .gradient("exponent", {"grad", "self", "exponent", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result) {
                Tensor flat = self.eq(0).logical_and(at_least_zero(exponent));
                Tensor base = exponent.is_complex() && !self.is_complex() ? self.to(result.dtype()) : self;
                Tensor slope = result.mul(base.log()).conj();
                return grad.mul(where(flat, zeros_like(slope), slope));
              })
    .tangent(TangentRule::Pointwise)
    .node("PowBackward1")
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("pow.Scalar(Scalar self, Tensor exponent) -> Tensor")
    .out("pow.Scalar_out")
    .use(pointwise<Power, 2>(Promotion::Default))
    .meta([](const Scalar& self, const Tensor& exponent) {
      DType type = pointwise_types({&number_of_type(self.dtype()), &exponent}, Promotion::Default).result;
      return TensorSpec(exponent.sym_sizes(), type, exponent.device());
    })
    .gradient("exponent", {"grad", "self", "exponent", "result"},
              [](const Tensor& grad, const Scalar& self, const Tensor& exponent, const Tensor& result) {
                Tensor slope = result.mul(logarithm(self, exponent.is_complex())).conj();
                if (self.equals(0)) slope = where(at_least_zero(exponent), zeros_like(slope), slope);
                return grad.mul(slope);
              })
    .tangent(TangentRule::Pointwise)
    .node("PowBackward2")
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("square(Tensor self) -> Tensor")
    .out("square.out")
    .composite([](const Tensor& self) { return self.pow(2); })
    .use(out_parts([](const Tensor& self, const Tensor& out) { return pow_out(out, self, 2); }))
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("square_(Tensor(a!) self) -> Tensor(a!)")
    .composite([](const Tensor& self) { return self.pow_(2); })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("reciprocal(Tensor self) -> Tensor")
    .inplace("reciprocal_")
    .out("reciprocal.out")
    .use(pointwise<functors::Reciprocal, 1>(Promotion::IntToFloat))
    .gradient("self", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.neg().mul(result.mul(result).conj()); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("abs(Tensor self) -> Tensor")
    .inplace("abs_")
    .out("abs.out")
    .use(out_asks("abs.out",
                  [](const Tensor& self, const Tensor& out) {
                    bool computed_there = self.is_complex() && out.is_complex() && !out.is_meta();
                    check(!computed_there || self.dtype() == out.dtype(), "Found dtype ", kernel_name(out.dtype()),
                          " but expected ", kernel_name(self.dtype()));
                  }))
    .use(pointwise<functors::Absolute, 1>(Promotion::ComplexToReal))
    .meta([](const Tensor& self) {  // real numbers have a place like theirs before complex ones are looked at
      return self.is_complex() ? spec_like(self, real_type(self.dtype())) : pointwise_spec({&self}, self.dtype());
    })
    .on_inplace([](OperatorBuilder& variant) {
      variant.meta([](const Tensor& self) {
        check(!self.is_complex(), "In-place abs is not supported for complex tensors.");
        return TensorSpec();
      });
    })
    .gradient("self", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.mul(self.sgn()); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("sign(Tensor self) -> Tensor")
    .inplace("sign_")
    .out("sign.out")
    .use(pointwise<functors::Sign, 1>(Promotion::Default))
    .meta([](const Tensor& self) {
      check<NotImplementedError>(!self.is_complex() || only_metadata_is_asked(),
                                 "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                 "torch.sgn instead.");
      return pointwise_spec({&self}, Promotion::Default);
    })
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("sgn(Tensor self) -> Tensor")
    .inplace("sgn_")
    .out("sgn.out")
    .use(pointwise<functors::Sgn, 1>(Promotion::Default))
    .gradient("self", {"grad", "self", "result"},
              [](const Tensor& grad, const Tensor& self, const Tensor& result) {
                if (!self.is_complex()) return zeros_like(grad);
                // What of the gradient points along the number changes its length only.
                Tensor length = self.abs(), along = real(grad.div(self)).mul(result);
                return grad.div(length).sub(along).masked_fill(length.eq(0), 0);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise})
    .use(sparse::OnValues{});

UMBRA_OPERATOR("positive(Tensor(a) self) -> Tensor(a)")
    .composite([](const Tensor& self) {
      check<NotImplementedError>(self.dtype() != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
      return self;
    })
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
