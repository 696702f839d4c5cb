"""Schedules of learning rates: rates that are tensors, groups that come later, schedules of schedules."""
import pytest
import umbra as torch
from umbra.optim import SGD, lr_scheduler


def optimizer(rate):
    return SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate, momentum=0.9)


@pytest.mark.parametrize("make", [lambda o: lr_scheduler.StepLR(o, 1), lambda o: lr_scheduler.ExponentialLR(o, 0.1), lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.1 ** e)])
def test_a_rate_that_is_a_tensor_is_written_to_and_its_first_value_kept(make):
    rate = torch.tensor(0.5)
    o = optimizer(rate)
    schedule = make(o)
    o.step()
    schedule.step()
    assert o.param_groups[0]["lr"] is rate and rate.item() == pytest.approx(0.05)
    assert schedule.base_lrs[0] == 0.5 and o.param_groups[0]["initial_lr"] == 0.5
    kept = schedule.get_last_lr()[0]
    rate.fill_(9)
    assert kept.item() == pytest.approx(0.05)


def test_a_chain_in_a_sequence():
    o = optimizer(0.05)
    chain = lr_scheduler.ChainedScheduler([lr_scheduler.LinearLR(o, 0.1, total_iters=5), lr_scheduler.ConstantLR(o, 0.1, 5)])
    sequence = lr_scheduler.SequentialLR(o, [chain, lr_scheduler.ConstantLR(o, 0.5, 5)], [3])
    rates = []
    for _ in range(5):
        rates.append(o.param_groups[0]["lr"])
        o.step()
        sequence.step()
    assert rates == pytest.approx([0.0005, 0.0014, 0.0023, 0.025, 0.025])


def test_groups_that_come_after_a_plateau_was_set():
    for least, fails in ([1e-5], True), (1e-5, False):
        o = optimizer(0.1)
        schedule = lr_scheduler.ReduceLROnPlateau(o, patience=0, min_lr=least)
        o.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.05})
        o.step()
        schedule.step(1)
        if fails:
            with pytest.raises(RuntimeError, match=r"The number of param groups in the `optimizer` \(2\) differs"):
                schedule.step(2)
        else:
            schedule.step(2)
            assert [group["lr"] for group in o.param_groups] == pytest.approx([0.01, 0.005])


def test_a_step_that_was_replaced_is_told():
    o = optimizer(0.1)
    schedule = lr_scheduler.StepLR(o, 2)
    o.step = lambda: None
    with pytest.warns(UserWarning, match=r"Seems like `optimizer.step\(\)` has been overridden"):
        schedule.step()


def test_adadelta_is_differentiated_through_its_state():
    change = torch.rand(3, dtype=torch.float64, requires_grad=True)
    start, gradient = (torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def step(start, gradient, change):
        p = start.clone()
        p.grad = gradient
        o = torch.optim.Adadelta([p], differentiable=True)
        o.state[p].update(step=torch.tensor(1.), square_avg=torch.ones(3, dtype=torch.float64), acc_delta=change.clone())
        o.step()
        return p
    assert torch.autograd.gradcheck(step, (start, gradient, change))


def test_gradcheck_moves_what_a_function_reads_from_elsewhere():
    held = {"x": torch.rand(2, dtype=torch.float64, requires_grad=True)}
    assert torch.autograd.gradcheck(lambda ignored: held["x"] * 3, (held["x"],))


@pytest.mark.parametrize("make", [
    lambda optimizer, base, most: lr_scheduler.CyclicLR(optimizer, 0.1, 0.3, step_size_up=4, base_momentum=base, max_momentum=most),
    lambda optimizer, base, most: lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=10, base_momentum=base, max_momentum=most)])
def test_momenta_that_are_tensors_stay_as_they_were_given(make):
    momenta = []
    for convert in (float, torch.tensor):
        optimizer = SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=convert(0.5))
        base, most = convert(0.7), convert(0.9)
        schedule = make(optimizer, base, most)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        momenta.append(float(optimizer.param_groups[0]["momentum"]))
        assert (float(base), float(most)) == pytest.approx((0.7, 0.9))
    assert momenta[0] == pytest.approx(momenta[1])


class TestPlateauOfNegativeMetrics:
    """A relative threshold moves towards zero: equal values below zero count as better when less is better."""

    @staticmethod
    def rates(metrics, **options):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, **options)
        found = []
        for metric in metrics:
            scheduler.step(metric)
            found.append(optimizer.param_groups[0]["lr"])
        return found

    def test_equal_values(self):
        assert self.rates([-1.0, -1.0, -1.0]) == [1.0, 1.0, 1.0]
        assert self.rates([-1.0, -1.0], threshold_mode="abs") == [1.0, 0.1]
        assert self.rates([1.0, 1.0]) == [1.0, 0.1]

    def test_more_is_better(self):
        assert self.rates([-1.0, -1.0, -1.5], mode="max") == [1.0, 1.0, 0.1]

    def test_number_of_least_rates(self):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        with pytest.raises(ValueError, match="expected 1 min_lrs, got 2"):
            torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1, 0.2])


def test_milestones_are_counted():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 2, 5])
    assert scheduler.state_dict()["milestones"] == {2: 2, 5: 1}
    other = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1])
    other.load_state_dict(scheduler.state_dict())
    assert other._factor(2) == pytest.approx(0.01)


def test_a_group_that_has_no_rate_is_an_error():
    o = optimizer(0.1)
    schedule = lr_scheduler.LambdaLR(o, lambda epoch: 0.5)
    o.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 1.0})
    o.step()
    with pytest.raises(ValueError, match="zip"):
        schedule.step()


def test_rates_that_are_asked_for_between_steps():
    seen = []

    class Halving(lr_scheduler.LRScheduler):
        def get_lr(self):
            seen.append(self._get_lr_called_within_step)
            return [group["lr"] / 2 for group in self.optimizer.param_groups]

    o = optimizer(0.1)
    schedule = Halving(o)
    o.step()
    schedule.step()
    schedule.get_lr()
    assert seen == [True, True, False]
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        lr_scheduler.LinearLR(o).get_lr()


def test_members_of_a_schedule_of_schedules():
    o = optimizer(0.1)
    for owner in (lambda members: lr_scheduler.SequentialLR(o, members, [2]), lr_scheduler.ChainedScheduler):
        with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`.* at index 1"):
            owner([lr_scheduler.StepLR(o, 2), lr_scheduler.ReduceLROnPlateau(o)])
        with pytest.raises(TypeError, match="at index 1 should have `optimizer`"):
            owner([lr_scheduler.StepLR(o, 2), 3])
    first_at_once = lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.5), lr_scheduler.LinearLR(o, 0.25)], [0])
    assert first_at_once.get_last_lr() == pytest.approx([0.025])
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        lr_scheduler.CyclicLR(1, 0.1, 0.2)
    with pytest.raises(ValueError, match="Expected float or int eta_min"):
        lr_scheduler.CosineAnnealingWarmRestarts(o, 2, eta_min="a")


def test_a_plateau_cools_down():
    o = optimizer(0.1)
    schedule = lr_scheduler.ReduceLROnPlateau(o, patience=0, cooldown=1)
    cooling = []
    for loss in (1.0, 1.0, 1.0, 1.0):
        schedule.step(loss)
        cooling.append(schedule.in_cooldown)
    assert cooling == [False, True, False, True]


def test_schedules_of_no_iterations_stay_where_they_start():
    for make, rate in ((lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=0), 0.05), (lambda o: lr_scheduler.PolynomialLR(o, 0), 0.1)):
        o = optimizer(0.1)
        schedule = make(o)
        o.step()
        schedule.step()
        assert schedule.get_last_lr() == [rate]


@pytest.mark.parametrize("make, rates", [
    (lambda o: lr_scheduler.StepLR(o, 1), [0.010000000000000002, 0.0010000000000000002, 0.00010000000000000003]),
    (lambda o: lr_scheduler.MultiStepLR(o, [1, 1, 3]), [0.0010000000000000002, 0.0010000000000000002, 0.00010000000000000003]),
    (lambda o: lr_scheduler.LinearLR(o, total_iters=3), [0.05555555555555556, 0.07777777777777778, 0.1]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 2, eta_min=0.01), [0.05500000000000001, 0.01, 0.055]),
])
def test_rates_are_products_of_changes_to_the_last_bit(make, rates):
    o = optimizer(0.1)
    schedule, found = make(o), []
    for _ in range(3):
        o.step()
        schedule.step()
        found += schedule.get_last_lr()
    assert found == rates


def test_a_rate_that_was_changed_by_hand_goes_on_from_there():
    o = optimizer(0.5)
    schedule = lr_scheduler.StepLR(o, 2, gamma=0.0)
    o.param_groups[0]["lr"] = 8.0
    for expected in (8.0, 0.0, 0.0, 0.0):
        o.step()
        schedule.step()
        assert schedule.get_last_lr() == [expected]


def test_a_factor_that_is_no_function_is_refused_at_once():
    o = SGD([torch.ones(1)], 1.0)
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got int"):
        lr_scheduler.MultiplicativeLR(o, 3)


def test_what_packages_override_is_called():
    class Careful(lr_scheduler.ReduceLROnPlateau):
        def _is_better(self, a, best):
            return a <= best

        def _reduce_lr(self, epoch):
            super()._reduce_lr(epoch)
            self.reductions = getattr(self, "reductions", 0) + 1

    o = optimizer(1.0)
    schedule = Careful(o, patience=0, factor=0.5)
    for metric in (2.0, 2.0, 3.0):
        schedule.step(metric)
    assert schedule.reductions == 1 and schedule.get_last_lr() == [0.5]
    schedule._reset()
    assert schedule.best == float("inf") and schedule.num_bad_epochs == 0

    class Linear(lr_scheduler.OneCycleLR):
        @staticmethod
        def _annealing_cos(start, end, pct):
            return 7.0
    assert Linear(optimizer(1.0), 1.0, total_steps=4, cycle_momentum=False).get_last_lr() == [7.0]
    step = lr_scheduler.StepLR(o, 1)
    o.step()
    step.step()
    step._initial_step()
    assert step._step_count == 1 and step.last_epoch == 2
