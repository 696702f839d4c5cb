"""Loading and converting what modules keep: which tensors stay the same objects, and which files fit."""
import gc

import pytest
import umbra as torch
from umbra import nn
from umbra.nn.utils import parametrize


def test_a_batch_norm_takes_states_that_do_not_count_batches():
    norm = nn.BatchNorm1d(2)
    state = {name: value for name, value in norm.state_dict().items() if name != "num_batches_tracked"}
    norm.num_batches_tracked.fill_(3)
    assert not norm.load_state_dict(state).missing_keys
    newer = norm.state_dict()
    del newer["num_batches_tracked"]
    with pytest.raises(RuntimeError, match='Missing key.*"num_batches_tracked"'):
        nn.BatchNorm1d(2).load_state_dict(newer)


def test_an_instance_norm_without_statistics_names_those_that_a_state_has():
    with pytest.raises(RuntimeError, match='Unexpected running stats buffer.*"running_mean" for InstanceNorm1d'):
        nn.InstanceNorm1d(2).load_state_dict({"running_mean": torch.zeros(2)})


def test_a_single_number_is_loaded_from_one_element_and_from_no_longer_row():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(1.0))
    scale = Scale()
    scale.load_state_dict({"weight": torch.tensor([5.0])})
    assert scale.weight.item() == 5
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        scale.load_state_dict({"weight": torch.ones(5)})


def test_a_hook_of_a_child_sees_the_child_s_part_of_a_state():
    model, seen = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)), []
    model[0].register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append(list(state)))
    model.load_state_dict(model.state_dict())
    assert seen == [["0.weight", "0.bias"]]


def test_a_post_hook_must_return_nothing():
    model = nn.Linear(1, 1)
    model.register_load_state_dict_post_hook(lambda module, keys: 3)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        model.load_state_dict(model.state_dict())


def test_an_assigned_parameter_takes_over_whether_gradients_are_wanted():
    model, given = nn.Linear(2, 2), nn.Parameter(torch.ones(2, 2))
    model.weight.requires_grad_(False)
    model.load_state_dict({"weight": given, "bias": torch.ones(2)}, assign=True)
    assert model.weight is given and not given.requires_grad and model.bias.requires_grad


def test_loading_leaves_no_cycles_behind():
    model = nn.LSTM(4, 4)
    state = model.state_dict()
    while gc.collect():  # what others left
        pass
    model.load_state_dict(state)
    assert gc.collect() == 0


def test_an_uninitialised_parameter_does_not_load_into_one_that_has_sizes():
    lazy, linear = nn.LazyLinear(2), nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        linear.load_state_dict(lazy.state_dict())


def test_conversions_keep_parameters_and_gradients_where_they_can_become_what_is_asked_for():
    model = nn.Linear(2, 2)
    weight, weight.grad = model.weight, torch.ones(2, 2)
    gradient = weight.grad
    model.double()
    assert model.weight is weight and weight.grad is gradient and gradient.dtype == torch.float64
    assert nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.shape == (2, 2)
    model.to("meta")
    assert model.weight is not weight and weight.device.type == "cpu" and isinstance(model.weight, nn.Parameter)
    sparse = nn.Linear(2, 2)._apply(lambda t: t.to_sparse())
    assert sparse.weight.layout == torch.sparse_coo


def test_conversions_make_new_parameters_where_that_is_asked_for():
    model = nn.Linear(2, 2)
    weight = model.weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        model.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert model.weight is not weight and weight.dtype == torch.float32


class Shorter(nn.Module):
    def forward(self, x):
        return x

    def right_inverse(self, x):
        return x[:-1]


def test_a_parametrisation_whose_inverse_changes_sizes_is_refused():
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(3, 4), "weight", Shorter())
    model = nn.Linear(3, 4)
    parametrize.register_parametrization(model, "weight", nn.Identity())
    with pytest.raises(ValueError, match="returned by parametrization.right_inverse must have the same shape"):
        parametrize.register_parametrization(model, "weight", Shorter())
    assert len(model.parametrizations.weight) == 1


def test_parametrisations_are_transferred_with_what_they_are_computed_from():
    source, target = nn.Linear(3, 4), nn.Linear(3, 4)
    parametrize.register_parametrization(source, "weight", nn.Tanh())
    assert parametrize.transfer_parametrizations_and_params(source, target) is target
    assert target.parametrizations.weight.original is source.parametrizations.weight.original
    torch.testing.assert_close(target.weight, source.weight)


class Counts(nn.Module):
    def forward(self, x):
        return len(list(self.parameters()))


def test_a_functional_call_may_take_a_tensor_away_and_add_a_parameter():
    linear, x = nn.Linear(1, 1), torch.ones(1, 1)
    assert torch.func.functional_call(linear, {"weight": torch.ones(1, 1), "bias": None}, x).item() == 1
    assert linear.bias is not None
    module = Counts()
    assert torch.func.functional_call(module, {"extra": nn.Parameter(torch.ones(1))}, x) == 1
    assert torch.func.functional_call(module, {"extra": torch.ones(1)}, x) == 0
    assert not hasattr(module, "extra")


def test_the_old_name_of_functional_call_is_deprecated():
    linear, x = nn.Linear(1, 1), torch.ones(1, 1)
    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call`"):
        torch.nn.utils.stateless.functional_call(linear, dict(linear.named_parameters()), x)


def test_what_is_uninitialised_on_both_sides_stays_so():
    layer = nn.LazyLinear(2)
    layer.load_state_dict(nn.LazyLinear(2).state_dict())
    assert layer.has_uninitialized_params() and layer(torch.ones(1, 3)).shape == (1, 2)


def test_hooks_after_a_state_dict():
    module = nn.Linear(1, 1)
    handle = module.register_state_dict_post_hook(lambda *args: {})
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        module.state_dict()
    handle.remove()
    module._register_state_dict_hook(lambda *args: {"all": 1})
    assert module.state_dict() == {"all": 1}
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        nn.Linear(1, 1).state_dict({}, "a.")


def test_types_by_their_old_names():
    assert nn.Linear(1, 1).double().type("torch.FloatTensor").weight.dtype is torch.float32
    module = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="cannot assign 'torch.DoubleTensor' as parameter 'weight'"):
        module.weight = torch.ones(1, dtype=torch.float64)


def test_containers_say_what_they_take():
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        nn.ModuleList(3)
    with pytest.raises(TypeError, match="ModuleDict.update should be called with an iterable of key/value pairs, but got int"):
        nn.ModuleDict().update(3)
    with pytest.raises(TypeError, match="element #0 should be Iterable"):
        nn.ModuleDict([1])
    with pytest.raises(ValueError, match="element #0 has length 3; 2 is required"):
        nn.ModuleDict([("a", 1, 2)])


def test_full_hooks_where_no_input_has_a_gradient():
    module = nn.Linear(1, 1)
    module.register_full_backward_hook(lambda *args: None)
    for backward in (lambda loss: loss.backward(), torch.autograd.backward, lambda loss: torch.autograd.grad(loss, module.weight)):
        with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed with respect to module outputs") as seen:
            backward(module(torch.ones(1, 1)).sum())
        assert seen[0].filename == __file__  # the caller's line, however the pass was begun


def test_a_parameter_that_is_none_cannot_be_asked_for_and_a_buffer_can():
    module = nn.Module()
    module.register_parameter("p", None)
    module.register_buffer("b", None)
    with pytest.raises(AttributeError, match="`p` is not an nn.Parameter"):
        module.get_parameter("p")
    assert module.get_buffer("b") is None
