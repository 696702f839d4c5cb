"""Optimisers: PyTorch's numbers after a few steps."""
import copy
import re

import pytest

import umbra
from umbra import nn, optim

# Parameters after eight steps on the loss of `train`.
STEPS = [
    ("RMSprop", {}, [0.54498, -1.62534, 0.05045, 2.60268, -0.0, -0.02641]),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.5, "weight_decay": 0.1}, [-1.27369, -1.12132, -1.27056, -1.2339, -0.01989, -0.05148]),
    ("RMSprop", {"maximize": True}, [1.4362, -2.49324, 0.92559, 3.48294, 0.67758, -0.82643]),
    ("Adagrad", {"lr": 0.3}, [-0.39494, -1.27641, -0.77447, 2.03217, 3e-05, -0.0]),
    ("Adagrad", {"lr": 0.3, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.3, "eps": 0.1}, [-0.04012, -1.29633, -0.49505, 2.15377, 0.00022, -0.00387]),
    ("Adadelta", {}, [0.97318, -1.97358, 0.47317, 2.97349, 0.07534, -0.27395]),
    ("Adadelta", {"lr": 2.0, "rho": 0.5, "weight_decay": 0.2, "maximize": True}, [1.03143, -2.03181, 0.53143, 3.03173, 0.13308, -0.33209]),
    ("Adamax", {"lr": 0.1}, [0.24287, -1.40536, -0.28071, 2.34574, 0.02401, 0.09661]),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.6), "weight_decay": 0.3}, [0.20929, -0.98949, -0.30173, 2.1194, 0.0314, -0.03395]),
    ("NAdam", {"lr": 0.1}, [0.33245, -1.48085, -0.15408, 2.43531, -0.002, 0.02328]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.3, "decoupled_weight_decay": True, "momentum_decay": 0.1}, [0.18087, -1.20811, -0.19301, 1.91847, -0.002, 0.02369]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.3}, [0.34655, -1.46819, -0.14375, 2.42978, -0.002, 0.0233]),
    ("RAdam", {"lr": 0.1}, [0.19879, -0.91787, -0.45343, 0.5118, 0.04614, -0.1552]),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.3, "decoupled_weight_decay": True}, [0.08415, -0.73913, -0.43026, 0.2827, 0.03278, -0.11425]),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.3, "betas": (0.8, 0.9), "maximize": True}, [1.65147, -6.53841, 1.33001, 95.22526, 0.23813, -0.517]),
    ("Rprop", {"lr": 0.1}, [-0.64991, -1.13142, -1.14991, 1.35009, 0.0, 0.028]),
    ("Rprop", {"lr": 0.5, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.6)}, [-1.174, -1.1475, -0.945, -1.7, 0.05937, 0.14563]),
    ("ASGD", {"lr": 0.1}, [-0.43104, -1.22186, -0.90884, 0.90489, 0.04301, -0.12822]),
    ("ASGD", {"lr": 0.1, "lambd": 0.2, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}, [-0.47623, -1.12909, -0.84371, 0.63029, 0.0341, -0.10173]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}, [-1.79475, -1.15266, -1.30897, -0.85438, -0.05992, 0.18081]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.2}, [0.1963, -1.26076, -0.30112, 2.23021, 0.0528, 0.14108]),
    ("AdamW", {"lr": 0.1}, [0.18944, -1.25757, -0.30387, 2.21255, 0.05262, 0.14053]),
    ("Adafactor", {"lr": 0.1}, [-0.83624, -1.32497, -0.46471, 2.075, 0.00909, -0.1752]),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 2.0}, [-1.35459, -1.14319, -1.14967, -0.07399, -0.0, -0.0331]),
]


def train(make, count):
    matrix = nn.Parameter(umbra.tensor([[1., -2.], [0.5, 3.]]))
    vector = nn.Parameter(umbra.tensor([0.1, -0.3], dtype=umbra.float64))
    optimizer = make([matrix, vector])
    for _ in range(count):
        optimizer.zero_grad()
        ((matrix ** 4).sum() * 0.1 + (matrix.sin() * 2).sum() + (vector ** 2).sum() + vector.cos().sum()).backward()
        optimizer.step()
    return matrix.detach().flatten().tolist() + vector.detach().tolist()


@pytest.mark.parametrize("name, options, values", STEPS)
def test_steps_are_those_of_pytorch(name, options, values):
    assert train(lambda params: getattr(optim, name)(params, **options), 8) == pytest.approx(values, abs=4e-5)


@pytest.mark.parametrize("name, options, values", STEPS)
def test_loaded_state_goes_on_as_before(name, options, values):
    def make(params):
        first = getattr(optim, name)(params, **options)
        step = first.step

        def reload():  # each step by a new optimiser with the state of the one before
            step()
            second = getattr(optim, name)(params, **options)
            second.load_state_dict(first.state_dict())
            first.state, first.param_groups = second.state, second.param_groups
        first.step = reload
        return first
    assert train(make, 8) == pytest.approx(values, abs=4e-5)


def test_bad_options_are_refused():
    parameter = nn.Parameter(umbra.ones(1))
    for name, options, text in [("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"), ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value"),
                                ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"), ("Adamax", {"betas": (1.5, 0.5)}, "Invalid beta parameter at index 0"),
                                ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value"), ("Rprop", {"etas": (1.5, 0.5)}, "Invalid eta values"),
                                ("ASGD", {"lr": -1}, "Invalid learning rate: -1"), ("RAdam", {"eps": -1}, "Invalid epsilon value: -1")]:
        with pytest.raises(ValueError, match=text):
            getattr(optim, name)([parameter], **options)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        optim.Adam([parameter], fused=True, foreach=True)
    with pytest.raises(TypeError):
        optim.SGD([parameter], lr=0.1, unknown=1)


def test_averages_of_a_model():
    from umbra.optim import swa_utils
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    mean = swa_utils.AveragedModel(model)
    decaying = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)
    for value in (1., 2., 6.):
        nn.init.constant_(model[0].weight, value)
        mean.update_parameters(model)
        decaying.update_parameters(model)
    assert mean.module[0].weight.item() == pytest.approx(3) and decaying.module[0].weight.item() == pytest.approx(1.59)
    assert mean.n_averaged.item() == 3
    swa_utils.update_bn([umbra.tensor([[1.], [3.]]), (umbra.tensor([[4.], [5.]]),)], mean)
    assert mean.module[1].running_mean.item() == pytest.approx(9.75) and mean.module[1].momentum == 0.1


@pytest.mark.parametrize("options, rates", [
    ({"anneal_epochs": 3, "anneal_strategy": "linear"}, [1.0, 0.7, 0.4, 0.1, 0.1]),
    ({"anneal_epochs": 4}, [1.0, 0.868198, 0.55, 0.231802, 0.1]),
    ({"anneal_epochs": 0}, [0.1, 0.1]),
])
def test_rates_towards_an_average(options, rates):
    from umbra.optim.swa_utils import SWALR
    optimizer = optim.SGD([nn.Parameter(umbra.zeros(1))], lr=1.0)
    scheduler = SWALR(optimizer, 0.1, **options)
    for rate in rates:
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate, abs=1e-6)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("options, steps, values, calls", [
    ({}, 1, [-1.20927, -1.20933, -1.20933, -1.20929, 0.0, -0.0], 20),
    ({}, 3, [-1.20928, -1.20929, -1.20929, -1.20929, 0.0, -0.0], 23),
    ({"lr": 0.5, "max_iter": 6, "history_size": 3}, 1, [-1.55376, -1.29355, -1.4378, 0.15996, 0.00487, -0.01412], 6),
    ({"lr": 0.5, "max_iter": 6, "history_size": 3}, 3, [-1.20927, -1.20931, -1.20927, -1.20965, -0.00041, 0.0012], 18),
    ({"lr": 0.1, "max_iter": 4}, 1, [0.8173, -1.78748, 0.27428, 2.66615, 0.0898, -0.26914], 4),
    ({"lr": 0.1, "max_iter": 4}, 3, [-0.86277, -1.3842, -1.01661, 1.76653, 0.03665, -0.10986], 12),
])
def test_lbfgs_calls_its_closure_as_often_as_pytorch(options, steps, values, calls):
    matrix = nn.Parameter(umbra.tensor([[1., -2.], [0.5, 3.]], dtype=umbra.float64))
    vector = nn.Parameter(umbra.tensor([0.1, -0.3], dtype=umbra.float64))
    optimizer = optim.LBFGS([matrix, vector], **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = (matrix ** 4).sum() * 0.1 + (matrix.sin() * 2).sum() + (vector ** 2).sum() + vector.cos().sum()
        loss.backward()
        losses.append(loss.item())
        return loss
    for _ in range(steps):
        optimizer.step(closure)
    assert len(losses) == calls
    assert matrix.detach().flatten().tolist() + vector.detach().tolist() == pytest.approx(values, abs=2e-5)
    with pytest.raises(ValueError, match="per-parameter options"):
        optim.LBFGS([{"params": [matrix]}, {"params": [vector]}])


@pytest.mark.parametrize("options, values, calls", [
    ({}, [0.923306, 0.844216, 0.705694], 50),
    ({"lr": 0.1, "max_iter": 5, "history_size": 3}, [-0.895899, 0.816478, 0.671955], 14),
    ({"lr": 10.0, "max_iter": 7}, [-0.735663, 0.539592, 0.259403], 17),
])
def test_lbfgs_searches_along_the_line_as_pytorch_does(options, values, calls):
    place = nn.Parameter(umbra.tensor([-1.2, 1.0, 0.5], dtype=umbra.float64))
    optimizer = optim.LBFGS([place], line_search_fn="strong_wolfe", **options)

    def closure():
        optimizer.zero_grad()
        valley = (100 * (place[1:] - place[:-1] ** 2) ** 2 + (1 - place[:-1]) ** 2).sum()
        valley.backward()
        return valley
    for _ in range(2):
        optimizer.step(closure)
    assert optimizer.state[place]["func_evals"] == calls
    assert place.tolist() == pytest.approx(values, abs=2e-6)


def test_lbfgs_names_the_search_that_it_does_not_know():
    place = nn.Parameter(umbra.ones(1))
    optimizer = optim.LBFGS([place], line_search_fn="golden")

    def closure():
        loss = (place ** 2).sum()
        loss.backward()
        return loss
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)


def test_loaded_state_has_the_type_of_its_parameter():
    def made(dtype):
        parameter = nn.Parameter(umbra.ones(2, dtype=dtype))
        return parameter, optim.SGD([parameter], lr=0.1, momentum=0.9)
    first, of_first = made(umbra.float64)
    first.grad = umbra.ones(2, dtype=umbra.float64)
    of_first.step()
    second, of_second = made(umbra.float32)
    of_second.load_state_dict(of_first.state_dict())
    assert of_second.state[second]["momentum_buffer"].dtype == umbra.float32
    assert of_first.state[first]["momentum_buffer"].dtype == umbra.float64


@pytest.mark.parametrize("name, options", [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}), ("SGD", {"momentum": 0.5, "dampening": 0.3}),
    ("Adam", {"lr": 0.1}), ("Adam", {"amsgrad": True, "weight_decay": 0.2, "maximize": True}), ("AdamW", {"lr": 0.1, "betas": (0.4, 0.9)}),
    ("Adagrad", {"lr": 0.3, "lr_decay": 0.1, "weight_decay": 0.1}), ("Adam", {"lr": umbra.tensor(0.1)})])
def test_a_fused_step_is_the_plain_one(name, options):
    def steps(fused):
        umbra.manual_seed(0)
        parameters = [umbra.randn(5, 3).requires_grad_(), umbra.randn(3, 5).t().requires_grad_(), umbra.randn(2, dtype=umbra.float64).requires_grad_()]
        optimizer = getattr(optim, name)(parameters, fused=fused, **options)
        for _ in range(4):
            optimizer.zero_grad()
            sum((p ** 2).sum() + p.sin().sum() for p in parameters).backward()
            optimizer.step()
        return parameters
    for plain, fused in zip(steps(False), steps(True)):
        umbra.testing.assert_close(fused, plain)


def test_a_fused_step_takes_scaled_gradients_and_skips_infinite_ones():
    p, g = umbra.ones(3), umbra.full((3,), 8.0)
    umbra._fused_sgd_([p], [g], [], weight_decay=0, momentum=0, lr=0.5, dampening=0, nesterov=False, maximize=False, is_first_step=True,
                      grad_scale=umbra.tensor(4.0), found_inf=umbra.tensor(0.0))
    assert p.tolist() == [0.0, 0.0, 0.0] and g.tolist() == [2.0, 2.0, 2.0]
    umbra._fused_sgd_([p], [g], [], weight_decay=0, momentum=0, lr=0.5, dampening=0, nesterov=False, maximize=False, is_first_step=True,
                      found_inf=umbra.tensor(1.0))
    assert p.tolist() == [0.0, 0.0, 0.0]


COMPLEX_STEPS = {  # what PyTorch 2.15 gives after four steps from 1 + 2j, 3 - 1j, 0.5j
    "Adam": ["1.0000+1.9960j", "2.9960-0.9960j", "0.0040+0.5040j"], "RMSprop": ["1.0000+1.7354j", "2.7277-0.7277j", "0.2646+0.7472j"],
    "Adagrad": ["1.0000+1.9723j", "2.9722-0.9722j", "0.0277+0.5276j"], "Adadelta": ["1.0000+1.9870j", "2.9870-0.9870j", "0.0130+0.5130j"],
    "Adamax": ["1.0000+1.9920j", "2.9920-0.9920j", "0.0080+0.5080j"], "NAdam": ["1.0000+1.9934j", "2.9934-0.9934j", "0.0066+0.5066j"],
    "Rprop": ["1.0000+1.9463j", "2.9463-0.9463j", "0.0537+0.5537j"]}


@pytest.mark.parametrize("name", sorted(COMPLEX_STEPS))
def test_parts_of_complex_numbers_are_parameters_of_their_own(name):
    parameter = nn.Parameter(umbra.tensor([1 + 2j, 3 - 1j, 0.5j]))
    optimizer = getattr(optim, name)([parameter])
    for _ in range(4):
        optimizer.zero_grad()
        ((parameter - (1 + 1j)).abs() ** 2 * umbra.tensor([1.0, 2, 3])).sum().backward()
        optimizer.step()
    assert [f"{z.real:.4f}{z.imag:+.4f}j" for z in parameter.tolist()] == COMPLEX_STEPS[name]
    assert all(value.dtype in (umbra.complex64, umbra.float32) and (value.dim() == 0 or value.shape == (3,)) for value in optimizer.state[parameter].values())


DIFFERENTIATED_STEPS = {  # the gradient by the start, from PyTorch 2.15
    "SGD": [0.9990, 1.9960, 3.0090], "RAdam": [0.9990, 1.9960, 3.0090], "ASGD": [0.9900, 1.9600, 3.0900], "Adam": [1.0, 2.0, 3.0],
    "RMSprop": [1.0, 2.0, 3.0], "Adagrad": [1.0, 2.0, 3.0], "NAdam": [1.0, 2.0, 3.0], "Adamax": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize("name", sorted(DIFFERENTIATED_STEPS))
def test_a_step_can_be_differentiated(name):
    start = umbra.tensor([1.0, 2, -3], requires_grad=True)
    parameter = start.clone()
    optimizer = getattr(optim, name)([parameter], differentiable=True)
    parameter.grad = start * start * 0.5 + 1
    optimizer.step()
    (parameter * umbra.tensor([1.0, 2, 3])).sum().backward()
    umbra.testing.assert_close(start.grad, umbra.tensor(DIFFERENTIATED_STEPS[name]), atol=1e-4, rtol=0)


def test_parameters_with_and_without_names_are_not_mixed():
    one, other = nn.Parameter(umbra.ones(2, 2)), nn.Parameter(umbra.ones(2, 2))
    with pytest.raises(ValueError, match="all optimizer params should be with/without names. Some param names are missing"):
        optim.Adam([("one", one), other])


@pytest.mark.parametrize("options, text", [
    ({"lr": umbra.ones(2)}, "Tensor lr must be 1-element"),
    ({"lr": umbra.tensor(0.1), "foreach": True}, "lr as a Tensor is not supported for capturable=False and foreach=True"),
    ({"betas": (0.9, umbra.tensor(0.99))}, "betas must be either both floats or both Tensors"),
])
def test_options_that_are_tensors_are_checked(options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        optim.Adam([nn.Parameter(umbra.ones(2))], **options)


def test_a_descent_without_momentum_keeps_no_state():
    parameter = nn.Parameter(umbra.ones(2))
    optimizer = optim.SGD([parameter])
    parameter.sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"] == {}


def test_lbfgs_climbs():
    parameter = nn.Parameter(umbra.tensor([1.0]))
    optimizer = optim.LBFGS([parameter], maximize=True)

    def closure():
        optimizer.zero_grad()
        height = -(parameter - 3).square().sum()
        height.backward()
        return height

    for _ in range(3):
        optimizer.step(closure)
    assert abs(parameter.item() - 3) < 1e-4


def test_a_rate_that_is_a_tensor_stays_the_same_tensor():
    for make in (lambda o: umbra.optim.lr_scheduler.ExponentialLR(o, 0.5), lambda o: umbra.optim.lr_scheduler.CyclicLR(o, 0.1, 0.2, 2),
                 lambda o: umbra.optim.lr_scheduler.OneCycleLR(o, 0.1, 10)):
        rate = umbra.tensor(0.1)
        optimizer = umbra.optim.SGD([umbra.nn.Parameter(umbra.ones(2))], lr=rate, momentum=0.9)
        scheduler = make(optimizer)
        first = [float(value) for value in scheduler.get_last_lr()]
        optimizer.step()
        kept = scheduler.get_last_lr()[0]
        scheduler.step()
        assert optimizer.param_groups[0]["lr"] is rate
        assert float(kept) == first[0] != float(rate)
        assert optimizer.param_groups[0]["initial_lr"] is not rate


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adamax", "ASGD", "Adagrad", "Adadelta", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_state_of_older_versions_is_completed(name):
    def make():
        weight = umbra.nn.Parameter(umbra.ones(2))
        weight.grad = umbra.ones(2)
        return weight, getattr(umbra.optim, name)([weight], lr=0.1)

    weight, optimizer = make()
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    for group in saved["param_groups"]:
        for option in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "nesterov"):
            group.pop(option, None)
    for values in saved["state"].values():
        if "step" in values:
            values["step"] = values["step"].item()
    older, loaded = make()
    older.data.copy_(weight.data)
    loaded.load_state_dict(saved)
    loaded.step()
    optimizer.step()
    assert older.tolist() == weight.tolist()


def test_a_parameter_twice_in_a_group_is_warned_of():
    weight = umbra.nn.Parameter(umbra.ones(2))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        umbra.optim.SGD([weight, weight], lr=0.1)


def test_an_optimizer_around_another_makes_its_hooks_itself():
    import collections

    class Around(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = collections.OrderedDict(), collections.OrderedDict()
            self._patch_step_function()

        def step(self):
            self.inner.step()
            return "done"
    seen, around = [], Around(optim.SGD([nn.Parameter(umbra.ones(1))], 0.1))
    around.register_step_post_hook(lambda *args: seen.append(1))
    assert around.step() == "done" and seen == [1]


def test_parameters_in_a_set_are_warned_of():
    with pytest.warns(FutureWarning, match="ordered collections"):
        optim.SGD({nn.Parameter(umbra.ones(1))}, lr=0.1)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_fused_steps_are_for_devices_that_have_them(name):
    parameter = nn.Parameter(umbra.ones(2, device="meta"))
    parameter.grad = umbra.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors of supported devices"):
        getattr(optim, name)([parameter], lr=0.1, fused=True).step()


def test_a_step_of_nadam_is_differentiated_with_respect_to_the_product_of_momenta():
    def after(product):
        p = umbra.ones(2, dtype=umbra.float64, requires_grad=True).clone()
        p.grad = umbra.full((2,), 0.5, dtype=umbra.float64)
        optimizer = optim.NAdam([p], lr=0.9, differentiable=True)
        optimizer.state[p] = {"step": umbra.tensor(10.0), "mu_product": product.clone(), "exp_avg": umbra.ones(2, dtype=umbra.float64),
                              "exp_avg_sq": umbra.ones(2, dtype=umbra.float64)}
        optimizer.step()
        return p.sum()

    assert umbra.autograd.gradcheck(after, (umbra.tensor(0.7, dtype=umbra.float64, requires_grad=True),))


def test_lbfgs_takes_a_state_of_before_it_could_maximize():
    p = nn.Parameter(umbra.ones(2))
    optimizer = optim.LBFGS([p])
    state = optimizer.state_dict()
    del state["param_groups"][0]["maximize"]
    optimizer.load_state_dict(state)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert p.abs().max() < 1e-3


def test_gradients_set_to_zero_stay_the_same_tensors():
    weight = nn.Parameter(umbra.ones(2))
    optimizer = optim.SGD([weight], lr=0.1)
    (weight * 2).sum().backward()
    gradient = weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is gradient and gradient.tolist() == [0.0, 0.0]
    weight.grad = (weight * 2).requires_grad_()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.grad_fn is None and not weight.grad.requires_grad and weight.grad.tolist() == [0.0, 0.0]


def test_an_optimiser_without_a_step():
    class Bare(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"rate": optim.optimizer.required})

    with pytest.raises(ValueError, match="required optimization parameter rate"):
        Bare([nn.Parameter(umbra.ones(1))])
    with pytest.raises(NotImplementedError):
        Bare([{"params": [nn.Parameter(umbra.ones(1))], "rate": 1}]).step()


def test_averages_of_integer_buffers():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    seen = []
    for average in (optim.swa_utils.AveragedModel(model, use_buffers=True),
                    optim.swa_utils.AveragedModel(model, use_buffers=True, multi_avg_fn=lambda own, others, count: seen.append({t.dtype for t in own}))):
        for tracked in (2, 4):
            model[1].num_batches_tracked.fill_(tracked)
            average.update_parameters(model)
        assert average.module[1].num_batches_tracked == (3 if average.multi_avg_fn is None else 2)
    assert seen == [{umbra.float32}, {umbra.int64}]  # a function of lists is given tensors of one type


def test_sparse_gradients_elsewhere():
    with pytest.raises(ValueError, match="Complex params at indices \\[\\[0, 0\\]\\]"):
        optim.SparseAdam([nn.Parameter(umbra.ones(2, dtype=umbra.complex64))])
    table = nn.Embedding(4, 2, sparse=True)
    optimizer = optim.SparseAdam(table.parameters())
    table(umbra.tensor([1])).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[table.weight]["step"] == 1 and isinstance(optimizer.state[table.weight]["step"], int)

    def closure():
        table.zero_grad()
        loss = table(umbra.tensor([1, 1])).pow(2).sum()
        loss.backward()
        return loss
    optim.LBFGS(table.parameters()).step(closure)
    assert closure() < 1e-6


@pytest.mark.parametrize("name, of_rate, of_gradient", [("SGD", -18.0, -0.2), ("Adam", -4.0, 0.0), ("AdamW", -4.0559, 0.0), ("RAdam", -18.0, -0.2)])
def test_steps_are_differentiated_by_a_learning_rate_that_is_a_tensor(name, of_rate, of_gradient):
    parameter = umbra.tensor([1.0, 2.0], requires_grad=True) * 1
    rate = umbra.tensor(0.1, requires_grad=True)
    parameter.grad = umbra.tensor([3.0, 6.0], requires_grad=True)
    optimizer = getattr(optim, name)([parameter], lr=rate, differentiable=True)
    for _ in range(2):
        optimizer.step()
    by_rate, by_gradient = umbra.autograd.grad(parameter.sum(), (rate, parameter.grad))
    assert by_rate.item() == pytest.approx(of_rate, abs=1e-3)
    umbra.testing.assert_close(by_gradient, umbra.full((2,), of_gradient), atol=1e-6, rtol=0)


def test_lbfgs_keeps_the_length_of_its_step_as_pytorch_does():
    def after(lr, steps):
        parameter = nn.Parameter(umbra.tensor([1.0, 2.0]))
        optimizer = optim.LBFGS([parameter], lr=lr, max_iter=steps)

        def closure():
            optimizer.zero_grad()
            loss = (parameter ** 4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return optimizer.state[parameter]["t"]

    assert isinstance(after(0.1, 1), umbra.Tensor) and after(0.1, 1).item() == pytest.approx(0.1 / 36)
    assert after(0.1, 5) == 0.1
    assert isinstance(after(umbra.tensor(0.1), 5), umbra.Tensor)


def test_lbfgs_searches_along_a_line_of_no_length():
    parameter = nn.Parameter(umbra.tensor([1.0, 2.0]))
    optimizer = optim.LBFGS([parameter], lr=0.0, line_search_fn="strong_wolfe", max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = (parameter ** 4).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 17
    assert parameter.isfinite().all()
