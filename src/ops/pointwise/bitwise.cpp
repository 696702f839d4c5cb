// Bit by bit: and, or, xor, not, shifts.
#include "kernels/functors/bitwise.h"

#include "ops/common/alias.h"
#include "ops/common/kernel_type.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

using namespace functors;

template <class Functor> void bits(OperatorBuilder& builder) {
  builder.use(pointwise<Functor, 2>(Promotion::Default)).tags({Tag::Pointwise});
}
/// The shifts that Python's operators call: on the meta device they are asked for integers.
template <class Functor, class Other> TensorSpec shifted_spec(const Tensor& self, const Other& other) {
  bool left = std::is_same_v<Functor, LeftShift>;
  check(is_integral(self.dtype(), false) || !only_metadata_is_asked(), left ? "lshift" : "rshift",
        ": Expected input tensor to have an integral dtype. Got ", self.dtype());
  if constexpr (std::is_same_v<Other, Scalar>)
    check(is_integral(other.dtype(), true) || !only_metadata_is_asked(), left ? "lshift" : "rshift",
          ": Expected shift value to be an int. Got ", other.to_double());
  else
    check(is_integral(other.dtype(), false) || !only_metadata_is_asked(), left ? "lshift" : "rshift",
          ": Expected shift value to have an integral dtype. Got ", other.dtype());
  if constexpr (std::is_same_v<Other, Tensor>) return pointwise_spec({&self, &other}, Promotion::Default);
  else return pointwise_spec({&self, &number_of_type(other.dtype())}, Promotion::Default);
}

template <class Functor> void core_bits(OperatorBuilder& builder) { builder.use(bits<Functor>).tags({Tag::Core}); }

UMBRA_OPERATOR("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("bitwise_and_.Tensor")
    .out("bitwise_and.Tensor_out")
    .use(core_bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("bitwise_and_.Scalar")
    .out("bitwise_and.Scalar_out")
    .use(core_bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("bitwise_and.Scalar_Tensor_out")
    .use(bits<BitwiseAnd>);
UMBRA_OPERATOR("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("bitwise_or_.Tensor")
    .out("bitwise_or.Tensor_out")
    .use(core_bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("bitwise_or_.Scalar")
    .out("bitwise_or.Scalar_out")
    .use(core_bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("bitwise_or.Scalar_Tensor_out")
    .use(bits<BitwiseOr>);
UMBRA_OPERATOR("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("bitwise_xor_.Tensor")
    .out("bitwise_xor.Tensor_out")
    .use(core_bits<BitwiseXor>);
UMBRA_OPERATOR("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("bitwise_xor_.Scalar")
    .out("bitwise_xor.Scalar_out")
    .use(core_bits<BitwiseXor>);
UMBRA_OPERATOR("bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("bitwise_xor.Scalar_Tensor_out")
    .use(bits<BitwiseXor>);

UMBRA_OPERATOR("bitwise_not(Tensor self) -> Tensor")
    .inplace("bitwise_not_")
    .out("bitwise_not.out")
    .use(pointwise<BitwiseNot, 1>(Promotion::Default))
    .tags({Tag::Core, Tag::Pointwise});

UMBRA_OPERATOR("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("bitwise_left_shift_.Tensor")
    .out("bitwise_left_shift.Tensor_out")
    .use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("bitwise_left_shift_.Tensor_Scalar")
    .out("bitwise_left_shift.Tensor_Scalar_out")
    .use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("bitwise_left_shift.Scalar_Tensor_out")
    .use(bits<LeftShift>);
UMBRA_OPERATOR("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("bitwise_right_shift_.Tensor")
    .out("bitwise_right_shift.Tensor_out")
    .use(bits<RightShift>);
UMBRA_OPERATOR("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("bitwise_right_shift_.Tensor_Scalar")
    .out("bitwise_right_shift.Tensor_Scalar_out")
    .use(bits<RightShift>);
UMBRA_OPERATOR("bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    .generated_out("bitwise_right_shift.Scalar_Tensor_out")
    .use(bits<RightShift>);

/// In place, a run without data asks for integers; with data the kernel says what it is not made for.
void check_shifted(const char* name, const Tensor& self) {
  check(has_elements(self) || is_integral(self.dtype(), true), name,
        ": Expected input tensor to have an integral dtype. Got ", to_string(self.dtype()));
}

UMBRA_OPERATOR("__lshift__.Tensor(Tensor self, Tensor other) -> Tensor")
    .generated_out("__lshift__.Tensor_out")
    .use(bits<LeftShift>)
    .meta(shifted_spec<LeftShift, Tensor>);
UMBRA_OPERATOR("__lshift__.Scalar(Tensor self, Scalar other) -> Tensor")
    .generated_out("__lshift__.Scalar_out")
    .use(bits<LeftShift>)
    .meta(shifted_spec<LeftShift, Scalar>);
UMBRA_OPERATOR("__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .composite([](const Tensor& self, const Tensor& other) {
      check_shifted("lshift", self);
      return self.bitwise_left_shift_(other);
    })
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .composite([](const Tensor& self, const Scalar& other) {
      check_shifted("lshift", self);
      return self.bitwise_left_shift_(other);
    })
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__rshift__.Tensor(Tensor self, Tensor other) -> Tensor")
    .generated_out("__rshift__.Tensor_out")
    .use(bits<RightShift>)
    .meta(shifted_spec<RightShift, Tensor>);
UMBRA_OPERATOR("__rshift__.Scalar(Tensor self, Scalar other) -> Tensor")
    .generated_out("__rshift__.Scalar_out")
    .use(bits<RightShift>)
    .meta(shifted_spec<RightShift, Scalar>);
UMBRA_OPERATOR("__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .composite([](const Tensor& self, const Tensor& other) {
      check_shifted("rshift", self);
      return self.bitwise_right_shift_(other);
    });
UMBRA_OPERATOR("__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .composite([](const Tensor& self, const Scalar& other) {
      check_shifted("rshift", self);
      return self.bitwise_right_shift_(other);
    });

}  // namespace
}  // namespace umbra::ops
