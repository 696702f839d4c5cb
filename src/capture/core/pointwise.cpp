// Arithmetic, choices and special functions by add, mul, where and their like.
#include <cmath>
#include <limits>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

using MaybeScalar = std::optional<Scalar>;
using MaybeNumber = std::optional<double>;

Tensor triangle(const Tensor& self, SymInt diagonal, bool lower) {
  TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  Tensor columns = arange(0, Scalar(self.sym_size(-1)), 1, options).unsqueeze(-2);
  Tensor rows = arange(0, Scalar(self.sym_size(-2)), 1, options).unsqueeze(-1);
  Tensor distance = columns.sub(rows), kept = lower ? distance.le(Scalar(diagonal)) : distance.ge(Scalar(diagonal));
  if (self.dtype() == DType::Bool) return kept.logical_and(self).contiguous();
  return where(kept, self, number_like(self, 0)).contiguous();
}

Tensor interpolated(const Tensor& start, const Tensor& end, const Tensor& weight) {
  Tensor far = weight.abs().ge(0.5);
  Tensor share = where(far, weight.sub(wrapped_number(1)), weight), from = where(far, end, start);
  return share.mul(end.sub(start)).add(from);
}

/// self * log(other), or what stands for the logarithm: 0 where self is, nan where other is.
template <class F> Tensor times_logarithm(const Tensor& factor, const Tensor& argument, F&& logarithm) {
  DType common = result_type(factor, argument);
  if (is_integral(common, true)) common = default_dtype();
  auto promoted = [&](const Tensor& x) { return x.dtype() == common ? x : x._to_copy({.dtype = common}); };
  Tensor self = promoted(factor), other = promoted(argument);
  Tensor zero = self.eq(0), product = self.mul(logarithm(other));
  product = number_where(zero, 0, product);
  return number_where(other.isnan(), kNan, product);
}

Tensor with_numbers_for(const Tensor& self, MaybeNumber nan, MaybeNumber above, MaybeNumber below) {
  if (is_integral(self.dtype(), true)) return self.clone();
  double largest = self.dtype() == DType::Float64    ? std::numeric_limits<double>::max()
                   : self.dtype() == DType::Float16  ? 65504
                   : self.dtype() == DType::BFloat16 ? 0x1.fep127
                                                     : std::numeric_limits<float>::max();
  Tensor out = number_where(self.isnan(), nan.value_or(0), self);
  out = number_where(self.eq(-kInfinity), below.value_or(-largest), out);
  return number_where(self.eq(kInfinity), above.value_or(largest), out);
}

Tensor sum_of_exponentials(const Tensor& self, const Tensor& other) {
  Tensor order = self.ge(other), high = where(order, self, other), low = where(order, other, self);
  Tensor bounded = self.abs().ne(kInfinity), finite = self.eq(self).mul(bounded);
  Tensor same = finite.logical_not().logical_and(self.eq(other));
  return where(same, self, high.add(low.sub(high).exp().log1p()));
}

Tensor sum_of_powers_of_two(const Tensor& self, const Tensor& other) {
  Tensor order = self.ge(other), high = where(order, self, other), low = where(order, other, self);
  Tensor endless = self.isinf(), same = endless.logical_and(self.eq(other));
  return where(same, self, high.add(low.sub(high).exp2().log1p() * (1 / std::log(2.0))));
}

Tensor log_of_normal(const Tensor& self) {
  Tensor t = self * M_SQRT1_2, low = self.lt(1.0);
  Tensor below = t.neg().special_erfcx().div(wrapped_number(2)).log();
  below = below.sub(t.mul(t));
  return where(low, below, t.erfc().neg().div(wrapped_number(2)).log1p());
}

Tensor multivariate_gamma(const Tensor& given, int64_t p) {
  Tensor self = as_real(given);
  TensorOptions options{.dtype = self.dtype(), .device = self.device(), .pin_memory = false};
  Tensor steps = arange(1 - p, 1, 1, options) * 0.5;
  Tensor sum = self.unsqueeze(-1).add(steps).lgamma().sum(IntArrayRef({-1}));
  return sum + static_cast<double>(p * (p - 1)) / 4 * std::log(M_PI);
}

Tensor entropy(const Tensor& given) {
  Tensor self = as_real(given);
  Tensor nan = self.isnan(), positive = self.gt(0), value = self.neg().mul(self.log());
  Tensor at_zero = self.eq(0), low = number_like(self, -kInfinity), zero = number_like(self, 0);
  return where(nan, self, where(positive, value, where(at_zero, zero, low)));
}

/// A known number as elements of that type are written.
Scalar as_element(const Scalar& value, DType dtype) {
  if (value.is_symbolic() || value.is_complex()) return value;
  if (is_floating(dtype)) return value.to_double();
  return dtype == DType::Bool ? Scalar(value.to_bool()) : value;
}

void add_logic(DecompositionTable& table) {
  table.add("aten::__and__.Tensor", [](const Tensor& a, const Tensor& b) { return a.bitwise_and(b); });
  table.add("aten::__or__.Tensor", [](const Tensor& a, const Tensor& b) { return a.bitwise_or(b); });
  table.add("aten::__xor__.Tensor", [](const Tensor& a, const Tensor& b) { return a.bitwise_xor(b); });
  table.add("aten::isposinf", [](const Tensor& x) { return x.eq(kInfinity); });
  table.add("aten::isneginf", [](const Tensor& x) { return x.eq(-kInfinity); });
  table.add("aten::masked_fill.Scalar", [](const Tensor& self, const Tensor& mask, const Scalar& value) {
    return number_where(mask, as_element(value, self.dtype()), self).contiguous();
  });
  table.add("aten::masked_fill.Tensor", [](const Tensor& self, const Tensor& mask, const Tensor& value) {
    Tensor own = value.dtype() == self.dtype() ? value : value._to_copy({.dtype = self.dtype()});
    return where(mask, own, self).contiguous();
  });
  table.add("aten::tril", [](const Tensor& self, SymInt diagonal) { return triangle(self, diagonal, true); });
  table.add("aten::triu", [](const Tensor& self, SymInt diagonal) { return triangle(self, diagonal, false); });
  table.add("aten::clamp_min", [](const Tensor& self, const Scalar& low) { return self.clamp(low); });
  table.add("aten::clamp_max", [](const Tensor& self, const Scalar& high) { return self.clamp(std::nullopt, high); });
  table.add("aten::clamp_min.Tensor", [](const Tensor& self, const Tensor& low) { return self.clamp(low); });
  table.add("aten::clamp_max.Tensor",
            [](const Tensor& self, const Tensor& high) { return self.clamp(Tensor(), high); });
  table.add("aten::nan_to_num", with_numbers_for);
  table.add("aten::heaviside", [](const Tensor& self, const Tensor& values) {
    Tensor zero = self.eq(0), negative = self.lt(0).logical_or(self.isnan());
    TensorOptions whole{.dtype = DType::Int64, .layout = Layout::Strided, .device = self.device()};
    Tensor one = scalar_tensor(1, whole), none = scalar_tensor(0, whole);
    Tensor step = where(zero, values, where(negative, none, one));
    return step.dtype() == self.dtype() ? step : step._to_copy({.dtype = self.dtype()});
  });
}

void add_arithmetic(DecompositionTable& table) {
  table.add("aten::addcmul", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
    return self + a * value * b;
  });
  table.add("aten::addcdiv", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
    return self + a * value / b;
  });
  table.add("aten::lerp.Scalar", [](const Tensor& start, const Tensor& end, const Scalar& weight) {
    TensorOptions options{
        .dtype = start.dtype(), .layout = Layout::Strided, .device = start.device(), .pin_memory = false};
    return interpolated(start, end, full(SymIntArrayRef(), weight, options));
  });
  table.add("aten::lerp.Tensor", interpolated);
  table.add("aten::rsub.Tensor",
            [](const Tensor& self, const Tensor& other, const Scalar& alpha) { return other.sub(self, alpha); });
  table.add("aten::rsub.Scalar", [](const Tensor& self, const Scalar& other, const Scalar& alpha) {
    return wrapped_number(other).sub(self, alpha);
  });
  table.add("aten::square", [](const Tensor& x) { return x.pow(2); });
  table.add("aten::sgn", [](const Tensor& x) {
    if (x.is_complex()) return where(x.abs().eq(0), number_like(x, 0), x / x.abs());
    return x.sign();
  });
  table.add("aten::frac", [](const Tensor& x) { return x.sub(x.trunc()); });
  table.add("aten::deg2rad", [](const Tensor& x) { return x * (M_PI / 180); });
  table.add("aten::rad2deg", [](const Tensor& x) { return x * (180 / M_PI); });
  table.add("aten::floor_divide",
            [](const Tensor& a, const Tensor& b) { return a.div(b, std::optional<std::string>("floor")); });
}

void add_special(DecompositionTable& table) {
  table.add("aten::xlogy.Tensor", [](const Tensor& self, const Tensor& other) {
    return times_logarithm(self, other, [](const Tensor& x) { return x.log(); });
  });
  table.add("aten::special_xlog1py", [](const Tensor& self, const Tensor& other) {
    return times_logarithm(self, other, [](const Tensor& x) { return x.log1p(); });
  });
  table.add("aten::sinc", [](const Tensor& self) {
    Tensor angle = self * M_PI, zero = angle.eq(0), ratio = angle.sin().div(angle);
    return number_where(zero, 1, ratio);
  });
  table.add("aten::logaddexp", sum_of_exponentials);
  table.add("aten::logaddexp2", sum_of_powers_of_two);
  table.add("aten::special_log_ndtr", log_of_normal);
  table.add("aten::mvlgamma", multivariate_gamma);
  table.add("aten::special_entr", entropy);
  table.add("aten::logit", [](const Tensor& given, MaybeNumber eps) {
    Tensor self = as_real(given);
    double margin = eps.value_or(-1);
    Tensor low = self.lt(margin), high = self.gt(1 - margin);
    Tensor x = number_where(low, margin, number_where(high, 1 - margin, self));
    return x.div(1 - x).log();
  });
}

}  // namespace

void add_pointwise(DecompositionTable& table) {
  add_logic(table);
  add_arithmetic(table);
  add_special(table);
}

}  // namespace umbra::core_table
