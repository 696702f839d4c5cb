// Of three inputs: addcmul, addcdiv, lerp.
#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "kernels/fits.h"
#include "kernels/functors/arithmetic.h"
#include "ops/common/out_asks.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

using functors::Addcdiv;
using functors::Addcmul;
using functors::Lerp;
using functors::LerpScalar;

// One of two factors gets the gradient times the other one.
Tensor addcmul_factor(const Tensor& grad, const Tensor& other, const Scalar& value) {
  return grad.mul(other.mul(value).conj());
}

UMBRA_OPERATOR("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    .inplace("addcmul_")
    .out("addcmul.out")
    .use(pointwise<Addcmul, 3>(Promotion::Default, [](const Scalar& value) { return Addcmul{.value = value}; }))
    .meta([](const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
      TensorSpec spec = pointwise_spec({&self, &tensor1, &tensor2}, Promotion::Default);
      if (is_integral(spec.dtype, false) && !only_metadata_is_asked()) kernels::check_fits(value, spec.dtype);
      return spec;
    })
    .gradient("self", {"grad"}, same_gradient)
    .gradient("tensor1", {"grad", "tensor2", "value"}, addcmul_factor)
    .gradient("tensor2", {"grad", "tensor1", "value"}, addcmul_factor)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    .inplace("addcdiv_")
    .out("addcdiv.out")
    .use(pointwise<Addcdiv, 3>(Promotion::Default, [](const Scalar& value) { return Addcdiv{.value = value}; }))
    .meta([](const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar&) {
      // On the meta device a bool is none of the integers.
      bool bools = !only_metadata_is_asked();
      check(!is_integral(tensor1.dtype(), bools) || !is_integral(tensor2.dtype(), bools),
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. "
            "The future "
            "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.");
      return pointwise_spec({&self, &tensor1, &tensor2}, Promotion::Default);
    })
    .gradient("self", {"grad"}, same_gradient)
    .gradient("tensor1", {"grad", "tensor2", "value"},
              [](const Tensor& grad, const Tensor& tensor2, const Scalar& value) {
                return grad.mul(tensor2.reciprocal().mul(value).conj());
              })
    .gradient("tensor2", {"grad", "tensor1", "tensor2", "value"},
              [](const Tensor& grad, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
                return grad.neg().mul(tensor1.mul(value).div(tensor2.mul(tensor2)).conj());
              })
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

// ---- lerp: all of one type, save a 0-d weight ----

void check_same_type(const Tensor& self, const Tensor& other, const char* argument) {
  check(self.dtype() == other.dtype(), "expected dtype ", cpp_name(self.dtype()), " for `", argument,
        "` but got dtype ", cpp_name(other.dtype()));
}

Scalar rest(const Scalar& weight) {
  return weight.is_complex() ? Scalar(1.0 - weight.to_complex()) : Scalar(1.0 - weight.to_double());
}

UMBRA_OPERATOR("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
    .inplace("lerp_.Scalar")
    .out("lerp.Scalar_out")
    .use(pointwise<LerpScalar, 2>(Promotion::Default,
                                  [](const Scalar& weight) { return LerpScalar{.weight = weight}; }))
    .meta([](const Tensor& self, const Tensor& end, const Scalar&) {
      check_same_type(self, end, "end");
      return pointwise_spec({&self, &end}, self.dtype());
    })
    .gradient("self", {"grad", "weight"},
              [](const Tensor& grad, const Scalar& weight) { return scaled(grad, rest(weight)); })
    .gradient("end", {"grad", "weight"}, scaled)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
    .inplace("lerp_.Tensor")
    .out("lerp.Tensor_out")
    .use(out_asks("lerp.Tensor_out", [](const Tensor& self, const Tensor&, const Tensor&,
                                        const Tensor& out) { check_written_type(self, out); }))
    .meta([](const Tensor& self, const Tensor& end, const Tensor& weight) {
      check_same_type(self, end, "end");
      if (weight.dim() > 0) check_same_type(self, weight, "weight");
      return pointwise_spec({&self, &end, &weight}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& end, const Tensor& weight) {
      kernels::pointwise(Lerp{}, out, {&self, &end, &weight}, out.dtype());
    })
    .elementwise()
    .gradient("self", {"grad", "weight"},
              [](const Tensor& grad, const Tensor& weight) { return grad.mul(weight.rsub(1).conj()); })
    .gradient("end", {"grad", "weight"},
              [](const Tensor& grad, const Tensor& weight) { return grad.mul(weight.conj()); })
    .gradient("weight", {"grad", "self", "end"},
              [](const Tensor& grad, const Tensor& self, const Tensor& end) { return grad.mul(end.sub(self).conj()); })
    .tangent(TangentRule::Pointwise)
    .node("LerpBackward1")
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
