// Sums, differences, products, quotients, negation. Gradients are written without broadcasting or casting in mind: the
// engine sums and casts each one to the shape and type of its input.
#include "kernels/functors/arithmetic.h"

#include "dispatch/layers.h"
#include "ops/common/needs_data.h"
#include "ops/pointwise/family.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

using functors::Add;
using functors::Divide;
using functors::Multiply;
using functors::Negative;
using functors::Subtract;

void check_alpha(DType dtype, const Scalar& alpha) {
  check(!alpha.is_bool() || dtype == DType::Bool, "Boolean alpha only supported for Boolean results.");
  bool fits = alpha.is_integral(true) || is_complex(dtype) || (is_floating(dtype) && !alpha.is_complex());
  check<ValueError>(fits || !only_metadata_is_asked(), "alpha argument of type <class '",
                    alpha.is_complex() ? "complex" : "float", "'> cannot be safely cast to type <class '",
                    is_floating(dtype) ? "float" : "int", "'>!");
  check(is_floating(dtype) || is_complex(dtype) || alpha.is_integral(true),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(dtype) || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
}

void check_not_bool(const Tensor& self, const Tensor& other) {
  check<NotImplementedError>(self.dtype() != DType::Bool || other.dtype() != DType::Bool,
                             "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                             "`logical_xor()` operator instead.");
  check<NotImplementedError>(self.dtype() != DType::Bool && other.dtype() != DType::Bool,
                             "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                             "invert a mask, use the `~` or "
                             "`logical_not()` operator instead.");
}

Tensor add_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_alpha(ResultType().add(self).add(other).get(), alpha);
  return sparse::add_tensors(self, other, alpha);
}
Tensor add_sparse_in_place(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_alpha(ResultType().add(self).add(other).get(), alpha);
  return sparse::add_in_place(self, other, alpha);
}
Tensor subtract_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_not_bool(self, other);
  check_alpha(ResultType().add(self).add(other).get(), alpha);
  return sparse::subtract_tensors(self, other, alpha);
}
Tensor subtract_sparse_in_place(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_not_bool(self, other);
  return add_sparse_in_place(self, other, -alpha);
}

// What `self + alpha * other` looks like; additions and subtractions, of tensors and of numbers.
TensorSpec scaled_spec(ArrayRef<const Tensor*> inputs, const Scalar& alpha) {
  TensorSpec spec = pointwise_spec(inputs, Promotion::Default);
  check_alpha(spec.dtype, alpha);
  return spec;
}

UMBRA_OPERATOR("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .inplace("add_.Tensor")
    .use(InPlaceOnMeta{AsksInPlace::NoFloatIntoInteger})
    .out("add.out")
    .use(pointwise<Add, 2>(Promotion::Default, [](const Scalar& alpha) { return Add{.factor = {alpha}}; }))
    .meta([](const Tensor& self, const Tensor& other, const Scalar& alpha) {
      return scaled_spec({&self, &other}, alpha);
    })
    .sparse(add_sparse)
    .on_inplace([](OperatorBuilder& variant) { variant.sparse(add_sparse_in_place); })
    .gradient("self", {"grad"}, same_gradient)
    .gradient("other", {"grad", "alpha"}, scaled)
    .linear()
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .inplace("add_.Scalar")
    .use(InPlaceOnMeta{AsksInPlace::NoFloatIntoInteger})
    .generated_out("add.Scalar_out")
    .use(pointwise<Add, 2>(Promotion::Default, [](const Scalar& alpha) { return Add{.factor = {alpha}}; }))
    .meta([](const Tensor& self, const Scalar& other, const Scalar& alpha) {
      return scaled_spec({&self, &number_of_type(other.dtype())}, alpha);
    })
    .sparse(sparse::refuse_number)
    .gradient("self", {"grad"}, same_gradient)
    .tangent(TangentRule::Pointwise)
    .node("AddBackward1")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .inplace("sub_.Tensor")
    .use(InPlaceOnMeta{AsksInPlace::NoFloatIntoInteger})
    .out("sub.out")
    .use(pointwise<Subtract, 2>(Promotion::Default, [](const Scalar& alpha) { return Subtract{.factor = {alpha}}; }))
    .meta([](const Tensor& self, const Tensor& other, const Scalar& alpha) {
      check_not_bool(self, other);
      return scaled_spec({&self, &other}, alpha);
    })
    .sparse(subtract_sparse)
    .on_inplace([](OperatorBuilder& variant) { variant.sparse(subtract_sparse_in_place); })
    .gradient("self", {"grad"}, same_gradient)
    .gradient("other", {"grad", "alpha"},
              [](const Tensor& grad, const Scalar& alpha) { return scaled(grad, alpha).neg(); })
    .linear()
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .inplace("sub_.Scalar")
    .use(InPlaceOnMeta{AsksInPlace::NoFloatIntoInteger})
    .generated_out("sub.Scalar_out")
    .use(pointwise<Subtract, 2>(Promotion::Default, [](const Scalar& alpha) { return Subtract{.factor = {alpha}}; }))
    .meta([](const Tensor& self, const Scalar& other, const Scalar& alpha) {
      check_not_bool(self, number_of_type(other.dtype()));
      return scaled_spec({&self, &number_of_type(other.dtype())}, alpha);
    })
    .sparse(sparse::refuse_number)
    .gradient("self", {"grad"}, same_gradient)
    .tangent(TangentRule::Pointwise)
    .node("SubBackward1")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .generated_out("rsub.Tensor_out")
    .all_backends([](const Tensor& self, const Tensor& other, const Scalar& alpha) { return sub(other, self, alpha); })
    .gradient("self", {"grad", "alpha"},
              [](const Tensor& grad, const Scalar& alpha) { return scaled(grad, alpha).neg(); })
    .gradient("other", {"grad"}, same_gradient)
    .linear();

UMBRA_OPERATOR("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .generated_out("rsub.Scalar_out")
    .all_backends([](const Tensor& self, const Scalar& other, const Scalar& alpha) {
      return sub(wrapped_number(other), self, alpha);
    })
    .sparse([](const Tensor& self, const Scalar& other, const Scalar& alpha) {
      return sub(wrapped_number(other), self, alpha);
    })
    .gradient("self", {"grad", "alpha"},
              [](const Tensor& grad, const Scalar& alpha) { return scaled(grad, alpha).neg(); })
    .tangent(TangentRule::Pointwise)
    .node("RsubBackward1")
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("mul.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("mul_.Tensor")
    .use(InPlaceOnMeta{AsksInPlace::Nothing})
    .out("mul.out")
    .use(pointwise<Multiply, 2>(Promotion::Default))
    .sparse(sparse::multiply_tensors)
    .on_inplace([](OperatorBuilder& variant) { variant.sparse(sparse::multiply_in_place); })
    .gradient("self", {"grad", "other"}, [](const Tensor& grad, const Tensor& other) { return grad.mul(other.conj()); })
    .gradient("other", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) { return grad.mul(self.conj()); })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("mul.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("mul_.Scalar")
    .use(InPlaceOnMeta{AsksInPlace::Nothing})
    .generated_out("mul.Scalar_out")
    .use(pointwise<Multiply, 2>(Promotion::Default))
    .sparse(sparse::multiply_by_number)
    .on_inplace([](OperatorBuilder& variant) {
      variant.sparse([](const Tensor& self, const Scalar& other) {
        return sparse::multiply_in_place(self, wrapped_number(other));
      });
    })
    .gradient("self", {"grad", "other"}, scaled)
    .tangent(TangentRule::Pointwise)
    .node("MulBackward1")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

Tensor div_self(const Tensor& grad, const Tensor& other) { return grad.div(other.conj()); }
Tensor div_other(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return grad.neg().mul(self.div(other).div(other).conj());
}

UMBRA_OPERATOR("div.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("div_.Tensor")
    .use(InPlaceOnMeta{AsksInPlace::CastOfQuotient})
    .out("div.out")
    .use(pointwise<Divide, 2>(Promotion::IntToFloat))
    .sparse(sparse::divide_tensors)
    .gradient("self", {"grad", "other"}, div_self)
    .gradient("other", {"grad", "self", "other"}, div_other)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("div.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("div_.Scalar")
    .use(InPlaceOnMeta{AsksInPlace::CastOfQuotient})
    .generated_out("div.Scalar_out")
    .use(pointwise<Divide, 2>(Promotion::IntToFloat))
    .sparse(sparse::divide_by_number)
    .gradient("self", {"grad", "other"}, [](const Tensor& grad, const Scalar& other) { return grad.div(conj(other)); })
    .tangent(TangentRule::Pointwise)
    .node("DivBackward1")
    .tags({Tag::Core, Tag::Pointwise, Tag::TakesNumbers});

UMBRA_OPERATOR("neg(Tensor self) -> Tensor")
    .inplace("neg_")
    .out("neg.out")
    .use(pointwise<Negative, 1>(Promotion::Default))
    .meta([](const Tensor& self) {
      check<NotImplementedError>(
          self.dtype() != DType::Bool,
          "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
          "mask, use the `~` or `logical_not()` operator instead.");
      return pointwise_spec({&self}, Promotion::Default);
    })
    .use(sparse::OnValues{.linear = true})
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.neg(); })
    .linear()
    .tags({Tag::Core, Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
