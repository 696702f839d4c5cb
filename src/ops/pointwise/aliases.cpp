// Second names.
#include "ops/common/alias.h"
#include "ops/common/out_asks.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("absolute(Tensor self) -> Tensor").inplace("absolute_").out("absolute.out").use(AliasOf{"abs"});
UMBRA_OPERATOR("negative(Tensor self) -> Tensor").inplace("negative_").out("negative.out").use(AliasOf{"neg"});
UMBRA_OPERATOR("fix(Tensor self) -> Tensor").inplace("fix_").out("fix.out").use(AliasOf{"trunc"});
UMBRA_OPERATOR("arcsin(Tensor self) -> Tensor").inplace("arcsin_").out("arcsin.out").use(AliasOf{"asin"});
UMBRA_OPERATOR("arccos(Tensor self) -> Tensor").inplace("arccos_").out("arccos.out").use(AliasOf{"acos"});
UMBRA_OPERATOR("arctan(Tensor self) -> Tensor").inplace("arctan_").out("arctan.out").use(AliasOf{"atan"});
UMBRA_OPERATOR("arcsinh(Tensor self) -> Tensor").inplace("arcsinh_").out("arcsinh.out").use(AliasOf{"asinh"});
UMBRA_OPERATOR("arccosh(Tensor self) -> Tensor").inplace("arccosh_").out("arccosh.out").use(AliasOf{"acosh"});
UMBRA_OPERATOR("arctanh(Tensor self) -> Tensor").inplace("arctanh_").out("arctanh.out").use(AliasOf{"atanh"});
UMBRA_OPERATOR("special_expit(Tensor self) -> Tensor").out("special_expit.out").use(AliasOf{"sigmoid"});
UMBRA_OPERATOR("arctan2(Tensor self, Tensor other) -> Tensor")
    .inplace("arctan2_")
    .out("arctan2.out")
    .use(AliasOf{"atan2"});
UMBRA_OPERATOR("not_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("not_equal_.Tensor")
    .out("not_equal.Tensor_out")
    .use(AliasOf{"ne.Tensor"});
UMBRA_OPERATOR("not_equal.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("not_equal_.Scalar")
    .out("not_equal.Scalar_out")
    .use(AliasOf{"ne.Scalar"});
UMBRA_OPERATOR("less.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("less_.Tensor")
    .out("less.Tensor_out")
    .use(AliasOf{"lt.Tensor"});
UMBRA_OPERATOR("less.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("less_.Scalar")
    .out("less.Scalar_out")
    .use(AliasOf{"lt.Scalar"});
UMBRA_OPERATOR("less_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("less_equal_.Tensor")
    .out("less_equal.Tensor_out")
    .use(AliasOf{"le.Tensor"});
UMBRA_OPERATOR("less_equal.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("less_equal_.Scalar")
    .out("less_equal.Scalar_out")
    .use(AliasOf{"le.Scalar"});
UMBRA_OPERATOR("greater.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("greater_.Tensor")
    .out("greater.Tensor_out")
    .use(AliasOf{"gt.Tensor"});
UMBRA_OPERATOR("greater.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("greater_.Scalar")
    .out("greater.Scalar_out")
    .use(AliasOf{"gt.Scalar"});
UMBRA_OPERATOR("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("greater_equal_.Tensor")
    .out("greater_equal.Tensor_out")
    .use(AliasOf{"ge.Tensor"});
UMBRA_OPERATOR("greater_equal.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("greater_equal_.Scalar")
    .out("greater_equal.Scalar_out")
    .use(AliasOf{"ge.Scalar"});
UMBRA_OPERATOR("multiply.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("multiply_.Tensor")
    .out("multiply.out")
    .use(AliasOf{"mul.Tensor"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("multiply.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("multiply_.Scalar")
    .use(AliasOf{"mul.Scalar"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .inplace("subtract_.Tensor")
    .out("subtract.out")
    .use(AliasOf{"sub.Tensor"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .inplace("subtract_.Scalar")
    .use(AliasOf{"sub.Scalar"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("divide.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("divide_.Tensor")
    .out("divide.out")
    .use(AliasOf{"div.Tensor"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("divide.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("divide_.Scalar")
    .use(AliasOf{"div.Scalar"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("true_divide.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace("true_divide_.Tensor")
    .out("true_divide.out")
    .use(AliasOf{"div.Tensor"})
    .tags({Tag::Pointwise, Tag::TakesNumbers});
UMBRA_OPERATOR("true_divide.Scalar(Tensor self, Scalar other) -> Tensor")
    .inplace("true_divide_.Scalar")
    .use(AliasOf{"div.Scalar"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
    .inplace("divide_.Tensor_mode")
    .out("divide.out_mode")
    .use(AliasOf{"div.Tensor_mode"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
    .inplace("divide_.Scalar_mode")
    .use(AliasOf{"div.Scalar_mode"})
    .tags({Tag::TakesNumbers});
UMBRA_OPERATOR("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
    .inplace("clip_")
    .out("clip.out")
    .use(AliasOf{"clamp"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
    .inplace("clip_.Tensor")
    .out("clip.Tensor_out")
    .use(AliasOf{"clamp.Tensor"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__and__.Tensor(Tensor self, Tensor other) -> Tensor").use(AliasOf{"bitwise_and.Tensor"});
UMBRA_OPERATOR("__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").use(AliasOf{"bitwise_and_.Tensor"});
UMBRA_OPERATOR("__and__.Scalar(Tensor self, Scalar other) -> Tensor").use(AliasOf{"bitwise_and.Scalar"});
UMBRA_OPERATOR("__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").use(AliasOf{"bitwise_and_.Scalar"});
UMBRA_OPERATOR("__or__.Tensor(Tensor self, Tensor other) -> Tensor").use(AliasOf{"bitwise_or.Tensor"});
UMBRA_OPERATOR("__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").use(AliasOf{"bitwise_or_.Tensor"});
UMBRA_OPERATOR("__or__.Scalar(Tensor self, Scalar other) -> Tensor").use(AliasOf{"bitwise_or.Scalar"});
UMBRA_OPERATOR("__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").use(AliasOf{"bitwise_or_.Scalar"});
UMBRA_OPERATOR("__xor__.Tensor(Tensor self, Tensor other) -> Tensor")
    .use(AliasOf{"bitwise_xor.Tensor"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_xor_.Tensor"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__xor__.Scalar(Tensor self, Scalar other) -> Tensor")
    .use(AliasOf{"bitwise_xor.Scalar"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .use(AliasOf{"bitwise_xor_.Scalar"})
    .tags({Tag::Pointwise});
UMBRA_OPERATOR("special_erf(Tensor self) -> Tensor").out("special_erf.out").use(AliasOf{"erf"});
UMBRA_OPERATOR("special_erfc(Tensor self) -> Tensor").out("special_erfc.out").use(AliasOf{"erfc"});
UMBRA_OPERATOR("special_exp2(Tensor self) -> Tensor").out("special_exp2.out").use(AliasOf{"exp2"});
UMBRA_OPERATOR("special_expm1(Tensor self) -> Tensor").out("special_expm1.out").use(AliasOf{"expm1"});
UMBRA_OPERATOR("special_log1p(Tensor self) -> Tensor").out("special_log1p.out").use(AliasOf{"log1p"});
UMBRA_OPERATOR("special_sinc(Tensor self) -> Tensor").out("special_sinc.out").use(AliasOf{"sinc"});
UMBRA_OPERATOR("special_logit(Tensor self, float? eps=None) -> Tensor").out("special_logit.out").use(AliasOf{"logit"});
UMBRA_OPERATOR("special_round(Tensor self, *, int decimals=0) -> Tensor")
    .out("special_round.out")
    .use(out_asks("special_round.out",
                  [](const Tensor& self, int64_t, const Tensor& out) {
                    check(out.dtype() == self.dtype(), "Found dtype ", kernel_name(out.dtype()), " but expected ",
                          kernel_name(self.dtype()));
                  }))
    .use(AliasOf{"round.decimals"});
UMBRA_OPERATOR("special_xlogy(Tensor self, Tensor other) -> Tensor")
    .out("special_xlogy.out")
    .use(AliasOf{"xlogy.Tensor"});
UMBRA_OPERATOR("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor")
    .out("special_xlogy.self_scalar_out")
    .use(AliasOf{"xlogy.Scalar_Self"});
UMBRA_OPERATOR("special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor")
    .out("special_xlogy.other_scalar_out")
    .use(AliasOf{"xlogy.Scalar_Other"});

}  // namespace
}  // namespace umbra::ops
