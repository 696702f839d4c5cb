"""Schedules step by step: PyTorch's rates and states, and schedules that resume."""
import pytest

import umbra
from umbra import nn, optim
from umbra.optim import lr_scheduler as schedules


# Rates of two groups and the momentum of the first, epoch by epoch.
RATES = {
    "mult": [[1.0, 0.5, 0.9], [0.9, 0.25, 0.9], [0.81, 0.083333, 0.9], [0.729, 0.020833, 0.9]],
    "poly": [[1.0, 0.5, 0.9], [0.5625, 0.28125, 0.9], [0.25, 0.125, 0.9], [0.0625, 0.03125, 0.9], [0.0, 0.0, 0.9], [0.0, 0.0, 0.9], [0.0, 0.0, 0.9]],
    "cawr": [[1.0, 0.5, 0.9], [0.55, 0.3, 0.9], [1.0, 0.5, 0.9], [0.868198, 0.441421, 0.9], [0.55, 0.3, 0.9], [0.231802, 0.158579, 0.9], [1.0, 0.5, 0.9], [0.965746, 0.484776, 0.9], [0.868198, 0.441421, 0.9]],
    "cawr1": [[1.0, 0.5, 0.9], [0.75, 0.375, 0.9], [0.25, 0.125, 0.9], [1.0, 0.5, 0.9], [0.75, 0.375, 0.9], [0.25, 0.125, 0.9], [1.0, 0.5, 0.9], [0.75, 0.375, 0.9]],
    "cyc": [[0.1, 0.1, 0.9], [0.55, 1.05, 0.85], [1.0, 2.0, 0.8], [0.7, 1.366667, 0.833333], [0.4, 0.733333, 0.866667], [0.1, 0.1, 0.9], [0.55, 1.05, 0.85], [1.0, 2.0, 0.8], [0.7, 1.366667, 0.833333]],
    "cyc2": [[0.1, 0.1, 0.9], [0.55, 0.55, 0.85], [1.0, 1.0, 0.8], [0.55, 0.55, 0.85], [0.1, 0.1, 0.9], [0.325, 0.325, 0.875], [0.55, 0.55, 0.85], [0.325, 0.325, 0.875], [0.1, 0.1, 0.9]],
    "cyc3": [[0.1, 0.1, 0.9], [0.505, 0.505, 0.9], [0.829, 0.829, 0.9], [0.42805, 0.42805, 0.9], [0.1, 0.1, 0.9], [0.365721, 0.365721, 0.9], [0.578297, 0.578297, 0.9], [0.315234, 0.315234, 0.9], [0.1, 0.1, 0.9]],
    "cyc4": [[0.1, 0.1, 0.9], [0.55, 0.55, 0.85], [1.0, 1.0, 0.8], [0.55, 0.55, 0.85], [0.1, 0.1, 0.9], [0.325, 0.325, 0.875], [0.55, 0.55, 0.85], [0.325, 0.325, 0.875], [0.1, 0.1, 0.9]],
    "one": [[0.04, 0.08, 0.95], [0.52, 1.04, 0.9], [1.0, 2.0, 0.85], [0.950485, 1.900969, 0.854952], [0.811746, 1.623491, 0.868826], [0.611262, 1.222524, 0.888874], [0.388742, 0.777484, 0.911126], [0.188258, 0.376517, 0.931174], [0.049519, 0.099039, 0.945048], [4e-06, 8e-06, 0.95]],
    "one2": [[0.1, 0.1, 0.95], [0.55, 0.55, 0.9], [1.0, 1.0, 0.85], [0.55, 0.55, 0.9], [0.1, 0.1, 0.95], [0.088571, 0.088571, 0.95], [0.077143, 0.077143, 0.95], [0.065714, 0.065714, 0.95], [0.054286, 0.054286, 0.95], [0.042857, 0.042857, 0.95], [0.031429, 0.031429, 0.95], [0.02, 0.02, 0.95]],
    "chain": [[1.0, 0.5, 0.9], [0.9, 0.45, 0.9], [0.405, 0.2025, 0.9], [0.3645, 0.18225, 0.9], [0.164025, 0.082013, 0.9]],
    "seq": [[0.1, 0.05, 0.9], [0.1, 0.05, 0.9], [1.0, 0.5, 0.9], [0.666667, 0.333333, 0.9], [0.333333, 0.166667, 0.9], [0.0, 0.0, 0.9]],
}


MAKERS = {
    "mult": lambda o: schedules.MultiplicativeLR(o, [lambda e: .9, lambda e: 1 / (e + 1)]),
    "poly": lambda o: schedules.PolynomialLR(o, 4, 2.),
    "cawr": lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2, .1),
    "cawr1": lambda o: schedules.CosineAnnealingWarmRestarts(o, 3),
    "cyc": lambda o: schedules.CyclicLR(o, .1, [1., 2.], 2, 3),
    "cyc2": lambda o: schedules.CyclicLR(o, .1, 1., 2, mode="triangular2"),
    "cyc3": lambda o: schedules.CyclicLR(o, .1, 1., 2, mode="exp_range", gamma=.9, cycle_momentum=False),
    "cyc4": lambda o: schedules.CyclicLR(o, .1, 1., 2, scale_fn=lambda x: 1 / x, scale_mode="cycle"),
    "one": lambda o: schedules.OneCycleLR(o, [1., 2.], total_steps=10),
    "one2": lambda o: schedules.OneCycleLR(o, 1., epochs=2, steps_per_epoch=6, pct_start=.25, anneal_strategy="linear", three_phase=True,
                                           div_factor=10., final_div_factor=5.),
    "chain": lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 2, .5), schedules.ExponentialLR(o, .9)]),
    "seq": lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, .1, 2), schedules.PolynomialLR(o, 3)], [2]),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_are_those_of_pytorch(name):
    first, second = nn.Parameter(umbra.zeros(1)), nn.Parameter(umbra.zeros(1))
    groups = [{"params": [first]}, {"params": [second], "lr": .5}]
    adam = name in ("cyc2", "one2")
    optimizer = optim.Adam(groups, lr=1.) if adam else optim.SGD(groups, lr=1., momentum=.9)
    scheduler = MAKERS[name](optimizer)
    for wanted in RATES[name]:
        one, two = optimizer.param_groups
        assert [one["lr"], two["lr"], one["betas"][0] if adam else one["momentum"]] == pytest.approx(wanted, abs=1e-6)
        optimizer.step()
        scheduler.step()


def test_states_of_schedulers_have_pytorchs_entries():
    """So that files of the one load in the other."""
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.1, momentum=0.9)
    always = {"base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"}
    assert set(schedules.StepLR(optimizer, 2).state_dict()) == always | {"step_size", "gamma"}
    assert schedules.LambdaLR(optimizer, lambda epoch: 1.0).state_dict()["lr_lambdas"] == [None]
    phases = schedules.OneCycleLR(optimizer, 1.0, total_steps=5).state_dict()["_schedule_phases"]
    assert [phase["end_step"] for phase in phases] == [0.5, 4] and phases[1]["end_lr"] == "min_lr"
    plateau = schedules.ReduceLROnPlateau(optimizer)
    assert isinstance(plateau, schedules.LRScheduler) and plateau.state_dict()["mode_worse"] == float("inf")
    one = schedules.StepLR(optimizer, 2)
    assert "_milestones" in schedules.SequentialLR(optimizer, [one, schedules.StepLR(optimizer, 3)], [2]).state_dict()


def test_functions_with_attributes_are_saved_with_a_scheduler():
    class Constant:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, epoch):
            return self.factor

    def scheduler(factor):
        return schedules.LambdaLR(optim.SGD([nn.Parameter(umbra.ones(1))], lr=1.0), Constant(factor))
    other = scheduler(3.0)
    other.load_state_dict(scheduler(2.0).state_dict())
    other.optimizer.step()
    other.step()
    assert other.get_last_lr() == [2.0]


def test_a_scheduler_that_steps_before_its_optimizer_warns():
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedules.StepLR(optimizer, 2).step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        schedules.StepLR(optimizer, 2).step(3)


def test_warm_restarts_begin_anew_after_a_milestone():
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], lr=1.0)
    parts = [schedules.ConstantLR(optimizer, 0.1, 2), schedules.CosineAnnealingWarmRestarts(optimizer, 3)]
    both, rates = schedules.SequentialLR(optimizer, parts, [2]), []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        both.step()
    assert rates == pytest.approx([0.1, 0.1, 1.0, 0.75, 0.25, 1.0])


def test_a_plateau_lowers_the_rates_of_groups_that_came_later():
    optimizer = umbra.optim.SGD([umbra.nn.Parameter(umbra.ones(2))], lr=0.1)
    scheduler = umbra.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.01)
    optimizer.add_param_group({"params": [umbra.nn.Parameter(umbra.ones(2))], "lr": 1.0})
    scheduler.step(1.0)
    scheduler.step(2.0)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.01, 0.1])
    each = umbra.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    optimizer.add_param_group({"params": [umbra.nn.Parameter(umbra.ones(2))]})
    each.step(1.0)
    with pytest.raises(RuntimeError, match="number of param groups in the `optimizer` .3. differs"):
        each.step(2.0)


@pytest.mark.parametrize("name, options, rates", [
    ("ExponentialLR", dict(gamma=0.9), [0.1, 0.09, 0.081]),
    ("MultiplicativeLR", dict(lr_lambda=lambda epoch: 0.9), [0.1, 0.09, 0.081]),
    ("LinearLR", dict(total_iters=4), [0.1, 0.12, 0.12]),
    ("PolynomialLR", dict(total_iters=5, power=2.0), [0.1, 0.025, 0.0]),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.01), [0.1, 0.0348754, 0.01]),
])
def test_a_schedule_that_resumes_starts_from_the_rates_that_are_set(name, options, rates):
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], 0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    schedule = getattr(schedules, name)(optimizer, last_epoch=2, **options)
    seen = [optimizer.param_groups[0]["lr"]]
    for _ in range(2):
        optimizer.step()
        schedule.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx(rates, abs=1e-6)


def test_beyond_its_end_a_polynomial_keeps_the_rate_that_is_set():
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], 0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    schedule = schedules.PolynomialLR(optimizer, total_iters=5, last_epoch=5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_warm_restarts_find_their_cycle():
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], 0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    schedule = schedules.CosineAnnealingWarmRestarts(optimizer, 3, 2, last_epoch=5)
    assert optimizer.param_groups[0]["lr"] == 0.1
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0933013, abs=1e-6)


@pytest.mark.parametrize("last_epoch", [-1, 0, 4])
def test_the_way_to_an_average_begins_where_its_schedule_does(last_epoch):
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], 0.05)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    schedule = optim.swa_utils.SWALR(optimizer, 0.01, anneal_epochs=3, anneal_strategy="linear", last_epoch=last_epoch)
    seen = [optimizer.param_groups[0]["lr"]]
    for _ in range(4):
        optimizer.step()
        schedule.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([0.05, 0.0366667, 0.0233333, 0.01, 0.01], abs=1e-6)


def _rates_in_sequence(second, milestone=2):
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], lr=1.0)
    schedule = schedules.SequentialLR(optimizer, [schedules.StepLR(optimizer, 1, gamma=0.1), second(optimizer)], [milestone])
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


def test_a_multiplicative_schedule_multiplies_at_its_milestone():
    multiplicative = lambda optimizer: schedules.MultiplicativeLR(optimizer, lambda epoch: 0.9)  # noqa: E731
    assert _rates_in_sequence(multiplicative) == pytest.approx([1.0, 0.1, 0.09, 0.081, 0.0729])
    alone = optim.SGD([nn.Parameter(umbra.ones(1))], lr=1.0)
    first = multiplicative(alone)
    schedules.SequentialLR(alone, [first, schedules.StepLR(alone, 1)], [3])
    assert alone.param_groups[0]["lr"] == 1.0  # the first one only starts


def test_schedules_in_a_chain_cannot_begin_at_a_milestone():
    with pytest.raises(NotImplementedError, match="milestone"):
        _rates_in_sequence(lambda optimizer: schedules.ChainedScheduler([schedules.ExponentialLR(optimizer, 0.9)]))


def test_the_state_of_a_schedule_has_pytorch_s_order():
    optimizer = optim.SGD([nn.Parameter(umbra.ones(1))], lr=1.0)
    assert list(schedules.StepLR(optimizer, 2).state_dict()) == [
        "step_size", "gamma", "base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"]
