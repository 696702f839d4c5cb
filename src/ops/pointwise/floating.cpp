// How floating point numbers are made up: frexp, nextafter.
#include "kernels/floating.h"

#include "core/cpp_name.h"
#include "ops/common/out_asks.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
    .out("frexp.Tensor_out", {"mantissa", "exponent"})
    .use(out_asks("frexp.Tensor_out",
                  [](const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
                    check(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
                    check(mantissa.dtype() == self.dtype(), "torch.frexp() expects mantissa to have dtype ",
                          cpp_name(self.dtype()), " but got ", cpp_name(mantissa.dtype()));
                    check(exponent.dtype() == DType::Int32, "torch.frexp() expects exponent to have int dtype but got ",
                          cpp_name(exponent.dtype()));
                  }))
    .meta([](const Tensor& self) {
      check(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
      return std::tuple(spec_like(self), spec_like(self, DType::Int32));
    })
    .cpu<2>(kernels::frexp)
    .elementwise()
    .gradient("self", {"grad", "exponent"},
              [](const Tensor& grad, const Tensor& exponent) { return grad.div(exponent.exp2()); })
    .differentiable_outputs({true, false})
    .tags({Tag::Pointwise});

UMBRA_OPERATOR("nextafter(Tensor self, Tensor other) -> Tensor")
    .inplace("nextafter_")
    .out("nextafter.out")
    .meta([](const Tensor& self, const Tensor& other) {
      return pointwise_spec({&self, &other}, Promotion::Default);
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& other) {
      DType common = pointwise_types({&self, &other}, Promotion::Default).compute;
      check<NotImplementedError>(is_floating(common), "\"nextafter_cpu\" not implemented for '", kernel_name(common),
                                 "'");
      kernels::nextafter(out, self, other);
    })
    .elementwise()
    .gradient("self", {"grad", "self", "other"},
              [](const Tensor& grad, const Tensor& self, const Tensor& other) { return grad.mul(self.ne(other)); })
    .gradient("other", {"grad"}, zero_gradient)
    .tangent(TangentRule::Pointwise)
    .tags({Tag::Pointwise});

}  // namespace
}  // namespace umbra::ops
