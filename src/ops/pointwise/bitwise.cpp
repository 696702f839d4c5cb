// Bit by bit: and, or, xor, not, shifts.
#include "kernels/functors/bitwise.h"

#include "ops/common/alias.h"
#include "ops/pointwise/pointwise.h"

namespace umbra::ops {
namespace {

using namespace functors;

template <class Functor> void bits(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::Default)).not_differentiable().tags({"pointwise"});
}
template <class Functor> void core_bits(OperatorBuilder& builder) { builder.use(bits<Functor>).tags({"core"}); }

UMBRA_OPERATOR("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(core_bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(core_bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").out().use(bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(core_bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(core_bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").out().use(bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(core_bits<BitwiseXor>);
UMBRA_OPERATOR("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(core_bits<BitwiseXor>);
UMBRA_OPERATOR("bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").out().use(bits<BitwiseXor>);

UMBRA_OPERATOR("bitwise_not(Tensor self) -> Tensor")
    .inplace()
    .out()
    .use(pointwise<BitwiseNot, 1>(Promotion::Default))
    .not_differentiable()
    .tags({"core", "pointwise"});

UMBRA_OPERATOR("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace()
    .out()
    .use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").out().use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(bits<RightShift>);
UMBRA_OPERATOR("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace()
    .out()
    .use(bits<RightShift>);
UMBRA_OPERATOR("bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").out().use(bits<RightShift>);

UMBRA_OPERATOR("__lshift__.Tensor(Tensor self, Tensor other) -> Tensor").out("Tensor_out").use(bits<LeftShift>);
UMBRA_OPERATOR("__lshift__.Scalar(Tensor self, Scalar other) -> Tensor").out().use(bits<LeftShift>);
UMBRA_OPERATOR("__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_left_shift_.Tensor"});
UMBRA_OPERATOR("__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_left_shift_.Tensor_Scalar"});
UMBRA_OPERATOR("__rshift__.Tensor(Tensor self, Tensor other) -> Tensor").out("Tensor_out").use(bits<RightShift>);
UMBRA_OPERATOR("__rshift__.Scalar(Tensor self, Scalar other) -> Tensor").out().use(bits<RightShift>);
UMBRA_OPERATOR("__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_right_shift_.Tensor"});
UMBRA_OPERATOR("__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_right_shift_.Tensor_Scalar"});

}  // namespace
}  // namespace umbra::ops
