// To whole numbers: integers stay what they are. And what is not finite to what is.
#include "kernels/functors/rounding.h"

#include <cmath>

#include "kernels/copy.h"
#include "kernels/fits.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

template <class Functor> void round_to_whole(const Tensor& out, const Tensor& self) {
  if (is_integral(self.dtype(), false)) kernels::copy(out, self);
  else kernels::pointwise(Functor{}, out, {&self});
}

template <class Functor> void rounding(OperatorBuilder& builder) {
  builder
      .meta([](const Tensor& self) {
        bool nearest = std::is_same_v<Functor, functors::Round>;
        std::string_view kernel = Functor::name;  // "floor_vml_cpu"
        check<NotImplementedError>(nearest || !self.is_complex() || only_metadata_is_asked(),
                                   kernel.substr(0, kernel.find('_')), " is not supported for complex inputs");
        return pointwise_spec({&self}, Promotion::Default);
      })
      .cpu(round_to_whole<Functor>)
      .elementwise()
      .gradient("self", {"grad"}, zero_gradient)
      .tangent(TangentRule::Pointwise)
      .tags({Tag::Core, Tag::Pointwise, Tag::ExactOut});
}

UMBRA_OPERATOR("floor(Tensor self) -> Tensor")
    .inplace("floor_")
    .out("floor.out")
    .use(rounding<functors::Floor>)
    .use(sparse::OnValues{});
UMBRA_OPERATOR("ceil(Tensor self) -> Tensor")
    .inplace("ceil_")
    .out("ceil.out")
    .use(rounding<functors::Ceil>)
    .use(sparse::OnValues{});
UMBRA_OPERATOR("round(Tensor self) -> Tensor")
    .inplace("round_")
    .out("round.out")
    .use(rounding<functors::Round>)
    .use(sparse::OnValues{});
UMBRA_OPERATOR("trunc(Tensor self) -> Tensor")
    .inplace("trunc_")
    .out("trunc.out")
    .use(rounding<functors::Trunc>)
    .use(sparse::OnValues{});

UMBRA_OPERATOR("round.decimals(Tensor self, *, int decimals) -> Tensor")
    .inplace("round_.decimals")
    .out("round.decimals_out")
    .meta([](const Tensor& self, int64_t) { return pointwise_spec({&self}, Promotion::Default); })
    .cpu([](const Tensor& out, const Tensor& self, int64_t decimals) {
      if (decimals == 0) return kernels::pointwise(functors::Round{}, out, {&self});
      kernels::pointwise(functors::RoundDecimals{.decimals = decimals}, out, {&self});
    })
    .elementwise()
    .gradient("self", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .node("RoundBackward1")
    .tags({Tag::Pointwise, Tag::ExactOut});

UMBRA_OPERATOR("frac(Tensor self) -> Tensor")
    .inplace("frac_")
    .out("frac.out")
    .use(pointwise<functors::Fraction, 1>(Promotion::Default))
    .gradient("self", {"grad"}, same_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise})
    .use(sparse::OnValues{});

using OptionalNumber = std::optional<double>;

UMBRA_OPERATOR("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
    .inplace("nan_to_num_")
    .out("nan_to_num.out")
    .use(out_asks("nan_to_num.out",
                  [](const Tensor& self, OptionalNumber, OptionalNumber, OptionalNumber, const Tensor& out) {
                    check(self.dtype() == out.dtype(), "nan_to_num: dtype of out: ", kernel_name(out.dtype()),
                          " should be same as input: ", kernel_name(self.dtype()));
                  }))
    .meta([](const Tensor& self, OptionalNumber, OptionalNumber, OptionalNumber) { return spec_like(self); })
    .cpu([](const Tensor& out, const Tensor& self, OptionalNumber nan, OptionalNumber positive,
            OptionalNumber negative) {
      if (is_integral(self.dtype(), true)) return kernels::copy(out, self);
      double largest = kernels::largest_number(real_type(self.dtype()));
      functors::NanToNum functor{
          .nan = nan.value_or(0), .positive = positive.value_or(largest), .negative = negative.value_or(-largest)};
      kernels::pointwise(functor, out, {&self});
    })
    .elementwise()
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) {
                return grad.mul(self.isinf().logical_or(self.isnan()).logical_not());
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise})
    .use(sparse::OnValues{});

}  // namespace
}  // namespace umbra::ops
