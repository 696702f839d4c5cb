"""Functions of the package whose defaults and limits are not those of the operators they call."""
import re
import warnings

import numpy as np
import pytest
import umbra as torch

F = torch.nn.functional


def test_losses_of_the_package_do_not_reduce_unless_they_are_told_to():
    x, y = torch.rand(4), torch.rand(4)
    assert torch.kl_div(x, y).shape == (4,) and torch.hinge_embedding_loss(x, y).shape == (4,) and torch.kl_div(x, y, reduction=1).shape == ()
    assert torch.ops.aten.kl_div(x, y).shape == () and F.kl_div(x, y, reduction="sum").shape == ()


def test_resize_keeps_elements_and_gradients():
    x = torch.arange(6.0, requires_grad=True)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        x.resize(2, 3).sum().backward()
    assert x.grad.tolist() == [1] * 6
    with pytest.raises(RuntimeError, match="requested resize to 7 \\(7 elements in total\\)"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.resize(7)


def test_modules_of_operators_list_their_names():
    names = {}
    for module in ("special", "linalg", "fft", "nn.functional"):
        exec(f"from umbra.{module} import *", names)
    assert all(name in names for name in ("expit", "cholesky", "rfft", "conv2d", "relu")) and "expit" in dir(torch.special)


def test_what_is_said_of_numbers_that_do_not_fit():
    x, labels = torch.arange(4.), torch.tensor([0, 1])
    for call, text in ((lambda: x.quantile(2.0), "q must be in the range .0, 1. but got 2$"), (lambda: torch.isclose(x, x, rtol=-1.0), "but got -1$"),
                       (lambda: F.cross_entropy(torch.ones(2, 3), labels, label_smoothing=2.0), "Got: 2$"), (lambda: x.normal_(0, -1), "normal expects std >= 0.0, but found std -1"),
                       (lambda: x.masked_select(torch.ones(5, dtype=torch.bool)), r"tensor a \(5\) must match the size of tensor b \(4\)"),
                       (lambda: torch.set_num_threads(0), "set_num_threads expects a positive integer"), (lambda: torch.set_num_threads("a"), "expects an int, but got str"),
                       (lambda: torch.Generator().manual_seed("a"), "manual_seed expected a long, but got str")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_what_numpy_makes_of_tensors():
    import numpy
    assert numpy.isnan(torch.ones(2)).dtype == torch.uint8  # its truths come back as bytes, as in torch
    assert torch.ones(1).__dlpack_device__() == (torch.utils.dlpack.DLDeviceType.kDLCPU, 0)


def test_names_that_torch_has_in_two_places():
    assert torch.to_dlpack is torch.utils.dlpack.to_dlpack
    hook = torch.utils.hooks.unserializable_hook(lambda grad: grad)
    assert hook(1) == 1 and hook.__torch_unserializable__


def test_transforms_under_functorchs_name_warn_and_work():
    with pytest.warns(FutureWarning, match="`functorch.vmap` is deprecated .* use `torch.vmap` instead"):
        doubled = torch.functorch.vmap(lambda x: x * 2)
    assert doubled(torch.ones(2)).tolist() == [2., 2.]


def test_private_helpers_that_packages_call(capsys):
    from umbra.nn.modules.transformer import _get_activation_fn
    from umbra.nn.parallel import data_parallel, parallel_apply
    from umbra.utils.checkpoint import check_backward_validity, detach_variable
    assert _get_activation_fn("gelu") is torch.nn.functional.gelu
    assert torch.utils.data.ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]
    net, x = torch.nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    assert torch.equal(data_parallel(net, x), net(x)) and torch.equal(parallel_apply([net, net], [x, (x,)])[1], net(x))
    assert detach_variable((x * 2, 3))[0].requires_grad and detach_variable((x, 3))[1] == 3
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity([torch.ones(1)])
    torch.manual_seed(0)
    assert torch.nn.init._no_grad_uniform_(torch.ones(2), 0, 1).tolist() == pytest.approx([0.496256, 0.768221], abs=1e-6)


def test_switches_without_effect_are_kept():
    from umbra import _C
    from umbra.backends import nnpack
    assert str(_C._get_accelerator()) == "cpu" and _C._get_privateuse1_backend_name() == "privateuseone"
    assert _C._jit_set_texpr_fuser_enabled(False) is None and not _C._jit_texpr_fuser_enabled()
    _C._jit_set_texpr_fuser_enabled(True)
    with nnpack.flags(False):
        assert nnpack.set_flags(False) == (False,)
    assert nnpack.set_flags(True) == (True,)


def test_choices_of_models_in_parts_are_the_same_everywhere():
    from umbra.distributed.fsdp import ShardingStrategy, StateDictType
    from umbra.distributed.fsdp import fully_sharded_data_parallel as other
    assert other.StateDictType is StateDictType and StateDictType.FULL_STATE_DICT.value == 1 and ShardingStrategy["NO_SHARD"].value == 3


def test_tensors_do_not_travel_between_accelerators_that_are_not_there():
    from umbra.cuda import comm
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        comm.broadcast(torch.ones(1), [0, 1])


def test_a_check_says_a_text_or_what_a_function_makes():
    with pytest.raises(IndexError, match="^too far$"):
        torch._check_index(False, "too far")
    with pytest.raises(ValueError, match="^made here$"):
        torch._check_value(False, lambda: "made here")
    with pytest.raises(TypeError, match="cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all"):
        torch._check(torch.ones(1))
    with pytest.raises(TypeError, match=r"map_\(\): argument 'other' \(position 1\) must be Tensor, not int"):
        torch.ones(2).map_(3, lambda a, b: a)
    assert torch.set_grad_enabled(True).prev


def test_layers_call_what_packages_override():
    class Norm(torch.nn.InstanceNorm1d):
        def _apply_instance_norm(self, input):
            return super()._apply_instance_norm(input) + 1

    signal = torch.rand(2, 5)
    torch.testing.assert_close(Norm(2)(signal), torch.nn.InstanceNorm1d(2)(signal) + 1)
    torch.testing.assert_close(Norm(2)(signal[None]), torch.nn.InstanceNorm1d(2)(signal[None]) + 1)
    layers = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()])
    assert layers._get_abs_string_index(-1) == "1" and torch.nn.Sequential(*layers)._get_item_by_idx(iter("ab"), -2) == "a"
    with pytest.raises(IndexError, match="index 2 is out of range"):
        layers._get_abs_string_index(2)
    with pytest.raises(ValueError, match="SyncBatchNorm number of input channels should be non-zero"):
        torch.nn.SyncBatchNorm(0)(torch.ones(2, 0))


def test_a_recurrent_layer_is_told_that_its_weights_changed():
    layer = torch.nn.LSTM(2, 3)
    layer.weight_hh_l0 = torch.nn.Parameter(torch.zeros(12, 3))
    layer._init_flat_weights()
    layer._update_flat_weights()
    assert not layer._weights_have_changed() and layer._flat_weights[1] is layer.weight_hh_l0


def test_a_replica_shares_all_but_the_parameters():
    layer = torch.nn.BatchNorm1d(3)
    replica = layer._replicate_for_data_parallel()
    assert type(replica) is torch.nn.BatchNorm1d and not replica._parameters and replica.running_mean is layer.running_mean and replica._is_replica
    full, last = layer._get_backward_hooks()
    assert full == [] and last == [] and layer._get_backward_pre_hooks() == []


@pytest.mark.parametrize("call, text", [
    (lambda a: torch.zeros(2, 3.0), "zeros(): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got float\""),
    (lambda a: a.view(2, 3.0), "view(): argument 'size' failed to unpack the object at pos 2 with error"),
    (lambda a: torch.ones(2.0, 3), "ones() takes 1 positional argument but 2 were given"),
    (lambda a: np.mean(a, axis=0), "mean() got an unexpected keyword argument 'axis'"),
    (lambda a: F.interpolate(a[None], scale_factor=torch.tensor(2.0), mode="linear"), "upsample_linear1d() received an invalid combination")])
def test_how_a_call_is_refused_that_no_signature_takes(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call(torch.ones(2, 3))


@pytest.mark.parametrize("call, text", [
    (lambda a: F.linear(a, torch.tensor(1.0)), "both arguments to linear need to be at least 1D, but they are 2D and 0D"),
    (lambda a: F.avg_pool2d(a[None], (2, 2, 2)), "avg_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    (lambda a: F.max_pool3d(a[None, None], 2, (2, 2)), "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints"),
    (lambda a: F.avg_pool3d(a[None, None], (2, 2)), "avg_pool3d: kernel_size must be a single int, or a tuple of three ints"),
    (lambda a: F.conv1d(a[None], torch.ones(1, 2, 2), dilation=0), "dilation should be greater than zero, but got [1, 0]"),
    (lambda a: a.repeat(2, -1), "Trying to create tensor with negative dimension -3: [4, -3]"),
    (lambda a: torch.meshgrid(torch.tensor([[1]]), torch.tensor([1.0]), indexing="ij"), "meshgrid expects all tensors to have the same dtype"),
    (lambda a: a.scatter(1, torch.tensor([0]), 1), "Index tensor must have the same number of dimensions as self tensor"),
    (lambda a: a.unflatten(1, (-1, -1)), "only one dimension can be inferred")])
def test_what_is_said_of_sizes_that_do_not_fit(call, text):
    with pytest.raises(RuntimeError, match=re.escape(text)):
        call(torch.ones(2, 3))


def test_no_groups_at_all():
    with pytest.raises(ZeroDivisionError):
        F.group_norm(torch.ones(1, 2, 3), 0)


def test_a_number_has_nothing_to_transpose():
    with pytest.warns(UserWarning, match="Tensor.T is deprecated on 0-D tensors"), warnings.catch_warnings():
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            assert torch.tensor(1.0).T == 1
        finally:
            torch.set_warn_always(False)
