// Operators over lists: each applies an operator of single tensors to every element.
#include "ops/foreach/each.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// Overloads over tensors come before those over numbers: a number may be given as a tensor of one element.

// ---- arithmetic ----

UMBRA_OPERATOR("_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]")
    .inplace("_foreach_add_.Tensor")
    .use(each("aten::add.Tensor"));
UMBRA_OPERATOR("_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]")
    .inplace("_foreach_add_.List")
    .use(each("aten::add.Tensor"));
UMBRA_OPERATOR("_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_add_.Scalar")
    .use(each("aten::add.Scalar"));
UMBRA_OPERATOR("_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_add_.ScalarList")
    .use(each("aten::add.Scalar"));
UMBRA_OPERATOR("_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]")
    .inplace("_foreach_sub_.List")
    .use(each("aten::sub.Tensor"));
UMBRA_OPERATOR("_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_sub_.Scalar")
    .use(each("aten::sub.Scalar"));
UMBRA_OPERATOR("_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_sub_.ScalarList")
    .use(each("aten::sub.Scalar"));
UMBRA_OPERATOR("_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]")
    .inplace("_foreach_mul_.Tensor")
    .use(each("aten::mul.Tensor"));
UMBRA_OPERATOR("_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_mul_.List")
    .use(each("aten::mul.Tensor"));
UMBRA_OPERATOR("_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_mul_.Scalar")
    .use(each("aten::mul.Scalar"));
UMBRA_OPERATOR("_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_mul_.ScalarList")
    .use(each("aten::mul.Scalar"));
UMBRA_OPERATOR("_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]")
    .inplace("_foreach_div_.Tensor")
    .use(each("aten::div.Tensor"));
UMBRA_OPERATOR("_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_div_.List")
    .use(each("aten::div.Tensor"));
UMBRA_OPERATOR("_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_div_.Scalar")
    .use(each("aten::div.Scalar"));
UMBRA_OPERATOR("_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_div_.ScalarList")
    .use(each("aten::div.Scalar"));

// ---- bounds ----

UMBRA_OPERATOR("_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_clamp_min_.List")
    .use(each("aten::clamp_min.Tensor"));
UMBRA_OPERATOR("_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_clamp_min_.Scalar")
    .use(each("aten::clamp_min"));
UMBRA_OPERATOR("_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_clamp_min_.ScalarList")
    .use(each("aten::clamp_min"));
UMBRA_OPERATOR("_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_clamp_max_.List")
    .use(each("aten::clamp_max.Tensor"));
UMBRA_OPERATOR("_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_clamp_max_.Scalar")
    .use(each("aten::clamp_max"));
UMBRA_OPERATOR("_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_clamp_max_.ScalarList")
    .use(each("aten::clamp_max"));
UMBRA_OPERATOR("_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_maximum_.List")
    .use(each("aten::clamp_min.Tensor", "aten::maximum"));
UMBRA_OPERATOR("_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_maximum_.Scalar")
    .use(each("aten::clamp_min", "aten::maximum"));
UMBRA_OPERATOR("_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_maximum_.ScalarList")
    .use(each("aten::clamp_min", "aten::maximum"));
UMBRA_OPERATOR("_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]")
    .inplace("_foreach_minimum_.List")
    .use(each("aten::clamp_max.Tensor", "aten::minimum"));
UMBRA_OPERATOR("_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]")
    .inplace("_foreach_minimum_.Scalar")
    .use(each("aten::clamp_max", "aten::minimum"));
UMBRA_OPERATOR("_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]")
    .inplace("_foreach_minimum_.ScalarList")
    .use(each("aten::clamp_max", "aten::minimum"));

// ---- powers, interpolation, products added ----

UMBRA_OPERATOR("_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]")
    .inplace("_foreach_pow_.List")
    .use(each("aten::pow.Tensor_Tensor"));
UMBRA_OPERATOR("_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]")
    .inplace("_foreach_pow_.Scalar")
    .use(each("aten::pow.Tensor_Scalar"));
UMBRA_OPERATOR("_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]")
    .inplace("_foreach_pow_.ScalarList")
    .use(each("aten::pow.Tensor_Scalar"));
UMBRA_OPERATOR("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]")
    .use(each("aten::pow.Scalar"));
UMBRA_OPERATOR("_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]")
    .inplace("_foreach_lerp_.List")
    .use(each("aten::lerp.Tensor"));
UMBRA_OPERATOR("_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]")
    .inplace("_foreach_lerp_.Scalar")
    .use(each("aten::lerp.Scalar"));
UMBRA_OPERATOR("_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]")
    .inplace("_foreach_lerp_.ScalarList")
    .use(each("aten::lerp.Scalar"));
UMBRA_OPERATOR("_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]")
    .inplace("_foreach_addcmul_.Scalar")
    .use(each("aten::addcmul"));
UMBRA_OPERATOR(
    "_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> "
    "Tensor[]")
    .inplace("_foreach_addcmul_.ScalarList")
    .use(each("aten::addcmul"));
UMBRA_OPERATOR("_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]")
    .inplace("_foreach_addcdiv_.Scalar")
    .use(each("aten::addcdiv"));
UMBRA_OPERATOR(
    "_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> "
    "Tensor[]")
    .inplace("_foreach_addcdiv_.ScalarList")
    .use(each("aten::addcdiv"));

/// The elements of a vector as numbers, one for each tensor of a list.
std::vector<Scalar> numbers_of(const Tensor& scalars, size_t expected) {
  check(scalars.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", scalars.dim(), " instead.");
  check(scalars.device() == Device(), "Expected scalars to be on CPU, got ", scalars.device(), " instead.");
  check(scalars.sym_size(0) == static_cast<int64_t>(expected), "Expected length of scalars to match input of length ",
        expected, " but got ", scalars.sym_size(0), " instead.");
  std::vector<Scalar> numbers;
  for (size_t i = 0; i < expected; ++i) numbers.push_back(scalars.select(0, static_cast<int64_t>(i)).item());
  return numbers;
}

/// A number of their type, where there is no data.
Scalar any_number(const Tensor& scalars) {
  if (scalars.is_complex()) return std::complex<double>(1);
  return scalars.is_floating_point() ? Scalar(1.0) : Scalar(1);
}

UMBRA_OPERATOR("_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]")
    .inplace("_foreach_addcmul_.Tensor")
    .all_backends([](TensorList self, TensorList tensor1, TensorList tensor2, const Tensor& scalars) {
      return _foreach_addcmul(self, tensor1, tensor2, numbers_of(scalars, self.size()));
    })
    .fake([](TensorList self, TensorList tensor1, TensorList tensor2, const Tensor& scalars) {
      return _foreach_addcmul(self, tensor1, tensor2, any_number(scalars));
    });
UMBRA_OPERATOR("_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]")
    .inplace("_foreach_addcdiv_.Tensor")
    .all_backends([](TensorList self, TensorList tensor1, TensorList tensor2, const Tensor& scalars) {
      return _foreach_addcdiv(self, tensor1, tensor2, numbers_of(scalars, self.size()));
    })
    .fake([](TensorList self, TensorList tensor1, TensorList tensor2, const Tensor& scalars) {
      return _foreach_addcdiv(self, tensor1, tensor2, any_number(scalars));
    });

// ---- one number out ----

UMBRA_OPERATOR("_foreach_max(Tensor[] self) -> Tensor[]").use(each("aten::max"));
UMBRA_OPERATOR("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]")
    .use(each("aten::linalg_vector_norm"));
UMBRA_OPERATOR("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]")
    .use(each("aten::linalg__powsum"));

// ---- one tensor in, one out ----

UMBRA_OPERATOR("_foreach_abs(Tensor[] self) -> Tensor[]").inplace("_foreach_abs_").use(each("aten::abs"));
UMBRA_OPERATOR("_foreach_acos(Tensor[] self) -> Tensor[]").inplace("_foreach_acos_").use(each("aten::acos"));
UMBRA_OPERATOR("_foreach_asin(Tensor[] self) -> Tensor[]").inplace("_foreach_asin_").use(each("aten::asin"));
UMBRA_OPERATOR("_foreach_atan(Tensor[] self) -> Tensor[]").inplace("_foreach_atan_").use(each("aten::atan"));
UMBRA_OPERATOR("_foreach_ceil(Tensor[] self) -> Tensor[]").inplace("_foreach_ceil_").use(each("aten::ceil"));
UMBRA_OPERATOR("_foreach_cos(Tensor[] self) -> Tensor[]").inplace("_foreach_cos_").use(each("aten::cos"));
UMBRA_OPERATOR("_foreach_cosh(Tensor[] self) -> Tensor[]").inplace("_foreach_cosh_").use(each("aten::cosh"));
UMBRA_OPERATOR("_foreach_erf(Tensor[] self) -> Tensor[]").inplace("_foreach_erf_").use(each("aten::erf"));
UMBRA_OPERATOR("_foreach_erfc(Tensor[] self) -> Tensor[]").inplace("_foreach_erfc_").use(each("aten::erfc"));
UMBRA_OPERATOR("_foreach_exp(Tensor[] self) -> Tensor[]").inplace("_foreach_exp_").use(each("aten::exp"));
UMBRA_OPERATOR("_foreach_expm1(Tensor[] self) -> Tensor[]").inplace("_foreach_expm1_").use(each("aten::expm1"));
UMBRA_OPERATOR("_foreach_floor(Tensor[] self) -> Tensor[]").inplace("_foreach_floor_").use(each("aten::floor"));
UMBRA_OPERATOR("_foreach_frac(Tensor[] self) -> Tensor[]").inplace("_foreach_frac_").use(each("aten::frac"));
UMBRA_OPERATOR("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]")
    .use(each("aten::clone"));
UMBRA_OPERATOR("_foreach_lgamma(Tensor[] self) -> Tensor[]").inplace("_foreach_lgamma_").use(each("aten::lgamma"));
UMBRA_OPERATOR("_foreach_log(Tensor[] self) -> Tensor[]").inplace("_foreach_log_").use(each("aten::log"));
UMBRA_OPERATOR("_foreach_log10(Tensor[] self) -> Tensor[]").inplace("_foreach_log10_").use(each("aten::log10"));
UMBRA_OPERATOR("_foreach_log1p(Tensor[] self) -> Tensor[]").inplace("_foreach_log1p_").use(each("aten::log1p"));
UMBRA_OPERATOR("_foreach_log2(Tensor[] self) -> Tensor[]").inplace("_foreach_log2_").use(each("aten::log2"));
UMBRA_OPERATOR("_foreach_neg(Tensor[] self) -> Tensor[]").inplace("_foreach_neg_").use(each("aten::neg"));
UMBRA_OPERATOR("_foreach_reciprocal(Tensor[] self) -> Tensor[]")
    .inplace("_foreach_reciprocal_")
    .use(each("aten::reciprocal"));
UMBRA_OPERATOR("_foreach_round(Tensor[] self) -> Tensor[]").inplace("_foreach_round_").use(each("aten::round"));
UMBRA_OPERATOR("_foreach_rsqrt(Tensor[] self) -> Tensor[]").inplace("_foreach_rsqrt_").use(each("aten::rsqrt"));
UMBRA_OPERATOR("_foreach_sigmoid(Tensor[] self) -> Tensor[]").inplace("_foreach_sigmoid_").use(each("aten::sigmoid"));
UMBRA_OPERATOR("_foreach_sign(Tensor[] self) -> Tensor[]").inplace("_foreach_sign_").use(each("aten::sign"));
UMBRA_OPERATOR("_foreach_sin(Tensor[] self) -> Tensor[]").inplace("_foreach_sin_").use(each("aten::sin"));
UMBRA_OPERATOR("_foreach_sinh(Tensor[] self) -> Tensor[]").inplace("_foreach_sinh_").use(each("aten::sinh"));
UMBRA_OPERATOR("_foreach_sqrt(Tensor[] self) -> Tensor[]").inplace("_foreach_sqrt_").use(each("aten::sqrt"));
UMBRA_OPERATOR("_foreach_tan(Tensor[] self) -> Tensor[]").inplace("_foreach_tan_").use(each("aten::tan"));
UMBRA_OPERATOR("_foreach_tanh(Tensor[] self) -> Tensor[]").inplace("_foreach_tanh_").use(each("aten::tanh"));
UMBRA_OPERATOR("_foreach_trunc(Tensor[] self) -> Tensor[]").inplace("_foreach_trunc_").use(each("aten::trunc"));
UMBRA_OPERATOR("_foreach_zero(Tensor[] self) -> Tensor[] self_out")
    .inplace("_foreach_zero_")
    .tags({Tag::Generated, Tag::WritesOverlapping, Tag::WritesOneValue})
    .use(each("aten::zero"));
UMBRA_OPERATOR("_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[] self_out")
    .inplace("_foreach_copy_")
    .tags({Tag::Generated})
    .use(each("aten::copy"));

}  // namespace
}  // namespace umbra::ops
