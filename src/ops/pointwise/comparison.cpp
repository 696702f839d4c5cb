// Comparisons and logic: results are bool. In place they write 0 and 1 over their input, which cuts its history.
#include "kernels/functors/comparison.h"

#include "ops/pointwise/pointwise.h"

namespace umbra::ops {
namespace {

using namespace functors;

/// A comparison of two tensors; in place, the gradient of both is zero.
template <class Functor> void comparison(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::ToBool))
      .gradient("self", {"grad"}, zero_gradient)
      .gradient("other", {"grad"}, zero_gradient)
      .tangent(TangentRule::Pointwise)
      .tags({"core", "pointwise"});
}
/// With a number.
template <class Functor> void number_comparison(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::ToBool))
      .gradient("self", {"grad"}, zero_gradient)
      .tangent(TangentRule::Pointwise)
      .tags({"core", "pointwise"});
}
/// Has no gradient at all.
template <class Functor, size_t kArity> void logic(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, kArity>(Promotion::ToBool)).not_differentiable().tags({"core", "pointwise"});
}

UMBRA_OPERATOR("eq.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out("Tensor_out").use(comparison<Equal>);
UMBRA_OPERATOR("ne.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out("Tensor_out").use(comparison<NotEqual>);
UMBRA_OPERATOR("lt.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out("Tensor_out").use(comparison<Less>);
UMBRA_OPERATOR("le.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out("Tensor_out").use(comparison<LessEqual>);
UMBRA_OPERATOR("gt.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out("Tensor_out").use(comparison<Greater>);
UMBRA_OPERATOR("ge.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(comparison<GreaterEqual>);

UMBRA_OPERATOR("eq.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<Equal>);
UMBRA_OPERATOR("ne.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<NotEqual>);
UMBRA_OPERATOR("lt.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<Less>);
UMBRA_OPERATOR("le.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<LessEqual>);
UMBRA_OPERATOR("gt.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<Greater>);
UMBRA_OPERATOR("ge.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(number_comparison<GreaterEqual>);

UMBRA_OPERATOR("logical_and(Tensor self, Tensor other) -> Tensor").inplace().out().use(logic<LogicalAnd, 2>);
UMBRA_OPERATOR("logical_or(Tensor self, Tensor other) -> Tensor").inplace().out().use(logic<LogicalOr, 2>);
UMBRA_OPERATOR("logical_xor(Tensor self, Tensor other) -> Tensor").inplace().out().use(logic<LogicalXor, 2>);
UMBRA_OPERATOR("logical_not(Tensor self) -> Tensor").inplace().out().use(logic<LogicalNot, 1>);

UMBRA_OPERATOR("isnan(Tensor self) -> Tensor").out().use(logic<IsNan, 1>);
UMBRA_OPERATOR("isinf(Tensor self) -> Tensor").out().use(logic<IsInf, 1>);
UMBRA_OPERATOR("isfinite(Tensor self) -> Tensor")
    .use(pointwise<IsFinite, 1>(Promotion::ToBool))
    .not_differentiable()
    .tags({"pointwise"});

}  // namespace
}  // namespace umbra::ops
