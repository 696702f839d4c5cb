"""Calls that mix tensors of the meta device with others: refused by the same exceptions, in the same order, as in PyTorch."""
import pytest

import umbra as torch

aten = torch.ops.aten


def on_meta(*size, dtype=None):
    return torch.ones(*size, dtype=dtype, device="meta")


def refused(kind, call, match=""):
    with pytest.raises(kind, match=match) as caught:
        call()
    assert caught.type is kind


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
