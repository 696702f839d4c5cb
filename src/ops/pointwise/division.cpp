// Quotients rounded to whole numbers, and what they leave.
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "kernels/functors/arithmetic.h"
#include "kernels/functors/rounding.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

using functors::DivideFloor;
using functors::DivideTrunc;
using functors::Fmod;
using functors::Remainder;
using RoundingMode = std::optional<std::string>;

// ---- div with a rounding mode ----

Promotion promotion_of(const RoundingMode& mode) {
  if (!mode) return Promotion::IntToFloat;
  bool known = *mode == "trunc" || *mode == "floor";
  check<ValueError>(known || !only_metadata_is_asked(),
                    "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found ", *mode, ".");
  check(known, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  return Promotion::Default;
}

TensorSpec div_spec(const Tensor& self, const Tensor& other, const RoundingMode& mode) {
  return pointwise_spec({&self, &other}, promotion_of(mode));
}

/// Narrow floats are divided in their own type, save by a single number: a quotient is rounded before it is made whole.
bool divides_in_steps(const Tensor& other, DType compute) {
  return is_reduced_floating(compute) && other.numel() != 1 && !other.impl()->is_wrapped_number();
}
void trunc_kernel(const Tensor& out, const Tensor& self, const Tensor& other, DType compute) {
  if (!divides_in_steps(other, compute)) return kernels::pointwise(DivideTrunc{}, out, {&self, &other}, compute);
  Tensor quotient = kernels::scratch(out.sizes(), compute);
  kernels::pointwise(functors::Divide{}, quotient, {&self, &other}, compute);
  kernels::pointwise(functors::Trunc{}, out, {&quotient}, compute);
}
void floor_kernel(const Tensor& out, const Tensor& self, const Tensor& other, DType compute) {
  if (!divides_in_steps(other, compute)) return kernels::pointwise(DivideFloor{}, out, {&self, &other}, compute);
  Tensor quotient = kernels::scratch(out.sizes(), compute), remainder = kernels::scratch(out.sizes(), compute);
  kernels::pointwise(functors::Divisible{}, quotient, {&self, &other}, compute);
  kernels::pointwise(functors::Divide{}, quotient, {&quotient, &other}, compute);
  kernels::pointwise(Fmod{}, remainder, {&self, &other}, compute);
  kernels::pointwise(functors::FloorOfQuotient{}, out, {&quotient, &remainder, &other}, compute);
}

void div_kernel(const Tensor& out, const Tensor& self, const Tensor& other, const RoundingMode& mode) {
  DType compute = pointwise_types({&self, &other}, promotion_of(mode)).compute;
  if (!mode) kernels::pointwise(functors::Divide{}, out, {&self, &other}, compute);
  else if (*mode == "trunc") trunc_kernel(out, self, other, compute);
  else floor_kernel(out, self, other, compute);
}

UMBRA_OPERATOR("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
    .inplace("div_.Tensor_mode")
    .out("div.out_mode")
    .meta(div_spec)
    .cpu(div_kernel)
    .elementwise()
    .sparse([](const Tensor& self, const Tensor& other, const RoundingMode& mode) {
      return sparse::divide_rounded(self, other, mode);
    })
    .gradient("self", {"grad", "other", "rounding_mode"},
              [](const Tensor& grad, const Tensor& other, const RoundingMode& mode) {
                return mode ? zeros_like(grad) : grad.div(other.conj());
              })
    .gradient("other", {"grad", "self", "other", "rounding_mode"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other, const RoundingMode& mode) {
                return mode ? zeros_like(grad) : grad.neg().mul(self.div(other).div(other).conj());
              })
    .tangent(TangentRule::Pointwise)
    .node("DivBackward2")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
    .inplace("div_.Scalar_mode")
    .generated_out("div.Scalar_mode_out")
    .meta([](const Tensor& self, const Scalar& other, const RoundingMode& mode) {
      return div_spec(self, number_of_type(other.dtype()), mode);
    })
    .cpu([](const Tensor& out, const Tensor& self, const Scalar& other, const RoundingMode& mode) {
      div_kernel(out, self, wrapped_number(other), mode);
    })
    .elementwise()
    .sparse([](const Tensor& self, const Scalar& other, const RoundingMode& mode) {
      return sparse::divide_rounded(self, wrapped_number(other), mode);
    })
    .gradient("self", {"grad", "other", "rounding_mode"},
              [](const Tensor& grad, const Scalar& other, const RoundingMode& mode) {
                return mode ? zeros_like(grad) : grad.div(conj(other));
              })
    .tangent(TangentRule::Pointwise)
    .node("DivBackward3")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

/// On the meta device no kernel refuses what has no quotient.
TensorSpec floor_spec(std::initializer_list<const Tensor*> inputs) {
  TensorSpec spec = pointwise_spec(inputs, Promotion::Default);
  check(!only_metadata_is_asked() || (!is_complex(spec.dtype) && spec.dtype != DType::Bool), spec.dtype,
        " not supported for floor_divide");
  return spec;
}

UMBRA_OPERATOR("floor_divide(Tensor self, Tensor other) -> Tensor")
    .inplace("floor_divide_.Tensor")
    .out("floor_divide.out")
    .use(pointwise<DivideFloor, 2>(Promotion::Default))
    .meta([](const Tensor& self, const Tensor& other) {
      return floor_spec({&self, &other});
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& other) {
      floor_kernel(out, self, other, pointwise_types({&self, &other}, Promotion::Default).compute);
    })
    .sparse([](const Tensor& self, const Tensor& other) { return sparse::divide_rounded(self, other, "floor"); })
    .tags({Tag::TakesNumbers});

UMBRA_OPERATOR("floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("floor_divide_.Scalar")
    .generated_out("floor_divide.Scalar_out")
    .use(pointwise<DivideFloor, 2>(Promotion::Default))
    .meta([](const Tensor& self, const Scalar& other) {
      return floor_spec({&self, &number_of_type(other.dtype())});
    })
    .sparse([](const Tensor& self, const Scalar& other) {
      return sparse::divide_rounded(self, wrapped_number(other), "floor");
    })
    .tags({Tag::TakesNumbers});

// ---- remainders ----

UMBRA_OPERATOR("remainder.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("remainder_.Tensor")
    .out("remainder.Tensor_out")
    .use(pointwise<Remainder, 2>(Promotion::Default))
    .gradient("self", {"grad"}, same_gradient)
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.neg().mul(self.div(other, "floor"));
              })
    .tangent(TangentRule::Pointwise)
    .node("RemainderBackward1")
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("remainder.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("remainder_.Scalar")
    .out("remainder.Scalar_out")
    .use(pointwise<Remainder, 2>(Promotion::Default))
    .gradient("self", {"grad"}, same_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("remainder.Scalar_Tensor_out")
    .use(pointwise<Remainder, 2>(Promotion::Default))
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("fmod.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("fmod_.Tensor")
    .out("fmod.Tensor_out")
    .use(pointwise<Fmod, 2>(Promotion::Default))
    .gradient("self", {"grad"}, same_gradient)
    .gradient("other", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) {
                return grad.neg().mul(self.div(other, "trunc"));
              })
    .tangent(TangentRule::Pointwise)
    .node("FmodBackward1")
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("fmod.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("fmod_.Scalar")
    .out("fmod.Scalar_out")
    .use(pointwise<Fmod, 2>(Promotion::Default))
    .gradient("self", {"grad"}, same_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
