// The order of refusals of out variants on the meta device, where PyTorch has kernels of two kinds. Those written in
// Python compare their outputs' device with the first argument's before all else. Those in C++ describe their result
// first, and so do the variants that PyTorch generates as a call and a copy.
#include <algorithm>
#include <string>
#include <string_view>

#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {
namespace {

/// Generated variants that are written in Python all the same.
constexpr std::string_view kGeneratedInPython[] = {
    "__lshift__.Scalar_out", "__lshift__.Tensor_out", "__rshift__.Scalar_out", "__rshift__.Tensor_out",
    "_adaptive_avg_pool2d.out", "_adaptive_avg_pool3d_backward.out", "_cdist_backward.out",
    "_cholesky_solve_helper.out", "_euclidean_dist.out", "_pdist_backward.out", "_pdist_forward.out",
    "_segment_reduce_backward.out", "_standard_gamma.out", "_to_copy.out", "_transformer_encoder_layer_fwd.out",
    "_unsafe_view.out", "add.Scalar_out", "affine_grid_generator.out", "alias_copy.out", "as_strided_copy.out",
    "as_strided_scatter.out", "binary_cross_entropy_with_logits.out", "bitwise_and.Scalar_Tensor_out",
    "bitwise_left_shift.Scalar_Tensor_out", "bitwise_or.Scalar_Tensor_out", "bitwise_right_shift.Scalar_Tensor_out",
    "bitwise_xor.Scalar_Tensor_out", "block_diag.out", "cauchy.out", "celu.out", "channel_shuffle.out", "clone.out",
    "constant_pad_nd.out", "count_nonzero.dim_IntList_out", "count_nonzero.out", "diag_embed.out",
    "diagonal_backward.out", "diagonal_copy.out", "diagonal_scatter.out", "dist.out", "div.Scalar_mode_out",
    "div.Scalar_out", "embedding.out", "empty_like.out", "empty_strided.out", "expand_copy.out", "exponential.out",
    "flip.out", "floor_divide.Scalar_out", "geometric.out", "grid_sampler_2d.out", "grid_sampler_3d.out",
    "grid_sampler_3d_backward.out", "hann_window.out", "hann_window.periodic_out", "hardswish_backward.out",
    "index_fill.int_Scalar_out", "index_fill.int_Tensor_out", "isinf.out", "isnan.out", "lift.out",
    "linalg_matrix_exp.out", "linalg_matrix_sqrth.out", "log_normal.out", "masked_fill.Scalar_out",
    "masked_fill.Tensor_out", "masked_scatter.out", "mul.Scalar_out", "native_dropout.out",
    "native_dropout_backward.out", "native_layer_norm.out", "new_empty.out", "new_empty_strided.out", "new_full.out",
    "new_ones.out", "new_zeros.out", "norm.ScalarOpt_dtype_out", "norm.Scalar_out", "normal.out", "ones_like.out",
    "permute_copy.out", "pixel_shuffle.out", "pixel_unshuffle.out", "poisson.out", "relu.out",
    "remainder.Scalar_Tensor_out", "repeat.out", "roll.out", "rot90.out", "rrelu_with_noise_backward.out",
    "rsub.Scalar_out", "rsub.Tensor_out", "select_backward.out", "select_scatter.out", "slice_backward.out",
    "slice_scatter.out", "squeeze_copy.dim_out", "squeeze_copy.dims_out", "squeeze_copy.out",
    "std_mean.correction_out", "sub.Scalar_out", "t_copy.out", "trace.out", "transpose_copy.int_out",
    "unfold_backward.out", "unfold_copy.out", "uniform.out", "unsqueeze_copy.out", "var_mean.correction_out",
    "view_copy.dtype_out", "view_copy.out", "zero.out", "zeros_like.out",
};

/// The others that are not, or that take care of their output themselves.
constexpr std::string_view kDescribeFirst[] = {
    "_chunk_cat.out", "_convert_indices_from_coo_to_csr.out", "_convert_indices_from_csr_to_coo.out",
    "_linalg_det.result", "_linalg_solve_ex.result", "_linalg_svd.U", "_stack.out", "_upsample_bicubic2d_aa.out",
    "_upsample_bicubic2d_aa_backward.grad_input", "_upsample_bilinear2d_aa.out",
    "_upsample_bilinear2d_aa_backward.grad_input", "_upsample_lanczos2d_aa.out",
    "_upsample_lanczos2d_aa_backward.grad_input", "_upsample_nearest_exact1d_backward.grad_input",
    "_upsample_nearest_exact2d_backward.grad_input", "_upsample_nearest_exact3d_backward.grad_input", "amax.out",
    "amin.out", "angle.out", "argmax.out", "argmin.out", "avg_pool2d.out", "avg_pool2d_backward.grad_input",
    "cumprod.out", "cumsum.out", "fractional_max_pool2d.output", "fractional_max_pool2d_backward.grad_input",
    "fractional_max_pool3d.output", "gather.out", "hardshrink_backward.grad_input", "hash_tensor.out",
    "huber_loss_backward.out", "index.Tensor_out", "index_reduce.out", "linalg_cholesky_ex.L",
    "linalg_inv_ex.inverse", "linalg_pinv.atol_rtol_tensor_out", "linalg_solve_triangular.out", "linear.out",
    "log_softmax.int_out", "logit_backward.grad_input", "mean.dtype_out", "mean.out", "prod.int_out",
    "randint.generator_out", "randint.low_generator_out", "randperm.generator_out", "randperm.out", "range.out",
    "range.out_", "scatter.reduce_out", "scatter.src_out", "scatter.value_out", "scatter.value_reduce_out",
    "scatter_add.out", "slow_conv_transpose2d.out", "smooth_l1_loss_backward.grad_input", "softmax.int_out",
    "softshrink_backward.grad_input", "sort.values", "sort.values_stable", "sum.IntList_out",
    "upsample_bicubic2d_backward.grad_input", "upsample_bilinear2d_backward.grad_input",
    "upsample_linear1d_backward.grad_input", "upsample_nearest1d_backward.grad_input",
    "upsample_nearest2d_backward.grad_input", "upsample_nearest3d_backward.grad_input",
    "upsample_trilinear3d_backward.grad_input",
};

bool outputs_first(const Operator& op) {
  std::string full = op.name();
  std::string_view name = full;
  name.remove_prefix(std::min(name.size(), std::string_view("aten::").size()));
  if (op.has_tag(Tag::Generated)) return std::ranges::binary_search(kGeneratedInPython, name);
  return !std::ranges::binary_search(kDescribeFirst, name);
}

[[maybe_unused]] const bool kSet = [] {
  outputs_come_first = outputs_first;
  return true;
}();

}  // namespace
}  // namespace umbra::ops
