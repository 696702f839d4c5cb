"""Calls that mix tensors of the meta device with others: refused by the same exceptions, in the same order, as in PyTorch."""
import pytest

import umbra as torch
from refusals import refused

aten = torch.ops.aten


def on_meta(*size, dtype=None):
    return torch.ones(*size, dtype=dtype, device="meta")


COPIED = "cross-device copies are not allowed"


def test_outputs_are_compared_with_the_first_argument_before_it_is_looked_at():
    refused(RuntimeError, lambda: aten.index_select.out(on_meta(2), 3, on_meta(1, dtype=torch.int64), out=torch.ones(2)), COPIED)
    refused(RuntimeError, lambda: aten.norm.out(torch.ones(2), 2, [4], True, out=on_meta(2)), COPIED)
    refused(RuntimeError, lambda: aten.squeeze_copy.dim_out(on_meta(2), 7, out=torch.ones(2)), COPIED)


def test_what_another_argument_is_refused_for_comes_before_outputs():
    index = on_meta(1, dtype=torch.int64)
    refused(IndexError, lambda: aten.index_select.out(torch.ones(2), 3, index, out=torch.ones(2)))


def test_kernels_in_cpp_describe_their_result_before_outputs():
    index = on_meta(1, dtype=torch.int64)
    refused(IndexError, lambda: aten.gather.out(on_meta(2), 3, index, out=torch.ones(2)))
    refused(IndexError, lambda: aten.scatter_add.out(on_meta(2), 3, index, on_meta(1), out=torch.ones(2)))
    refused(IndexError, lambda: aten.cumsum.out(on_meta(2), 3, out=torch.ones(2)))


def test_a_generated_variant_computes_and_copies_to_the_meta_device_nothing():
    out = on_meta(())
    assert aten.full_like.out(torch.ones(3, 4), 2, out=out) is out and out.shape == (3, 4)
    assert aten.full_like.out(on_meta(3), 2, out=torch.ones(())).tolist() == [2, 2, 2]


def test_a_kernel_without_outputs_takes_none():
    refused(TypeError, lambda: aten.resize_as.out(on_meta(2), on_meta(3), out=on_meta(2)), "unexpected keyword argument 'out'")
    refused(TypeError, lambda: aten.bucketize.Scalar_out(1, on_meta(2), out=on_meta(())), "unexpected keyword argument 'out'")


def test_no_kernel_is_asked_about_types():
    assert aten.bucketize.Tensor(on_meta(3), on_meta(2, dtype=torch.complex64)).dtype == torch.int64
    assert aten.put(on_meta(3), torch.ones(2), on_meta(5)).device.type == "meta"
    refused(NotImplementedError, lambda: aten.put(torch.ones(3), on_meta(2), on_meta(2)), "Cannot inplace into non-meta tensor")


def test_fused_steps_that_have_no_meta_kernel_are_refused():
    rest = dict(weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=True)
    refused(NotImplementedError, lambda: aten._fused_sgd_([on_meta(2)], [on_meta(2)], [], **rest), "no fake impl or Meta")


def test_losses_over_classes_name_dimensions_first():
    refused(AssertionError, lambda: aten.nll_loss_forward(torch.ones(()), on_meta(1), None, 1, -1), "1D or 2D, got 0D")
    rest = (None, 1, -1, torch.ones(()))
    refused(AssertionError, lambda: aten.nll_loss2d_backward(torch.ones(1), torch.ones(1), on_meta(1), *rest), "dimension: 1")


def test_nothing_is_drawn_and_nothing_pinned_on_the_meta_device():
    assert aten.randint_like.low_dtype(torch.ones(2), 2, 0, device="meta").device.type == "meta"
    refused(RuntimeError, lambda: aten.randint_like.low_dtype(torch.ones(2), 2, 0), "'from' to be less than 'to'")
    assert aten.zeros_like(torch.ones(2), device=torch.device("meta"), pin_memory=True).device.type == "meta"
    refused(RuntimeError, lambda: aten.zeros_like(torch.ones(2), pin_memory=True))


def test_random_numbers_like_a_meta_tensor_go_to_an_output_with_data():
    out = torch.ones(5)
    assert aten.randint_like.out(on_meta(3), 1, out=out) is out and out.tolist() == [0, 0, 0]


def test_types_that_only_kernels_refuse_are_described():
    z = on_meta(3, dtype=torch.complex64)
    for call in (aten.floor, aten.ceil, aten.trunc, aten.relu, lambda x: aten.maximum(x, x), lambda x: aten.fmax(x, x), lambda x: aten.clamp(x, 1)):
        assert call(z).dtype == torch.complex64
        with pytest.raises(Exception):
            call(torch.ones(3, dtype=torch.complex64))
    assert aten.sort(z)[0].dtype == torch.complex64
    assert aten.max.dim(z, 0)[0].dtype == torch.complex64
    assert aten.var.correction(on_meta(3, dtype=torch.int32)).dtype == torch.int32


def test_dimensions_that_only_kernels_use_are_not_looked_at():
    assert aten._softmax(on_meta(3), 5, False).shape == (3,)
    refused(IndexError, lambda: aten._log_softmax(on_meta(3), 5, False))
    assert aten.sort(on_meta(()), 5)[1].dtype == torch.int64
    assert aten.select_backward(on_meta(3), [1], 3, -1).shape == (1,)
    assert aten.diagonal_backward(on_meta(3), [1], 3, -1, 7).shape == (1,)
    assert aten.min(on_meta(0)).shape == ()
    assert aten.mvlgamma(on_meta(3), 0).shape == (3,)


def test_results_without_elements_may_be_on_another_device():
    empty = aten._segment_reduce_backward(torch.ones(2, dtype=torch.int64), on_meta(5), torch.ones(0, 3), "x", lengths=torch.ones(1))
    assert empty.dtype == torch.int64 and empty.device.type == "cpu"
    refused(RuntimeError, lambda: aten.index_reduce(torch.ones(3), 0, on_meta(2), torch.ones(2), "x"), "at least two devices")
    refused(AssertionError, lambda: aten._segment_reduce_backward(on_meta(2), on_meta(5), on_meta(3), "sum"), "lengths or offsets")


def test_kernels_of_the_meta_device_that_look_at_one_argument():
    assert aten.rrelu_with_noise(on_meta(2), on_meta(3), 3, 1, True).shape == (2,)
    v, g = aten._weight_norm_interface_backward(on_meta(2), on_meta(3, 3), on_meta(7), on_meta(2, 2), 7)
    assert v.shape == (3, 3) and g.shape == (7,)


def test_writes_in_place_that_do_nothing_on_the_meta_device():
    x, meta = torch.ones(3), on_meta(3)
    assert aten.index_reduce_(meta, 7, on_meta(2, 2), torch.ones(()), "x") is meta
    assert aten.rrelu_with_noise_(meta, on_meta(5)) is meta
    refused(NotImplementedError, lambda: aten.index_reduce_(x, 0, on_meta(3), torch.ones(3), "prod"), "Cannot inplace")
    rest = dict(lr=1.0, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
    assert aten._fused_adam_([x], [on_meta(3)], [], [], [], [], **rest) is None and x.tolist() == [1, 1, 1]


def test_arithmetic_in_place_asks_the_meta_device_for_sizes():
    whole = on_meta(3, dtype=torch.int64)
    assert aten.mul_(whole, 0.5) is whole
    assert aten.logical_or_(whole, torch.ones(3)) is whole
    refused(RuntimeError, lambda: aten.add_(whole, 0.5), "Promotion of int.add")
    refused(RuntimeError, lambda: aten.div_(whole, 2), "can't be cast")
    refused(RuntimeError, lambda: aten.mul_(whole, on_meta(2, 3)), "doesn't match the broadcast shape")
    refused(RuntimeError, lambda: aten.le_(torch.ones(()), on_meta(())), COPIED)


def test_outputs_on_the_meta_device_take_what_can_be_cast():
    assert aten.flip.out(on_meta(3), [0], out=on_meta(3, dtype=torch.float64)).dtype == torch.float64
    assert aten.neg.out(on_meta(3, dtype=torch.bfloat16), out=on_meta(3, dtype=torch.float16)).dtype == torch.float16
    refused(RuntimeError, lambda: aten.flip.out(on_meta(3), [0], out=on_meta(3, dtype=torch.int64)))


def test_linear_algebra_that_writes_outputs_is_checked_in_cpp():
    refused(RuntimeError, lambda: aten.linalg_inv_ex.inverse(on_meta(3), inverse=on_meta(3), info=on_meta(3)), "at least 2 dimensions")
    refused(AssertionError, lambda: aten.linalg_inv_ex(on_meta(3)))


def test_accelerators_operators_of_too_few_dimensions_are_refused():
    refused(IndexError, lambda: aten._cudnn_rnn(on_meta(()), [], 0, None, on_meta(()), None, 2, 3, 0, 1, False, 0.0, True, False, [], None))


def test_indices_are_not_looked_at_where_nothing_is_written():
    assert aten.index_put(on_meta(3), [on_meta(2)], torch.ones(7)).shape == (3,)
    assert aten.index_fill.int_Scalar(on_meta(3), 0, on_meta(2), 1).shape == (3,)
    refused(RuntimeError, lambda: aten.index_fill.int_Scalar(on_meta(3), 7, on_meta(2, 2), 1), "dimension 1 or 0")
    refused(RuntimeError, lambda: aten.index.Tensor(on_meta(()), [None, None]), "too many indices")


def test_python_says_what_shapes_lack():
    refused(IndexError, lambda: aten.conv2d(torch.ones(1, 2, 3, 3), on_meta(())), "tuple index out of range")
    refused(ValueError, lambda: aten.grid_sampler_2d(torch.ones(3, 1), on_meta(()), 0, 0, False), r"expected 4, got 2")
    refused(IndexError, lambda: aten.reflection_pad1d(on_meta(()), [1, 1]))
    refused(RuntimeError, lambda: aten.__lshift__.Scalar(on_meta(2), 1), "integral dtype")
    refused(RuntimeError, lambda: aten.mean(on_meta(2, dtype=torch.int64)), "could not infer output dtype")
    refused(RuntimeError, lambda: aten.randn_like(on_meta(2, dtype=torch.int64)), "floating-point or complex")
    refused(AssertionError, lambda: aten.native_batch_norm_backward(torch.ones(2), on_meta(2), None, None, None, None, None, True, 0.1, [True] * 3), "rank")


def test_decompositions_of_meta_tensors_are_not_asked_for_errors():
    assert torch.linalg.inv(on_meta(2, 2)).shape == (2, 2)
    refused(RuntimeError, lambda: aten._linalg_check_errors(on_meta(2), "inv", is_matrix=False))


def test_a_bias_of_attention_has_a_last_dimension():
    heads = [on_meta(1, 2, 3, 4) for _ in range(4)]
    rest = (on_meta(1, 2, 3), 0.0, on_meta(()), on_meta(()), 1, True)
    refused(IndexError, lambda: aten._efficient_attention_backward(*heads, on_meta(()), heads[0], None, None, 3, 3, *rest))


def test_nothing_can_be_copied_out_of_a_meta_tensor():
    refused(NotImplementedError, lambda: aten.copy_(torch.ones(3), on_meta(2)), "no data")
    refused(NotImplementedError, lambda: aten.copy(torch.ones(3), on_meta(3)), "no data")


def test_repeats_of_the_meta_device_are_not_read():
    refused(RuntimeError, lambda: aten.repeat_interleave.Tensor(on_meta(2)), "without output_size")
    assert aten.repeat_interleave.Tensor(on_meta(2), output_size=5).shape == (5,)
    refused(RuntimeError, lambda: aten.repeat_interleave.Tensor_out(on_meta(2), output_size=5, out=torch.ones(5, dtype=torch.int64)))


def test_elements_of_the_meta_device_are_found_nowhere_at_all():
    assert aten.isin.Tensor_Tensor(on_meta(3), torch.ones(2)).device.type == "meta"
    assert aten.bucketize.Tensor(on_meta(3), torch.ones(2)).device.type == "meta"


def test_numbers_between_meta_tensors_are_meta_tensors():
    out = aten.linspace.Tensor_Scalar(on_meta((), dtype=torch.complex64), 1.0, 3)
    assert out.device.type == "meta" and out.dtype == torch.float32


def test_bounds_of_what_is_not_drawn_are_not_asked_for():
    assert aten.randint.generator(0, [2], generator=None, device="meta").shape == (2,)
    refused(RuntimeError, lambda: aten.randint.out(0, [2], out=on_meta(2)), "less than 'to'")
    assert aten.uniform(on_meta(2), 1.0, 0.0).shape == (2,)


# ---- by parts, each of which refuses what does not fit it ----

def test_numbers_around_meta_tensors_are_put_together_by_operators():
    refused(RuntimeError, lambda: aten.normal.Tensor_Tensor(on_meta(2, dtype=torch.int64), on_meta(2)), "floating-point or complex")
    refused(RuntimeError, lambda: aten.normal.Tensor_Tensor(torch.ones(3), on_meta(3)), "not on the expected device")
    refused(RuntimeError, lambda: aten.normal.Tensor_Tensor_out(on_meta(3), on_meta(3), out=torch.ones(3)), COPIED)
    refused(RuntimeError, lambda: aten.normal.Tensor_float_out(torch.ones(3), 1.0, out=on_meta(3)), COPIED)
    refused(RuntimeError, lambda: aten.normal.float_float(0.0, 1.0, [2], dtype=torch.int32, device="meta"), "floating-point or complex")
    out = on_meta(2, dtype=torch.float16)
    assert aten.normal.Tensor_float_out(on_meta(3), 1.0, out=out) is out and out.shape == (3,)


def test_batch_normalisation_compares_no_sizes_beforehand():
    refused(RuntimeError, lambda: aten._native_batch_norm_legit_no_training(torch.ones(3), None, None, torch.ones(()), on_meta(()), 0.1, 0.1), "expected device")
    refused(RuntimeError, lambda: aten._native_batch_norm_legit_no_training(on_meta(3), None, None, on_meta(2), on_meta(2), 0.1, 0.1), "must match the size|broadcast")
    refused(AssertionError, lambda: aten.native_batch_norm(on_meta(2, 3), None, None, None, on_meta(3), False, 0.1, 0.1), "eval mode")
    refused(AssertionError, lambda: aten.cudnn_batch_norm_backward(on_meta(2, 3), on_meta(2, 3), on_meta(3), None, None, None, None, 0.1, on_meta(0)), "training mode")
    refused(NotImplementedError, lambda: aten.cudnn_batch_norm(torch.ones(3, 3, dtype=torch.int64), torch.ones(3), None, None, on_meta(3), True, 0.1, 0.1))
    refused(ZeroDivisionError, lambda: aten.native_batch_norm_backward(on_meta(2, 0), on_meta(2, 0), None, None, None, None, None, True, 0.1, [True] * 3))
    out, mean, invstd = aten._native_batch_norm_legit(on_meta(2, 3, 4), on_meta(3), on_meta(3), on_meta(3), on_meta(3), True, 0.1, 0.1)
    assert out.shape == (2, 3, 4) and mean.shape == invstd.shape == (3,)


def test_attention_of_the_meta_device_takes_sizes_as_they_come():
    x = on_meta(2, 3, 4)
    out, weights = aten._native_multi_head_attention(x, on_meta(1), on_meta(()), 7, 0, x, x, on_meta(5, 1), x)
    assert out.shape == (2, 3, 5) and weights.shape == (2, 3, 3)
    refused(IndexError, lambda: aten._native_multi_head_attention(on_meta(()), x, x, 4, 1, x, x, x, x))


def test_generated_variants_copy_to_outputs_of_the_same_type():
    refused(RuntimeError, lambda: aten.detach_copy.out(on_meta(2), out=on_meta(2, dtype=torch.float64)), "Expected out tensor to have dtype")
    refused(RuntimeError, lambda: aten.alias_copy.out(on_meta(2), out=on_meta(2, dtype=torch.float64)), "torch.float32 but got torch.float64")
    assert aten.clone.out(on_meta(2), out=on_meta(2, dtype=torch.float64)).dtype == torch.float64


def test_types_of_masks_and_positions_are_asked_for_first():
    call = aten._unsafe_masked_index_put_accumulate
    refused(RuntimeError, lambda: call(on_meta(0), torch.ones(1), [None], torch.ones(2)), "masks must be bool")
    refused(RuntimeError, lambda: call(on_meta(0), torch.ones(1), [torch.ones(1)], torch.ones(2)), "indices must be long")
    assert aten.index_select(on_meta(5, 1), 0, on_meta(2, 2)).shape == (4, 1)


def test_what_resizes_sparse_tensors_leaves_those_of_the_meta_device_alone():
    x = on_meta(2, 3)
    assert aten.sparse_resize_(x, [7], 1, 0) is x and x.shape == (2, 3)
    assert aten._coalesced_(x, True) is x
    refused(RuntimeError, lambda: aten._coalesced_(torch.ones(2, requires_grad=True), True), "leaf Variable")


def test_lengths_of_sequences_are_all_that_their_loss_is_described_by():
    loss, alpha = aten._ctc_loss(on_meta(4, 2, 3), on_meta(3, dtype=torch.int64), [4, 3], [1, 2])
    assert loss.shape == (2,) and alpha.shape == (2, 4, 5)
    refused(RuntimeError, lambda: aten._ctc_loss(on_meta(()), torch.ones(2), [1], [1]), "scalar type")
    refused(RuntimeError, lambda: aten._ctc_loss(on_meta(2, 2, 2), on_meta(2, dtype=torch.int64), [1], [1]), "batch_size")


def test_gates_of_recurrent_cells_fit_their_states():
    refused(RuntimeError, lambda: aten._thnn_fused_lstm_cell(on_meta(2, 8), on_meta(2, 8), on_meta(2, 3)), "!=")
    assert aten._thnn_fused_lstm_cell(on_meta(2, 8), on_meta(2, 8), on_meta(2, 2))[2].shape == (2, 8)


@pytest.mark.parametrize("kind, call", [
    (ValueError, lambda: aten.upsample_bicubic2d(on_meta(()), [2], False)),
    (ValueError, lambda: aten.upsample_bilinear2d(on_meta(2, 2), [2, 2], False)),
    (ValueError, lambda: aten.upsample_linear1d(on_meta(2, 2, 2), [], False)),
    (RuntimeError, lambda: aten.segment_reduce(on_meta(()), "mean", axis=2 ** 62)),
    (RuntimeError, lambda: aten.__irshift__.Scalar(on_meta(3, 5), 1)),
    (RuntimeError, lambda: aten.__ilshift__.Tensor(on_meta(3, 5), on_meta(5))),
    (RuntimeError, lambda: aten.deg2rad_(on_meta(2, dtype=torch.complex64))),
    (TypeError, lambda: aten.softshrink(on_meta(2, dtype=torch.int64))),
])
def test_what_is_asked_of_tensors_without_data_alone(kind, call):
    refused(kind, call)


@pytest.mark.parametrize("kind, call", [
    (IndexError, lambda: aten.max_pool2d_with_indices(on_meta(2), [1])),
    (RuntimeError, lambda: aten.nll_loss2d_forward(torch.ones(3, dtype=torch.int32), on_meta(()), None, -1, 5)),
    (IndexError, lambda: aten.nll_loss2d_forward(torch.rand(5, 5), torch.ones(4, 1, 0, dtype=torch.int8), on_meta(()), 2, -1)),
])
def test_dimensions_that_parts_of_an_operator_look_for(kind, call):
    refused(kind, call)


def test_a_sequence_gives_an_output_without_data_its_shape():
    assert aten.arange.out(1.0, out=on_meta(())).shape == (1,)
    assert aten.linspace.out(0, 1, 4, out=on_meta(2, 2)).shape == (4,)
    assert aten.range.out(0, 0, out=on_meta(())).shape == ()


@pytest.mark.parametrize("call, kind, text", [
    (lambda: aten.nll_loss_backward(on_meta(2, 3), on_meta(5), on_meta((), dtype=torch.int64), None, 1, 3, on_meta(())), AssertionError, "single element grad_output"),
    (lambda: aten.max_pool2d_with_indices_backward(on_meta(()), on_meta(2), [1], [1], [0], [1], False, on_meta(2, dtype=torch.int64)), IndexError, "but got -3"),
    (lambda: aten.log_sigmoid_forward(on_meta((), dtype=torch.bool)), NotImplementedError, "Negation"),
    (lambda: aten.flip(on_meta(2), [0, 0, 9]), IndexError, "but got 9"),
    (lambda: aten.var_mean.dim(on_meta(2, dtype=torch.int32), [3]), IndexError, "but got 3"),
    (lambda: aten._fft_r2c(on_meta(2, dtype=torch.int64), [0], 0, True), RuntimeError, "Expected cond to be True"),
    (lambda: aten.segment_reduce(torch.rand(5, 3), "", lengths=on_meta(()), axis=1), IndexError, "tuple index out of range"),
    (lambda: aten.glu_backward(on_meta(()), torch.rand(()), 0), AssertionError, "0-dimensional"),
    (lambda: aten.amax(on_meta(1, 0), [1]), RuntimeError, "without identity"),
    (lambda: aten.aminmax(on_meta(1, 0), dim=1), RuntimeError, "without identity"),
    (lambda: aten._unsafe_index.Tensor(on_meta(2), []), RuntimeError, "at least one index"),
    (lambda: aten._softmax(on_meta(2), 5, True), AssertionError, "expected half or bfloat16"),
    (lambda: aten.complex.out(torch.rand(2), on_meta((), dtype=torch.int64), out=torch.rand(2)), AssertionError, "imag must be floating point"),
    (lambda: aten.logaddexp2(on_meta(2, dtype=torch.complex64), on_meta(2)), RuntimeError, "complex"),
    (lambda: aten.logaddexp(on_meta(2, dtype=torch.bool), on_meta(2, dtype=torch.bool)), NotImplementedError, "Subtraction"),
    (lambda: aten.igammac_(on_meta(2, dtype=torch.int64), on_meta(2)), RuntimeError, "can't be cast"),
    (lambda: aten.randn([2], dtype=torch.int64, device="meta"), RuntimeError, "expected a floating-point or complex dtype"),
    (lambda: aten._amp_update_scale.out(on_meta(()), on_meta(()), on_meta(()), 2.0, 0.5, 3, out=torch.ones(1, dtype=torch.int64)), RuntimeError, "Expected out tensor to have dtype"),
    (lambda: aten.mkldnn_convolution.out(torch.rand(()), on_meta(1, 1, 3), None, [0], [1], [1], 1, out=torch.rand(1)), RuntimeError, "convolution dimensions"),
])
def test_what_the_meta_device_says_first(call, kind, text):
    refused(kind, call, text)


@pytest.mark.parametrize("call", [
    lambda out: aten.sgn.out(on_meta(2), out=out),
    lambda out: aten.t_copy.out(on_meta(2), out=out),
    lambda out: aten.mm.out(on_meta(2, 2), on_meta(2, 2), out=out),
    lambda out: aten.linalg_vector_norm.out(on_meta(2), 2, [0], out=out),
    lambda out: aten.upsample_nearest1d.out(on_meta(1, 1, 2), [3], out=out),
])
def test_outputs_of_exactly_the_described_type(call):
    assert call(on_meta(0)).dtype is torch.float32
    refused(RuntimeError, lambda: call(on_meta(0, dtype=torch.float64)), "Expected out tensor to have dtype torch.float32 but got torch.float64 instead")


def test_an_output_of_another_type_is_cast_to_where_no_exact_one_is_asked_for():
    assert aten.sin.out(on_meta(2), out=on_meta(0, dtype=torch.float64)).dtype is torch.float64


def test_a_logit_in_place_is_of_any_type_without_data():
    assert on_meta(2, dtype=torch.uint8).logit_().dtype is torch.uint8


def test_what_kernels_with_data_alone_would_refuse():
    assert aten._softmax(on_meta(2, dtype=torch.float16), 0, True).dtype is torch.float32
    assert aten.igamma(on_meta(2, dtype=torch.int64), on_meta(2, dtype=torch.int64)).dtype is torch.float32
    assert aten.native_dropout(on_meta(2), 2.0, True)[1].dtype is torch.bool
