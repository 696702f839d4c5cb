// Further functions of two inputs: fmax, fmin, copysign, hypot, heaviside, gcd, lcm, xlogy, logaddexp, ldexp,
// float_power, isclose.
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/exp_log.h"
#include "ops/common/kernel_type.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

using namespace functors;

// ---- the larger and the smaller, NaN left out ----

template <class Functor> TensorSpec real_spec(const Tensor& self, const Tensor& other) {
  std::string_view kernel = Functor::name;  // "fmax_cpu"
  check<TypeError>((!self.is_complex() && !other.is_complex()) || only_metadata_is_asked(),
                   kernel.substr(0, kernel.find('_')), " not implemented for complex tensors.");
  return pointwise_spec({&self, &other}, Promotion::Default);
}
/// Equal numbers share the gradient.
Tensor shared(const Tensor& grad, const Tensor& self, const Tensor& other) {
  Tensor share = grad.div(2);
  return where(self.eq(other), share, grad);
}

UMBRA_OPERATOR("fmax(Tensor self, Tensor other) -> Tensor")
    .out("fmax.out")
    .use(pointwise<Fmax, 2>(Promotion::Default))
    .meta(real_spec<Fmax>)
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return shared(grad, self, other).masked_fill(self.ge(other).logical_or(other.isnan()).logical_not(), 0);
              })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return shared(grad, self, other).masked_fill(self.gt(other).logical_or(other.isnan()), 0);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("fmin(Tensor self, Tensor other) -> Tensor")
    .out("fmin.out")
    .use(pointwise<Fmin, 2>(Promotion::Default))
    .meta(real_spec<Fmin>)
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return shared(grad, self, other).masked_fill(self.le(other).logical_or(other.isnan()).logical_not(), 0);
              })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return shared(grad, self, other).masked_fill(self.lt(other).logical_or(other.isnan()), 0);
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- signs and lengths ----

Tensor copysign_self(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return grad.mul(result.div(self).masked_fill(self.eq(0), 0));
}

UMBRA_OPERATOR("copysign.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("copysign_.Tensor")
    .out("copysign.out")
    .use(pointwise<Copysign, 2>(Promotion::IntToFloat))
    .meta([](const Tensor& self, const Tensor& other) {
      check(!only_metadata_is_asked() || self.device() == other.device(),
            "Expected divisor (b) to be on the same device (", self.device(), ") as dividend (a), but it is found on ",
            other.device(), "!");
      return pointwise_spec({&self, &other}, Promotion::IntToFloat);
    })
    .gradient("self", {"grad", "self", "result"}, copysign_self)
    .gradient("other", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("copysign.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("copysign_.Scalar")
    .out("copysign.Scalar_out")
    .use(pointwise<Copysign, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "result"}, copysign_self)
    .tangent(TangentRule::Pointwise)
    .node("CopysignBackward1")
    .tags({Tag::Pointwise});

Tensor hypot_side(const Tensor& grad, const Tensor& side, const Tensor& result) { return grad.mul(side).div(result); }

UMBRA_OPERATOR("hypot(Tensor self, Tensor other) -> Tensor")
    .inplace("hypot_")
    .out("hypot.out")
    .use(pointwise<Hypot, 2>(Promotion::Default))
    .gradient("self", {"grad", "self", "result"}, hypot_side)
    .gradient("other", {"grad", "other", "result"}, hypot_side)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("heaviside(Tensor self, Tensor values) -> Tensor")
    .inplace("heaviside_")
    .out("heaviside.out")
    .use(pointwise<Heaviside, 2>(Promotion::Default))
    .use(out_asks("heaviside.out",
                  [](const Tensor& self, const Tensor& values, const Tensor& out) {
                    check<NotImplementedError>(!self.is_complex() && !values.is_complex() && !out.is_complex(),
                                               "heaviside is not yet implemented for complex tensors.");
                    check(self.dtype() == values.dtype() && self.dtype() == out.dtype(),
                          "heaviside is not yet implemented for tensors with different dtypes.");
                  }))
    .meta([](const Tensor& self, const Tensor& values) {
      if (only_metadata_is_asked()) {  // what has data is compared first
        DType type = pointwise_types({&self, &values}, Promotion::Default).compute;
        if (umbra::is_complex(type) && !self.is_meta()) kernels::unsupported_dtype("lt_cpu", type);
        return pointwise_spec({&self, &values}, Promotion::Default);
      }
      check<NotImplementedError>(!self.is_complex() && !values.is_complex(),
                                 "heaviside is not yet implemented for complex tensors.");
      check(self.dtype() == values.dtype(), "heaviside is not yet implemented for tensors with different dtypes.");
      return pointwise_spec({&self, &values}, Promotion::Default);
    })
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("gcd(Tensor self, Tensor other) -> Tensor")
    .inplace("gcd_")
    .out("gcd.out")
    .use(pointwise<Gcd, 2>(Promotion::Default))
    .not_differentiable()
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("lcm(Tensor self, Tensor other) -> Tensor")
    .inplace("lcm_")
    .out("lcm.out")
    .use(pointwise<Lcm, 2>(Promotion::Default))
    .not_differentiable()
    .tags({Tag::Pointwise});

// ---- logarithms ----

UMBRA_OPERATOR("xlogy.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("xlogy_.Tensor")
    .out("xlogy.OutTensor")
    .use(pointwise<Xlogy, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return xlogy(grad, other).masked_fill(self.eq(0).logical_and(other.le(0)), 0);
              })
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) { return grad.mul(self).div(other); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor")
    .out("xlogy.OutScalar_Self")
    .use(pointwise<Xlogy, 2>(Promotion::IntToFloat))
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Scalar& self, const Tensor& other) { return grad.mul(self).div(other); })
    .tangent(TangentRule::Pointwise)
    .node("XlogyBackward1")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor")
    .inplace("xlogy_.Scalar_Other")
    .out("xlogy.OutScalar_Other")
    .use(pointwise<Xlogy, 2>(Promotion::IntToFloat))
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Scalar& other) {
                Tensor slope = xlogy(grad, other);
                return other.to_double() > 0 ? slope : slope.masked_fill(self.eq(0), 0);
              })
    .tangent(TangentRule::Pointwise)
    .node("XlogyBackward2")
    .tags({Tag::Pointwise});

// exp(self) as a part of the sum.
Tensor natural_share(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return grad.div(other.sub(self).exp().add(1).conj());
}
Tensor binary_share(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return grad.div(pow(2, other.sub(self)).add(1));
}

/// The meta device has no kernel that would refuse a type; what it is put together of does.
TensorSpec sum_of_powers_spec(const char* name, const Tensor& self, const Tensor& other, bool complex) {
  TensorSpec spec = pointwise_spec({&self, &other}, Promotion::Default);
  if (!only_metadata_is_asked()) return spec;
  check(complex || !umbra::is_complex(spec.dtype), name, " doesn't support complex dtypes");
  check<NotImplementedError>(spec.dtype != DType::Bool,
                             "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or ",
                             "`logical_xor()` operator instead.");
  return spec;
}

UMBRA_OPERATOR("logaddexp(Tensor self, Tensor other) -> Tensor")
    .out("logaddexp.out")
    .use(pointwise<LogAddExp, 2>(Promotion::Default))
    .meta([](const Tensor& self, const Tensor& other) { return sum_of_powers_spec("logaddexp", self, other, true); })
    .gradient("self", {"grad", "self", "other"}, natural_share)
    .gradient("other", {"grad", "other", "self"}, natural_share)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("logaddexp2(Tensor self, Tensor other) -> Tensor")
    .out("logaddexp2.out")
    .use(pointwise<LogAddExp2, 2>(Promotion::Default))
    .meta([](const Tensor& self, const Tensor& other) { return sum_of_powers_spec("logaddexp2", self, other, false); })
    .gradient("self", {"grad", "self", "other"}, binary_share)
    .gradient("other", {"grad", "other", "self"}, binary_share)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- powers ----

/// Floating numbers are scaled by whole exponents, of 32 bits, without computing the power.
bool scales(const Tensor& self, const Tensor& other) {
  if (!is_floating(self.dtype()) || !is_integral(other.dtype(), true)) return false;
  check_kernel_type(!is_float8(self.dtype()), "ldexp_cpu", self);
  check_kernel_type(other.dtype() != DType::Bool && !is_wide_unsigned(other.dtype()), "ldexp_cpu_exp", other);
  return true;
}
/// 2 ** other; whole exponents of complex numbers take on their type.
Tensor two_to(const Tensor& self, const Tensor& other) {
  bool whole = is_integral(other.dtype(), true);
  return pow(2.0, self.is_complex() && whole ? other.to(self.dtype()) : other);
}
Tensor scaled_by_power(const Tensor& self, const Tensor& other) {
  if (!scales(self, other)) return self.mul(two_to(self, other));
  if (!has_elements(self) || !has_elements(other)) return self.mul(other.to(self.dtype()));
  DType compute = self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor exponent = other.to(DType::Int32).to(compute);
  TensorSpec spec = pointwise_spec({&self, &other}, self.dtype());
  Tensor out = empty_strided(spec.sizes, spec.strides, {.dtype = self.dtype()});
  kernels::pointwise(functors::ScaleByPower{}, out, {&self, &exponent}, compute);
  return out;
}

UMBRA_OPERATOR("ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
    .out("ldexp.out")
    .all_backends(scaled_by_power)
    .elementwise()
    .gradient("self", {"grad", "other"},
              [](const Tensor& grad, const Tensor& other) { return grad.mul(pow(2.0, other).conj()); })
    .gradient("other", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) { return grad.mul(result.conj()).mul(M_LN2); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .composite([](const Tensor& self, const Tensor& other) {
      check(!is_integral(self.dtype(), true), "ldexp can't be cast to the desired output type ",
            kernel_name(self.dtype()));
      return scales(self, other) ? self.copy_(ldexp(self, other)) : self.mul_(two_to(self, other));
    })
    .tags({Tag::Pointwise});

DType widest(bool complex_numbers) { return complex_numbers ? DType::Complex128 : DType::Float64; }

/// The type that a power is computed in, which is its output's.
DType float_power_type(bool complex, const Tensor& out) {
  DType wanted = widest(complex);
  check(out.dtype() == wanted, "the output given to float_power has dtype ", kernel_name(out.dtype()),
        " but the operation's result requires dtype ", kernel_name(wanted));
  return wanted;
}

UMBRA_OPERATOR("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
    .out("float_power.Tensor_Tensor_out")
    .composite([](const Tensor& self, const Tensor& exponent) {
      DType dtype = widest(self.is_complex() || exponent.is_complex());
      return self.to(dtype).pow(exponent.to(dtype));
    })
    .use(out_parts([](const Tensor& self, const Tensor& exponent, const Tensor& out) {
      DType dtype = float_power_type(self.is_complex() || exponent.is_complex(), out);
      Tensor base = self.to(dtype);
      return pow_out(out, base, exponent.to(dtype));
    }))
    .tags({Tag::Pointwise, Tag::ExactOut});
UMBRA_OPERATOR("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
    .out("float_power.Tensor_Scalar_out")
    .composite([](const Tensor& self, const Scalar& exponent) {
      return self.to(widest(self.is_complex() || exponent.is_complex())).pow(exponent);
    })
    .use(out_parts([](const Tensor& self, const Scalar& exponent, const Tensor& out) {
      return pow_out(out, self.to(float_power_type(self.is_complex() || exponent.is_complex(), out)), exponent);
    }))
    .tags({Tag::Pointwise, Tag::ExactOut});
UMBRA_OPERATOR("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor")
    .out("float_power.Scalar_out")
    .composite([](const Scalar& self, const Tensor& exponent) {
      return pow(self, exponent.to(widest(self.is_complex() || exponent.is_complex())));
    })
    .use(out_parts([](const Scalar& self, const Tensor& exponent, const Tensor& out) {
      return pow_out(out, self, exponent.to(float_power_type(self.is_complex() || exponent.is_complex(), out)));
    }))
    .tags({Tag::Pointwise, Tag::ExactOut});

template <class Exponent> Tensor float_power_in_place(const Tensor& self, const Exponent& exponent) {
  DType wanted = widest(self.is_complex() || exponent.is_complex());
  check(self.dtype() == wanted, "the base given to float_power_ has dtype ", kernel_name(self.dtype()),
        " but the operation's result requires dtype ", kernel_name(wanted));
  if constexpr (std::is_same_v<Exponent, Tensor>) return self.pow_(exponent.to(wanted));
  else return self.pow_(exponent);
}
UMBRA_OPERATOR("float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)")
    .composite(float_power_in_place<Tensor>)
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)")
    .composite(float_power_in_place<Scalar>)
    .tags({Tag::Pointwise});

// ---- closeness ----

UMBRA_OPERATOR("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
    .composite([](const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
      check(self.dtype() == other.dtype(), kernel_name(self.dtype()), " did not match ", kernel_name(other.dtype()));
      check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", number_text(rtol));
      check(atol >= 0, "atol must be greater than or equal to zero, but got ", number_text(atol));
      Tensor close = self.eq(other);
      bool fractional = self.is_floating_point() || self.is_complex();
      if (equal_nan && fractional) {
        Tensor neither = self.isnan();
        close.bitwise_or_(neither.bitwise_and(other.isnan()));
      }
      if (rtol == 0 && atol == 0) return close;
      Tensor a = self.dtype() == DType::Bool ? self.to(default_dtype()) : self;
      Tensor b = fractional ? other : other.to(default_dtype());
      Tensor allowed = b.mul(rtol).abs().add(atol), actual = a.sub(b).abs(), finite = actual.isfinite();
      return close.bitwise_or_(finite.bitwise_and_(actual.le(allowed)));
    });

}  // namespace
}  // namespace umbra::ops
