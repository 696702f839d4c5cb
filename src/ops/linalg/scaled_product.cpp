// Products of matrices of 8-bit floats, which numbers beside them scale: one for each matrix, or one for each row and
// column.
#include "ops/common/kernel_type.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// Whether `scale` is one number, or `count` of them along `axis` of a matrix.
bool scales_by(const Tensor& scale, int64_t axis, const SymInt& count) {
  return scale.dim() == 2 && scale.sym_size(axis) == count && scale.sym_size(1 - axis) == 1 && scale.is_contiguous();
}

void check_scales(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b) {
  bool types = is_float8(a.dtype()) && is_float8(b.dtype()) && scale_a.dtype() == DType::Float32 &&
               scale_b.dtype() == DType::Float32;
  if (types && scale_a.sym_numel() == 1 && scale_b.sym_numel() == 1) return;
  if (types && scales_by(scale_a, 0, a.sym_size(0)) && scales_by(scale_b, 1, b.sym_size(1))) return;
  fail<ValueError>(
      "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be "
      "float and singletons.\n- For RowWise scaling, a and b should be float8, scales should be float, "
      "scale_a should be (",
      a.sym_size(0), ", 1) and scale_b should be (1, ", b.sym_size(1),
      "), and both should be contiguous.\nGot mat_a.dtype()=", kernel_name(a.dtype()),
      ", scale_a.dtype()=", kernel_name(scale_a.dtype()), ", scale_a.size()=", scale_a.sym_sizes(),
      ", scale_a.stride()=", scale_a.sym_strides(), ", mat_b.dtype()=", kernel_name(b.dtype()),
      ", scale_b.dtype()=", kernel_name(scale_b.dtype()), ", scale_b.size()=", scale_b.sym_sizes(),
      " and scale_b.stride()=", scale_b.sym_strides());
}

/// A number that scales a matrix is none of its dimensions.
Tensor to_broadcast(const Tensor& scale) { return scale.dim() == 2 ? scale : scale.reshape(SymShape{}); }

Tensor scaled_product(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
                      const Tensor& bias, const Tensor& scale_result, std::optional<DType> out_dtype, bool) {
  check(a.dim() == 2, "mat1 must be a matrix");
  check(b.dim() == 2, "mat2 must be a matrix");
  bool by_accelerator = a.device().type != DeviceType::CPU;
  check(!by_accelerator || b.sym_stride(0).same(1), "mat2 must be col_major, got stride (", b.sym_stride(0), ", ",
        b.sym_stride(1), ")");
  check(!by_accelerator || (is_float8(a.dtype()) && is_float8(b.dtype())),
        "Expected both inputs to be fp8 or fp4 types but got self.dtype=", a.dtype(), " and mat2.dtype=", b.dtype());
  check(a.sym_size(1) == b.sym_size(0), "mat_a and mat_b shapes cannot be multiplied (", a.sym_size(0), "x",
        a.sym_size(1), " and ", b.sym_size(0), "x", b.sym_size(1), ")");
  check_scales(a, b, scale_a, scale_b);
  check(!bias.defined() || bias.sym_numel() == b.sym_size(1), "Bias must be size ", b.sym_size(1), " but got ",
        bias.defined() ? bias.sym_numel() : SymInt(0));
  Tensor out = mm(a.to(DType::Float32), b.to(DType::Float32));
  out = out.mul(to_broadcast(scale_a)).mul(to_broadcast(scale_b));
  if (bias.defined()) out = out.add(bias.to(DType::Float32));
  DType dtype = out_dtype.value_or(a.dtype());
  if (scale_result.defined() && is_float8(dtype)) out = out.div(scale_result.reshape(SymShape{}));
  return out.to(dtype);
}

UMBRA_OPERATOR(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? "
    "scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor")
    .out("_scaled_mm.out")
    .all_backends(scaled_product);

}  // namespace
}  // namespace umbra::ops
