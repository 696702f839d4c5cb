// Second names.
#include "ops/common/alias.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("absolute(Tensor self) -> Tensor").inplace().out().use(AliasOf{"abs"});
UMBRA_OPERATOR("negative(Tensor self) -> Tensor").inplace().out().use(AliasOf{"neg"});
UMBRA_OPERATOR("fix(Tensor self) -> Tensor").inplace().out().use(AliasOf{"trunc"});
UMBRA_OPERATOR("arcsin(Tensor self) -> Tensor").inplace().out().use(AliasOf{"asin"});
UMBRA_OPERATOR("arccos(Tensor self) -> Tensor").inplace().out().use(AliasOf{"acos"});
UMBRA_OPERATOR("arctan(Tensor self) -> Tensor").inplace().out().use(AliasOf{"atan"});
UMBRA_OPERATOR("arcsinh(Tensor self) -> Tensor").inplace().out().use(AliasOf{"asinh"});
UMBRA_OPERATOR("arccosh(Tensor self) -> Tensor").inplace().out().use(AliasOf{"acosh"});
UMBRA_OPERATOR("arctanh(Tensor self) -> Tensor").inplace().out().use(AliasOf{"atanh"});
UMBRA_OPERATOR("special_expit(Tensor self) -> Tensor").out().use(AliasOf{"sigmoid"});
UMBRA_OPERATOR("arctan2(Tensor self, Tensor other) -> Tensor").inplace().out().use(AliasOf{"atan2"});
UMBRA_OPERATOR("not_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"ne.Tensor"});
UMBRA_OPERATOR("not_equal.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(AliasOf{"ne.Scalar"});
UMBRA_OPERATOR("less.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"lt.Tensor"});
UMBRA_OPERATOR("less.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(AliasOf{"lt.Scalar"});
UMBRA_OPERATOR("less_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"le.Tensor"});
UMBRA_OPERATOR("less_equal.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(AliasOf{"le.Scalar"});
UMBRA_OPERATOR("greater.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"gt.Tensor"});
UMBRA_OPERATOR("greater.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(AliasOf{"gt.Scalar"});
UMBRA_OPERATOR("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"ge.Tensor"});
UMBRA_OPERATOR("greater_equal.Scalar(Tensor self, Scalar other) -> Tensor").inplace().out().use(AliasOf{"ge.Scalar"});
UMBRA_OPERATOR("multiply.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out().use(AliasOf{"mul.Tensor"});
UMBRA_OPERATOR("multiply.Scalar(Tensor self, Scalar other) -> Tensor").inplace().use(AliasOf{"mul.Scalar"});
UMBRA_OPERATOR("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .inplace()
    .out()
    .use(AliasOf{"sub.Tensor"});
UMBRA_OPERATOR("subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .inplace()
    .use(AliasOf{"sub.Scalar"});
UMBRA_OPERATOR("divide.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out().use(AliasOf{"div.Tensor"});
UMBRA_OPERATOR("divide.Scalar(Tensor self, Scalar other) -> Tensor").inplace().use(AliasOf{"div.Scalar"});
UMBRA_OPERATOR("true_divide.Tensor(Tensor self, Tensor other) -> Tensor").inplace().out().use(AliasOf{"div.Tensor"});
UMBRA_OPERATOR("true_divide.Scalar(Tensor self, Scalar other) -> Tensor").inplace().use(AliasOf{"div.Scalar"});
UMBRA_OPERATOR("divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
    .inplace()
    .out("out_mode")
    .use(AliasOf{"div.Tensor_mode"});
UMBRA_OPERATOR("divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
    .inplace()
    .use(AliasOf{"div.Scalar_mode"});
UMBRA_OPERATOR("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor").inplace().out().use(AliasOf{"clamp"});
UMBRA_OPERATOR("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
    .inplace()
    .out("Tensor_out")
    .use(AliasOf{"clamp.Tensor"});
UMBRA_OPERATOR("__and__.Tensor(Tensor self, Tensor other) -> Tensor").use(AliasOf{"bitwise_and.Tensor"});
UMBRA_OPERATOR("__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").use(AliasOf{"bitwise_and_.Tensor"});
UMBRA_OPERATOR("__and__.Scalar(Tensor self, Scalar other) -> Tensor").use(AliasOf{"bitwise_and.Scalar"});
UMBRA_OPERATOR("__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").use(AliasOf{"bitwise_and_.Scalar"});
UMBRA_OPERATOR("__or__.Tensor(Tensor self, Tensor other) -> Tensor").use(AliasOf{"bitwise_or.Tensor"});
UMBRA_OPERATOR("__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").use(AliasOf{"bitwise_or_.Tensor"});
UMBRA_OPERATOR("__or__.Scalar(Tensor self, Scalar other) -> Tensor").use(AliasOf{"bitwise_or.Scalar"});
UMBRA_OPERATOR("__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").use(AliasOf{"bitwise_or_.Scalar"});
UMBRA_OPERATOR("__xor__.Tensor(Tensor self, Tensor other) -> Tensor").use(AliasOf{"bitwise_xor.Tensor"});
UMBRA_OPERATOR("__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").use(AliasOf{"bitwise_xor_.Tensor"});
UMBRA_OPERATOR("__xor__.Scalar(Tensor self, Scalar other) -> Tensor").use(AliasOf{"bitwise_xor.Scalar"});
UMBRA_OPERATOR("__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").use(AliasOf{"bitwise_xor_.Scalar"});
UMBRA_OPERATOR("special_erf(Tensor self) -> Tensor").out().use(AliasOf{"erf"});
UMBRA_OPERATOR("special_erfc(Tensor self) -> Tensor").out().use(AliasOf{"erfc"});
UMBRA_OPERATOR("special_exp2(Tensor self) -> Tensor").out().use(AliasOf{"exp2"});
UMBRA_OPERATOR("special_expm1(Tensor self) -> Tensor").out().use(AliasOf{"expm1"});
UMBRA_OPERATOR("special_log1p(Tensor self) -> Tensor").out().use(AliasOf{"log1p"});
UMBRA_OPERATOR("special_sinc(Tensor self) -> Tensor").out().use(AliasOf{"sinc"});
UMBRA_OPERATOR("special_logit(Tensor self, float? eps=None) -> Tensor").out().use(AliasOf{"logit"});
UMBRA_OPERATOR("special_round(Tensor self, *, int decimals=0) -> Tensor").out().use(AliasOf{"round.decimals"});
UMBRA_OPERATOR("special_xlogy(Tensor self, Tensor other) -> Tensor").out().use(AliasOf{"xlogy.Tensor"});
UMBRA_OPERATOR("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor")
    .out()
    .use(AliasOf{"xlogy.Scalar_Self"});
UMBRA_OPERATOR("special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor")
    .out()
    .use(AliasOf{"xlogy.Scalar_Other"});

}  // namespace
}  // namespace umbra::ops
