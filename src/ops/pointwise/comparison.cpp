// Comparisons and logic: results are bool. In place they write 0 and 1 over their input, which cuts its history.
#include "kernels/functors/comparison.h"

#include "ops/common/needs_data.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

using namespace functors;

/// A comparison of two tensors; in place, the gradient of both is zero.
template <class Functor> void comparison(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::ToBool))
      .gradient("self", {"grad"}, zero_gradient)
      .gradient("other", {"grad"}, zero_gradient)
      .differentiable_outputs({false})
      .tangent(TangentRule::Pointwise)
      .tags({Tag::Core, Tag::Pointwise});
}
/// With a number.
template <class Functor> void number_comparison(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::ToBool))
      .gradient("self", {"grad"}, zero_gradient)
      .differentiable_outputs({false})
      .tangent(TangentRule::Pointwise)
      .tags({Tag::Core, Tag::Pointwise});
}
/// Has no gradient at all.
template <class Functor, size_t kArity> void logic(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, kArity>(Promotion::ToBool)).not_differentiable().tags({Tag::Core, Tag::Pointwise});
}

UMBRA_OPERATOR("eq.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("eq_.Tensor")
    .out("eq.Tensor_out")
    .use(comparison<Equal>)
    .node("EqBackward1");
UMBRA_OPERATOR("ne.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("ne_.Tensor")
    .out("ne.Tensor_out")
    .use(comparison<NotEqual>)
    .node("NeBackward1");
UMBRA_OPERATOR("lt.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("lt_.Tensor")
    .out("lt.Tensor_out")
    .use(comparison<Less>)
    .node("LtBackward1");
UMBRA_OPERATOR("le.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("le_.Tensor")
    .out("le.Tensor_out")
    .use(comparison<LessEqual>)
    .node("LeBackward1");
UMBRA_OPERATOR("gt.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("gt_.Tensor")
    .out("gt.Tensor_out")
    .use(comparison<Greater>)
    .node("GtBackward1");
UMBRA_OPERATOR("ge.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("ge_.Tensor")
    .out("ge.Tensor_out")
    .use(comparison<GreaterEqual>)
    .node("GeBackward1");

UMBRA_OPERATOR("eq.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("eq_.Scalar")
    .out("eq.Scalar_out")
    .use(number_comparison<Equal>);
UMBRA_OPERATOR("ne.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("ne_.Scalar")
    .out("ne.Scalar_out")
    .use(number_comparison<NotEqual>);
UMBRA_OPERATOR("lt.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("lt_.Scalar")
    .out("lt.Scalar_out")
    .use(number_comparison<Less>);
UMBRA_OPERATOR("le.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("le_.Scalar")
    .out("le.Scalar_out")
    .use(number_comparison<LessEqual>);
UMBRA_OPERATOR("gt.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("gt_.Scalar")
    .out("gt.Scalar_out")
    .use(number_comparison<Greater>);
UMBRA_OPERATOR("ge.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("ge_.Scalar")
    .out("ge.Scalar_out")
    .use(number_comparison<GreaterEqual>);

UMBRA_OPERATOR("logical_and(Tensor self, Tensor other) -> Tensor")
    .inplace("logical_and_")
    .use(InPlaceOnMeta{AsksInPlace::Nothing})
    .out("logical_and.out")
    .use(logic<LogicalAnd, 2>);
UMBRA_OPERATOR("logical_or(Tensor self, Tensor other) -> Tensor")
    .inplace("logical_or_")
    .use(InPlaceOnMeta{AsksInPlace::Nothing})
    .out("logical_or.out")
    .use(logic<LogicalOr, 2>);
UMBRA_OPERATOR("logical_xor(Tensor self, Tensor other) -> Tensor")
    .inplace("logical_xor_")
    .use(InPlaceOnMeta{AsksInPlace::Nothing})
    .out("logical_xor.out")
    .use(logic<LogicalXor, 2>);
UMBRA_OPERATOR("logical_not(Tensor self) -> Tensor")
    .inplace("logical_not_")
    .out("logical_not.out")
    .use(logic<LogicalNot, 1>);

UMBRA_OPERATOR("isnan(Tensor self) -> Tensor").generated_out("isnan.out").use(logic<IsNan, 1>).use(sparse::OnValues{});
/// Of integers the answer is known before they are looked at: it lies as they do.
TensorSpec question_spec(const Tensor& self) {
  return is_integral(self.dtype(), true) ? spec_like(self, DType::Bool) : pointwise_spec({&self}, DType::Bool);
}

UMBRA_OPERATOR("isinf(Tensor self) -> Tensor")
    .generated_out("isinf.out")
    .use(logic<IsInf, 1>)
    .meta([](const Tensor& self) {
      // Absolute values of what is contiguous are so in every dimension; those are compared with a number.
      bool dense = !self.is_complex() && self.is_contiguous() && !self.sym_numel().same(0);
      if (is_integral(self.dtype(), true) || dense) return question_spec(self);
      return pointwise_spec({&self, &number_of_type(DType::Float64)}, DType::Bool);
    })
    .use(sparse::OnValues{});
Tensor isfinite_parts(const Tensor& self) {
  if (is_integral(self.dtype(), true)) return ones_like(self, {.dtype = DType::Bool}, MemoryFormat::Preserve);
  if (self.is_complex()) {
    Tensor finite = isfinite(real(self));
    return finite.bitwise_and_(isfinite(imag(self)));
  }
  Tensor finite = self.abs().ne(INFINITY);
  return self.eq(self).mul(finite);
}
UMBRA_OPERATOR("isfinite(Tensor self) -> Tensor")
    .use(pointwise<IsFinite, 1>(Promotion::ToBool))
    .meta(question_spec)
    .composite(isfinite_parts)
    .not_differentiable()
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
